#pragma once
/*
 * room - limits how much of a file system images may fill: all but a reserve for others.
 *
 * The reserve is ROOM_RESERVE_PART of the file system, at most ROOM_RESERVE_MAX_BYTES and
 * ROOM_RESERVE_MAX_INODES.
 */
#include "base/err.h"

#include <stdint.h>

#define ROOM_RESERVE_PART 50u
#define ROOM_RESERVE_MAX_BYTES (512ull << 20)
#define ROOM_RESERVE_MAX_INODES 10000u

/*
 * Is there space for `bytes` on the file system of `fd`? *ret_bytes is the space above the reserve.
 * Fails if no space is left.
 */
ERR_CHECKED int room_check(int fd, uint64_t bytes, uint64_t *ret_bytes, struct err *e);
