#pragma once
/*
 * request - the options that `run` and every command like it share, and the policy they make.
 */
#include "cli/opts.h"
#include "policy/policy.h"

struct request {
	bool has_tty;
	bool has_no_tty;
	bool is_json;
};

extern const struct opts_table request_options;	       /* run's */
extern const struct opts_table request_policy_options; /* the same, less the terminal */

#define REQUEST_PATH_MAX_BYTES 4096u

/* Who we are to the policy. The struct borrows from `cwd` and the environment. */
void request_caller(char *const *environ_list, char cwd[REQUEST_PATH_MAX_BYTES],
		    struct policy_caller *ret);
