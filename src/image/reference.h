#pragma once
/*
 * reference - parses the name of an image: [HOST[:PORT]/]PATH[:TAG][@DIGEST].
 *
 * As in Docker: the first component is a registry if it has a dot or a colon or is "localhost";
 * otherwise the registry is Docker Hub, where a path of one component is in "library/". No tag and
 * no digest means ":latest". For a name with both the digest counts. No system calls; used by both
 * programs.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define REFERENCE_MAX_BYTES 240u /* of the full form: it is also a file name */
#define REFERENCE_TAG_MAX_BYTES 128u
#define REFERENCE_DIGEST_MAX_BYTES 72u /* "sha256:", 64 digits and the NUL */
#define REFERENCE_HUB "docker.io"

struct reference {
	char host[REFERENCE_MAX_BYTES];          /* "docker.io", "127.0.0.1:5000", "[::1]:5000" */
	char path[REFERENCE_MAX_BYTES];          /* "library/python" */
	char tag[REFERENCE_TAG_MAX_BYTES + 1];   /* "" if only a digest is given */
	char digest[REFERENCE_DIGEST_MAX_BYTES]; /* "sha256:..." or "" */
};

ERR_CHECKED int reference_parse(const char *text, struct reference *ret, struct err *e);

/* The full form, "docker.io/library/python:3.12-alpine" or "host/path@sha256:...". */
void reference_format(const struct reference *r, char out[REFERENCE_MAX_BYTES + 1]);

/* As users type it: without Docker Hub's host and "library/". */
void reference_format_short(const struct reference *r, char out[REFERENCE_MAX_BYTES + 1]);

/* The full form as a file name, with '/' replaced by '+', which no reference contains. */
void reference_format_file(const struct reference *r, char out[REFERENCE_MAX_BYTES + 1]);

/* Is it exactly "sha256:" and 64 lower-case hexadecimal digits? */
bool reference_is_digest(const char *text);

/* Is a host, with or without its port, this machine: "localhost", 127.0.0.0/8, "[::1]"? */
bool reference_is_loopback(const char *host);

/* OCI's name of this machine's architecture: "amd64". */
const char *reference_architecture(void);
