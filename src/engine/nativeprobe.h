#pragma once
/* nativeprobe - which of the native walls this host can build for this caller. */
#include "engine/doctor.h"

/* As struct backend's probe. */
size_t nativeprobe_examine(struct doctor_finding *ret, size_t max);
