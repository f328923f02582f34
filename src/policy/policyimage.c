/* policyimage - applies an image's config to a policy; see policyimage.h. */
#include "policy/policyimage.h"

#include "base/mem.h"
#include "base/path.h"
#include "policy/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct policy_origin by_image = { "image", POLICY_BY_COMMAND, POLICY_ORIGIN_IMAGE };

static void set_text(char **member, char *text)
{
	free(*member);
	*member = text;
}

static void use_account(struct policy *p, const struct account *a)
{
	p->uid = a->uid;
	p->gid = a->gid;
	p->is_user_known = true;
	p->group_count = a->group_count;
	memcpy(p->groups, a->groups, sizeof(p->groups));
	set_text(&p->user_name, mem_dup(a->name[0] ? a->name : "user"));
	set_text(&p->home_dir, mem_dup(p->home ? p->home : a->home));
	if (p->uid != 0 && p->has_capabilities) {
		p->has_capabilities = false;
		p->origin[POLICY_CAPABILITIES] = p->origin[POLICY_USER];
	}
}

/*
 * The host image's accounts, as sandbox/hostaccounts writes them: "user" gets the id that the
 * command runs as.
 */
static int settle_host_user(struct policy *p, struct err *e)
{
	static const char passwd[] = "root:x:0:0::/root:\n"
				     "user:x:1000:1000::/home/user:\n"
				     "nobody:x:65534:65534::/home/user:\n";
	static const char group[] = "root:x:0:\nuser:x:1000:\nnobody:x:65534:\nnogroup:x:65534:\n";
	struct account a = { 0 };
	const char *text = p->user_text ? p->user_text : p->uid == 0 ? "root" : "user";

	if (account_find(passwd, group, text, &a, e) < 0) {
		size_t len = strlen(e->msg);

		if (e->code == ERR_NOT_FOUND)
			(void)snprintf(e->msg + len, sizeof(e->msg) - len,
				       " (use root, user, nobody or a number)");
		return err_wrap(e, "%s", p->origin[POLICY_USER].text);
	}
	if (!a.name[0]) { /* a number without an account */
		if (!strchr(text, ':'))
			a.gid = a.uid;
		(void)snprintf(a.home, sizeof(a.home), "/home/user");
	}
	(void)snprintf(a.name, sizeof(a.name), "%s", a.uid == 0 ? "root" : "user");
	use_account(p, &a);
	return 0;
}

/* The accounts of another image are unknown until it is pulled: policyimage_apply() */
static int settle_user(struct policy *p, struct err *e)
{
	if (policy_is_host_image(p) || !p->user_text)
		return settle_host_user(p, e);
	p->is_user_known = false;
	set_text(&p->user_name, mem_dup(p->user_text));
	set_text(&p->home_dir, mem_dup("/"));
	return 0;
}

/* Derives dependent values: the working directory and the size of the disk. */
static void derive(struct policy *p)
{
	if (!p->workdir) {
		set_text(&p->workdir, mem_dup(p->workspace ? p->workspace : p->home_dir));
		p->origin[POLICY_WORKDIR] =
			p->workspace ? p->origin[POLICY_WORKSPACE] : p->origin[POLICY_USER];
	}
	if (p->nofile_count == 0)
		p->nofile_count = POLICY_NOFILE_DEFAULT;
	if (p->disk_bytes == 0) {
		p->disk_bytes = p->memory_bytes ? p->memory_bytes / 2 : POLICY_DISK_DEFAULT_BYTES;
		p->origin[POLICY_DISK].kind =
			p->memory_bytes ? POLICY_ORIGIN_DERIVED : POLICY_ORIGIN_NONE;
		p->origin[POLICY_DISK].text =
			p->memory_bytes ? POLICY_ORIGIN_HALF : POLICY_ORIGIN_DEFAULT;
	}
}

int policyimage_settle(struct policy *p, struct err *e)
{
	if (settle_user(p, e) < 0)
		return -1;
	derive(p);
	return 0;
}

/*
 * --user, else the image's user, else the profile's. If the profile does not run as root, the
 * image's user root is not used either.
 */
static int settle_image_user(struct policy *p, const struct policyimage *image, struct err *e)
{
	bool runs_as_root = profile_get(p->profile)->runs_as_root;
	struct account a = { 0 };

	if (p->user_text) {
		if (account_find(image->passwd, image->group, p->user_text, &a, e) < 0)
			return err_wrap(e, "%s", p->origin[POLICY_USER].text);
		use_account(p, &a);
		return 0;
	}
	if (image->user[0]) {
		if (account_find(image->passwd, image->group, image->user, &a, e) < 0)
			return err_wrap(e, "the image's user '%s'", image->user);
		if (a.uid != 0 || runs_as_root) {
			p->origin[POLICY_USER] = by_image;
			use_account(p, &a);
			return 0;
		}
	}
	if (account_find(image->passwd, image->group, runs_as_root ? "0" : "1000:1000", &a, e) < 0)
		return -1;
	if (!runs_as_root)
		(void)snprintf(a.home, sizeof(a.home), "/home/user");
	use_account(p, &a);
	return 0;
}

int policyimage_use_host(struct policy *p, const char *origin, struct err *e)
{
	set_text(&p->image, mem_dup(POLICY_HOST_IMAGE));
	p->origin[POLICY_IMAGE].text = origin; /* the kind stays "detected" */
	if (!p->is_workdir_asked)
		set_text(&p->workdir, NULL);
	return policyimage_settle(p, e);
}

int policyimage_apply(struct policy *p, const struct policyimage *image, struct err *e)
{
	char *workdir;

	if (settle_image_user(p, image, e) < 0)
		return -1;
	if (!p->is_workdir_asked && !p->workspace) {
		workdir = path_absolute("/", image->workdir);
		if (!workdir)
			return err_set(e, ERR_INVALID,
				       "the image's working directory '%s' climbs above '/'",
				       image->workdir);
		set_text(&p->workdir, workdir);
		p->origin[POLICY_WORKDIR] = by_image;
	}
	for (size_t i = 0; image->env && image->env[i]; i++) {
		p->image_env = mem_grow(p->image_env, i + 2, sizeof(*p->image_env));
		p->image_env[i] = mem_dup(image->env[i]);
		p->image_env[i + 1] = NULL;
	}
	return 0;
}
