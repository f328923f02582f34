#pragma once
/*
 * policyfile - a resolved policy, written down and read back.
 *
 * A named sandbox keeps the policy it was created with: every start applies it in full, whatever
 * the defaults, the configuration or the profiles say by then.
 */
#include "policy/policy.h"

#define POLICYFILE_MAX_BYTES (8u << 20)

struct buf;
void policyfile_format(const struct policy *p, struct buf *out);

/* Free with policy_done(). Numbers beyond their maxima are ERR_CORRUPT. */
ERR_CHECKED int policyfile_parse(const char *bytes, size_t len, struct policy *ret, struct err *e);
