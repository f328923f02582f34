/*
 * layerdigest - detects changes of a stored layer; see layerdigest.h.
 *
 * The image helper computes the digest, running as the owner of the layer's files.
 */
#include "named/layerdigest.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "named/layerstore.h"
#include "named/layertransfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int find_digest(int store_fd, const char *id, struct layertransfer_result *ret,
		       struct err *e)
{
	cleanup_fd int layer_fd = -1;

	if (layerstore_open_layer(store_fd, id, &layer_fd, e) < 0 ||
	    layertransfer_digest(layer_fd, ret, e) < 0)
		return err_wrap(e, "layer %s", id);
	return 0;
}

int layerdigest_write(int store_fd, const char *id, struct err *e)
{
	cleanup_free char *name = mem_format("%s" LAYERDIGEST_SUFFIX, id);
	/* others may write it, too; what a crash leaves is garbage of the store */
	cleanup_free char *new_name = mem_format(".new-%s-%d", id, (int)getpid());
	struct layertransfer_result found;
	int r;

	if (faccessat(store_fd, name, F_OK, 0) == 0)
		return 0;
	if (find_digest(store_fd, id, &found, e) < 0)
		return -1;
	r = file_create_at(store_fd, new_name, 0600, found.content);
	if (r == 0 && renameat(store_fd, new_name, store_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(store_fd, new_name, 0);
	if (r < 0)
		return err_sys(e, -r, "write the digest of layer %s", id);
	return 0;
}

int layerdigest_check(int store_fd, const char *id, struct err *e)
{
	cleanup_free char *name = mem_format("%s" LAYERDIGEST_SUFFIX, id);
	char expected[LAYERDIGEST_MAX_BYTES];
	struct layertransfer_result found;
	int r = file_read_line(store_fd, name, expected, sizeof(expected));

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "read the digest of layer %s", id);
	if (find_digest(store_fd, id, &found, e) < 0)
		return -1;
	if (strcmp(expected, found.content) != 0)
		return err_set(e, ERR_CORRUPT,
			       "the files of layer %s are not what they were: its digest is %s, it "
			       "was %s (import the checkpoint again if you have exported it)",
			       id, found.content, expected);
	return 0;
}
