#pragma once
/*
 * habits - accepts words of docker, podman and shells.
 *
 * A word with an equivalent of ours is translated; for one without, the error says what to do
 * instead. One table, in habits.c.
 */
#include "base/err.h"

#include <stdbool.h>

/*
 * Translates the first words of a command line: *ret is a copy that the caller frees; NULL: nothing
 * to translate. ERR_UNSUPPORTED for words without an equivalent.
 */
ERR_CHECKED int habits_translate(char **argv, char ***ret, struct err *e);

/* Could this first word of `run` be an image, as in docker? */
bool habits_is_image(const char *word);
