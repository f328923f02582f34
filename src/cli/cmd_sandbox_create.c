/* cmd_sandbox_create - agentkernel sandbox create: a sandbox that stays, not started yet. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/pickimage.h"
#include "cli/request.h"
#include "named/checkpoint.h"
#include "engine/images.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "policy/policyimage.h"

#include <string.h>

static const char *const examples[] = {
	"agentkernel sandbox create otter --image debian:12",
	"a sandbox of its own from an image; 'agentkernel start otter' starts it",
	"agentkernel create build --workspace --profile moderate --ttl 8h",
	"this directory inside, gone after eight hours",
	"agentkernel create again --from 3f2a9c1d4e5b",
	"what a checkpoint holds, with the policy it was taken with",
	NULL,
};

static int print_json(const char *name, const char *id, struct err *e)
{
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_text(&j, "name", name);
	json_add_text(&j, "id", id);
	json_close_object(&j);
	buf_add_text(&out, "\n");
	return cli_print(&out, e);
}

static int create_from_image(struct request *r, const char *name, uint64_t ttl_ms,
			     struct named *ret, struct err *e)
{
	CLEANUP(images_done) struct images image;
	struct lifecycle_request q = {
		.ak = r->ak,
		.name = name,
		.policy = &r->policy,
		.labels = (char *const *)(uintptr_t)r->flags.labels.texts,
		.ttl_ms = ttl_ms,
		.init = request_init(r),
	};

	images_init(&image);
	if (pickimage_open(r, NULL, &image, e) < 0)
		return -1;
	q.image = image.lock_fd >= 0 ? &image : NULL;
	return lifecycle_create(&q, ret, e);
}

/* An imported checkpoint brings no policy: the options make one, on its image. */
static int resolve_on(struct request *r, const struct checkpoint *c, struct err *e)
{
	const struct policy_setting image_setting = { POLICY_IMAGE, c->image, "--from" };
	CLEANUP(images_done) struct images image;
	struct policyimage config;

	images_init(&image);
	if (opts_settings_add(&r->settings, &image_setting, e) < 0 ||
	    request_resolve(r, NULL, e) < 0)
		return -1;
	if (strcmp(r->policy.image, c->image) != 0)
		return err_set(e, ERR_INVALID, "--image and --from exclude each other");
	if (!c->image_pin)
		return 0;
	if (images_open_pinned(r->ak, c->image_pin, c->image, &image, e) < 0)
		return -1;
	config = images_config(&image);
	return policyimage_apply(&r->policy, &config, e);
}

/* The checkpoint's own policy; only limits can be other ones. */
static int create_from_checkpoint(struct request *r, const struct checkpoint *c, const char *name,
				  uint64_t ttl_ms, struct err *e)
{
	CLEANUP(policy_done) struct policy policy = { 0 };
	cleanup_free char *origin = mem_format("checkpoint %s", c->id);
	const struct checkpoint_use use = {
		.name = name,
		.labels = (char *const *)(uintptr_t)r->flags.labels.texts,
		.ttl_ms = ttl_ms,
		.origin = origin,
	};

	if (checkpoint_load_policy(r->ak, c->id, &policy, e) == 0) {
		if (policy_change(&policy, r->settings.list, r->settings.count, e) < 0)
			return -1;
		return checkpoint_make(r->ak, c->id, &policy, &use, e);
	}
	if (e->code != ERR_NOT_FOUND || resolve_on(r, c, e) < 0)
		return -1;
	return checkpoint_make(r->ak, c->id, &r->policy, &use, e);
}

/* A name that is no checkpoint is an image's. */
static int find_checkpoint(const struct request *r, struct checkpoint *ret, struct err *e)
{
	if (!r->flags.from || checkpoint_open(r->ak, r->flags.from, ret, e) == 0)
		return 0;
	return e->code == ERR_NOT_FOUND ? 0 : -1;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(request_done) struct request request = { 0 };
	CLEANUP(checkpoint_done) struct checkpoint from = { 0 };
	CLEANUP(named_done) struct named n;
	const char *name = NULL;
	uint64_t ttl_ms = 0;
	unsigned count = 0;

	named_init(&n);
	if (request_collect(&request_create_options, argv, context->ak, &request, &name, 1, &count,
			    e) < 0)
		return -1;
	if (count == 0 && !request.flags.from) {
		/* the configuration may have one */
		if (request_resolve(&request, NULL, e) < 0)
			return -1;
		name = request.config.project.name;
	}
	if (!name)
		return err_set(e, ERR_INVALID,
			       "missing argument NAME: agentkernel sandbox create NAME [options]");
	if (named_check_name(name, e) < 0 || request_read_ttl(&request.flags, &ttl_ms, e) < 0)
		return -1;
	if (find_checkpoint(&request, &from, e) < 0)
		return -1;
	if (from.id[0]) {
		if (create_from_checkpoint(&request, &from, name, ttl_ms, e) < 0 ||
		    named_open(context->ak, name, &n, e) < 0)
			return -1;
	} else {
		const struct policy_setting image = { POLICY_IMAGE, request.flags.from, "--from" };

		if (request.flags.from && opts_settings_add(&request.settings, &image, e) < 0)
			return -1;
		if ((!request.policy.image && request_resolve(&request, NULL, e) < 0) ||
		    create_from_image(&request, name, ttl_ms, &n, e) < 0)
			return -1;
	}
	*ret_status = 0;
	return request.flags.is_json ? print_json(n.name, n.id, e) : 0;
}

const struct cli_command cmd_sandbox_create = {
	.name = "sandbox create",
	.summary = "create a sandbox that stays until it is removed",
	.usage = "NAME [options]",
	.text = "All that it writes, its /tmp and home included, is its disk: it is there again at "
		"the\n"
		"next start, and goes into checkpoints and forks. The policy that these options "
		"make is\n"
		"stored with it and holds at every start. It is not started.",
	.examples = examples,
	.options = &request_create_options,
	.run = run,
};
