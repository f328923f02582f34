/*
 * cmd_completion - agentkernel completion: completion scripts for bash, zsh and fish.
 *
 * The scripts ask this program for candidates (`completion --words`, cli/complete), so a new
 * command, option or value completes at once, in all shells.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/complete.h"

#include <string.h>

static const char *const examples[] = {
	"agentkernel completion bash > /etc/bash_completion.d/agentkernel",
	"for all users of bash; new shells then complete commands, options and names",
	NULL,
};

/* bash also splits words at '=' and ':', and completes only the part after the last of these. */
static const char bash_script[] =
	"# bash completion for agentkernel\n"
	"_agentkernel()\n{\n"
	"\tlocal IFS=$' \\t\\n' line cur words before\n"
	"\tread -ra words <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
	"\t[[ ${COMP_LINE:0:COMP_POINT} != *[[:space:]] ]] || words+=('')\n"
	"\tcur=${words[-1]}\n"
	"\tbefore=${cur%\"${cur##*[=:]}\"}\n"
	"\tCOMPREPLY=()\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t" COMPLETE_FILES
	") compopt -o filenames 2>/dev/null; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < "
	"<(compgen -f -- \"${cur#\"$before\"}\") ;;\n"
	"\t\t" COMPLETE_DIRS
	") compopt -o filenames 2>/dev/null; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < "
	"<(compgen -d -- \"${cur#\"$before\"}\") ;;\n"
	"\t\t" COMPLETE_COMMANDS
	") mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- \"$cur\") ;;\n"
	"\t\t*) COMPREPLY+=(\"${line#\"$before\"}\") ;;\n"
	"\t\tesac\n"
	"\tdone < <(\"${words[0]}\" completion --words \"${words[@]:1}\" 2>/dev/null)\n"
	"}\ncomplete -F _agentkernel agentkernel\n";

static const char zsh_script[] = "#compdef agentkernel\n"
				 "_agentkernel()\n{\n"
				 "\tlocal line\n"
				 "\tfor line in ${(f)\"$(${words[1]} completion --words "
				 "\"${(@)words[2,CURRENT]}\" 2>/dev/null)\"}; do\n"
				 "\t\tcase $line in\n"
				 "\t\t" COMPLETE_FILES ") _files ;;\n"
				 "\t\t" COMPLETE_DIRS ") _files -/ ;;\n"
				 "\t\t" COMPLETE_COMMANDS ") _command_names -e ;;\n"
				 "\t\t*) compadd -- $line ;;\n"
				 "\t\tesac\n"
				 "\tdone\n}\n"
				 "compdef _agentkernel agentkernel\n";

static const char fish_script[] =
	"# fish completion for agentkernel\n"
	"function __agentkernel_complete\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l cur (commandline -ct)\n"
	"\tfor line in ($words[1] completion --words $words[2..-1] \"$cur\" 2>/dev/null)\n"
	"\t\tswitch $line\n"
	"\t\tcase " COMPLETE_FILES "\n\t\t\t__fish_complete_path $cur\n"
	"\t\tcase " COMPLETE_DIRS "\n\t\t\t__fish_complete_directories $cur\n"
	"\t\tcase " COMPLETE_COMMANDS "\n\t\t\t__fish_complete_command\n"
	"\t\tcase '*'\n\t\t\techo $line\n"
	"\t\tend\n\tend\nend\n"
	"complete -c agentkernel -f -a '(__agentkernel_complete)'\n";

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	static const struct {
		const char *shell, *script;
	} scripts[] = {
		{ "bash", bash_script },
		{ "zsh", zsh_script },
		{ "fish", fish_script },
	};
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	*ret_status = 0;
	if (argv[0] && strcmp(argv[0], "--words") == 0) {
		complete_words(context->ak, argv + 1, &out);
		return cli_print(&out, e);
	}
	if (!argv[0] || argv[1])
		return err_set(e, ERR_INVALID, "which shell? agentkernel completion bash|zsh|fish");
	for (size_t i = 0; i < COUNT_OF(scripts); i++) {
		if (strcmp(argv[0], scripts[i].shell) != 0)
			continue;
		buf_add_text(&out, scripts[i].script);
		return cli_print(&out, e);
	}
	return err_set(e, ERR_INVALID, "no completion for '%s' (use bash, zsh or fish)", argv[0]);
}

const struct cli_command cmd_completion = {
	.name = "completion",
	.summary = "print the completion script of a shell",
	.usage = "bash|zsh|fish",
	.examples = examples,
	.run = run,
};
