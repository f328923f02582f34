#pragma once
/*
 * ceiling - does one policy allow nothing that another forbids?
 *
 * Asked where somebody who is not trusted has a say: a project's agentkernel.toml, a program that
 * calls us over MCP or HTTP. They may choose what a sandbox is (its image, variables, where it
 * starts) and take things away; whatever the ceiling does not give, they cannot get.
 *
 * Rules about the network are compared one by one: what an allowing rule names must be allowed by
 * the ceiling as a whole. That is strict where two sets of rules would mean the same in other
 * words.
 */
#include "policy/policy.h"

/* May a sandbox below it have root inside? */
bool ceiling_allows_root(const struct policy *most);

/*
 * ERR_DENIED, with who asked for what and who forbids it. `hint` is what to do about it, for the
 * end of the message. *ret_field, which may be NULL, is the field that goes too far.
 */
ERR_CHECKED int ceiling_check(const struct policy *p, const struct policy *ceiling,
			      const char *hint, enum policy_field *ret_field, struct err *e);
