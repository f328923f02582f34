/* pickimage - opens the image of a request; see pickimage.h. */
#include "ops/pickimage.h"

#include "base/cleanup.h"
#include "engine/images.h"
#include "ops/events.h"
#include "ops/op_build.h"
#include "ops/request.h"
#include "policy/environment.h"
#include "policy/policyimage.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int choose_pull(const struct request *r, enum images_pull *ret, struct err *e)
{
	static const char *const names[] = {
		[IMAGES_PULL_MISSING] = "missing",
		[IMAGES_PULL_ALWAYS] = "always",
		[IMAGES_PULL_NEVER] = "never",
	};

	*ret = IMAGES_PULL_MISSING;
	if (!r->pull)
		return 0;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (strcmp(names[i], r->pull) != 0)
			continue;
		*ret = (enum images_pull)i;
		return 0;
	}
	return err_set(e, ERR_INVALID, "--pull: no '%s' (use missing, always or never)", r->pull);
}

bool pickimage_is_on_host(const char *command)
{
	const char *dirs = ENVIRONMENT_PATH;
	char path[PATH_MAX];

	if (strchr(command, '/'))
		return true; /* perhaps in a mount: the sandbox will find out */
	for (; *dirs; dirs += strspn(dirs, ":")) {
		size_t len = strcspn(dirs, ":");

		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)len, dirs, command);
		if (access(path, X_OK) == 0)
			return true;
		dirs += len;
	}
	return false;
}

/* The image was received but is invalid: no fallback. */
static bool is_refused(const struct err *why)
{
	return why->code == ERR_INVALID || why->code == ERR_LIMIT || why->code == ERR_UNSUPPORTED ||
	       why->code == ERR_CORRUPT;
}

/* Falls back to the host's programs, for an image that was only detected. */
static int fall_back(struct request *r, const char *command, const struct op_events *ev,
		     const struct err *why, struct err *e)
{
	if (command && !pickimage_is_on_host(command)) {
		*e = *why;
		return -1;
	}
	if (command)
		op_remark(ev, "%s; running this machine's own '%s' (--image host does so at once)",
			  why->msg, command);
	else
		op_remark(ev,
			  "%s; using this machine's own programs (--image host does so at once)",
			  why->msg);
	return policyimage_use_host(&r->policy, "fallback", e);
}

int pickimage_open(struct request *r, const char *command, const struct op_events *ev,
		   struct images *ret, struct err *e)
{
	struct images_request q = {
		.reference = r->policy.image,
		.ak = r->ak,
		.flags = (r->is_quiet ? IMAGES_QUIET : 0) |
			 (r->is_image_detected ? IMAGES_DETECTED : 0),
	};
	const struct request_build *build = r->server ? &r->server->build : &r->build;
	struct err why = { 0 };
	struct policyimage config;

	if (choose_pull(r, &q.pull, e) < 0)
		return -1;
	if (policy_is_host_image(&r->policy))
		return 0;
	if (build && build->file && strcmp(r->policy.image, build->name) == 0) {
		if (op_build_for(r, build, ev, e) < 0)
			return -1;
		q.pull = IMAGES_PULL_NEVER; /* no registry has it */
	}
	if (r->is_image_detected && !r->pull && images_was_unreachable(q.reference, q.ak))
		q.pull = IMAGES_PULL_NEVER;
	if (images_open(&q, ret, &why) < 0) {
		if (!r->is_image_detected || r->forbids_host || is_refused(&why)) {
			*e = why;
			return -1;
		}
		if (q.pull != IMAGES_PULL_NEVER)
			images_note_unreachable(q.reference, q.ak);
		else if (!r->pull)
			(void)err_set(&why, ERR_NOT_FOUND,
				      "image '%s' could not be pulled recently", q.reference);
		return fall_back(r, command, ev, &why, e);
	}
	config = images_config(ret);
	if (policyimage_apply(&r->policy, &config, e) < 0)
		return -1;
	if (r->forbids_root && r->policy.uid == 0)
		return err_set(e, ERR_DENIED,
			       "user '%s' is root in image '%s', which is not allowed",
			       r->policy.user_text ? r->policy.user_text : "root", q.reference);
	return 0;
}
