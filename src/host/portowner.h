#pragma once
/* portowner - says which process listens on a TCP port of this machine, for messages. */
#include <stdint.h>

#define PORTOWNER_TEXT_MAX_BYTES 80u

/* "nginx (process 812)", or "another process" if this user may not know. Returns `out`. */
const char *portowner_find(uint16_t port, char out[PORTOWNER_TEXT_MAX_BYTES]);
