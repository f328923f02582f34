#pragma once
/*
 * ceiling - does one policy allow nothing that another forbids?
 *
 * Asked where somebody who is not trusted has a say: a project's agentkernel.toml, a program that
 * calls us over MCP or HTTP. They may choose what a sandbox is (its image, variables, where it
 * starts) and take things away; whatever the ceiling does not give, they cannot get.
 *
 * For callers of a server a default is no ceiling: limits that the user has not set may be raised
 * up to a maximum (ceiling_raise(), ceiling_set_maximum()). A preset that a caller asks for is
 * intersected with the ceiling (ceiling_lower()); a single value beyond it is refused
 * (ceiling_check()).
 *
 * Rules about the network are compared one by one: what an allowing rule names must be allowed by
 * the ceiling as a whole. That is strict where two sets of rules would mean the same in other
 * words.
 */
#include "policy/policy.h"

/* The most that callers may ask for where the user has set neither a value nor a maximum. */
#define CEILING_PIDS_MAX 8192u
#define CEILING_DISK_MAX_BYTES (16ull << 30)
#define CEILING_ORIGIN_MAXIMUM "the maximum for callers"

/*
 * Limits that nobody has set become the maximum for callers: memory half of `machine_bytes`, the
 * others as above; those without a default have none.
 */
void ceiling_raise(struct policy *most, uint64_t machine_bytes);

/* A setting of layer POLICY_MAXIMUM: of a limit, or of the image: "yes" or "no" to `host`. */
ERR_CHECKED int ceiling_set_maximum(struct policy *most, const struct policy_setting *s,
				    struct err *e);

/*
 * Lowers to the ceiling what presets of a caller brought. *ret_lowered gets a sentence for each
 * such field, for the caller; the list is the caller's to free.
 */
ERR_CHECKED int ceiling_lower(struct policy *p, const struct policy *most, char ***ret_lowered,
			      struct err *e);

/* May a sandbox below it have root inside? */
bool ceiling_allows_root(const struct policy *most);

/*
 * ERR_DENIED, with who asked for what and who forbids it. `hint` is what to do about it, for the
 * end of the message. *ret_field, which may be NULL, is the field that goes too far.
 */
ERR_CHECKED int ceiling_check(const struct policy *p, const struct policy *ceiling,
			      const char *hint, enum policy_field *ret_field, struct err *e);
