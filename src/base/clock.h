#pragma once
/* clock - monotonic time. */
#include <stdint.h>

uint64_t clock_now_ms(void);
uint64_t clock_now_us(void);
