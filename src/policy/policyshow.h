#pragma once
/* policyshow - formats the fields of a policy for people: `policy show` and error messages. */
#include "policy/policy.h"

struct buf;

void policyshow_field(const struct policy *p, enum policy_field field, struct buf *out);
