#pragma once
/*
 * layeraccounts - the passwd and group files of an image or a stage, read in its layers without
 * mounting them.
 *
 * Hostile input: the layers. No link is followed; what is no plain file counts as absent.
 */

/*
 * The file `path` as the layers show it: of the highest that has it. `names` are directories in
 * layers_fd, highest first. "" if there is none; the caller frees it.
 */
char *layeraccounts_read(int layers_fd, const char *const *names, unsigned count, const char *path);
