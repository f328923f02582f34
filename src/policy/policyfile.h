#pragma once
/*
 * policyfile - saves and loads a resolved policy.
 *
 * A named sandbox keeps the policy it was created with and applies all of it at every start, even
 * if defaults, configuration or profiles have changed since.
 */
#include "policy/policy.h"

#define POLICYFILE_MAX_BYTES (8u << 20)

struct buf;
void policyfile_format(const struct policy *p, struct buf *out);

/* Free with policy_done(). Numbers beyond their maxima are ERR_CORRUPT. */
ERR_CHECKED int policyfile_parse(const char *bytes, size_t len, struct policy *ret, struct err *e);
