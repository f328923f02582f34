/*
 * checkpoint - an immutable copy of a sandbox's written files; see checkpoint.h.
 *
 * Theory of operation. named/layertake copies the files to a new layer; a record names the layer
 * only when it is complete. Records appear by rename. The digest is computed afterwards from the
 * copy, when the sandbox runs again.
 */
#include "named/checkpoint.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "engine/images.h"
#include "named/layerdigest.h"
#include "named/layerstore.h"
#include "named/layertake.h"
#include "named/inventory.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "named/nameddisk.h"
#include "state/statedir.h"
#include "policy/policyfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define RECORD_FILE "record"
#define POLICY_FILE "policy"

#define ROW(key, kind, member) KEYROWS_ROW(struct checkpoint, key, kind, member)
static const struct keyrows_row rows[] = {
	ROW("id", KEYROWS_ARRAY, id),
	ROW("sandbox", KEYROWS_TEXT, sandbox),
	ROW("sandbox-id", KEYROWS_TEXT, sandbox_id),
	ROW("owner", KEYROWS_TEXT, owner),
	ROW("creator", KEYROWS_TEXT, creator),
	ROW("comment", KEYROWS_TEXT, comment),
	ROW("image", KEYROWS_TEXT, image),
	ROW("image-pin", KEYROWS_TEXT, image_pin),
	ROW("layer", KEYROWS_LIST, layers),
	ROW("created", KEYROWS_NUMBER, created_s),
	ROW("bytes", KEYROWS_NUMBER, bytes),
	ROW("entries", KEYROWS_NUMBER, entries),
	ROW("disk-limit", KEYROWS_FLAG, has_disk_limit),
	ROW("automatic", KEYROWS_FLAG, is_automatic),
};
static const struct keyrows format = {
	.what = "checkpoint",
	.version = 3,
	.rows = rows,
	.count = COUNT_OF(rows),
};

void checkpoint_done(struct checkpoint *c)
{
	keyrows_done(&format, c);
}

/* ---- records ---- */

bool checkpoint_is_id(const char *text)
{
	return strlen(text) == CHECKPOINT_ID_BYTES &&
	       strspn(text, "0123456789abcdef") == CHECKPOINT_ID_BYTES;
}

static int open_dir(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;
	int r, fd;

	if (statedir_path(ak, CHECKPOINT_DIR, &path, e) < 0)
		return -1;
	r = file_make_dirs(path, 0700);
	fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, r < 0 ? -r : errno, "open '%s'", path);
	*ret_fd = fd;
	return 0;
}

static int say_missing(const char *id, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND,
		       "no checkpoint '%s' ('agentkernel checkpoint list' shows them)", id);
}

static int read_record(int dir_fd, const char *id, struct checkpoint *ret, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	char path[CHECKPOINT_ID_BYTES + sizeof("/" RECORD_FILE)];
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r;

	(void)snprintf(path, sizeof(path), "%s/" RECORD_FILE, id);
	r = file_read_at(dir_fd, path, NAMED_RECORD_MAX_BYTES, &bytes, &len);
	if (r == -ENOENT)
		return say_missing(id, e);
	if (r < 0)
		return err_sys(e, -r, "read checkpoint '%s'", id);
	if (keyrows_parse(&format, bytes, len, &c, e) < 0)
		return err_wrap(e, "checkpoint '%s'", id);
	if (strcmp(c.id, id) != 0 || !c.sandbox || !c.image || !c.layers)
		return err_set(e, ERR_CORRUPT, "checkpoint '%s': its record is incomplete", id);
	*ret = c;
	c = (struct checkpoint){ 0 };
	return 0;
}

int checkpoint_open(const struct ak *ak, const char *id, struct checkpoint *ret, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	cleanup_fd int dir_fd = -1;

	if (!checkpoint_is_id(id))
		return say_missing(id, e);
	if (open_dir(ak, &dir_fd, e) < 0 || read_record(dir_fd, id, &c, e) < 0)
		return -1;
	if (!named_is_visible(ak, c.owner))
		return say_missing(id, e);
	*ret = c;
	c = (struct checkpoint){ 0 };
	return 0;
}

int checkpoint_load_policy(const struct ak *ak, const char *id, struct policy *ret, struct err *e)
{
	char path[CHECKPOINT_ID_BYTES + sizeof("/" POLICY_FILE)];
	cleanup_fd int dir_fd = -1;
	cleanup_free char *bytes = NULL;
	size_t len = 0;
	int r;

	if (open_dir(ak, &dir_fd, e) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/" POLICY_FILE, id);
	r = file_read_at(dir_fd, path, POLICYFILE_MAX_BYTES, &bytes, &len);
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "checkpoint '%s' was imported and has no policy",
			       id);
	if (r < 0)
		return err_sys(e, -r, "read the policy of checkpoint '%s'", id);
	if (policyfile_parse(bytes, len, ret, e) < 0)
		return err_wrap(e, "checkpoint '%s'", id);
	return 0;
}

static int write_file(int dir_fd, const char *name, const struct buf *bytes, struct err *e)
{
	cleanup_fd int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : file_write_all(fd, bytes->bytes, bytes->len);

	if (r < 0)
		return err_sys(e, -r, "write a checkpoint's %s", name);
	return 0;
}

static int write_files(int dir_fd, const struct checkpoint *c, const struct policy *p,
		       struct err *e)
{
	cleanup_buf struct buf record;
	cleanup_buf struct buf policy;

	buf_init(&record, NAMED_RECORD_MAX_BYTES);
	buf_init(&policy, POLICYFILE_MAX_BYTES);
	keyrows_format(&format, c, &record);
	if (p)
		policyfile_format(p, &policy);
	if (record.is_cut || policy.is_cut)
		return err_set(e, ERR_LIMIT, "the checkpoint's record is too long");
	if (write_file(dir_fd, RECORD_FILE, &record, e) < 0)
		return -1;
	return p ? write_file(dir_fd, POLICY_FILE, &policy, e) : 0;
}

/* Renames the complete directory into place, so a checkpoint never exists without its record. */
int checkpoint_keep(const struct ak *ak, const struct checkpoint *c, const struct policy *p,
		    struct err *e)
{
	cleanup_fd int all_fd = -1, dir_fd = -1;
	char name[CHECKPOINT_ID_BYTES + sizeof(".new-")];
	struct err ignored;

	if (open_dir(ak, &all_fd, e) < 0)
		return -1;
	(void)snprintf(name, sizeof(name), ".new-%s", c->id);
	if (mkdirat(all_fd, name, 0700) < 0)
		return err_sys(e, errno, "create a checkpoint");
	dir_fd = openat(all_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir_fd < 0)
		(void)err_sys(e, errno, "create a checkpoint");
	else if (write_files(dir_fd, c, p, e) == 0) {
		if (renameat(all_fd, name, all_fd, c->id) == 0)
			return 0;
		(void)err_sys(e, errno, "name a checkpoint");
	}
	(void)!sweep_tree(all_fd, name, &ignored);
	return -1;
}

/* ---- lists ---- */

void checkpoint_list_done(struct checkpoint_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		checkpoint_done(&l->entries[i]);
	free(l->entries);
	*l = (struct checkpoint_list){ 0 };
}

static int by_age(const void *a, const void *b)
{
	const struct checkpoint *x = a, *y = b;

	if (x->created_s != y->created_s)
		return x->created_s < y->created_s ? -1 : 1;
	return strcmp(x->id, y->id);
}

static void add_entry(struct checkpoint_list *l, int dir_fd, const char *id, const char *sandbox)
{
	struct checkpoint c;
	struct err e = { 0 };

	if (read_record(dir_fd, id, &c, &e) < 0) {
		l->has_damaged |= e.code != ERR_NOT_FOUND;
		return;
	}
	if (sandbox && strcmp(c.sandbox, sandbox) != 0) {
		checkpoint_done(&c);
		return;
	}
	l->entries = mem_grow(l->entries, l->count + 1, sizeof(*l->entries));
	l->entries[l->count++] = c;
}

static int open_listing(const struct ak *ak, DIR **ret, struct err *e)
{
	int dir_fd = -1;

	if (open_dir(ak, &dir_fd, e) < 0)
		return -1;
	*ret = fdopendir(dir_fd);
	if (*ret)
		return 0;
	(void)err_sys(e, errno, "list the checkpoints");
	(void)close(dir_fd);
	return -1;
}

int checkpoint_list(const struct ak *ak, const char *sandbox, struct checkpoint_list *ret,
		    struct err *e)
{
	struct dirent *entry;
	DIR *dir;
	int sys;

	*ret = (struct checkpoint_list){ 0 };
	if (open_listing(ak, &dir, e) < 0)
		return -1;
	while ((errno = 0, entry = readdir(dir)))
		if (checkpoint_is_id(entry->d_name))
			add_entry(ret, dirfd(dir), entry->d_name, sandbox);
	sys = errno;
	(void)closedir(dir);
	if (sys != 0) { /* fail: garbage collection would remove the layers of checkpoints missing
			   from the list */
		checkpoint_list_done(ret);
		return err_sys(e, sys, "list the checkpoints");
	}
	if (ret->count > 1)
		qsort(ret->entries, ret->count, sizeof(*ret->entries), by_age);
	return 0;
}

/* ---- garbage ---- */

static bool is_unfinished(const char *name)
{
	return strncmp(name, ".new-", 5) == 0 || strncmp(name, ".old-", 5) == 0;
}

int checkpoint_sweep(const struct ak *ak, unsigned *count, struct err *e)
{
	cleanup_fd int store_fd = -1;
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	/*
	 * processes that create a checkpoint hold the layer store's lock until its record is
	 * written
	 */
	if (layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0)
		return -1;
	if (flock(store_fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	if (open_listing(ak, &dir, e) < 0)
		return -1;
	while (r == 0 && (entry = readdir(dir)))
		if (is_unfinished(entry->d_name)) {
			r = sweep_tree(dirfd(dir), entry->d_name, e);
			*count += r == 0;
		}
	(void)closedir(dir);
	return r;
}

/* ---- creating ---- */

static void describe(struct checkpoint *c, const struct named *n, const struct layertake *t,
		     const char *comment)
{
	char id[NAMED_ID_BYTES + 1];

	c->bytes = t->bytes;
	c->entries = t->entries;
	named_random_id(id);
	(void)snprintf(c->id, sizeof(c->id), "%.*s", (int)CHECKPOINT_ID_BYTES, id);
	c->sandbox = mem_dup(n->name);
	c->sandbox_id = mem_dup(n->id);
	c->owner = n->owner ? mem_dup(n->owner) : NULL;
	c->creator = n->creator ? mem_dup(n->creator) : NULL;
	c->comment = comment ? mem_dup(comment) : NULL;
	c->image = mem_dup(n->image ? n->image : "");
	c->created_s = (uint64_t)time(NULL);
	c->has_disk_limit = n->has_disk_limit;
	(void)keyrows_list_add(&c->layers, t->layer.id);
	if (t->base[0])
		(void)keyrows_list_add(&c->layers, t->base);
	for (char **layer = n->layers; layer && *layer; layer++)
		(void)keyrows_list_add(&c->layers, *layer);
}

static int pin_image(const struct ak *ak, const char *from, struct checkpoint *c, struct err *e)
{
	if (!from)
		return 0;
	c->image_pin = mem_format("checkpoint-%s", c->id);
	return images_copy_pin(ak, from, c->image_pin, e);
}

static bool is_of(const struct checkpoint *c, const char *sandbox_id)
{
	return c->sandbox_id && strcmp(c->sandbox_id, sandbox_id) == 0;
}

/* The highest layer of the sandbox's latest checkpoint; "": there is none. */
static int find_latest_layer(const struct ak *ak, const struct named *n,
			     char ret[LAYERSTORE_ID_BYTES + 1], struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };

	ret[0] = '\0';
	if (checkpoint_list(ak, n->name, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (is_of(&list.entries[i], n->id))
			(void)snprintf(ret, LAYERSTORE_ID_BYTES + 1, "%s",
				       list.entries[i].layers[0]);
	return 0;
}

/* The layer is committed: makes it a checkpoint. */
static int keep_taken(const struct ak *ak, const struct named *n, const struct layertake *taken,
		      int store_fd, struct checkpoint *c, struct err *e)
{
	/* the layer below is a fork's, if it has no digest yet */
	if (layerdigest_write(store_fd, taken->layer.id, e) < 0 ||
	    (taken->base[0] && layerdigest_write(store_fd, taken->base, e) < 0) ||
	    pin_image(ak, n->image_pin, c, e) < 0)
		return -1;
	if (checkpoint_keep(ak, c, &taken->policy, e) == 0)
		return 0;
	if (c->image_pin)
		images_unpin(ak, c->image_pin);
	return -1;
}

static int create(const struct ak *ak, const struct checkpoint_request *q, struct checkpoint *c,
		  struct checkpoint_timing *t, struct err *e)
{
	char latest[LAYERSTORE_ID_BYTES + 1] = "";
	CLEANUP(named_done) struct named n;
	CLEANUP(layertake_done) struct layertake taken;
	cleanup_fd int store_fd = -1;
	uint64_t begin_us = clock_now_us();
	const struct layertake_options options = { .latest = q->may_skip ? latest : NULL };

	named_init(&n);
	layertake_init(&taken);
	if (q->comment && strlen(q->comment) > CHECKPOINT_COMMENT_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "a comment has at most %u bytes",
			       CHECKPOINT_COMMENT_MAX_BYTES);
	if (named_open(ak, q->sandbox, &n, e) < 0 ||
	    layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0 ||
	    (q->may_skip && find_latest_layer(ak, &n, latest, e) < 0))
		return -1;
	if (layertake_run(&n, store_fd, &options, &taken, e) < 0)
		return -1;
	if (taken.is_unchanged)
		return 0;
	t->frozen_us = taken.frozen_us;
	describe(c, &n, &taken, q->comment);
	c->is_automatic = q->is_automatic;
	if (keep_taken(ak, &n, &taken, store_fd, c, e) < 0)
		return -1;
	layertake_keep_index(&n, &taken);
	t->total_us = clock_now_us() - begin_us;
	return 0;
}

int checkpoint_create(const struct ak *ak, const struct checkpoint_request *q,
		      struct checkpoint *ret, struct checkpoint_timing *ret_timing, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	int r = create(ak, q, &c, ret_timing, e);

	if (r < 0 || c.id[0])
		lifecycle_audit(ak, AUDITLINE_CHECKPOINT, q->sandbox, c.id[0] ? c.id : NULL,
				r < 0 ? e : NULL);
	if (r < 0)
		return -1;
	*ret = c;
	c = (struct checkpoint){ 0 };
	return 0;
}

/* ---- using ---- */

static int check_layers(int store_fd, const struct checkpoint *c, struct err *e)
{
	for (char **layer = c->layers; *layer; layer++)
		if (layerdigest_check(store_fd, *layer, e) < 0)
			return err_wrap(e, "checkpoint '%s'", c->id);
	return 0;
}

static int check_image(const struct ak *ak, const struct named *n, const struct checkpoint *c,
		       struct err *e)
{
	if (images_have_same_pin(ak, n->image_pin, c->image_pin))
		return 0;
	return err_set(e, ERR_INVALID,
		       "checkpoint '%s' is of image '%s', sandbox '%s' of '%s' (create a new one "
		       "with --from %s)",
		       c->id, c->image, n->name, n->image, c->id);
}

/*
 * All that takes long or can be refused comes before the stop. The lock is held from then until the
 * sandbox runs again, so nobody starts it in between. It is started again even if the swap failed.
 */
static int restore(const struct ak *ak, const char *sandbox, const char *id, bool *ret_was_running,
		   struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	char old_disk[NAMED_ID_BYTES + 1] = "";
	cleanup_fd int store_fd = -1;
	struct err failure = { 0 };
	int r;

	named_init(&n);
	if (named_open(ak, sandbox, &n, e) < 0 ||
	    layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0 ||
	    checkpoint_open(ak, id, &c, e) < 0 || check_image(ak, &n, &c, e) < 0 ||
	    check_layers(store_fd, &c, e) < 0 ||
	    lifecycle_lock_stopped(ak, &n, ret_was_running, e) < 0)
		return -1;
	r = nameddisk_replace(&n, c.layers, old_disk, e);
	if (*ret_was_running && lifecycle_start_locked(ak, &n, &failure) < 0 && r == 0) {
		*e = failure;
		r = err_wrap(e, "it was restored, but");
	}
	nameddisk_sweep_old(&n, old_disk);
	return r;
}

int checkpoint_restore(const struct ak *ak, const char *sandbox, const char *id,
		       bool *ret_was_running, struct err *e)
{
	struct err ignored;
	int r;

	*ret_was_running = false;
	r = restore(ak, sandbox, id, ret_was_running, e);
	lifecycle_audit(ak, AUDITLINE_RESTORE, sandbox, id, r < 0 ? e : NULL);
	if (r == 0)
		(void)!layerstore_collect(ak, NULL, &ignored);
	return r;
}

int checkpoint_remove(const struct ak *ak, const char *id, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	char gone[CHECKPOINT_ID_BYTES + sizeof(".old-")];
	struct audit_identity who = { 0 };
	cleanup_fd int dir_fd = -1;

	if (!checkpoint_is_id(id))
		return say_missing(id, e);
	if (open_dir(ak, &dir_fd, e) < 0)
		return -1;
	/* remove a damaged checkpoint too; its image pin is collected as garbage later */
	if (read_record(dir_fd, id, &c, e) < 0 && e->code != ERR_CORRUPT &&
	    e->code != ERR_UNSUPPORTED)
		return -1;
	if (!named_is_visible(ak, c.owner))
		return say_missing(id, e);
	(void)snprintf(gone, sizeof(gone), ".old-%s", id);
	if (renameat(dir_fd, id, dir_fd, gone) < 0 && errno != ENOENT)
		return err_sys(e, errno, "remove checkpoint '%s'", id);
	if (sweep_tree(dir_fd, gone, e) < 0)
		return -1;
	if (c.image_pin)
		images_unpin(ak, c.image_pin);
	audit_set_identity(&who, c.sandbox_id, c.owner);
	lifecycle_audit_of(ak, &who, AUDITLINE_CHECKPOINT, c.sandbox, "removed", NULL);
	return layerstore_collect(ak, NULL, e);
}

int checkpoint_thin(const struct ak *ak, const char *sandbox_id, uint64_t keep, struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	uint64_t count = 0;

	if (checkpoint_list(ak, NULL, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		count += list.entries[i].is_automatic && is_of(&list.entries[i], sandbox_id);
	for (size_t i = 0; i < list.count && count > keep; i++) {
		if (!list.entries[i].is_automatic || !is_of(&list.entries[i], sandbox_id))
			continue;
		/* ERR_NOT_FOUND: a person has just removed it */
		if (checkpoint_remove(ak, list.entries[i].id, e) < 0 && e->code != ERR_NOT_FOUND)
			return -1;
		count--;
	}
	return 0;
}

/* Creates a sandbox as `use` describes on the checkpoint's layers, with the image of its pin. */
static int make_on(const struct ak *ak, const struct checkpoint *c, const struct policy *p,
		   const struct checkpoint_use *use, struct named *ret, struct err *e)
{
	CLEANUP(images_done) struct images image;
	struct policy own = *p; /* borrows */
	struct lifecycle_request q = {
		.ak = ak,
		.name = use->name,
		.policy = &own,
		.labels = use->labels,
		.ttl_ms = use->ttl_ms,
		.layers = c->layers,
		.origin = use->origin,
		.owner = use->owner,
	};

	images_init(&image);
	own.publish = NULL; /* the host's ports stay with the sandbox that has them */
	if (c->image_pin) {
		if (images_open_pinned(ak, c->image_pin, p->image, &image, e) < 0)
			return -1;
		q.image = &image;
	}
	return lifecycle_create(&q, ret, e);
}

int checkpoint_make(const struct ak *ak, const char *id, const struct policy *policy,
		    const struct checkpoint_use *use, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	CLEANUP(named_done) struct named n;
	cleanup_fd int store_fd = -1;

	named_init(&n);
	if (layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0 ||
	    checkpoint_open(ak, id, &c, e) < 0)
		return -1;
	return make_on(ak, &c, policy, use, &n, e);
}

/* ---- forks ---- */

static int fork_one(const struct ak *ak, const struct checkpoint *c, const struct policy *p,
		    const struct checkpoint_use *use, bool is_to_run, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (make_on(ak, c, p, use, &n, e) < 0)
		return -1;
	return is_to_run ? lifecycle_start_locked(ak, &n, e) : 0;
}

/* Time until the sandbox expires; 0: never. A sandbox past its time gets one second. */
static uint64_t time_left_ms(const struct named *n)
{
	uint64_t now_s = (uint64_t)time(NULL);

	if (!n->expires_s)
		return 0;
	return n->expires_s > now_s ? (n->expires_s - now_s) * 1000 : 1000;
}

static int fork_all(const struct ak *ak, struct named *n, const char *new_name, unsigned count,
		    struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	CLEANUP(layertake_done) struct layertake taken;
	cleanup_free char *origin = mem_format("fork of %s", n->name);
	const struct layertake_options options = { 0 };
	cleanup_fd int store_fd = -1;
	bool is_whole;

	layertake_init(&taken);
	if (layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0)
		return -1;
	if (layertake_run(n, store_fd, &options, &taken, e) < 0)
		return -1;
	describe(&c, n, &taken, NULL);
	c.image_pin = n->image_pin ? mem_dup(n->image_pin) : NULL;
	is_whole = !taken.base[0];
	for (unsigned i = 0; i < (count ? count : 1); i++) {
		cleanup_free char *name =
			count == 0 ? mem_dup(new_name) : mem_format("%s-%u", new_name, i + 1);
		const struct checkpoint_use use = { .name = name,
						    .labels = n->labels,
						    .ttl_ms = time_left_ms(n),
						    .origin = origin,
						    .owner = n->owner };

		if (fork_one(ak, &c, &taken.policy, &use, taken.is_running, e) < 0)
			return -1;
		/*
		 * A record names the layer now. If it is complete, later copies share its files; if
		 * not, those of the last checkpoint, which probably stays longer than a fork.
		 */
		if (is_whole)
			layertake_keep_index(n, &taken);
		is_whole = false;
	}
	return 0;
}

int checkpoint_fork(const struct ak *ak, const char *sandbox, const char *new_name, unsigned count,
		    struct err *e)
{
	CLEANUP(named_done) struct named n;
	int r;

	named_init(&n);
	if (count > CHECKPOINT_FORKS_MAX)
		return err_set(e, ERR_LIMIT, "--count takes at most %u", CHECKPOINT_FORKS_MAX);
	r = named_check_name(new_name, e);
	if (r == 0)
		r = named_open(ak, sandbox, &n, e);
	if (r == 0)
		r = fork_all(ak, &n, new_name, count, e);
	lifecycle_audit(ak, AUDITLINE_FORK, sandbox, new_name, r < 0 ? e : NULL);
	return r;
}
