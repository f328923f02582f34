#pragma once
/*
 * tomltree - the values of a TOML document, and who may define what; for toml*.c only.
 *
 * A value is put into its table or array first and filled afterwards, so whatever goes wrong in
 * between, freeing the document frees everything. The rules about defining something twice need
 * only one word per table and array: how it was made.
 *
 * Beside the tree stands the list of all statements, for who wants to change the text.
 */
#include "base/toml.h"

enum tomltree_made {
	TOMLTREE_IN_PLACE, /* a value after '=': never extended */
	TOMLTREE_PASSING,  /* a table that a header only went through: may be defined once */
	TOMLTREE_HEADER,   /* a table by its [header], an array by [[headers]] */
	TOMLTREE_DOTTED,   /* a table by a dotted key: grows only by further dotted keys */
};

struct toml_value {
	const struct toml *document;
	const struct toml_value *parent; /* NULL: the root */
	struct toml_where where;
	struct toml_span span;
	enum toml_type type;
	enum tomltree_made made;
	unsigned depth; /* the root has 0 */
	size_t count;   /* of entries, items or bytes of text */
	size_t capacity;
	union {
		struct {
			struct toml_entry *entries;
			unsigned *sorted; /* their numbers, see tomltree.c */
		};
		struct toml_value **items;
		char *text;
		int64_t integer;
		double real;
		bool is_true;
		struct toml_time time; /* its text is owned */
	};
};

/* A [header], a [[header]] or a pair of key and value, as it stands in the text. */
struct tomltree_statement {
	struct toml_span span; /* without what is around it: blanks, commas, comments */
	const struct toml_value *value;
	const struct toml_value *inside; /* the inline table that a pair is in, NULL: a line */
	bool is_header;
};

struct toml {
	char *name;
	unsigned value_count;
	struct toml_value *root;
	struct tomltree_statement *statements; /* in the order of their ends */
	size_t statement_count;
	size_t statement_capacity;
};

/* A key as it was read: borrowed by all functions below. */
struct tomltree_key {
	const char *bytes;
	size_t len;
	struct toml_where where;
	struct toml_span span;
};

struct toml *tomltree_new(const char *name);
void tomltree_free(struct toml *t);

/* Bounded by the values: each has one key and at most one header. */
void tomltree_state(struct toml *t, const struct tomltree_statement *statement);

struct toml_value *tomltree_find(const struct toml_value *table, const char *key, size_t len);

/*
 * These return NULL when it worked, otherwise what is wrong in words; *ret_other is then the value
 * that stands in the way, or NULL when a maximum does. New values are TOML_BOOL until filled.
 */
const char *tomltree_add(struct toml *t, struct toml_value *table, const struct tomltree_key *key,
			 struct toml_value **ret, const struct toml_value **ret_other);
const char *tomltree_append(struct toml *t, struct toml_value *array, struct toml_where where,
			    struct toml_value **ret);

/* The table that a part of a dotted key, but the last, names. */
const char *tomltree_enter_dotted(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other);

/* The table that a part of a header, but the last, names. */
const char *tomltree_enter_header(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other);

/* The last part of [header] and of [[header]]: the table that what follows goes into. */
const char *tomltree_define_table(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other);
const char *tomltree_define_item(struct toml *t, struct toml_value *table,
				 const struct tomltree_key *key, struct toml_value **ret,
				 const struct toml_value **ret_other);
