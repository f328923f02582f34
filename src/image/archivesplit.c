/* archivesplit - extracts the files of an image archive; see archivesplit.h. */
#include "image/archivesplit.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "image/layerstream.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static void archive_freep(struct archive **a)
{
	if (*a)
		(void)archive_read_free(*a);
}

static la_ssize_t read_stream(struct archive *a, void *context, const void **ret)
{
	size_t len = 0;

	if (layerstream_next(context, ret, &len) == 0)
		return (la_ssize_t)len;
	archive_set_error(a, EIO, "%s", layerstream_get_error(context)->msg);
	return -1;
}

static int write_file(struct archive *a, int dir_fd, unsigned number, struct err *e)
{
	cleanup_fd int fd = -1;
	char name[16];
	const void *bytes;
	size_t len;
	la_int64_t offset;
	int r;

	(void)snprintf(name, sizeof(name), "%u", number);
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, errno, "create a file of the archive");
	while ((r = archive_read_data_block(a, &bytes, &len, &offset)) == ARCHIVE_OK) {
		int written;

		/* holes stay holes, which every reader sees as zeros */
		if (lseek(fd, offset, SEEK_SET) < 0)
			return err_sys(e, errno, "write a file of the archive");
		written = file_write_all(fd, bytes, len);
		if (written < 0)
			return err_sys(e, -written, "write a file of the archive");
	}
	if (r != ARCHIVE_EOF)
		return err_set(e, ERR_INVALID, "the archive is damaged: %s",
			       archive_error_string(a));
	return 0;
}

static void list_entry(struct buf *list, char kind, const char *text, const char *name)
{
	buf_addf(list, "%c%s", kind, text);
	buf_add(list, "", 1);
	buf_add_text(list, name);
	buf_add(list, "", 1);
}

static int take_entry(struct archive *a, struct archive_entry *entry, int dir_fd, unsigned *number,
		      struct buf *list, struct err *e)
{
	const char *name = archive_entry_pathname(entry);
	const char *link = archive_entry_hardlink(entry);
	char kind = 'h';
	char text[16];

	if (!name || strlen(name) > ARCHIVESPLIT_NAME_MAX_BYTES)
		return err_set(e, ERR_INVALID, "the archive has an entry without a usable name");
	if (!link && archive_entry_filetype(entry) == AE_IFLNK) {
		link = archive_entry_symlink(entry);
		kind = 'l';
	}
	if (link) {
		list_entry(list, kind, link, name);
		return 0;
	}
	if (archive_entry_filetype(entry) != AE_IFREG)
		return 0;
	(void)snprintf(text, sizeof(text), "%u", *number);
	list_entry(list, 'f', text, name);
	return write_file(a, dir_fd, (*number)++, e);
}

int archivesplit_archive(int archive_fd, int dir_fd, struct buf *ret_list, struct err *e)
{
	const struct layer_limits limits = layer_default_limits();
	CLEANUP(layerstream_freep)
	struct layerstream *stream = layerstream_new(archive_fd, &limits);
	CLEANUP(archive_freep) struct archive *a = archive_read_new();
	struct archive_entry *entry;
	unsigned number = 0, count = 0;
	int r;

	(void)archive_read_support_format_tar(a);
	if (archive_read_open(a, stream, NULL, read_stream, NULL) != ARCHIVE_OK)
		return err_set(e, ERR_INVALID, "not an archive: %s", archive_error_string(a));
	while ((r = archive_read_next_header(a, &entry)) == ARCHIVE_OK) {
		if (++count > ARCHIVESPLIT_ENTRIES_MAX)
			return err_set(e, ERR_LIMIT, "the archive has more than %u entries",
				       ARCHIVESPLIT_ENTRIES_MAX);
		if (take_entry(a, entry, dir_fd, &number, ret_list, e) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return err_set(e, ERR_INVALID, "the archive is damaged: %s",
			       archive_error_string(a));
	if (ret_list->is_cut)
		return err_set(e, ERR_LIMIT, "the archive's names are too long");
	return 0;
}
