/* gitsettings - classifies git settings by what they can run; see gitsettings.h. */
#include "policy/gitsettings.h"

#include "base/cleanup.h"

#include <string.h>

/* Harmless keys of a section, each between two spaces. */
struct row {
	const char *section;
	bool has_subsection;
	const char *keys; /* "*": all keys */
};

static const struct row harmless[] = {
	{ "core", false,
	  " repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode "
	  "symlinks "
	  "autocrlf eol safecrlf compression loosecompression quotepath trustctime checkstat "
	  "untrackedcache sparsecheckout sparsecheckoutcone splitindex commitgraph multipackindex "
	  "abbrev bigfilethreshold preloadindex whitespace createobject sharedrepository "
	  "warnambiguousrefs deltabasecachelimit packedgitlimit packedgitwindowsize fscache "
	  "longpaths " },
	{ "user", false, " name email useconfigonly " },
	{ "author", false, " name email " },
	{ "committer", false, " name email " },
	{ "init", false, " defaultbranch " },
	{ "remote", true,
	  " fetch push tagopt prune prunetags mirror skipdefaultupdate skipfetchall promisor "
	  "partialclonefilter followremotehead gh-resolved " },
	{ "remote", false, " pushdefault " },
	{ "branch", true,
	  " remote pushremote merge rebase description vscode-merge-base gh-merge-base "
	  "github-pr-owner-number " },
	{ "branch", false, " autosetupmerge autosetuprebase sort " },
	{ "submodule", true, " active branch ignore fetchrecursesubmodules " },
	{ "submodule", false, " active recurse fetchjobs propagatebranches " },
	{ "extensions", false,
	  " objectformat compatobjectformat refstorage partialclone worktreeconfig noop "
	  "noop-v1 preciousobjects relativeworktrees " },
	{ "pull", false, " rebase ff twohead octopus " },
	{ "push", false, " default autosetupremote followtags gpgsign recursesubmodules " },
	{ "fetch", false, " prune prunetags parallel writecommitgraph recursesubmodules " },
	{ "merge", false, " ff conflictstyle renames renamelimit stat log defaulttoupstream " },
	{ "rebase", false, " autosquash autostash stat updaterefs abbreviatecommands " },
	{ "diff", false,
	  " renames renamelimit algorithm colormoved mnemonicprefix noprefix context " },
	{ "log", false, " date decorate follow abbrevcommit showsignature " },
	{ "status", false, " short branch showuntrackedfiles submodulesummary relativepaths " },
	{ "commit", false, " status verbose cleanup " },
	{ "rerere", false, " enabled autoupdate " },
	{ "gc", false, " auto autodetach autopacklimit pruneexpire worktreepruneexpire " },
	{ "maintenance", false, " auto strategy " },
	{ "pack", false, " threads depth window windowmemory packsizelimit usebitmaps " },
	{ "index", false, " version threads sparse " },
	{ "feature", false, " manyfiles experimental " },
	{ "advice", false, "*" },
	{ "color", false, "*" },
	{ "color", true, "*" },
	{ "column", false, "*" },
	{ "lfs", false, " repositoryformatversion " },
};

static bool has_key(const char *keys, const char *key)
{
	size_t len = strlen(key);

	if (strcmp(keys, "*") == 0)
		return true;
	for (const char *at = keys; (at = strstr(at, key)); at++)
		if (at > keys && at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

static bool is_named(const struct gitconfig_entry *entry, const char *section, const char *key)
{
	return strcmp(entry->section, section) == 0 && strcmp(entry->key, key) == 0;
}

/* "ext::sh -c ..." runs a command, "x::..." the program git-remote-x; "-..." is an option. */
static bool is_plain_address(const char *value)
{
	return value && value[0] != '-' && !strstr(value, "::");
}

static bool is_address(const struct gitconfig_entry *entry)
{
	if (!entry->subsection)
		return is_named(entry, "remote", "pushdefault");
	return is_named(entry, "remote", "url") || is_named(entry, "remote", "pushurl") ||
	       is_named(entry, "submodule", "url") || is_named(entry, "branch", "remote") ||
	       is_named(entry, "branch", "pushremote");
}

enum gitsettings_kind gitsettings_judge(const struct gitconfig_entry *entry)
{
	if (!entry->subsection && is_named(entry, "core", "worktree"))
		return GITSETTINGS_WORKTREE;
	if (!entry->subsection && is_named(entry, "core", "hookspath"))
		return GITSETTINGS_HOOKS;
	if (is_named(entry, "include", "path") || is_named(entry, "includeif", "path"))
		return GITSETTINGS_INCLUDE;
	if (is_address(entry))
		return is_plain_address(entry->value) ? GITSETTINGS_HARMLESS : GITSETTINGS_COMMAND;
	for (size_t i = 0; i < COUNT_OF(harmless); i++)
		if (strcmp(harmless[i].section, entry->section) == 0 &&
		    harmless[i].has_subsection == (entry->subsection != NULL) &&
		    has_key(harmless[i].keys, entry->key))
			return GITSETTINGS_HARMLESS;
	return GITSETTINGS_COMMAND;
}
