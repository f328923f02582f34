#pragma once
/*
 * tomltree - the values of a TOML document, and the rules for defining them; for toml*.c only.
 *
 * A value is added to its table or array first and filled afterwards, so on any failure freeing the
 * document frees everything. The rules about defining something twice need one enum per table and
 * array: how it was defined.
 *
 * The document also has the list of all statements, for editing its text.
 */
#include "base/toml.h"

enum tomltree_made {
	TOMLTREE_IN_PLACE, /* a value after '=': cannot be extended */
	TOMLTREE_PASSING,  /* a table that a header only passed through: may be defined once */
	TOMLTREE_HEADER,   /* a table defined by its [header], an array by [[headers]] */
	TOMLTREE_DOTTED,   /* a table defined by a dotted key: only dotted keys may extend it */
};

struct toml_value {
	const struct toml *document;
	const struct toml_value *parent; /* NULL: the root */
	struct toml_where where;
	struct toml_span span;
	enum toml_type type;
	enum tomltree_made made;
	unsigned depth; /* 0 for the root */
	size_t count;   /* of entries, items or bytes of text */
	size_t capacity;
	union {
		struct {
			struct toml_entry *entries;
			unsigned *sorted; /* their indexes, see tomltree.c */
		};
		struct toml_value **items;
		char *text;
		int64_t integer;
		double real;
		bool is_true;
		struct toml_time time; /* owns its text */
	};
};

/* A [header], a [[header]] or a key-value pair in the text. */
struct tomltree_statement {
	struct toml_span span; /* without surrounding blanks, commas and comments */
	const struct toml_value *value;
	const struct toml_value *inside; /* the inline table that contains a pair, NULL: a line */
	bool is_header;
};

struct toml {
	char *name;
	unsigned value_count;
	struct toml_value *root;
	struct tomltree_statement *statements; /* sorted by their ends */
	size_t statement_count;
	size_t statement_capacity;
};

/* A key as read; all functions below borrow it. */
struct tomltree_key {
	const char *bytes;
	size_t len;
	struct toml_where where;
	struct toml_span span;
};

struct toml *tomltree_new(const char *name);
void tomltree_free(struct toml *t);

/* Bounded by the number of values: each has one key and at most one header. */
void tomltree_state(struct toml *t, const struct tomltree_statement *statement);

struct toml_value *tomltree_find(const struct toml_value *table, const char *key, size_t len);

/*
 * These return NULL on success, or an error text; *ret_other is then the conflicting value, or NULL
 * if a maximum was reached. New values are TOML_BOOL until filled.
 */
const char *tomltree_add(struct toml *t, struct toml_value *table, const struct tomltree_key *key,
			 struct toml_value **ret, const struct toml_value **ret_other);
const char *tomltree_append(struct toml *t, struct toml_value *array, struct toml_where where,
			    struct toml_value **ret);

/* The table for a part of a dotted key, except the last. */
const char *tomltree_enter_dotted(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other);

/* The table for a part of a header, except the last. */
const char *tomltree_enter_header(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other);

/* The last part of [header] and of [[header]]: the table that the following pairs go into. */
const char *tomltree_define_table(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other);
const char *tomltree_define_item(struct toml *t, struct toml_value *table,
				 const struct tomltree_key *key, struct toml_value **ret,
				 const struct toml_value **ret_other);
