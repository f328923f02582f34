#pragma once
/*
 * archivesplit - extracts the files of an image archive ("docker save", OCI layout).
 *
 * Its files become "0", "1", ... in a directory; their names and links are returned as a list.
 * Hostile input: the archive; this runs in a confined worker, and names from the archive are never
 * used as file names.
 */
#include "base/buf.h"
#include "base/err.h"

#define ARCHIVESPLIT_ENTRIES_MAX 4096u
#define ARCHIVESPLIT_NAME_MAX_BYTES 1024u
#define ARCHIVESPLIT_LIST_MAX_BYTES (8u << 20)

/*
 * The list has for each entry a kind ('f' file, 'l' symbolic link, 'h' hard link), a text (the
 * file's number, or the link's target), NUL, the name, NUL.
 */
ERR_CHECKED int archivesplit_archive(int archive_fd, int dir_fd, struct buf *ret_list,
				     struct err *e);
