/*
 * tomltree - the values of a TOML document, and the rules for defining them; see tomltree.h.
 *
 * Theory of operation
 *
 * The parser resolves a key part by part; each step below returns the table that the part leads to,
 * creating it if needed. TOML's rules become a small table of steps against how a value was
 * defined:
 *
 *	                    PASSING   HEADER          DOTTED   IN_PLACE
 *	dotted key, inside  becomes   no              yes      no
 *	                    DOTTED
 *	header, inside      yes       yes (array:     yes      no
 *	                              its last table)
 *	[header], last      becomes   no              no       no
 *	                    HEADER
 *	[[header]], last    no        array: one more no       no
 *
 * A dotted table need not record the section that defined it: from any other section the path to it
 * leads through a table with a header, which dotted keys may not enter.
 *
 * A table's entries stay in document order. A second array has their indexes, sorted by key in
 * runs: the count is a sum of powers of two, and there is a run for each, the longest first. A new
 * entry is a run of one, and runs of equal length are merged, like a carry in binary counting. Any
 * key is found in at most a few hundred comparisons, whatever the keys; a hash table without a
 * secret could not guarantee that for a hostile document.
 */
#include "base/tomltree.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <string.h>

#define LIST_FIRST 4u
#define STATEMENTS_FIRST 16u

static struct toml_value *new_value(struct toml *t, const struct toml_value *parent,
				    struct toml_where where)
{
	struct toml_value *v = mem_alloc(sizeof(*v));

	v->document = t;
	v->parent = parent;
	v->type = TOML_BOOL;
	v->depth = parent ? parent->depth + 1 : 0;
	v->where = where;
	t->value_count++;
	return v;
}

struct toml *tomltree_new(const char *name)
{
	struct toml *t = mem_alloc(sizeof(*t));
	size_t len = strlen(name);

	if (len > TOML_NAME_MAX_BYTES)
		t->name = mem_format("...%s", name + len - TOML_NAME_MAX_BYTES + strlen("..."));
	else
		t->name = mem_dup(name);
	t->root = new_value(t, NULL, (struct toml_where){ 1, 1 });
	t->root->type = TOML_TABLE;
	t->root->made = TOMLTREE_HEADER;
	return t;
}

static void free_value(struct toml_value *v)
{
	switch (v->type) {
	case TOML_TABLE:
		for (size_t i = 0; i < v->count; i++) {
			free((char *)v->entries[i].key);
			free_value((struct toml_value *)v->entries[i].value);
		}
		free(v->entries);
		free(v->sorted);
		break;
	case TOML_ARRAY:
		for (size_t i = 0; i < v->count; i++)
			free_value(v->items[i]);
		free(v->items);
		break;
	case TOML_STRING:
		free(v->text);
		break;
	case TOML_OFFSET_DATE_TIME:
	case TOML_LOCAL_DATE_TIME:
	case TOML_LOCAL_DATE:
	case TOML_LOCAL_TIME:
		free((char *)v->time.text);
		break;
	default:
		break;
	}
	free(v);
}

void tomltree_free(struct toml *t)
{
	if (!t)
		return;
	free_value(t->root);
	free(t->statements);
	free(t->name);
	free(t);
}

void tomltree_state(struct toml *t, const struct tomltree_statement *statement)
{
	if (t->statement_count == t->statement_capacity) {
		t->statement_capacity =
			t->statement_capacity ? 2 * t->statement_capacity : STATEMENTS_FIRST;
		t->statements =
			mem_grow(t->statements, t->statement_capacity, sizeof(*t->statements));
	}
	t->statements[t->statement_count++] = *statement;
}

/* ---- finding ---- */

/* Any total order will do, so the cheapest. */
static int compare_keys(const struct toml_entry *a, const struct toml_entry *b)
{
	if (a->key_len != b->key_len)
		return a->key_len < b->key_len ? -1 : 1;
	return memcmp(a->key, b->key, a->key_len);
}

static const struct toml_entry *find_in_run(const struct toml_value *table, const unsigned *run,
					    size_t len, const struct toml_entry *wanted)
{
	while (len > 0) {
		const struct toml_entry *middle = &table->entries[run[len / 2]];
		int order = compare_keys(wanted, middle);

		if (order == 0)
			return middle;
		if (order > 0) {
			run += len / 2 + 1;
			len -= len / 2 + 1;
		} else {
			len /= 2;
		}
	}
	return NULL;
}

struct toml_value *tomltree_find(const struct toml_value *table, const char *key, size_t len)
{
	const struct toml_entry wanted = { .key = key, .key_len = len };
	size_t start = 0;

	while (start < table->count) {
		size_t left = table->count - start;
		size_t run_len = (size_t)1 << (63 - __builtin_clzll(left));
		const struct toml_entry *entry =
			find_in_run(table, table->sorted + start, run_len, &wanted);

		if (entry)
			return (struct toml_value *)entry->value;
		start += run_len;
	}
	return NULL;
}

/* Merges two adjacent sorted runs of the same length. */
static void merge_runs(const struct toml_value *table, unsigned *runs, size_t len)
{
	cleanup_free unsigned *first = mem_alloc(len * sizeof(*first));
	const unsigned *second = runs + len;
	size_t from_first = 0, from_second = 0;

	memcpy(first, runs, len * sizeof(*first));
	while (from_first < len) {
		const struct toml_entry *a = &table->entries[first[from_first]];

		if (from_second < len && compare_keys(a, &table->entries[second[from_second]]) > 0)
			*runs++ = second[from_second++];
		else
			*runs++ = first[from_first++];
	}
}

/* Sorts in the last entry of the table, so that it can be found. */
static void sort_in_last(struct toml_value *table)
{
	size_t count = table->count;

	table->sorted[count - 1] = (unsigned)(count - 1);
	for (size_t len = 1; !(count & len); len *= 2)
		merge_runs(table, table->sorted + count - 2 * len, len);
}

/* ---- adding ---- */

static const char *check_room(const struct toml *t, const struct toml_value *parent)
{
	if (parent->depth >= TOML_DEPTH_MAX)
		return "tables and arrays are nested too deeply";
	if (t->value_count > TOML_VALUES_MAX)
		return "the document holds too many values";
	return NULL;
}

/* Is there no room for one more? Then it also raises the capacity. */
static bool must_grow(struct toml_value *v)
{
	if (v->count < v->capacity)
		return false;
	v->capacity = v->capacity ? 2 * v->capacity : LIST_FIRST;
	return true;
}

static struct toml_value *add_entry(struct toml *t, struct toml_value *table,
				    const struct tomltree_key *key)
{
	struct toml_value *v = new_value(t, table, key->where);

	v->span = key->span;
	if (must_grow(table)) {
		table->entries = mem_grow(table->entries, table->capacity, sizeof(*table->entries));
		table->sorted = mem_grow(table->sorted, table->capacity, sizeof(*table->sorted));
	}
	table->entries[table->count++] = (struct toml_entry){
		.key = mem_dup_bytes(key->bytes, key->len),
		.key_len = key->len,
		.where = key->where,
		.span = key->span,
		.value = v,
	};
	sort_in_last(table);
	return v;
}

const char *tomltree_add(struct toml *t, struct toml_value *table, const struct tomltree_key *key,
			 struct toml_value **ret, const struct toml_value **ret_other)
{
	const char *problem;

	*ret_other = tomltree_find(table, key->bytes, key->len);
	if (*ret_other)
		return "this key is already set";
	problem = check_room(t, table);
	if (problem)
		return problem;
	*ret = add_entry(t, table, key);
	return NULL;
}

const char *tomltree_append(struct toml *t, struct toml_value *array, struct toml_where where,
			    struct toml_value **ret)
{
	const char *problem = check_room(t, array);

	if (problem)
		return problem;
	if (must_grow(array))
		array->items = mem_grow(array->items, array->capacity, sizeof(*array->items));
	*ret = array->items[array->count++] = new_value(t, array, where);
	return NULL;
}

static const char *add_table(struct toml *t, struct toml_value *table,
			     const struct tomltree_key *key, enum tomltree_made made,
			     struct toml_value **ret)
{
	const struct toml_value *other = NULL;
	const char *problem = tomltree_add(t, table, key, ret, &other);

	if (problem)
		return problem;
	(*ret)->type = TOML_TABLE;
	(*ret)->made = made;
	return NULL;
}

/* ---- the steps ---- */

const char *tomltree_enter_dotted(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other)
{
	struct toml_value *v = tomltree_find(table, key->bytes, key->len);

	if (!v)
		return add_table(t, table, key, TOMLTREE_DOTTED, ret);
	*ret_other = v;
	if (v->type == TOML_ARRAY)
		return "a dotted key cannot go into an array";
	if (v->type != TOML_TABLE)
		return "this key is already set and is not a table";
	if (v->made == TOMLTREE_IN_PLACE)
		return "an inline table cannot be extended";
	if (v->made == TOMLTREE_HEADER)
		return "a dotted key cannot extend a table that has its own header";
	v->made = TOMLTREE_DOTTED;
	*ret = v;
	return NULL;
}

const char *tomltree_enter_header(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other)
{
	struct toml_value *v = tomltree_find(table, key->bytes, key->len);

	if (!v)
		return add_table(t, table, key, TOMLTREE_PASSING, ret);
	*ret_other = v;
	if (v->type == TOML_ARRAY && v->made == TOMLTREE_IN_PLACE)
		return "an array in brackets cannot be extended";
	if (v->type == TOML_ARRAY)
		v = v->items[v->count - 1]; /* [[headers]] never leave an array empty */
	if (v->type != TOML_TABLE)
		return "this key is already set and is not a table";
	if (v->made == TOMLTREE_IN_PLACE)
		return "an inline table cannot be extended";
	*ret = v;
	return NULL;
}

const char *tomltree_define_table(struct toml *t, struct toml_value *table,
				  const struct tomltree_key *key, struct toml_value **ret,
				  const struct toml_value **ret_other)
{
	struct toml_value *v = tomltree_find(table, key->bytes, key->len);

	if (!v)
		return add_table(t, table, key, TOMLTREE_HEADER, ret);
	*ret_other = v;
	if (v->type != TOML_TABLE)
		return "this key is already set and is not a table";
	if (v->made != TOMLTREE_PASSING)
		return "this table is already defined";
	v->made = TOMLTREE_HEADER;
	v->where = key->where;
	v->span = key->span;
	*ret = v;
	return NULL;
}

const char *tomltree_define_item(struct toml *t, struct toml_value *table,
				 const struct tomltree_key *key, struct toml_value **ret,
				 const struct toml_value **ret_other)
{
	struct toml_value *array = tomltree_find(table, key->bytes, key->len);
	const char *problem;

	if (!array) {
		problem = tomltree_add(t, table, key, &array, ret_other);
		if (problem)
			return problem;
		array->type = TOML_ARRAY;
		array->made = TOMLTREE_HEADER;
	}
	*ret_other = array;
	if (array->type != TOML_ARRAY)
		return "this key is already set and is not an array of tables";
	if (array->made == TOMLTREE_IN_PLACE)
		return "an array in brackets cannot be extended";
	*ret_other = NULL;
	problem = tomltree_append(t, array, key->where, ret);
	if (problem)
		return problem;
	(*ret)->type = TOML_TABLE;
	(*ret)->made = TOMLTREE_HEADER;
	(*ret)->span = key->span;
	return NULL;
}
