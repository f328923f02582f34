/* layername - parses the names of archive entries; see layername.h. */
#include "image/layername.h"

#include <limits.h>
#include <string.h>

#define WHITEOUT LAYERNAME_WHITEOUT_MARK
#define AUFS WHITEOUT WHITEOUT
#define OPAQUE LAYERNAME_OPAQUE_MARK

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

const char *layername_quote(const char *text, char out[LAYERNAME_QUOTED_MAX_BYTES])
{
	size_t len = strnlen(text, LAYERNAME_QUOTED_MAX_BYTES);

	if (len >= LAYERNAME_QUOTED_MAX_BYTES)
		len = LAYERNAME_QUOTED_MAX_BYTES - 4;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		out[i] = byte < ' ' || byte == 0x7f ? '?' : text[i];
	}
	strcpy(out + len, text[len] ? "..." : "");
	return out;
}

/* Appends one component to the path. "" and "." add nothing. */
static int add_part(struct layername *n, size_t *len, const char *part, size_t part_len,
		    struct err *e)
{
	if (part_len == 0 || (part_len == 1 && part[0] == '.'))
		return 0;
	if (part_len == 2 && part[0] == '.' && part[1] == '.')
		return err_set(e, ERR_INVALID, "the name climbs with '..'");
	if (part_len > NAME_MAX)
		return err_set(e, ERR_INVALID, "a part of the name is longer than %d bytes",
			       NAME_MAX);
	if (*len + part_len + 2 > sizeof(n->path))
		return err_set(e, ERR_INVALID, "the name is longer than %u bytes",
			       LAYER_NAME_MAX_BYTES - 1);
	n->parent_len = *len;
	if (*len > 0)
		n->path[(*len)++] = '/';
	n->last = n->path + *len;
	memcpy(n->path + *len, part, part_len);
	*len += part_len;
	n->path[*len] = '\0';
	return 0;
}

static int split(const char *text, struct layername *n, struct err *e)
{
	unsigned depth = 0;
	size_t len = 0;

	n->path[0] = '\0';
	n->last = n->path;
	n->parent_len = 0;
	while (*text) {
		size_t part_len = strcspn(text, "/");
		size_t before = len;

		if (add_part(n, &len, text, part_len, e) < 0)
			return -1;
		if (len > before && ++depth > LAYER_DEPTH_MAX + 1)
			return err_set(e, ERR_INVALID, "it lies beneath more than %u directories",
				       LAYER_DEPTH_MAX);
		text += part_len;
		text += *text == '/';
	}
	return 0;
}

/* Checks the names of the parent directories. */
static int check_parents(struct layername *n, struct err *e)
{
	for (const char *part = n->path; part < n->last; part = strchr(part, '/') + 1) {
		if (has_prefix(part, AUFS)) {
			n->kind = LAYERNAME_IGNORED;
			return 0;
		}
		if (has_prefix(part, WHITEOUT))
			return err_set(e, ERR_INVALID, "it lies beneath a whiteout");
	}
	return 0;
}

/* `last` becomes the name that is hidden. */
static int read_whiteout(struct layername *n, struct err *e)
{
	char *name = n->path + (n->last - n->path);
	const char *hidden = name + strlen(WHITEOUT);

	if (strcmp(name, OPAQUE) == 0) {
		n->kind = LAYERNAME_OPAQUE;
		return 0;
	}
	if (has_prefix(name, AUFS)) {
		n->kind = LAYERNAME_IGNORED;
		return 0;
	}
	if (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
		return err_set(e, ERR_INVALID, "the whiteout hides no name");
	memmove(name, hidden, strlen(hidden) + 1);
	n->kind = LAYERNAME_WHITEOUT;
	return 0;
}

/* A leading '/' is ignored: names are relative to the root of the archive. */
static int parse(const char *text, struct layername *ret, struct err *e)
{
	if (text[0] == '\0')
		return err_set(e, ERR_INVALID, "the name is empty");
	if (split(text, ret, e) < 0)
		return -1;
	ret->kind = ret->path[0] ? LAYERNAME_ENTRY : LAYERNAME_ROOT;
	return 0;
}

int layername_parse_any(const char *text, struct layername *ret, struct err *e)
{
	if (text[0] == '/')
		return err_set(e, ERR_INVALID, "the name is absolute");
	return parse(text, ret, e);
}

int layername_parse(const char *text, struct layername *ret, struct err *e)
{
	if (parse(text, ret, e) < 0 || check_parents(ret, e) < 0)
		return -1;
	if (ret->kind == LAYERNAME_ENTRY && has_prefix(ret->last, WHITEOUT))
		return read_whiteout(ret, e);
	return 0;
}
