#pragma once
/*
 * source - the files of an image's archive or directory, by the names they have there.
 *
 * An archive is taken apart by a worker first (image/split), into a directory of the store; a
 * directory is read where it is. Names come from foreign documents: they are looked up in the
 * archive's own list, or beneath the directory without following links out of it.
 */
#include "base/err.h"
#include "image/store.h"

struct source;

/* `path` for reading; "-" is stdin, unless that is a terminal. */
ERR_CHECKED int source_open_path(const char *path, int *ret_fd, struct err *e);

/* `path` "-" is stdin. */
ERR_CHECKED int source_open(const struct store *s, const char *path, struct source **ret,
			    struct err *e);
void source_free(struct source *s); /* removes what was taken apart */
void source_freep(struct source **s);

/* ERR_NOT_FOUND when there is no such file. */
ERR_CHECKED int source_open_file(const struct source *s, const char *name, int *ret_fd,
				 struct err *e);
bool source_has(const struct source *s, const char *name);
ERR_CHECKED int source_read(const struct source *s, const char *name, size_t max_bytes,
			    char **ret_text, size_t *ret_len, struct err *e);

/*
 * Makes the file a blob of the store. Its digest is computed; when *digest is not empty it must be
 * that one, otherwise it is set. *ret_size_bytes is the file's.
 */
ERR_CHECKED int source_adopt(const struct source *s, const char *name,
			     char digest[REFERENCE_DIGEST_MAX_BYTES], uint64_t *ret_size_bytes,
			     struct err *e);
