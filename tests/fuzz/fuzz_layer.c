/*
 * fuzz_layer - archives for layer_unpack() and fileunpack_run().
 *
 * The input is the archive: plain, gzip or zstd, according to its first bytes. The checksums of a
 * plain one are corrected first, because hardly any change of a header would pass them. Each one is
 * unpacked into its own directory in memory, with low limits. Nothing outside the directory may
 * change, nothing inside may have the name of a whiteout or be a device other than one, and the
 * result can be packed again.
 *
 * Then the same as files, into a directory with links that lead out of it.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "image/fileunpack.h"
#include "image/layer.h"
#include "image/layerpack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ROOT "/dev/shm"
#define CANARY "canary"
#define MTIME 1000000000
#define BLOCK_BYTES 512u

static char place[64];

static void remove_place(void);

/* place/canary and place/layer; the canary has an old time, so that changes are visible. */
static void make_place(void)
{
	const struct timespec times[2] = { { MTIME, 0 }, { MTIME, 0 } };
	cleanup_fd int fd = -1;

	if (place[0])
		return;
	(void)snprintf(place, sizeof(place), "%s/fuzz-layer-XXXXXX", ROOT);
	FUZZ_CHECK(mkdtemp(place));
	(void)atexit(remove_place);
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(file_create_at(fd, CANARY, 0644, CANARY) == 0);
	FUZZ_CHECK(utimensat(fd, CANARY, times, 0) == 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	return kind == FTW_D || kind == FTW_DNR ? chmod(path, 0700) : 0;
}

static void remove_tree(const char *path)
{
	(void)nftw(path, open_up, 16, FTW_PHYS);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_place(void)
{
	remove_tree(place);
}

static void check_outside(int fd)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct stat st;

	FUZZ_CHECK(file_read_at(fd, CANARY, 100, &text, &len) == 0);
	FUZZ_CHECK(strcmp(text, CANARY) == 0);
	FUZZ_CHECK(fstatat(fd, CANARY, &st, AT_SYMLINK_NOFOLLOW) == 0);
	FUZZ_CHECK(st.st_mode == (S_IFREG | 0644) && st.st_uid == geteuid());
	FUZZ_CHECK(st.st_nlink == 1 && st.st_mtime == MTIME);
	FUZZ_CHECK(fstat(fd, &st) == 0);
	FUZZ_CHECK(st.st_nlink == 3); /* its name, its own '.', and the layer */
	FUZZ_CHECK((st.st_mode & 07777) == 0700);
}

static int check_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)kind;
	FUZZ_CHECK(strncmp(path + where->base, ".wh.", 4) != 0);
	FUZZ_CHECK(!S_ISBLK(st->st_mode) && !S_ISSOCK(st->st_mode));
	if (S_ISCHR(st->st_mode))
		FUZZ_CHECK(st->st_rdev == 0 && st->st_nlink == 1);
	return 0;
}

static void pack_again(int layer_fd)
{
	cleanup_fd int fd = memfd_create("packed", MFD_CLOEXEC);
	struct err e = { 0 };

	if (layerpack_write(layer_fd, fd, NULL, &e) == 0)
		return;
	fprintf(stderr, "%s\n", e.msg);
	FUZZ_CHECK(e.code == ERR_LIMIT || e.sys == EACCES);
}

static void repair_block(uint8_t block[BLOCK_BYTES])
{
	unsigned sum = 0;

	if (memcmp(block + 257, "ustar", 5) != 0)
		return;
	memset(block + 148, ' ', 8);
	for (unsigned i = 0; i < BLOCK_BYTES; i++)
		sum += block[i];
	(void)snprintf((char *)block + 148, 8, "%06o", sum);
}

static int open_archive(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1);
	int fd = memfd_create("archive", MFD_CLOEXEC);

	FUZZ_CHECK(bytes && fd >= 0);
	memcpy(bytes, data, size);
	for (size_t at = 0; at + BLOCK_BYTES <= size; at += BLOCK_BYTES)
		repair_block(bytes + at);
	FUZZ_CHECK(file_write_all(fd, bytes, size) == 0);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	free(bytes);
	return fd;
}

static const struct layer_limits limits = {
	.entries = 64,
	.file_bytes = 1u << 20,
	.archive_bytes = 4u << 20,
	.ratio = 1100,
	.ratio_free_bytes = 1u << 20,
	.directories = 64,
	.implied = 32,
};

static void unpack(int archive_fd, int layer_fd)
{
	struct layer_result result = { 0 };
	struct err e = { 0 };

	if (layer_unpack_within(archive_fd, layer_fd, LAYER_ONE_OWNER, &limits, &result, &e) < 0) {
		FUZZ_CHECK(e.code != ERR_NONE && e.msg[0] != '\0');
		return;
	}
	FUZZ_CHECK(result.entry_count <= limits.entries);
	FUZZ_CHECK(result.file_bytes <= limits.file_bytes);
	FUZZ_CHECK(result.archive_bytes <= limits.archive_bytes);
	FUZZ_CHECK(layer_settle(layer_fd, &layer_fd, 1, result.implied, result.implied_count, &e) ==
		   0);
	pack_again(layer_fd);
	layer_result_done(&result);
}

static int check_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)path;
	(void)kind;
	(void)where;
	FUZZ_CHECK(!S_ISBLK(st->st_mode) && !S_ISCHR(st->st_mode) && !S_ISSOCK(st->st_mode));
	FUZZ_CHECK((st->st_mode & (S_ISUID | S_ISGID)) == 0);
	return 0;
}

static void unpack_files(int archive_fd, int dir_fd)
{
	struct fileunpack_result result;
	struct err e = { 0 };

	FUZZ_CHECK(lseek(archive_fd, 0, SEEK_SET) == 0);
	FUZZ_CHECK(symlinkat("..", dir_fd, "a") == 0 && symlinkat("../" CANARY, dir_fd, "f") == 0);
	FUZZ_CHECK(mkdirat(dir_fd, "d", 0755) == 0 && symlinkat("../..", dir_fd, "d/e") == 0);
	if (fileunpack_run(archive_fd, dir_fd, 0, &limits, &result, &e) < 0) {
		FUZZ_CHECK(e.code != ERR_NONE && e.msg[0] != '\0');
		return;
	}
	FUZZ_CHECK(result.entry_count <= limits.entries);
	FUZZ_CHECK(result.file_bytes <= limits.file_bytes);
}

/* Runs `act` in a new directory, which is removed again. */
static void try(int archive_fd, void (*act)(int archive_fd, int dir_fd), __nftw_func_t check)
{
	cleanup_fd int place_fd = -1, layer_fd = -1;
	char layer[80];

	(void)snprintf(layer, sizeof(layer), "%s/layer", place);
	FUZZ_CHECK(mkdir(layer, 0755) == 0);
	place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	layer_fd = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(place_fd >= 0 && layer_fd >= 0);
	act(archive_fd, layer_fd);
	check_outside(place_fd);
	FUZZ_CHECK(nftw(layer, check, 16, FTW_PHYS) == 0);
	remove_tree(layer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_fd int archive_fd = open_archive(data, size);

	make_place();
	try(archive_fd, unpack, check_one);
	try(archive_fd, unpack_files, check_file);
	return 0;
}
