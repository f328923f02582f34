/* config - parses an image's config; see config.h. */
#include "image/config.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/jsonfields.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX_BYTES 64u /* of os and architecture */

/* Counts all text of one document against CONFIG_TOTAL_MAX_BYTES before it is copied. */
struct reading {
	size_t total_bytes;
};

static int count_bytes(struct reading *r, const char *key, size_t len, struct err *e)
{
	r->total_bytes += len + 1;
	if (r->total_bytes > CONFIG_TOTAL_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "'%s': the text of all entries is more than %u bytes",
			       key, CONFIG_TOTAL_MAX_BYTES);
	return 0;
}

static int read_text(struct reading *r, const json_t *object, const char *key, char **ret,
		     struct err *e)
{
	const char *text = "";

	if (jsonfields_get_text(object, key, CONFIG_TEXT_MAX_BYTES - 1, JSONFIELDS_OPTIONAL, &text,
				e) < 0 ||
	    count_bytes(r, key, strlen(text), e) < 0)
		return -1;
	*ret = mem_dup(text);
	return 0;
}

static int check_entry(struct reading *r, const json_t *value, const char *key, struct err *e)
{
	if (!json_is_string(value))
		return err_set(e, ERR_INVALID, "'%s' holds what is not text", key);
	if (json_string_length(value) >= CONFIG_TEXT_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "'%s' holds an entry of more than %u bytes", key,
			       CONFIG_TEXT_MAX_BYTES);
	return count_bytes(r, key, json_string_length(value), e);
}

/* On failure the entries read so far stay in *ret, for config_done(). */
static int read_list(struct reading *r, const json_t *object, const char *key, char ***ret,
		     struct err *e)
{
	const json_t *list = NULL;
	char **entries;

	if (jsonfields_get_list(object, key, CONFIG_LIST_MAX, JSONFIELDS_OPTIONAL, &list, e) < 0)
		return -1;
	entries = mem_alloc((json_array_size(list) + 1) * sizeof(*entries));
	*ret = entries;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *value = json_array_get(list, i);

		if (check_entry(r, value, key, e) < 0)
			return -1;
		entries[i] = mem_dup(json_string_value(value));
	}
	return 0;
}

static int check_environment(char *const *env, struct err *e)
{
	for (; *env; env++)
		if (!strchr(*env, '=') || **env == '=')
			return err_set(e, ERR_INVALID, "'Env' holds '%.64s', not NAME=VALUE", *env);
	return 0;
}

static int read_process(const json_t *root, struct config *c, struct err *e)
{
	struct reading r = { 0 };
	const json_t *object = NULL;

	if (jsonfields_get_object(root, "config", JSONFIELDS_OPTIONAL, &object, e) < 0)
		return -1;
	if (read_list(&r, object, "Env", &c->env, e) < 0 ||
	    read_list(&r, object, "Entrypoint", &c->entrypoint, e) < 0 ||
	    read_list(&r, object, "Cmd", &c->cmd, e) < 0 ||
	    read_list(&r, object, "OnBuild", &c->onbuild, e) < 0 ||
	    read_list(&r, object, "Shell", &c->shell, e) < 0 ||
	    read_text(&r, object, "User", &c->user, e) < 0 ||
	    read_text(&r, object, "WorkingDir", &c->workdir, e) < 0)
		return err_wrap(e, "'config'");
	if (read_text(&r, root, "created", &c->created, e) < 0)
		return -1;
	return check_environment(c->env, e);
}

static int read_layers(const json_t *root, struct config *c, struct err *e)
{
	const json_t *rootfs = NULL, *list = NULL;
	const char *type = NULL;

	if (jsonfields_get_object(root, "rootfs", 0, &rootfs, e) < 0)
		return -1;
	if (jsonfields_get_text(rootfs, "type", WORD_MAX_BYTES, 0, &type, e) < 0 ||
	    jsonfields_get_list(rootfs, "diff_ids", MANIFEST_LAYERS_MAX, 0, &list, e) < 0)
		return err_wrap(e, "'rootfs'");
	if (strcmp(type, "layers") != 0)
		return err_set(e, ERR_UNSUPPORTED, "'rootfs': its type is '%s', not 'layers'",
			       type);
	for (unsigned i = 0; i < json_array_size(list); i++) {
		const char *id = json_string_value(json_array_get(list, i));

		if (!id || !reference_is_digest(id))
			return err_set(e, ERR_INVALID, "'diff_ids' %u is not a digest of sha256",
				       i);
		(void)snprintf(c->diff_ids[c->diff_count++], sizeof(c->diff_ids[0]), "%s", id);
	}
	return 0;
}

static int check_platform(const json_t *root, struct err *e)
{
	const char *os = NULL, *architecture = NULL;

	if (jsonfields_get_text(root, "os", WORD_MAX_BYTES, JSONFIELDS_OPTIONAL, &os, e) < 0 ||
	    jsonfields_get_text(root, "architecture", WORD_MAX_BYTES, JSONFIELDS_OPTIONAL,
				&architecture, e) < 0)
		return -1;
	if ((os[0] && strcmp(os, "linux") != 0) ||
	    (architecture[0] && strcmp(architecture, manifest_architecture()) != 0))
		return err_set(e, ERR_UNSUPPORTED,
			       "the image is made for %s/%s, and this machine is linux/%s",
			       os[0] ? os : "linux", architecture[0] ? architecture : "any",
			       manifest_architecture());
	return 0;
}

int config_parse(const char *text, size_t len, struct config *ret, struct err *e)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	CLEANUP(config_done) struct config c = { 0 };

	if (jsonfields_parse(text, len, CONFIG_MAX_BYTES, &root, e) < 0 ||
	    check_platform(root, e) < 0 || read_process(root, &c, e) < 0 ||
	    read_layers(root, &c, e) < 0) {
		err_sanitize(e);
		return -1;
	}
	*ret = c;
	c = (struct config){ 0 };
	return 0;
}

static void free_list(char ***list)
{
	for (char **entry = *list; entry && *entry; entry++)
		free(*entry);
	free(*list);
	*list = NULL;
}

void config_done(struct config *c)
{
	free_list(&c->env);
	free_list(&c->entrypoint);
	free_list(&c->cmd);
	free_list(&c->onbuild);
	free_list(&c->shell);
	free(take_ptr(c->user));
	free(take_ptr(c->workdir));
	free(take_ptr(c->created));
	c->diff_count = 0;
}
