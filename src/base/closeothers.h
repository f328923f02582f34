#pragma once
/* closeothers - closes inherited descriptors that a long-running process does not need. */

/*
 * Closes every descriptor of this process except `kept`, which may contain duplicates and -1 and
 * gets sorted. Returns -1 with errno if the kernel refuses.
 */
int closeothers_but(int *kept, unsigned count);
