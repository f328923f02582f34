#pragma once
/*
 * seccomp_rules - which system calls a sandbox may make, as tables.
 *
 * Used only while building: seccomp_compile turns the tables into one BPF program per variant.
 * A variant is a set of SECCOMP_* flags (sandbox/seccomp.h); a rule with `only_in` set counts
 * in the variants that have that flag, and the last matching rule for a call wins.
 */
#include <stddef.h>
#include <stdint.h>

enum rule_action {
	RULE_ALLOW,
	RULE_EPERM,  /* known and refused */
	RULE_ENOSYS, /* "this kernel does not have it": libc falls back to an older call */
	RULE_CHECK,  /* the arguments decide */
};

/* What a step of an argument check does next. */
enum step_then {
	STEP_NEXT,
	STEP_ALLOW,
	STEP_FAIL, /* with .error */
	STEP_GOTO, /* step number .go_to */
};

/* if ((low 32 bits of argument & mask) == value) on_match, else on_miss */
struct rule_step {
	unsigned argument;
	uint32_t mask;
	uint32_t value;
	enum step_then on_match;
	enum step_then on_miss;
	unsigned go_to; /* used by whichever side says STEP_GOTO */
	int error;      /* used by whichever side says STEP_FAIL */
};

struct rule {
	const char *names; /* separated by spaces */
	enum rule_action action;
	unsigned only_in;              /* variant flags that must be set */
	const struct rule_step *steps; /* RULE_CHECK */
	size_t step_count;
};

extern const struct rule seccomp_rules_list[];
extern const size_t seccomp_rules_count;
