/* stepcache - steps that were done before; see stepcache.h. */
#include "build/stepcache.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "named/layertransfer.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 17u
#define DIGEST_PREFIX_BYTES (sizeof("sha256:") - 1)
#define LOCKS_COUNT 256u /* of all steps: two that share one only wait for each other */

int stepcache_init(struct stepcache *c, int steps_fd, int layers_fd, int blobs_fd,
		   const char *owners, struct err *e)
{
	int r;

	*c = (struct stepcache){ steps_fd, layers_fd, blobs_fd, "", "" };
	(void)snprintf(c->owners, sizeof(c->owners), "%s", owners);
	r = record_current_boot(c->boot);
	return r < 0 ? err_sys(e, -r, "read the name of this boot") : 0;
}

void stepcache_choose_id(char out[RECORD_ID_BYTES + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bytes[RECORD_ID_BYTES];
	ssize_t n = getrandom(bytes, sizeof(bytes), 0);

	assert(n == (ssize_t)sizeof(bytes)); /* such small reads are never short */
	for (unsigned i = 0; i < RECORD_ID_BYTES; i++)
		out[i] = letters[bytes[i] % 32];
	out[RECORD_ID_BYTES] = '\0';
}

static uint64_t hash(const char *key)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *key; key++)
		h = (h ^ (unsigned char)*key) * 0x100000001b3ull;
	return h;
}

/* ---- one record ---- */

static int read_record(const struct stepcache *c, const char *name, struct steprecord *ret)
{
	cleanup_free char *bytes = NULL;
	struct err ignored;
	size_t len = 0;

	if (file_read_at(c->steps_fd, name, STEPRECORD_MAX_BYTES, &bytes, &len) < 0)
		return -1;
	return steprecord_parse(bytes, len, ret, &ignored);
}

static bool is_there(const struct stepcache *c, const struct steprecord *r)
{
	return !r->layer[0] ||
	       (faccessat(c->layers_fd, r->layer, F_OK, 0) == 0 &&
		faccessat(c->blobs_fd, r->digest + DIGEST_PREFIX_BYTES, R_OK, 0) == 0);
}

/* After the machine went down: is everything on disk as it was? Then this boot vouches for it. */
static bool is_whole(const struct stepcache *c, struct steprecord *r)
{
	struct layertransfer_result found = { 0 };
	cleanup_fd int dir_fd = -1, null_fd = -1;
	struct err ignored;
	struct stat st;

	if (strcmp(c->boot, r->boot) == 0)
		return true;
	if (r->layer[0]) {
		dir_fd = openat(c->layers_fd, r->layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (dir_fd < 0 || null_fd < 0 ||
		    layertransfer_pack_step(dir_fd, null_fd, 0, &found, &ignored) < 0 ||
		    strcmp(found.content, r->diff_id) != 0 ||
		    fstatat(c->blobs_fd, r->digest + DIGEST_PREFIX_BYTES, &st, 0) < 0 ||
		    (uint64_t)st.st_size != r->size_bytes)
			return false;
	}
	return stepcache_put(c, r, &ignored) == 0;
}

bool stepcache_find(const struct stepcache *c, const char *key, struct steprecord *ret)
{
	CLEANUP(steprecord_done) struct steprecord r = { 0 };
	char name[NAME_BYTES];

	(void)snprintf(name, sizeof(name), "%016" PRIx64, hash(key));
	if (read_record(c, name, &r) < 0 || strcmp(r.key, key) != 0 ||
	    strcmp(r.owners, c->owners) != 0 || !is_there(c, &r) || !is_whole(c, &r))
		return false;
	(void)utimensat(c->steps_fd, name, NULL, 0); /* it was used now */
	*ret = r;
	r = (struct steprecord){ 0 };
	return true;
}

int stepcache_put(const struct stepcache *c, struct steprecord *r, struct err *e)
{
	char name[NAME_BYTES], unique[RECORD_ID_BYTES + 1];
	cleanup_free char *temporary = NULL;
	cleanup_buf struct buf bytes;
	int s;

	buf_init(&bytes, STEPRECORD_MAX_BYTES);
	memcpy(r->boot, c->boot, sizeof(r->boot));
	(void)snprintf(r->owners, sizeof(r->owners), "%s", c->owners);
	(void)snprintf(name, sizeof(name), "%016" PRIx64, hash(r->key));
	stepcache_choose_id(unique);
	temporary = mem_format(".%s", unique);
	steprecord_format(r, &bytes);
	if (bytes.is_cut)
		return err_set(e, ERR_LIMIT, "a step's description is more than %u bytes",
			       STEPRECORD_MAX_BYTES);
	{
		cleanup_fd int fd = openat(c->steps_fd, temporary,
					   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		s = fd < 0 ? -errno : file_write_all(fd, bytes.bytes, bytes.len);
	}
	if (s == 0 && renameat(c->steps_fd, temporary, c->steps_fd, name) < 0)
		s = -errno;
	if (s == 0)
		return 0;
	(void)unlinkat(c->steps_fd, temporary, 0);
	return err_sys(e, -s, "note a step");
}

bool stepcache_lock(const struct stepcache *c, const char *key, int *ret_fd)
{
	cleanup_free char *name = mem_format("lock-%02x", (unsigned)(hash(key) % LOCKS_COUNT));
	cleanup_fd int fd =
		openat(c->steps_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	*ret_fd = take_fd(&fd);
	return true;
}

/* ---- pruning ---- */

struct known {
	char name[NAME_BYTES];
	struct timespec used;
	uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec > y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec > y->used.tv_nsec ? -1 : x->used.tv_nsec < y->used.tv_nsec;
}

static struct known *list_known(const struct stepcache *c, size_t *ret_count)
{
	int fd = openat(c->steps_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct known *list = NULL;
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		CLEANUP(steprecord_done) struct steprecord r = { 0 };
		struct stat st;

		if (strlen(entry->d_name) != NAME_BYTES - 1 ||
		    fstatat(c->steps_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)!read_record(c, entry->d_name, &r);
		list = mem_grow(list, count + 1, sizeof(*list));
		list[count] = (struct known){ .used = st.st_mtim, .bytes = r.size_bytes };
		(void)snprintf(list[count++].name, NAME_BYTES, "%.16s", entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	*ret_count = count;
	return list;
}

unsigned stepcache_prune(const struct stepcache *c)
{
	size_t count = 0;
	cleanup_free struct known *list = list_known(c, &count);
	uint64_t bytes = 0;
	unsigned gone = 0;

	if (count > 1)
		qsort(list, count, sizeof(*list), by_use);
	for (size_t i = 0; i < count; i++) {
		bytes += list[i].bytes;
		if (bytes > STEPCACHE_MAX_BYTES || i >= STEPCACHE_ENTRIES_MAX)
			gone += unlinkat(c->steps_fd, list[i].name, 0) == 0;
	}
	return gone;
}
