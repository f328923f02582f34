/* storegc - removes what no image needs; see storegc.h. */
#include "image/storegc.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/steprecord.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* Sorted names to keep. */
struct names {
	char **list;
	size_t count;
	bool is_sorted;
};

static void names_add(struct names *n, const char *name)
{
	n->list = mem_grow(n->list, n->count + 1, sizeof(*n->list));
	n->list[n->count++] = mem_dup(name);
	n->is_sorted = false;
}

static void names_done(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
	*n = (struct names){ 0 };
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool names_have(struct names *n, const char *name)
{
	if (n->count == 0)
		return false;
	if (!n->is_sorted)
		qsort(n->list, n->count, sizeof(*n->list), by_text);
	n->is_sorted = true;
	return bsearch(&name, n->list, n->count, sizeof(*n->list), by_text);
}

/* All names in a directory, except "." and "..". */
static int list(int dir_fd, struct names *ret, struct err *e)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int sys;

	if (!dir)
		return err_sys(e, errno, "list the image store");
	while ((errno = 0, entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			names_add(ret, entry->d_name);
	sys = errno; /* an incomplete list would make used files look unused */
	(void)closedir(dir);
	return sys != 0 ? err_sys(e, sys, "list the image store") : 0;
}

struct collection {
	const struct store *store;
	unsigned flags;
	struct names named;  /* records that have a name */
	struct names pinned; /* records that a sandbox or checkpoint needs */
	struct names blobs;  /* to keep, like the next */
	struct names layers;
	struct names owners; /* id maps that a record still uses */
	struct storegc_result result;
};

static void collection_done(struct collection *c)
{
	names_done(&c->named);
	names_done(&c->pinned);
	names_done(&c->blobs);
	names_done(&c->layers);
	names_done(&c->owners);
}

/* Collects the records that links in a directory lead to; removes other and temporary entries. */
static int find_linked(struct collection *c, int links_fd, struct names *ret, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	char target[64];

	if (list(links_fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		ssize_t n = readlinkat(links_fd, names.list[i], target, sizeof(target) - 1);

		/* an unreadable link's record would look unused; EINVAL: not a link, so not ours */
		if (n < 0 && errno != EINVAL && errno != ENOENT)
			return err_sys(e, errno, "read what '%s' leads to", names.list[i]);
		if (names.list[i][0] == '.' || n <= 0) { /* left by a killed process */
			if (!(c->flags & STOREGC_DRY))
				(void)unlinkat(links_fd, names.list[i], 0);
			continue;
		}
		target[n] = '\0';
		names_add(ret, strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
	}
	return 0;
}

/* Records used by named sandboxes and their checkpoints. */
static int find_pinned(struct collection *c, struct err *e)
{
	cleanup_fd int pins_fd =
		openat(c->store->dir_fd, STOREGC_PINS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (pins_fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "open the pins");
	return find_linked(c, pins_fd, &c->pinned, e);
}

static void keep_blob(struct collection *c, const char *digest)
{
	names_add(&c->blobs, digest + sizeof("sha256:") - 1);
}

/* If the manifest cannot be read, only it and the config are kept; the layers are complete. */
static void keep_blobs_of(struct collection *c, const struct record *r)
{
	struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_free char *text = NULL;
	struct err ignored;
	size_t len = 0;

	keep_blob(c, r->digest);
	keep_blob(c, r->config);
	if (store_read_blob(c->store, r->digest, MANIFEST_MAX_BYTES, &text, &len, &ignored) == 0 &&
	    manifest_parse(text, len, m, &ignored) == 0)
		for (unsigned i = 0; i < m->layer_count; i++)
			keep_blob(c, m->layers[i].digest);
	free(m);
}

static void keep(struct collection *c, const struct record *r)
{
	keep_blobs_of(c, r);
	names_add(&c->owners, r->owners);
	if (strcmp(r->owners, c->store->owners) == 0)
		for (unsigned i = 0; i < r->layer_count; i++)
			names_add(&c->layers, r->layers[i]);
}

/* Removes the names that lead to this record by link. */
static void remove_names_of(struct collection *c, const char *id)
{
	CLEANUP(names_done) struct names names = { 0 };
	cleanup_free char *wanted = mem_format("../records/%s", id);
	char target[64];
	struct err ignored;

	if (list(c->store->names_fd, &names, &ignored) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		ssize_t n =
			readlinkat(c->store->names_fd, names.list[i], target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, wanted) == 0)
			(void)unlinkat(c->store->names_fd, names.list[i], 0);
	}
}

static int remove_record(struct collection *c, const char *id, struct err *e)
{
	c->result.record_count++;
	if (c->flags & STOREGC_DRY)
		return 0;
	remove_names_of(c, id);
	if (unlinkat(c->store->records_fd, id, 0) < 0)
		return err_sys(e, errno, "remove record %s", id);
	return 0;
}

static bool is_temporary(const char *name)
{
	return name[0] == '.' || strlen(name) != RECORD_ID_BYTES;
}

/* Users of a record hold its lock shared. */
static int judge_record(struct collection *c, const char *id, struct err *e)
{
	cleanup_fd int fd = openat(c->store->records_fd, id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int sys = fd < 0 ? errno : 0;
	bool is_named = !(c->flags & STOREGC_UNUSED) && names_have(&c->named, id);
	bool is_used = (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) || names_have(&c->pinned, id);
	CLEANUP(record_done) struct record r = { 0 };
	cleanup_fd int reading_fd = -1;

	if (sys != 0 && sys != ENOENT && sys != ELOOP) /* then we cannot know who uses it */
		return err_sys(e, sys, "open record %s", id);
	if (is_used || is_named) {
		/* release our own lock first: it would block record_open() */
		cleanup_closep(&fd);
		if (record_open(c->store->records_fd, id, &r, &reading_fd, e) < 0) {
			if (e->code != ERR_CORRUPT)
				return err_wrap(e, "record %s", id);
			return remove_record(c, id, e); /* nobody can use it */
		}
		keep(c, &r);
		c->result.used_count += is_used && !is_named;
		return 0;
	}
	return remove_record(c, id, e);
}

static int judge_records(struct collection *c, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };

	if (list(c->store->records_fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (!is_temporary(names.list[i]) && judge_record(c, names.list[i], e) < 0)
			return -1;
	for (size_t i = 0; i < names.count; i++) {
		char id[RECORD_ID_BYTES + 1];

		(void)snprintf(id, sizeof(id), "%s", names.list[i]);
		/* markers of removed records, and files of killed processes */
		if (is_temporary(names.list[i]) && !(c->flags & STOREGC_DRY) &&
		    faccessat(c->store->records_fd, id, F_OK, 0) < 0 && errno == ENOENT)
			(void)unlinkat(c->store->records_fd, names.list[i], 0);
	}
	return 0;
}

/* Returns whether the step may stay; then its layer and blob do, too. */
static bool keep_step(struct collection *c, int steps_fd, const char *name)
{
	CLEANUP(steprecord_done) struct steprecord r = { 0 };
	cleanup_free char *bytes = NULL;
	struct err ignored;
	size_t len = 0;

	if (strncmp(name, "lock-", 5) == 0)
		return true;
	if ((c->flags & STOREGC_UNUSED) || name[0] == '.' ||
	    file_read_at(steps_fd, name, STEPRECORD_MAX_BYTES, &bytes, &len) < 0 ||
	    steprecord_parse(bytes, len, &r, &ignored) < 0 ||
	    strcmp(r.owners, c->store->owners) != 0)
		return false;
	if (r.layer[0]) {
		names_add(&c->layers, r.layer);
		keep_blob(c, r.digest);
	}
	return true;
}

/* The steps of builds that need not be done again. */
static int judge_steps(struct collection *c, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	cleanup_fd int fd =
		openat(c->store->dir_fd, STEPRECORD_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "open the steps of builds");
	if (list(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (!keep_step(c, fd, names.list[i]) && !(c->flags & STOREGC_DRY))
			(void)unlinkat(fd, names.list[i], 0);
	return 0;
}

static int judge_layers(struct collection *c, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	CLEANUP(names_done) struct names unfinished = { 0 };

	if (list(c->store->layers_fd, &names, e) < 0 ||
	    list(c->store->making_fd, &unfinished, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (strcmp(names.list[i], "making") == 0 || names_have(&c->layers, names.list[i]))
			continue;
		c->result.layer_count++;
		if (!(c->flags & STOREGC_DRY) && store_remove_layer(c->store, names.list[i], e) < 0)
			return -1;
	}
	for (size_t i = 0; i < unfinished.count && !(c->flags & STOREGC_DRY); i++)
		if (store_sweep(c->store, unfinished.list[i], e) < 0)
			return -1;
	return 0;
}

/* Removes layers of an id map that this user had before. */
static int judge_owners(struct collection *c, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	cleanup_fd int fd = openat(c->store->dir_fd, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (c->flags & STOREGC_DRY)
		return 0;
	if (fd < 0)
		return err_sys(e, errno, "open the layers");
	if (list(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (strcmp(names.list[i], c->store->owners) != 0 &&
		    !names_have(&c->owners, names.list[i]))
			store_sweep_owners(c->store, names.list[i]);
	return 0;
}

static int judge_blobs(struct collection *c, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	CLEANUP(names_done) struct names partial = { 0 };
	struct stat st;

	if (list(c->store->blobs_fd, &names, e) < 0 || list(c->store->partial_fd, &partial, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (names_have(&c->blobs, names.list[i]) ||
		    fstatat(c->store->blobs_fd, names.list[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		c->result.blob_count++;
		c->result.blob_bytes += (uint64_t)st.st_size;
		if (!(c->flags & STOREGC_DRY) && unlinkat(c->store->blobs_fd, names.list[i], 0) < 0)
			return err_sys(e, errno, "remove blob %s", names.list[i]);
	}
	for (size_t i = 0; i < partial.count && !(c->flags & STOREGC_RESUMABLE); i++) {
		if (fstatat(c->store->partial_fd, partial.list[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
			c->result.blob_bytes += (uint64_t)st.st_size;
		if (!(c->flags & STOREGC_DRY))
			(void)unlinkat(c->store->partial_fd, partial.list[i], 0);
	}
	return 0;
}

int storegc_run(const struct store *s, unsigned flags, struct storegc_result *ret, struct err *e)
{
	CLEANUP(collection_done) struct collection c = { .store = s, .flags = flags };

	if (find_linked(&c, s->names_fd, &c.named, e) < 0 || find_pinned(&c, e) < 0 ||
	    judge_records(&c, e) < 0 || judge_steps(&c, e) < 0 || judge_layers(&c, e) < 0 ||
	    judge_owners(&c, e) < 0 || judge_blobs(&c, e) < 0)
		return -1;
	*ret = c.result;
	return 0;
}
