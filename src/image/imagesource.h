#pragma once
/*
 * imagesource - access to the files of an image archive or directory, by their names there.
 *
 * A worker first extracts an archive (image/archivesplit) into a directory of the store; a
 * directory is read in place. Hostile input: names from documents; they are looked up in the
 * archive's own list, or beneath the directory without following links out of it.
 */
#include "base/err.h"
#include "image/store.h"

struct imagesource;

/* Opens `path` for reading; "-" is stdin, unless that is a terminal. */
ERR_CHECKED int imagesource_open_path(const char *path, int *ret_fd, struct err *e);

/* `path` "-" is stdin. */
ERR_CHECKED int imagesource_open(const struct store *s, const char *path, struct imagesource **ret,
				 struct err *e);
void imagesource_free(struct imagesource *s); /* removes the extracted files */
void imagesource_freep(struct imagesource **s);

/* ERR_NOT_FOUND if there is no such file. */
ERR_CHECKED int imagesource_open_file(const struct imagesource *s, const char *name, int *ret_fd,
				      struct err *e);
bool imagesource_has(const struct imagesource *s, const char *name);
ERR_CHECKED int imagesource_read(const struct imagesource *s, const char *name, size_t max_bytes,
				 char **ret_text, size_t *ret_len, struct err *e);

/*
 * Makes the file a blob of the store. Its digest is computed; if *digest is not empty it must
 * match, otherwise it is set. *ret_size_bytes is the file's size.
 */
ERR_CHECKED int imagesource_adopt(const struct imagesource *s, const char *name,
				  char digest[REFERENCE_DIGEST_MAX_BYTES], uint64_t *ret_size_bytes,
				  struct err *e);
