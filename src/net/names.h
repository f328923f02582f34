#pragma once
/*
 * names - maps synthetic addresses to names, in memory that outlives a gate.
 *
 * The supervisor creates the memory (names_create) and holds its descriptor; each gate maps it. A
 * name keeps its address as long as the sandbox lives, even if the gate is restarted, because
 * programs may have stored the address. Names are only added, never removed.
 */
#include "base/err.h"
#include "policy/address.h"

#include <stdint.h>

#define NAMES_MAX 65536u

struct names;

/* The caller closes *ret_fd. */
ERR_CHECKED int names_create(int *ret_fd, struct err *e);

ERR_CHECKED int names_open(int fd, struct names **ret, struct err *e);
void names_free(struct names *n);

/* The address of `name` (normal form), assigned now if it has none; false: no address is left. */
bool names_get_address(struct names *n, const char *name, struct address *ret);

/* Borrowed, valid as long as `n`; NULL: no name has this address. */
const char *names_get_name(const struct names *n, const struct address *a);

bool names_is_synthetic(const struct address *a); /* in the range, assigned or not */
