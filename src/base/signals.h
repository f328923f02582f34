#pragma once
/* signals - resets inherited signal settings. */

/*
 * Resets every action to its default and unblocks all signals, as before an exec: a caller that
 * ignores SIGPIPE must not make the new program ignore it. Uses system calls only, so that a child
 * that still shares its parent's memory may call it.
 */
void signals_reset(void);
