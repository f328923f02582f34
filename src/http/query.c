/* query - parses the query of a request's target; see query.h. */
#include "http/query.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static int hex_of(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* "a%20b+c" -> "a b c"; NULL: a bad escape or a NUL. The caller frees it. */
static char *decode(const char *text, size_t len)
{
	char *out = mem_alloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_escape = text[i] == '%';
		int high = is_escape && i + 2 < len ? hex_of(text[i + 1]) : -1;
		int low = high >= 0 ? hex_of(text[i + 2]) : -1;

		if (is_escape && (low < 0 || high + low == 0)) {
			free(out);
			return NULL;
		}
		out[n++] = is_escape ? (char)(high * 16 + low) : text[i] == '+' ? ' ' : text[i];
		i += is_escape ? 2 : 0;
	}
	return out;
}

void query_pair_done(struct query_pair *p)
{
	free(p->name);
	free(p->value);
	*p = (struct query_pair){ 0 };
}

int query_next(const char **at, struct query_pair *ret)
{
	struct query_pair p = { 0 };
	const char *text = *at + strspn(*at, "&");
	size_t len = strcspn(text, "&"), name_len = strcspn(text, "=&");

	*at = text + len;
	if (len == 0)
		return 0;
	p.name = decode(text, name_len);
	p.value = name_len < len ? decode(text + name_len + 1, len - name_len - 1) : mem_dup("");
	if (!p.name || !p.value) {
		query_pair_done(&p);
		return -1;
	}
	*ret = p;
	return 1;
}
