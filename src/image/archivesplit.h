#pragma once
/*
 * archivesplit - an archive that holds an image ("docker save", OCI layout), taken apart.
 *
 * Its files become "0", "1", ... in a directory; their names and the links among them come back as
 * a list. The archive is foreign: this runs in a confined worker, and nothing of a name is used as
 * one.
 */
#include "base/buf.h"
#include "base/err.h"

#define ARCHIVESPLIT_ENTRIES_MAX 4096u
#define ARCHIVESPLIT_NAME_MAX_BYTES 1024u
#define ARCHIVESPLIT_LIST_MAX_BYTES (8u << 20)

/*
 * The list: for each entry a kind ('f' file, 'l' symbolic link, 'h'
 * hard link), a text (the file's number, or where the link leads),
 * NUL, the name, NUL.
 */
ERR_CHECKED int archivesplit_archive(int archive_fd, int dir_fd, struct buf *ret_list,
				     struct err *e);
