#pragma once
/* commands - every command of the command line; each in its own cmd_*.c. */
#include "cli/cli.h"

extern const struct cli_command cmd_attach;
extern const struct cli_command cmd_audit;
extern const struct cli_command cmd_checkpoint_create;
extern const struct cli_command cmd_checkpoint_list;
extern const struct cli_command cmd_checkpoint_remove;
extern const struct cli_command cmd_checkpoint_restore;
extern const struct cli_command cmd_completion;
extern const struct cli_command cmd_diff;
extern const struct cli_command cmd_doctor;
extern const struct cli_command cmd_exec;
extern const struct cli_command cmd_help;
extern const struct cli_command cmd_image_import;
extern const struct cli_command cmd_image_inspect;
extern const struct cli_command cmd_image_list;
extern const struct cli_command cmd_image_load;
extern const struct cli_command cmd_image_prune;
extern const struct cli_command cmd_image_pull;
extern const struct cli_command cmd_image_remove;
extern const struct cli_command cmd_image_save;
extern const struct cli_command cmd_kill;
extern const struct cli_command cmd_logs;
extern const struct cli_command cmd_network_allow;
extern const struct cli_command cmd_network_block;
extern const struct cli_command cmd_network_check;
extern const struct cli_command cmd_network_log;
extern const struct cli_command cmd_network_reset;
extern const struct cli_command cmd_network_show;
extern const struct cli_command cmd_policy_show;
extern const struct cli_command cmd_ps;
extern const struct cli_command cmd_run;
extern const struct cli_command cmd_sandbox_create;
extern const struct cli_command cmd_sandbox_fork;
extern const struct cli_command cmd_sandbox_gc;
extern const struct cli_command cmd_sandbox_info;
extern const struct cli_command cmd_sandbox_list;
extern const struct cli_command cmd_sandbox_pause;
extern const struct cli_command cmd_sandbox_remove;
extern const struct cli_command cmd_sandbox_restart;
extern const struct cli_command cmd_sandbox_resume;
extern const struct cli_command cmd_sandbox_start;
extern const struct cli_command cmd_sandbox_stop;
extern const struct cli_command cmd_sandbox_update;
extern const struct cli_command cmd_stats;
extern const struct cli_command cmd_version;
