/* layerstore - the layers of checkpoints; see layerstore.h. */
#include "named/layerstore.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "named/checkpoint.h"
#include "named/inventory.h"
#include "named/named.h"
#include "tree/owner.h"
#include "state/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define NEW_PREFIX ".new-"
#define NEW_NAME_MAX_BYTES (sizeof(NEW_PREFIX) + LAYERSTORE_ID_BYTES)

static int open_store(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;
	int r, fd;

	if (statedir_path(ak, LAYERSTORE_DIR, &path, e) < 0)
		return -1;
	r = file_make_dirs(path, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	*ret_fd = fd;
	return 0;
}

int layerstore_open(const struct ak *ak, enum layerstore_lock lock, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;

	if (open_store(ak, &fd, e) < 0)
		return -1;
	while (flock(fd, lock == LAYERSTORE_ALONE ? LOCK_EX : LOCK_SH) < 0)
		if (errno != EINTR)
			return err_sys(e, errno, "lock the store of layers");
	*ret_fd = take_fd(&fd);
	return 0;
}

static void name_new(const struct layerstore_layer *layer, char out[NEW_NAME_MAX_BYTES])
{
	(void)snprintf(out, NEW_NAME_MAX_BYTES, NEW_PREFIX "%s", layer->id);
}

int layerstore_begin(int store_fd, struct layerstore_layer *ret, struct err *e)
{
	char id[NAMED_ID_BYTES + 1], name[NEW_NAME_MAX_BYTES];

	named_random_id(id);
	*ret = (struct layerstore_layer){ .dir_fd = -1 };
	(void)snprintf(ret->id, sizeof(ret->id), "%.*s", (int)LAYERSTORE_ID_BYTES, id);
	name_new(ret, name);
	if (mkdirat(store_fd, name, 0700) < 0)
		return err_sys(e, errno, "create a layer");
	ret->dir_fd = openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (ret->dir_fd < 0)
		return err_sys(e, errno, "open a layer");
	return 0;
}

int layerstore_commit(int store_fd, struct layerstore_layer *layer, struct err *e)
{
	char name[NEW_NAME_MAX_BYTES];

	name_new(layer, name);
	if (renameat(store_fd, name, store_fd, layer->id) < 0)
		return err_sys(e, errno, "keep a layer");
	cleanup_closep(&layer->dir_fd);
	return 0;
}

void layerstore_abort(int store_fd, struct layerstore_layer *layer)
{
	char name[NEW_NAME_MAX_BYTES];
	struct err ignored;

	if (!layer->id[0])
		return;
	cleanup_closep(&layer->dir_fd);
	name_new(layer, name);
	(void)!owner_sweep(store_fd, name, &ignored);
	layer->id[0] = '\0';
}

int layerstore_open_layer(int store_fd, const char *id, int *ret_fd, struct err *e)
{
	int fd;

	if (strlen(id) != LAYERSTORE_ID_BYTES ||
	    strspn(id, "0123456789abcdef") != LAYERSTORE_ID_BYTES)
		return err_set(e, ERR_CORRUPT, "invalid layer name '%s'", id);
	fd = openat(store_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open layer %s", id);
	*ret_fd = fd;
	return 0;
}

/* ---- garbage collection ---- */

static void note(char *const *layers, char ***used)
{
	for (; layers && *layers; layers++)
		(void)keyrows_list_add(used, *layers);
}

/* Lists the layers in use. False: some record is unreadable, so its layers are unknown. */
static bool find_used(const struct ak *ak, char ***used, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list sandboxes = { 0 };
	CLEANUP(checkpoint_list_done) struct checkpoint_list checkpoints = { 0 };
	bool is_whole = true;

	if (inventory_list(ak, &sandboxes, e) < 0 || checkpoint_list(ak, NULL, &checkpoints, e) < 0)
		return false;
	for (size_t i = 0; i < sandboxes.count; i++) {
		note(sandboxes.entries[i].named.layers, used);
		is_whole = is_whole && !sandboxes.entries[i].trouble[0];
	}
	for (size_t i = 0; i < checkpoints.count; i++)
		note(checkpoints.entries[i].layers, used);
	return is_whole && !checkpoints.has_damaged;
}

/* Is this layer, or the digest file of a layer, in use? */
static bool is_used(char *const *used, const char *name)
{
	size_t len = strcspn(name, ".");

	for (; used && *used; used++)
		if (len > 0 && strncmp(*used, name, len) == 0 && (*used)[len] == '\0')
			return true;
	return false;
}

static int sweep_unused(int store_fd, char *const *used, unsigned *count, struct err *e)
{
	int dir_fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return err_sys(e, errno, "list the store of layers");
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    is_used(used, entry->d_name))
			continue;
		r = owner_sweep(store_fd, entry->d_name, e);
		*count += r == 0;
	}
	(void)closedir(dir);
	return r;
}

int layerstore_collect(const struct ak *ak, unsigned *ret_count, struct err *e)
{
	cleanup_fd int store_fd = -1;
	struct err why = { 0 };
	char **used = NULL;
	unsigned count = 0;
	int r = 0;

	if (open_store(ak, &store_fd, e) < 0)
		return -1;
	if (flock(store_fd, LOCK_EX | LOCK_NB) == 0 && find_used(ak, &used, &why))
		r = sweep_unused(store_fd, used, &count, e);
	keyrows_list_free(&used);
	if (ret_count)
		*ret_count = count;
	return r;
}
