/* claim - requests a sandbox from the daemon; see claim.h. */
#include "pool/claim.h"

#include "base/buildid.h"
#include "base/cleanup.h"
#include "engine/images.h"
#include "state/statedir.h"
#include "pool/surroundings.h"
#include "policy/policyfile.h"
#include "protocol/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Leaves room for the repository of a worktree. */
#define TREES_MAX (PLACES_TREES_MAX - 1u)

static bool has_places(const struct policy *p)
{
	return p->workspace || p->mount_count > 0;
}

/*
 * The filter of a pooled sandbox that awaits places refuses set-id modes, as it must for writable
 * directories of the host; for read-only ones it would be too strict.
 */
static bool has_writable_place(const struct policy *p)
{
	bool is_found = p->workspace != NULL;

	for (unsigned i = 0; i < p->mount_count; i++)
		is_found = is_found || !p->mounts[i].is_read_only;
	return is_found;
}

const char *claim_find_obstacle(const struct policy *p)
{
	if (p->home)
		return "it shows your home directory";
	if (p->is_clone)
		return "it works on a private clone";
	if (p->mount_count + 1 > TREES_MAX)
		return "it shows too many directories of the host";
	if (has_places(p) && !has_writable_place(p))
		return "all that it shows of the host is read-only";
	if (p->publish)
		return "it publishes a port";
	if (p->places) /* set only for named sandboxes */
		return "it has a name";
	return NULL;
}

bool claim_format_key(const struct policy *p, const struct images *image, struct buf *out)
{
	struct policy own = *p;

	if (claim_find_obstacle(p))
		return false;
	/* sent when the sandbox is claimed */
	own.workspace = NULL;
	own.protect = own.unprotect = own.mask = NULL;
	own.protects_strictly = false;
	own.mount_count = 0;
	/* sent with the command */
	own.env_count = 0;
	own.passed = NULL;
	own.passes_env = false;
	own.image_env = NULL;
	own.timeout_ms = 0;
	own.workdir = (char *)(uintptr_t) "/";
	own.is_workdir_asked = false;
	if (own.egress.fallback == EGRESS_ALLOW) /* no denial ever names the origin */
		own.egress.fallback_origin = (char *)(uintptr_t)POLICY_ORIGIN_DEFAULT;
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++)
		own.origin[field] = (struct policy_origin){ .text = POLICY_ORIGIN_DEFAULT,
							    .kind = POLICY_ORIGIN_NONE };
	/* origins make no difference, except here: engine/session's ids */
	if (policy_is_asked(p, POLICY_USER) || p->origin[POLICY_USER].kind == POLICY_ORIGIN_IMAGE)
		own.origin[POLICY_USER] = (struct policy_origin){ .text = "asked" };
	buf_add(out, buildid_get(), strlen(buildid_get()) + 1);
	if (!surroundings_format(out))
		return false;
	buf_add(out, "", 1);
	buf_add_text(out, has_places(p) ? "yes" : "no");
	buf_add(out, "", 1);
	buf_addf(out, "%s", image && image->root.layers ? image->root.layers : "");
	buf_add(out, "", 1);
	policyfile_format(&own, out);
	return !out->is_cut;
}

/* Returns the text at *key and moves *key behind its NUL; NULL: not terminated. */
static const char *take_text(const char **key, size_t *len)
{
	const char *text = *key;
	size_t text_len = strnlen(text, *len);

	if (text_len == *len)
		return NULL;
	*key += text_len + 1;
	*len -= text_len + 1;
	return text;
}

int claim_split_key(const char *key, size_t len, struct claim_key *ret, struct err *e)
{
	ret->build = take_text(&key, &len);
	ret->surroundings = ret->build ? take_text(&key, &len) : NULL;
	ret->places = ret->surroundings ? take_text(&key, &len) : NULL;
	ret->layers = ret->places ? take_text(&key, &len) : NULL;
	if (!ret->layers)
		return err_set(e, ERR_INVALID, "half a key");
	ret->policy = key;
	ret->policy_len = len;
	return 0;
}

int claim_parse_key(const char *key, size_t len, struct policy *ret, struct claim_key *ret_key,
		    struct err *e)
{
	if (claim_split_key(key, len, ret_key, e) < 0 ||
	    policyfile_parse(ret_key->policy, ret_key->policy_len, ret, e) < 0)
		return -1;
	if (claim_find_obstacle(ret) || has_places(ret))
		return err_set(e, ERR_INVALID, "such a sandbox cannot wait ready");
	return 0;
}

/* A path too long for a socket address is reached through the descriptor of its directory. */
int claim_connect(const struct ak *ak, int *ret_fd, struct err *e)
{
	const struct timeval patience = { .tv_usec = CLAIM_ANSWER_MS * 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_free char *path = NULL;
	cleanup_fd int dir_fd = -1;
	cleanup_fd int fd = -1;

	if (statedir_path(ak, CLAIM_SOCKET, &path, e) < 0)
		return -1;
	if (strlen(path) < sizeof(address.sun_path)) {
		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	} else {
		*strrchr(path, '/') = '\0';
		dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		(void)snprintf(address.sun_path, sizeof(address.sun_path),
			       "/proc/self/fd/%d/" CLAIM_SOCKET, dir_fd);
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, errno, "create a socket");
	/* also limits connect(), which blocks when the backlog of a hanging daemon is full */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
			return err_set(e, ERR_NOT_FOUND,
				       "no daemon runs ('agentkernel daemon start' starts it)");
		return err_sys(e, errno, "speak to the daemon");
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

void claim_done(struct claim *c)
{
	cleanup_closep(&c->process_fd);
	cleanup_closep(&c->init_fd);
	cleanup_closep(&c->owner_ns_fd);
}

bool claim_take(const struct ak *ak, const struct policy *p, const struct images *image,
		struct claim *ret)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_buf struct buf key;
	cleanup_fd int fd = -1;
	struct err ignored = { 0 };

	buf_init(&key, CLAIM_KEY_MAX_BYTES);
	if (claim_find_obstacle(p) || claim_connect(ak, &fd, &ignored) < 0)
		return false;
	surroundings_format_cgroups(&key);
	buf_add(&key, "", 1);
	if (!claim_format_key(p, image, &key))
		return false;
	if (frame_send(fd, CLAIM_TAKE, key.bytes, key.len, NULL, 0) < 0 ||
	    control_wait(fd, CLAIM_ANSWER_MS, &answer, &ignored) < 0 ||
	    answer.len != sizeof(ret->answer) || answer.fd_count < 2 || answer.fd_count > 3) {
		ret->is_other_build = ignored.code == ERR_UNSUPPORTED;
		return false;
	}
	memcpy(&ret->answer, answer.bytes, sizeof(ret->answer));
	ret->awaits_places = has_places(p);
	ret->process_fd = take_fd(&answer.fds[0]);
	ret->init_fd = take_fd(&answer.fds[1]);
	if (answer.fd_count > 2)
		ret->owner_ns_fd = take_fd(&answer.fds[2]);
	return true;
}
