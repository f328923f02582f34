/* jsonfields - reads untrusted JSON field by field; see jsonfields.h. */
#include "image/jsonfields.h"

#include <inttypes.h>

int jsonfields_parse(const char *text, size_t len, size_t max_bytes, json_t **ret, struct err *e)
{
	json_error_t problem;
	json_t *root;

	if (len > max_bytes)
		return err_set(e, ERR_LIMIT, "it is longer than %zu bytes", max_bytes);
	root = json_loadb(text ? text : "", len, JSON_REJECT_DUPLICATES, &problem);
	if (!root) {
		(void)err_set(e, ERR_INVALID, "not JSON: line %d: %s", problem.line, problem.text);
		err_sanitize(e);
		return -1;
	}
	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(e, ERR_INVALID, "not a JSON object");
	}
	*ret = root;
	return 0;
}

void jsonfields_freep(json_t **root)
{
	json_decref(*root);
	*root = NULL;
}

/* Returns the value, or NULL if it is optional and absent. */
static int get(const json_t *object, const char *key, unsigned flags, const json_t **ret,
	       struct err *e)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_null(value))
		value = NULL;
	if (!value && !(flags & JSONFIELDS_OPTIONAL))
		return err_set(e, ERR_INVALID, "'%s' is missing", key);
	*ret = value;
	return 0;
}

int jsonfields_get_object(const json_t *object, const char *key, unsigned flags, const json_t **ret,
			  struct err *e)
{
	const json_t *value = NULL;

	if (get(object, key, flags, &value, e) < 0)
		return -1;
	if (value && !json_is_object(value))
		return err_set(e, ERR_INVALID, "'%s' is not an object", key);
	*ret = value;
	return 0;
}

int jsonfields_get_list(const json_t *object, const char *key, size_t count_max, unsigned flags,
			const json_t **ret, struct err *e)
{
	const json_t *value = NULL;

	if (get(object, key, flags, &value, e) < 0)
		return -1;
	if (value && !json_is_array(value))
		return err_set(e, ERR_INVALID, "'%s' is not a list", key);
	if (json_array_size(value) > count_max)
		return err_set(e, ERR_LIMIT, "'%s' has %zu entries, more than %zu", key,
			       json_array_size(value), count_max);
	*ret = value;
	return 0;
}

int jsonfields_get_text(const json_t *object, const char *key, size_t max_bytes, unsigned flags,
			const char **ret, struct err *e)
{
	const json_t *value = NULL;

	if (get(object, key, flags, &value, e) < 0)
		return -1;
	if (value && !json_is_string(value))
		return err_set(e, ERR_INVALID, "'%s' is not text", key);
	if (json_string_length(value) > max_bytes)
		return err_set(e, ERR_LIMIT, "'%s' is longer than %zu bytes", key, max_bytes);
	*ret = value ? json_string_value(value) : "";
	return 0;
}

int jsonfields_get_number(const json_t *object, const char *key, uint64_t max, uint64_t *ret,
			  struct err *e)
{
	const json_t *value = NULL;

	if (get(object, key, 0, &value, e) < 0)
		return -1;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return err_set(e, ERR_INVALID, "'%s' is not a whole number", key);
	if ((uint64_t)json_integer_value(value) > max)
		return err_set(e, ERR_LIMIT, "'%s' is more than %" PRIu64, key, max);
	*ret = (uint64_t)json_integer_value(value);
	return 0;
}
