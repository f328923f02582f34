/* cmd_serve - agentkernel serve: the HTTP API. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/face.h"
#include "cli/runoptions.h"
#include "state/ak.h"
#include "state/audit.h"
#include "state/statedir.h"
#include "policy/domain.h"
#include "policy/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <string.h>
#include <unistd.h>

#define KEY_FILE_MAX_BYTES (64u << 10)
#define SOCKET_NAME "serve.sock"
#define SECRET_NAME "serve.secret"
#define SECRET_DIGITS 64

static const char *const examples[] = {
	"agentkernel serve",
	"on a socket of your own, which it names",
	"agentkernel serve --listen 127.0.0.1:18888 --api-key-file ~/.agentkernel-key",
	"for programs on this machine that know the key",
	"agentkernel serve --listen 127.0.0.1:18888 --api-key-file keys",
	"with 'ci KEY1', 'web KEY2' and 'ops KEY3 admin' in keys: ci and web see their own "
	"sandboxes,"
	" ops all",
	"agentkernel serve --listen 0.0.0.0:8443 --api-key-file keys --tls-cert c.pem --tls-key "
	"k.pem",
	"for others, encrypted",
	NULL,
};

/* The command line overrides the environment, which overrides the user's file. */
static int read_one_key(const struct runoptions *o, struct buf *out, struct err *e)
{
	const struct configuration *c = &o->request.config.user;
	const char *key = o->flags.api_key;

	if (!key)
		key = environment_get(o->request.ak->caller.environ_list, "AGENTKERNEL_API_KEY");
	if ((!key || !*key) && c->api_key_env) {
		key = environment_get(o->request.ak->caller.environ_list, c->api_key_env);
		if (!key || !*key)
			return err_set(e, ERR_INVALID,
				       "[api] api_key_env: there is no variable '%s', and without "
				       "a key everyone on this machine could ask",
				       c->api_key_env);
	}
	if (!key || !*key)
		key = c->api_key;
	if (key && strpbrk(key, " \t\r\n"))
		return err_set(e, ERR_INVALID, "a key has no blanks and is one line");
	if (key && *key)
		buf_addf(out, "%s\n", key);
	return 0;
}

static int read_keys(const struct runoptions *o, struct buf *out, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int failed;

	if (read_one_key(o, out, e) < 0)
		return -1;
	if (!o->flags.api_key_file)
		return 0;
	failed = file_read_at(AT_FDCWD, o->flags.api_key_file, KEY_FILE_MAX_BYTES, &text, &len);
	if (failed < 0)
		return err_sys(e, -failed, "--api-key-file: read '%s'", o->flags.api_key_file);
	if (strlen(text) != len || text[strspn(text, " \t\r\n")] == '\0')
		return err_set(e, ERR_INVALID, "--api-key-file: '%s' holds no keys",
			       o->flags.api_key_file);
	buf_addf(out, "%s\n", text);
	return 0;
}

/* Of links to ports (http/sitelink): kept, so that they outlive the server. */
static int read_secret(const struct ak *ak, char out[SECRET_DIGITS + 1], struct err *e)
{
	unsigned char bytes[SECRET_DIGITS / 2];
	cleanup_free char *path = NULL;
	cleanup_free char *own = NULL;
	cleanup_free char *text = NULL;
	cleanup_buf struct buf made;
	size_t len = 0;
	int r;

	buf_init(&made, BUF_TEXT_MAX_BYTES);
	if (statedir_make_path(ak, SECRET_NAME, &path, e) < 0)
		return -1;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, errno, "get random numbers");
	for (size_t i = 0; i < sizeof(bytes); i++)
		buf_addf(&made, "%02x", bytes[i]);
	/* two servers that start at once: the first one's file counts, and it is whole */
	own = mem_format("%s.%d", path, (int)getpid());
	r = access(path, F_OK) == 0 ? 0 : file_create_at(AT_FDCWD, own, 0600, buf_text(&made));
	if (r == 0 && link(own, path) < 0 && errno != EEXIST && errno != ENOENT)
		r = -errno;
	(void)unlink(own);
	if (r < 0)
		return err_sys(e, -r, "write '%s'", path);
	r = file_read_at(AT_FDCWD, path, SECRET_DIGITS + 1, &text, &len);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", path);
	if (len != SECRET_DIGITS)
		return err_set(e, ERR_CORRUPT, "'%s' holds no secret (remove it)", path);
	memcpy(out, text, SECRET_DIGITS);
	out[SECRET_DIGITS] = '\0';
	return 0;
}

static int add_places(struct face *f, const struct runoptions *o, struct err *e)
{
	cleanup_free char *path = NULL;

	for (unsigned i = 0; i < o->flags.listen.count; i++)
		face_add_pair(f, "--listen", o->flags.listen.texts[i]);
	if (o->flags.listen.count > 0)
		return 0;
	if (statedir_make_path(o->request.ak, SOCKET_NAME, &path, e) < 0)
		return -1;
	say("listening at %s", path);
	face_add(f, mem_dup("--listen"));
	face_add(f, mem_format("unix:%s", path));
	return 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	CLEANUP(face_done) struct face face = { 0 };
	cleanup_free char *audit = NULL;
	cleanup_buf struct buf keys;
	char secret[SECRET_DIGITS + 1];
	char domain[DOMAIN_MAX_BYTES + 1];
	struct domain_problem problem;
	const char *none[1];
	unsigned count = 0;

	buf_init(&keys, 2 * KEY_FILE_MAX_BYTES);
	if (runoptions_collect(&runoptions_serve, argv, context->ak, &o, none, 0, &count, e) < 0)
		return -1;
	if (request_resolve(&o.request, NULL, &cli_events, e) < 0 ||
	    request_raise_ceiling(&o.request, e) < 0 || read_keys(&o, &keys, e) < 0 ||
	    face_begin(&face, "agentkernel-serve", e) < 0 ||
	    statedir_make_path(context->ak, AUDIT_FILE, &audit, e) < 0)
		return -1;
	face_add(&face, mem_dup(audit));
	face_add_ceiling(&face, &o.request);
	if (add_places(&face, &o, e) < 0)
		return -1;
	if (o.flags.isolates_keys && o.flags.has_no_isolation)
		return err_set(e, ERR_INVALID,
			       "--isolate-keys and --no-isolate-keys contradict each other");
	if (o.flags.isolates_keys || o.flags.has_no_isolation)
		face_add_pair(&face, "--isolate", o.flags.isolates_keys ? "yes" : "no");
	if (o.flags.domain && !domain_normalize(o.flags.domain, strlen(o.flags.domain),
						DOMAIN_TYPED, domain, &problem))
		return err_set(e, ERR_INVALID, "--domain: '%s': %s", o.flags.domain, problem.why);
	if (o.flags.domain)
		face_add_pair(&face, "--domain", domain);
	if (o.flags.tls_cert)
		face_add_pair(&face, "--tls-cert", o.flags.tls_cert);
	if (o.flags.tls_key)
		face_add_pair(&face, "--tls-key", o.flags.tls_key);
	if (read_secret(context->ak, secret, e) < 0)
		return -1;
	if (setenv("AGENTKERNEL_SERVE_KEYS", buf_text(&keys), 1) < 0 ||
	    setenv("AGENTKERNEL_SERVE_SECRET", secret, 1) < 0)
		return err_sys(e, errno, "hand the keys over");
	*ret_status = 0;
	return face_become(&face, environ, e);
}

const struct cli_command cmd_serve = {
	.name = "serve",
	.summary = "serve sandboxes to programs over HTTP",
	.usage = "[--listen ADDRESS:PORT|unix:PATH] [options]",
	.text = "Without --listen: on a socket in the state directory, for you alone. The options "
		"and\n"
		"agentkernel.toml are the ceiling: what they do not allow no caller can get. GET\n"
		"/openapi.json describes the API, GET /metrics has its figures. An address that is "
		"not\n"
		"loopback needs a key. With several keys each sees what it made itself. SIGTERM "
		"lets\n"
		"requests under way finish.",
	.examples = examples,
	.options = &runoptions_serve,
	.run = run,
};
