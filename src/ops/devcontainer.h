#pragma once
/*
 * devcontainer - a project's devcontainer.json as settings of a sandbox.
 *
 * Understood: image, build (dockerfile, context, target, args), dockerFile and context in their old
 * place, containerEnv and remoteEnv, remoteUser and containerUser, forwardPorts, onCreateCommand,
 * postCreateCommand, workspaceFolder, mounts of type tmpfs. What would be missing without it
 * (features, dockerComposeFile, privileged, capAdd, runArgs, other mounts) is refused by name;
 * what only concerns an editor is left alone.
 *
 * The user names the file, so it counts as typed options do. Hostile input: the file, whose size,
 * depth and values are limited as JSON and as options are.
 */
#include "base/err.h"

struct ak;
struct op_events;
struct request;

#define DEVCONTAINER_MAX_BYTES (1u << 20)
#define DEVCONTAINER_ENTRIES_MAX 256u /* of one object or list */

/*
 * Adds what the file says to the request, which is not resolved yet. `path` "": the usual places
 * below the caller's directory.
 */
ERR_CHECKED int devcontainer_load(struct request *r, const char *path, const struct op_events *ev,
				  struct err *e);
