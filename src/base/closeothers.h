#pragma once
/* closeothers - a process that lives long closes what it was given and does not need. */

/*
 * Closes every descriptor of this process but these, in any order; duplicates and -1 among them are
 * fine. `kept` is sorted by it. -1 with errno where the kernel refuses.
 */
int closeothers_but(int *kept, unsigned count);
