#pragma once
/*
 * mappedfiles - which files a sandbox's processes can write to through memory.
 *
 * A store to a page of a shared mapping changes a file without any trace, once the page is
 * writable; so a copy of the file is right only if it was made while nothing ran.
 */
#include "base/buf.h"

#include <stdint.h>

#define MAPPEDFILES_MAX_BYTES (16u << 20)

/*
 * Adds "INODE PATH", the path without the leading slash, NUL-terminated, of files that init or a
 * descendant of it maps shared and writable. Processes that come and go meanwhile are found, too; a
 * file that is mapped after this call began may be missing. Not found are files of processes whose
 * memory map this caller may not read, and mappings that are not writable now but can be made so.
 */
void mappedfiles_collect(uint64_t init_pid, struct buf *out);
