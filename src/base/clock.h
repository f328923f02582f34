#pragma once
/* clock - the time that never jumps. */
#include <stdint.h>

uint64_t clock_now_ms(void);
uint64_t clock_now_us(void);
