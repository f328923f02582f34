/* mountspec - parses the text forms of mounts; see mountspec.h. */
#include "policy/mountspec.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "policy/policy.h"

#include <string.h>

int mountspec_check_target(const char *target, struct err *e)
{
	static const char *const reserved[] = { "/proc", "/sys", "/dev" };

	if (strcmp(target, "/") == 0)
		return err_set(e, ERR_INVALID, "nothing can be mounted over '/'");
	for (size_t i = 0; i < COUNT_OF(reserved); i++)
		if (path_is_within(target, reserved[i]))
			return err_set(
				e, ERR_INVALID,
				"nothing can be mounted over '%s': '%s' is the sandbox's own",
				target, reserved[i]);
	return 0;
}

static int normal_target(const char *text, char **ret, struct err *e)
{
	cleanup_free char *target = NULL;

	if (text[0] != '/')
		return err_set(e, ERR_INVALID, "target '%s' is not an absolute path", text);
	target = path_absolute("/", text);
	if (!target)
		return err_set(e, ERR_INVALID, "target '%s' climbs above '/'", text);
	if (mountspec_check_target(target, e) < 0)
		return -1;
	*ret = take_ptr(target);
	return 0;
}

/* Removes ":ro" or ":rw" from the end of `text`; true for ":ro". */
static bool cut_mode(char *text)
{
	char *colon = strrchr(text, ':');
	bool is_read_only = colon && strcmp(colon, ":ro") == 0;

	if (is_read_only || (colon && strcmp(colon, ":rw") == 0))
		*colon = '\0';
	return is_read_only;
}

int mountspec_parse(const char *text, const char *cwd, struct policy_mount *ret, struct err *e)
{
	cleanup_free char *spec = mem_dup(text);
	cleanup_free char *source = NULL;
	cleanup_free char *target = NULL;
	bool is_read_only = cut_mode(spec);
	char *colon = strchr(spec, ':');

	if (colon)
		*colon = '\0';
	if (spec[0] == '\0')
		return err_set(e, ERR_INVALID, "'%s' has no source (use SRC[:DST][:ro])", text);
	if (spec[0] != '/' && !cwd)
		return err_set(e, ERR_INVALID, "the working directory cannot be read");
	source = path_absolute(cwd ? cwd : "/", spec);
	if (!source)
		return err_set(e, ERR_INVALID, "source '%s' climbs above '/'", spec);
	if (colon && strchr(colon + 1, ':'))
		return err_set(e, ERR_INVALID, "'%s' has too many ':' (use SRC[:DST][:ro])", text);
	if (normal_target(colon ? colon + 1 : source, &target, e) < 0)
		return -1;

	ret->source = take_ptr(source);
	ret->target = take_ptr(target);
	ret->is_read_only = is_read_only;
	ret->is_ours = false;
	return 0;
}

int mountspec_parse_tmpfs(const char *text, struct policy_tmpfs *ret, struct err *e)
{
	cleanup_free char *spec = mem_dup(text);
	cleanup_free char *target = NULL;
	char *colon = strchr(spec, ':');
	uint64_t size = 0;

	if (colon) {
		*colon = '\0';
		if (parse_bytes(colon + 1, POLICY_DISK_MIN_BYTES, POLICY_DISK_MAX_BYTES, &size, e) <
		    0)
			return -1;
	}
	if (normal_target(spec, &target, e) < 0)
		return -1;
	ret->target = take_ptr(target);
	ret->size_bytes = size;
	return 0;
}
