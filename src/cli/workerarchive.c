/*
 * workerarchive - directories of named sandboxes for programs, as tar archives.
 *
 * Theory of operation. An archive goes in from our standard input, and out to our standard output
 * ("raw": a face that hands bytes on) or into the result in base64. Packing and unpacking is done
 * by named/filecopy: two programs of the image helper with the sandbox's own user, which follow no
 * link on the way, as `agentkernel cp` has it.
 *
 * Limits. What goes into the result has at most OPERATION_TAR_MAX_BYTES: it is collected in a
 * memory file that cannot grow beyond. Hostile: the archive, and everything in the sandbox.
 */
#include "cli/worker.h"

#include "base/cleanup.h"
#include "named/filecopy.h"
#include "named/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#define DIR_MODE 0755
#define BLOCK_MAX_BYTES (1u << 20) /* a write that did not fit leaves at most so much unused */

int workerarchive_upload(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	cleanup_free char *path = NULL;

	files_init(&f);
	if (workerfile_open(w, &f, &path, e) < 0)
		return -1;
	if (path[1] && files_mkdir(&f, path, FILES_PARENTS, DIR_MODE, e) < 0)
		return -1;
	if (filecopy_in_tar(&f, STDIN_FILENO, path, 0, e) < 0)
		return err_wrap(e, "unpack the archive");
	json_add_text(j, "path", path);
	json_add_text(j, "note", "unpacked");
	return 0;
}

/* A memory file of that size which refuses to grow. */
static int open_bounded(uint64_t max_bytes, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = memfd_create("agentkernel-tar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)max_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_sys(e, errno, "create a memory file");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int pack(struct files *f, const char *path, struct json *j, struct err *e)
{
	cleanup_fd int fd = -1;
	const char *bytes;
	off_t len;
	int r;

	if (open_bounded(OPERATION_TAR_MAX_BYTES, &fd, e) < 0)
		return -1;
	r = filecopy_out_tar(f, path, fd, 0, e);
	len = lseek(fd, 0, SEEK_CUR); /* of the file that the helper has written to */
	if (r < 0 && len > (off_t)(OPERATION_TAR_MAX_BYTES - BLOCK_MAX_BYTES))
		return err_set(e, ERR_LIMIT,
			       "the archive of '%s' has more than %u bytes: download parts of it, "
			       "or get it over HTTP, where it has no limit",
			       path, OPERATION_TAR_MAX_BYTES);
	if (r < 0)
		return -1;
	bytes = mmap(NULL, OPERATION_TAR_MAX_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, errno, "read the archive");
	json_add_number(j, "bytes", len);
	json_add_base64(j, "tar", bytes, (size_t)len);
	return 0;
}

int workerarchive_download(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	CLEANUP(files_entry_done) struct files_entry entry = { 0 };
	cleanup_free char *path = NULL;

	files_init(&f);
	if (workerfile_open(w, &f, &path, e) < 0 || files_stat(&f, path, &entry, e) < 0)
		return -1;
	json_add_text(j, "path", path);
	if (worker_flag(w, "raw"))
		return filecopy_out_tar(&f, path, STDOUT_FILENO, 0, e);
	return pack(&f, path, j, e);
}
