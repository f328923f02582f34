#pragma once
/* fuzz - what a fuzz target has: the one function that clang's library and replay.c call. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
