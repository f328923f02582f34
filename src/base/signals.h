#pragma once
/* signals - defined, not inherited. */

/*
 * Every action back to its default and nothing blocked, as for a program that is about to be
 * executed: a caller that ignores SIGPIPE must not make it ignore SIGPIPE. Only system calls, so
 * that a child which still shares its parent's memory may call it.
 */
void signals_reset(void);
