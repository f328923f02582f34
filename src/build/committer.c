/*
 * committer - an image of a sandbox; see committer.h.
 *
 * Theory of operation. A checkpoint is made, and removed at the end; its layers are merged into one
 * directory in the image store's making/, where what the sandbox's starts have written is taken
 * out. That directory becomes the image's highest layer, and is packed into its blob.
 */
#include "build/committer.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "build/buildstore.h"
#include "build/runclean.h"
#include "build/stepcache.h"
#include "engine/images.h"
#include "named/checkpoint.h"
#include "named/layerstore.h"
#include "named/layertransfer.h"
#include "named/named.h"
#include "tree/owner.h"
#include "tree/treecopy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TEXT_MAX_BYTES (64u << 10)
#define COMMENT "for agentkernel commit"

struct committing {
	const struct ak *ak;
	struct buildstore store;
	struct checkpoint checkpoint;
	struct images image;
	char work[BUILDSTORE_WORK_MAX_BYTES];
	char layer[RECORD_ID_BYTES + 1];
};

static void committing_done(struct committing *c)
{
	struct err ignored;

	buildstore_close(&c->store);
	images_done(&c->image);
	if (c->checkpoint.id[0])
		(void)!checkpoint_remove(c->ak, c->checkpoint.id, &ignored);
	checkpoint_done(&c->checkpoint);
}

/* ---- the files ---- */

struct merging {
	int to_fd;
	int layer_fds[NAMED_LAYERS_MAX]; /* lowest first */
	unsigned count;
};

static int merge(void *context, struct err *e)
{
	const struct merging *m = context;
	struct treecopy_result ignored;

	for (unsigned i = 0; i < m->count; i++)
		if (treecopy_run(m->layer_fds[i], m->to_fd, i ? TREECOPY_MERGE : 0, NULL, &ignored,
				 e) < 0)
			return -1;
	return 0;
}

static void merging_done(struct merging *m)
{
	for (unsigned i = 0; i < m->count; i++)
		cleanup_closep(&m->layer_fds[i]);
	cleanup_closep(&m->to_fd);
}

static int open_layers(struct committing *c, struct merging *m, struct err *e)
{
	size_t count = keyrows_list_count(c->checkpoint.layers);
	cleanup_fd int store_fd = -1;

	if (layerstore_open(c->ak, LAYERSTORE_SHARED, &store_fd, e) < 0)
		return -1;
	for (size_t i = count; i > 0 && m->count < NAMED_LAYERS_MAX; i--) {
		if (layerstore_open_layer(store_fd, c->checkpoint.layers[i - 1],
					  &m->layer_fds[m->count], e) < 0)
			return -1;
		m->count++;
	}
	return 0;
}

static int copy_files(struct committing *c, char **ret_upper, struct err *e)
{
	CLEANUP(merging_done) struct merging m = { .to_fd = -1 };

	if (buildstore_make_work(&c->store, c->work, e) < 0 || open_layers(c, &m, e) < 0)
		return -1;
	*ret_upper = mem_format("%s/upper", c->work);
	if (mkdirat(c->store.layers_fd, *ret_upper, 0755) < 0)
		return err_sys(e, errno, "prepare a layer");
	m.to_fd = openat(c->store.layers_fd, *ret_upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m.to_fd < 0)
		return err_sys(e, errno, "open a layer");
	return owner_run(merge, &m, NULL, 0, e);
}

/* What the sandbox's policy mounts and creates is not what its commands wrote. */
static int clean(struct committing *c, const char *sandbox, const char *upper, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy p = { 0 };
	const char *paths[POLICY_MOUNTS_MAX + POLICY_TMPFS_MAX + 5] = { NULL };
	unsigned count = 0;

	named_init(&n);
	if (named_open(c->ak, sandbox, &n, e) < 0 || named_load_policy(&n, &p, e) < 0)
		return -1;
	for (unsigned i = 0; i < p.mount_count; i++)
		paths[count++] = p.mounts[i].target;
	for (unsigned i = 0; i < p.tmpfs_count; i++)
		paths[count++] = p.tmpfs[i].target;
	if (p.workspace)
		paths[count++] = p.workspace;
	if (p.home)
		paths[count++] = p.home;
	paths[count++] = p.workdir;
	paths[count++] = p.home_dir;
	return runclean_upper(c->store.layers_fd, c->image.lower, upper, paths, RUNCLEAN_MACHINE_ID,
			      e);
}

/* ---- the image ---- */

static int pack(struct committing *c, struct layertransfer_result *ret, struct err *e)
{
	cleanup_fd int dir_fd = -1, blob_fd = -1;
	cleanup_free char *blob = NULL;

	dir_fd = openat(c->store.layers_fd, c->layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open a layer");
	if (buildstore_begin_blob(&c->store, &blob, &blob_fd, e) < 0)
		return -1;
	if (layertransfer_pack_step(dir_fd, blob_fd, 0, ret, e) < 0) {
		buildstore_drop_blob(&c->store, blob);
		return -1;
	}
	return buildstore_keep_blob(&c->store, blob, ret, e);
}

static int compose(struct committing *c, const char *sandbox, const char *name,
		   const struct layertransfer_result *packed, struct committer_result *ret,
		   struct err *e)
{
	cleanup_free char *layer = mem_format("%s %s %s %" PRIu64, c->layer, packed->content,
					      packed->digest, packed->bytes);
	cleanup_free char *history = mem_format("agentkernel commit %s", sandbox);
	cleanup_buf struct buf text;

	buf_init(&text, TEXT_MAX_BYTES);
	keyrows_put(&text, "base", c->image.record.id);
	keyrows_put_number(&text, "created", (uint64_t)time(NULL));
	keyrows_put(&text, "layer", layer);
	keyrows_put(&text, "history", history);
	ret->size_bytes = packed->bytes;
	return buildstore_compose(&c->store, &text, name, ret->digest, ret->id, e);
}

static int commit(struct committing *c, const char *sandbox, const char *name,
		  struct committer_result *ret, struct err *e)
{
	const struct checkpoint_request q = { .sandbox = sandbox, .comment = COMMENT };
	struct layertransfer_result packed = { 0 };
	struct checkpoint_timing timing;
	cleanup_free char *upper = NULL;

	if (checkpoint_create(c->ak, &q, &c->checkpoint, &timing, e) < 0)
		return -1;
	if (!c->checkpoint.image_pin)
		return err_set(
			e, ERR_UNSUPPORTED,
			"sandbox '%s' has this machine's own programs: what it wrote is no image "
			"without them (make it from one, with --image)",
			sandbox);
	if (images_open_pinned(c->ak, c->checkpoint.image_pin, c->checkpoint.image, &c->image, e) <
		    0 ||
	    buildstore_open(&c->store, c->ak, e) < 0 || copy_files(c, &upper, e) < 0 ||
	    clean(c, sandbox, upper, e) < 0)
		return -1;
	stepcache_choose_id(c->layer);
	if (buildstore_move_layer(&c->store, upper, c->layer, e) < 0 || pack(c, &packed, e) < 0)
		return -1;
	return compose(c, sandbox, name, &packed, ret, e);
}

int committer_run(const struct ak *ak, const char *sandbox, const char *name,
		  struct committer_result *ret, struct err *e)
{
	struct committing c = { .ak = ak };
	int r;

	*ret = (struct committer_result){ 0 };
	buildstore_init(&c.store);
	images_init(&c.image);
	r = commit(&c, sandbox, name, ret, e);
	committing_done(&c);
	return r;
}
