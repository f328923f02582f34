#pragma once
/* policyshow - a policy for people, value by value: `policy show`, and what errors quote. */
#include "policy/policy.h"

struct buf;

void policyshow_field(const struct policy *p, enum policy_field field, struct buf *out);
