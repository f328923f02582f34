#pragma once
/*
 * complete - completes a command line, for the completion scripts of all shells.
 *
 * The scripts of `agentkernel completion` pass the words and show the answer, so completion is
 * decided here once, from the tables of commands and options. Each line of the answer is a
 * candidate, or one of COMPLETE_FILES, COMPLETE_DIRS and COMPLETE_COMMANDS, which the shells
 * complete themselves.
 */
#include "base/buf.h"

struct ak;

#define COMPLETE_FILES ":files"
#define COMPLETE_DIRS ":dirs"
#define COMPLETE_COMMANDS ":commands"

/* `words` are those after "agentkernel"; the last one is being typed and may be "". */
void complete_words(const struct ak *ak, char **words, struct buf *out);
