#pragma once
/*
 * ceiling - checks that one policy allows no more than another.
 *
 * Used for untrusted requests: a project's agentkernel.toml, or a program that calls us over MCP or
 * HTTP. They may choose properties of a sandbox (image, variables, working directory) and restrict
 * it further, but never get more than the ceiling allows.
 *
 * For callers of a server a default is not a ceiling: callers may raise limits that the user has
 * not set, up to a maximum (ceiling_raise(), ceiling_set_maximum()). A preset that a caller asks
 * for is intersected with the ceiling (ceiling_lower()); a single value beyond it is refused
 * (ceiling_check()).
 *
 * Network rules are compared one by one: the ceiling as a whole must allow what each allow rule
 * names. This refuses some rule sets that would be equivalent in total.
 */
#include "policy/policy.h"

/* Maxima for callers if the user has set neither a value nor a maximum. */
#define CEILING_PIDS_MAX 8192u
#define CEILING_DISK_MAX_BYTES (16ull << 30)
#define CEILING_ORIGIN_MAXIMUM "the maximum for callers"

/*
 * Raises limits that no one has set to the maximum for callers: memory to half of `machine_bytes`,
 * the others as above; a limit without a default gets none.
 */
void ceiling_raise(struct policy *most, uint64_t machine_bytes);

/* Applies a setting of layer POLICY_MAXIMUM: a limit, or for the image "yes" or "no" to `host`. */
ERR_CHECKED int ceiling_set_maximum(struct policy *most, const struct policy_setting *s,
				    struct err *e);

/*
 * Lowers values that a caller's presets set to the ceiling. *ret_lowered gets a sentence for each
 * such field, to show to the caller of the server; free the list.
 */
ERR_CHECKED int ceiling_lower(struct policy *p, const struct policy *most, char ***ret_lowered,
			      struct err *e);

/* May a sandbox under this ceiling have root inside? */
bool ceiling_allows_root(const struct policy *most);

/*
 * ERR_DENIED with the requested value, the ceiling and who set them. `hint`, appended to the
 * message, says what to do. *ret_field (may be NULL) is the field that exceeds the ceiling.
 */
ERR_CHECKED int ceiling_check(const struct policy *p, const struct policy *ceiling,
			      const char *hint, enum policy_field *ret_field, struct err *e);
/* The text of the network rule that exceeds the ceiling; NULL: none does. */
const char *ceiling_find_rule(const struct policy *p, const struct policy *ceiling);
