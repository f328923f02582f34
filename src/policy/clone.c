/* clone - a private clone of a repository; see clone.h. */
#include "policy/clone.h"

#include "base/buf.h"

/* safe.directory: to git the repository belongs to another user, its owner outside. */
void clone_format_init(const struct policy *p, struct buf *out)
{
	buf_add_text(out, "command -v git >/dev/null || { echo 'agentkernel: --clone needs git in "
			  "the image' >&2; exit 1; }\n");
	buf_add_text(out, "git -c safe.directory='*' -C " CLONE_ORIGIN
			  " rev-parse --quiet --verify HEAD >/dev/null || { echo 'agentkernel: "
			  "--clone needs a commit to begin with' >&2; exit 1; }\n");
	buf_add_text(out, "git -c safe.directory='*' clone --quiet --shared -- " CLONE_ORIGIN " ");
	buf_add_quoted(out, p->workspace);
	buf_add_text(out, " && git -C ");
	buf_add_quoted(out, p->workspace);
	buf_add_text(out, " update-ref " CLONE_BASE_REF " HEAD || exit 1\n");
}

void clone_format_diff(const struct policy *p, struct buf *out)
{
	buf_add_text(out, "cd ");
	buf_add_quoted(out, p->workspace);
	buf_add_text(out, " && git add --all --intent-to-add . && git --no-pager diff --binary "
			  "--no-ext-diff --no-textconv --no-color " CLONE_BASE_REF "\n");
}
