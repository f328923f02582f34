#pragma once
/*
 * callfilter - tables of the system calls that a process may make.
 *
 * Used only at build time: callfilter_compile turns a list into one BPF program per variant. A
 * variant is a set of flags that the list defines; a rule with `only_in` applies to the variants
 * that have that flag, and the last matching rule for a call wins. There is one list for sandboxes
 * (sandbox/seccomp_rules.c) and one for the gate (net/confine_rules.c).
 */
#include <stddef.h>
#include <stdint.h>

enum rule_action {
	RULE_ALLOW,
	RULE_EPERM,  /* known and refused */
	RULE_ENOSYS, /* as if the kernel did not have it: libc falls back to an older call */
	RULE_CHECK,  /* the arguments decide */
};

/* The next action of a step in an argument check. */
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
	unsigned go_to; /* for the side with STEP_GOTO */
	int error;      /* for the side with STEP_FAIL */
};

struct rule {
	const char *names; /* separated by spaces */
	enum rule_action action;
	unsigned only_in;              /* variant flags that must be set */
	const struct rule_step *steps; /* RULE_CHECK */
	size_t step_count;
};

/* Macros for steps. */
#define ALL 0xffffffffu
#define ALLOW_IF_CLEAR(argument, bits)                                                             \
	{                                                                                          \
		argument, (bits), 0, STEP_ALLOW, STEP_FAIL, .error = EPERM                         \
	}
#define ALLOW_IF(argument, value)                                                                  \
	{                                                                                          \
		argument, ALL, (uint32_t)(value), STEP_ALLOW, STEP_NEXT                            \
	}
#define REFUSE_IF(argument, value)                                                                 \
	{                                                                                          \
		argument, ALL, (uint32_t)(value), STEP_FAIL, STEP_NEXT, .error = EPERM             \
	}
#define ELSE_ALLOW                                                                                 \
	{                                                                                          \
		0, 0, 0, STEP_ALLOW, STEP_ALLOW                                                    \
	}
#define ELSE_FAIL(error_)                                                                          \
	{                                                                                          \
		0, 0, 0, STEP_FAIL, STEP_FAIL, .error = (error_)                                   \
	}

/* Macros for rules. */
#define ALLOW(names_)                                                                              \
	{                                                                                          \
		.names = (names_), .action = RULE_ALLOW                                            \
	}
#define REFUSE(names_)                                                                             \
	{                                                                                          \
		.names = (names_), .action = RULE_EPERM                                            \
	}
#define REFUSE_IN(variant, names_)                                                                 \
	{                                                                                          \
		.names = (names_), .action = RULE_EPERM, .only_in = (variant)                      \
	}
#define CHECK(names_, steps_)                                                                      \
	{                                                                                          \
		.names = (names_), .action = RULE_CHECK, .steps = (steps_),                        \
		.step_count = sizeof(steps_) / sizeof((steps_)[0])                                 \
	}
#define CHECK_IN(variant, names_, steps_)                                                          \
	{                                                                                          \
		.names = (names_), .action = RULE_CHECK, .only_in = (variant), .steps = (steps_),  \
		.step_count = sizeof(steps_) / sizeof((steps_)[0])                                 \
	}

/* Every list defines these. */
extern const char callfilter_name[]; /* prefix of the generated arrays */
extern const struct rule callfilter_rules[];
extern const size_t callfilter_rules_count;
extern const unsigned callfilter_variant_count;
