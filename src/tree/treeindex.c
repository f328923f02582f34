/*
 * treeindex - what is known about every entry of a tree; see treeindex.h.
 *
 * Nodes are allocated one by one and never moved, because they refer to each other; two hash tables
 * find them by parent and name, and by inode. The file has a header, a row for each node in the
 * order of the tree, and a checksum against damage; it is no protection against forgery, because it
 * is in a directory of the caller's alone.
 */
#include "tree/treeindex.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define SLOTS_FIRST 1024u
#define FILE_MAX_BYTES (2ull << 30)
#define WRITE_BYTES (256u << 10)

struct treeindex {
	struct treeindex_node *root;
	struct treeindex_node **by_name, **by_inode;
	size_t slot_count; /* of either table, a power of two */
	uint64_t count;
};

/* ---- nodes ---- */

static struct treeindex_node *new_node(const char *name, size_t len)
{
	struct treeindex_node *n = mem_alloc(sizeof(*n) + len + 1);

	memcpy(n->name, name, len);
	return n;
}

struct treeindex *treeindex_new(void)
{
	struct treeindex *t = mem_alloc(sizeof(*t));

	t->slot_count = SLOTS_FIRST;
	t->by_name = mem_alloc(t->slot_count * sizeof(*t->by_name));
	t->by_inode = mem_alloc(t->slot_count * sizeof(*t->by_inode));
	t->root = new_node("", 0);
	t->count = 1;
	return t;
}

struct treeindex_node *treeindex_skip(struct treeindex_node *n)
{
	while (n && !n->sibling)
		n = n->parent;
	return n ? n->sibling : NULL;
}

struct treeindex_node *treeindex_next(struct treeindex_node *n)
{
	return n->child ? n->child : treeindex_skip(n);
}

void treeindex_freep(struct treeindex **t)
{
	struct treeindex_node *n, *next;

	if (!*t)
		return;
	for (n = (*t)->root; n; n = next) {
		/* frees parents first, so nothing may look at them: move the children up */
		struct treeindex_node *last = n->child;

		while (last && last->sibling)
			last = last->sibling;
		if (last)
			last->sibling = n->sibling;
		next = n->child ? n->child : n->sibling;
		free(n->times);
		free(n);
	}
	free((*t)->by_name);
	free((*t)->by_inode);
	free(*t);
	*t = NULL;
}

struct treeindex_node *treeindex_root(struct treeindex *t)
{
	return t->root;
}

uint64_t treeindex_count(const struct treeindex *t)
{
	return t->count;
}

static size_t mix(uint64_t value)
{
	return (size_t)(value * 0x9e3779b97f4a7c15u >> 20);
}

/* Names are chosen by the sandbox: many in one slot cost it, and us, time; count has a maximum. */
static size_t hash_name(const struct treeindex_node *parent, const char *name)
{
	uint64_t h = (uint64_t)(uintptr_t)parent;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return mix(h);
}

static void add_to(struct treeindex_node **slot, struct treeindex_node *n,
		   struct treeindex_node **next)
{
	*next = *slot;
	*slot = n;
}

static void grow(struct treeindex *t)
{
	size_t mask;

	t->slot_count *= 4;
	mask = t->slot_count - 1;
	free(t->by_name);
	free(t->by_inode);
	t->by_name = mem_alloc(t->slot_count * sizeof(*t->by_name));
	t->by_inode = mem_alloc(t->slot_count * sizeof(*t->by_inode));
	for (struct treeindex_node *n = t->root; n; n = treeindex_next(n)) {
		if (n->parent)
			add_to(&t->by_name[hash_name(n->parent, n->name) & mask], n,
			       &n->next_by_name);
		if (n->is_in_table)
			add_to(&t->by_inode[mix(n->inode) & mask], n, &n->next_by_inode);
	}
}

struct treeindex_node *treeindex_get(struct treeindex *t, struct treeindex_node *parent,
				     const char *name)
{
	struct treeindex_node **slot = &t->by_name[hash_name(parent, name) & (t->slot_count - 1)];
	struct treeindex_node *n;

	for (n = *slot; n; n = n->next_by_name)
		if (n->parent == parent && strcmp(n->name, name) == 0)
			return n;
	n = new_node(name, strlen(name));
	n->parent = parent;
	n->sibling = parent->child;
	parent->child = n;
	add_to(slot, n, &n->next_by_name);
	if (++t->count > t->slot_count)
		grow(t);
	return n;
}

/* ---- states ---- */

bool treeindex_is_same(const struct treeindex_node *n, const struct stat *st)
{
	return n->inode != 0 && n->inode == st->st_ino && n->ctime_s == st->st_ctim.tv_sec &&
	       n->ctime_ns == (uint32_t)st->st_ctim.tv_nsec &&
	       (n->mode & S_IFMT) == (st->st_mode & S_IFMT) &&
	       (S_ISDIR(st->st_mode) || n->size == (uint64_t)st->st_size);
}

struct treeindex_node *treeindex_first(const struct treeindex *t, uint64_t inode)
{
	return t->by_inode[mix(inode) & (t->slot_count - 1)];
}

static void leave_table(struct treeindex *t, struct treeindex_node *n)
{
	struct treeindex_node **at = &t->by_inode[mix(n->inode) & (t->slot_count - 1)];

	while (*at != n)
		at = &(*at)->next_by_inode;
	*at = n->next_by_inode;
	n->is_in_table = false;
}

static void enter_table(struct treeindex *t, struct treeindex_node *n)
{
	if (n->inode == 0 || S_ISDIR(n->mode))
		return;
	add_to(&t->by_inode[mix(n->inode) & (t->slot_count - 1)], n, &n->next_by_inode);
	n->is_in_table = true;
}

void treeindex_set(struct treeindex *t, struct treeindex_node *n, const struct stat *st)
{
	if (n->is_in_table)
		leave_table(t, n);
	n->inode = st->st_ino;
	n->ctime_s = st->st_ctim.tv_sec;
	n->ctime_ns = (uint32_t)st->st_ctim.tv_nsec;
	n->size = (uint64_t)st->st_size;
	n->mode = st->st_mode;
	enter_table(t, n);
}

/* Keeps the inode, by which the table finds it. */
void treeindex_forget(struct treeindex_node *n)
{
	n->place = TREEINDEX_NOWHERE;
	n->ctime_s = INT64_MIN;
}

/* ---- the file ---- */

struct file_start {
	char magic[16];
	struct treeindex_header header;
	uint64_t count;
};

struct row {
	uint64_t inode;
	int64_t ctime_s;
	uint64_t size;
	uint32_t ctime_ns;
	uint32_t mode;
	uint32_t depth;
	uint16_t name_len;
	uint8_t place;
	uint8_t base; /* enum treeindex_kind, and OPAQUE_BIT */
};

#define MAGIC "agentkernel tr1"
#define OPAQUE_BIT 0x80u

struct writer {
	int fd;
	int error;
	uint64_t sum, count;
	size_t len;
	char bytes[WRITE_BYTES];
};

static uint64_t add_sum(uint64_t sum, const char *bytes, size_t len)
{
	uint64_t word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	for (; len > 0; bytes++, len--)
		sum = (sum ^ (unsigned char)*bytes) * 0x100000001b3u;
	return sum;
}

static void flush(struct writer *w)
{
	int r = file_write_all(w->fd, w->bytes, w->len);

	if (r < 0 && w->error == 0)
		w->error = -r;
	w->len = 0;
}

static void put(struct writer *w, const void *bytes, size_t len)
{
	if (w->len + len > sizeof(w->bytes))
		flush(w);
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
	w->sum = add_sum(w->sum, bytes, len);
}

static uint8_t kind_of(uint32_t mode)
{
	return S_ISDIR(mode) ? TREEINDEX_DIRECTORY : TREEINDEX_OTHER;
}

static void put_node(struct writer *w, const struct treeindex_node *n, uint32_t depth, bool is_seen,
		     bool is_base)
{
	struct row row = { .depth = depth, .name_len = (uint16_t)strlen(n->name) };

	row.base = (uint8_t)(n->base_kind | (n->is_base_opaque ? OPAQUE_BIT : 0));
	if (is_base)
		row.base = (uint8_t)(kind_of(n->mode) | (n->is_opaque ? OPAQUE_BIT : 0));
	if (is_seen) {
		row.inode = n->is_unsure ? 0 : n->inode;
		row.ctime_s = n->ctime_s;
		row.ctime_ns = n->ctime_ns;
		row.size = n->size;
		row.mode = n->mode;
		row.place =
			is_base || n->place == TREEINDEX_BASE ? TREEINDEX_BASE : TREEINDEX_PREVIOUS;
	}
	put(w, &row, sizeof(row));
	put(w, n->name, row.name_len);
	w->count++;
}

static uint32_t depth_of(const struct treeindex_node *n, uint32_t parent_depth)
{
	return n->parent ? parent_depth + 1 : 0;
}

static void put_nodes(struct writer *w, struct treeindex *t, uint32_t pass, bool is_base)
{
	const struct treeindex_node *before = NULL;
	uint32_t depth = 0;

	for (struct treeindex_node *n = t->root, *next; n; n = next) {
		bool is_seen = n->seen_pass == pass;

		/* one step down, or some steps up */
		if (n->parent && n->parent == before)
			depth = depth_of(n, depth);
		else
			for (; before && before->parent != n->parent; before = before->parent)
				depth--;
		before = n;
		next = treeindex_next(n);
		if (is_seen || (!is_base && n->base_kind))
			put_node(w, n, depth, is_seen, is_base);
		else
			next = treeindex_skip(n);
	}
}

static void freep_writer(struct writer **w)
{
	free(*w);
}

int treeindex_write(struct treeindex *t, const struct treeindex_header *header, uint32_t pass,
		    bool is_base, int fd, struct err *e)
{
	CLEANUP(freep_writer) struct writer *w = mem_alloc(sizeof(*w));
	struct file_start start = { .magic = MAGIC, .header = *header };
	uint64_t end[2];

	w->fd = fd;
	put(w, &start, sizeof(start));
	put_nodes(w, t, pass, is_base);
	end[0] = w->count;
	end[1] = w->sum;
	put(w, end, sizeof(end));
	flush(w);
	return w->error ? err_sys(e, w->error, "write the index of the files") : 0;
}

struct reader {
	const char *at;
	size_t left;
};

static bool get(struct reader *r, void *out, size_t len)
{
	if (r->left < len)
		return false;
	memcpy(out, r->at, len);
	r->at += len;
	r->left -= len;
	return true;
}

/* Adds a row below its parent, which is an ancestor of the node before it, or that node. */
static bool add_row(struct treeindex *t, const struct row *row, const char *name,
		    struct treeindex_node **last, uint32_t *last_depth)
{
	struct treeindex_node *n = t->root;

	if (row->depth == 0) {
		if (*last)
			return false;
	} else {
		struct treeindex_node *parent = *last;

		if (!parent || row->depth > *last_depth + 1 || row->name_len == 0)
			return false;
		for (uint32_t depth = *last_depth; depth >= row->depth; depth--)
			parent = parent->parent;
		n = treeindex_get(t, parent, name);
	}
	n->inode = row->inode;
	n->ctime_s = row->ctime_s;
	n->ctime_ns = row->ctime_ns;
	n->size = row->size;
	n->mode = row->mode;
	n->place = row->place;
	n->base_kind = row->base & (uint8_t)~OPAQUE_BIT;
	n->is_base_opaque = row->base & OPAQUE_BIT;
	enter_table(t, n);
	*last = n;
	*last_depth = row->depth;
	return n->place <= TREEINDEX_PREVIOUS && n->base_kind <= TREEINDEX_OTHER;
}

static bool parse(const char *bytes, size_t len, struct treeindex_header *header,
		  struct treeindex *t)
{
	struct reader r = { bytes, len };
	struct file_start start;
	struct treeindex_node *last = NULL;
	uint32_t last_depth = 0;
	uint64_t end[2], count = 0;

	if (len < sizeof(end) || !get(&r, &start, sizeof(start)) ||
	    memcmp(start.magic, MAGIC, sizeof(start.magic)) != 0)
		return false;
	memcpy(end, bytes + len - sizeof(end), sizeof(end));
	if (r.left < sizeof(end))
		return false;
	r.left -= sizeof(end);
	for (; r.left > 0; count++) {
		char name[NAME_MAX + 1];
		struct row row;

		if (count == TREEINDEX_ENTRIES_MAX || !get(&r, &row, sizeof(row)) ||
		    row.name_len > NAME_MAX || !get(&r, name, row.name_len))
			return false;
		name[row.name_len] = '\0';
		if (!add_row(t, &row, name, &last, &last_depth))
			return false;
	}
	*header = start.header;
	return count == end[0];
}

/* The writer sums up piece by piece: the header, each row, each name. */
static bool check_sum(const char *bytes, size_t len)
{
	struct reader r = { bytes, len };
	uint64_t sum = add_sum(0, bytes, sizeof(struct file_start)), end[2];
	struct file_start start;
	struct row row;

	if (!get(&r, &start, sizeof(start)) || r.left < sizeof(end))
		return false;
	r.left -= sizeof(end);
	while (r.left > 0) {
		const char *at = r.at;

		if (!get(&r, &row, sizeof(row)) || row.name_len > r.left)
			return false;
		sum = add_sum(sum, at, sizeof(row));
		sum = add_sum(sum, r.at, row.name_len);
		r.at += row.name_len;
		r.left -= row.name_len;
	}
	memcpy(end, r.at, sizeof(end));
	return end[1] == sum;
}

int treeindex_read(int fd, struct treeindex_header *ret_header, struct treeindex **ret,
		   struct err *e)
{
	CLEANUP(treeindex_freep) struct treeindex *t = treeindex_new();
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r = file_read_fd(fd, FILE_MAX_BYTES, &bytes, &len);

	if (r < 0)
		return err_sys(e, -r, "read the index of the files");
	if (len < sizeof(struct file_start) || !check_sum(bytes, len) ||
	    !parse(bytes, len, ret_header, t))
		return err_set(e, ERR_CORRUPT, "the index of the files is damaged");
	*ret = take_ptr(t);
	return 0;
}
