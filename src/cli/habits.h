#pragma once
/*
 * habits - the words that people bring along from docker, podman and their shells.
 *
 * Where such a word means the same as one of ours it is taken for that; where it means something
 * that we do not have, the answer says what to do instead. One table, in habits.c.
 */
#include "base/err.h"

#include <stdbool.h>

/*
 * The command line with its first words replaced, where they are a habit: *ret, the caller's to
 * free; NULL: it is as it was. ERR_UNSUPPORTED for what there is no word of ours for.
 */
ERR_CHECKED int habits_translate(char **argv, char ***ret, struct err *e);

/* Could this first word of `run` be the image, as docker has it? */
bool habits_is_image(const char *word);
