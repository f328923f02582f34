#pragma once
/*
 * names - which synthetic address stands for which name, in memory that outlives a gate.
 *
 * The supervisor makes the memory (names_create) and holds its descriptor; each gate maps it.
 * A name keeps its address for as long as the sandbox lives, also when the gate is started anew:
 * programs may have kept the address. Names are only ever added.
 */
#include "base/err.h"
#include "policy/address.h"

#include <stdint.h>

#define NAMES_MAX 65536u

struct names;

/* The caller's to close. */
ERR_CHECKED int names_create(int *ret_fd, struct err *e);

ERR_CHECKED int names_open(int fd, struct names **ret, struct err *e);
void names_free(struct names *n);

/* The address of `name` (normal form), given to it now if need be; false: no address is left. */
bool names_get_address(struct names *n, const char *name, struct address *ret);

/* Borrowed, for as long as `n`; NULL: nobody has asked for such a name. */
const char *names_get_name(const struct names *n, const struct address *a);

bool names_is_synthetic(const struct address *a); /* within the range, given out or not */
