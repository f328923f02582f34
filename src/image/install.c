/* install - turns blobs of the store into a runnable image; see install.h. */
#include "image/install.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/layeraccounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

static void layer_init(struct install_layer *l)
{
	layerworker_init(&l->worker);
	l->dir_fd = l->lock_fd = -1;
}

static void layer_done(struct install_layer *l)
{
	layerworker_done(&l->worker);
	cleanup_closep(&l->dir_fd);
	cleanup_closep(&l->lock_fd);
}

void install_free(struct install *i)
{
	if (!i)
		return;
	for (unsigned n = 0; n < MANIFEST_LAYERS_MAX; n++) {
		struct install_layer *l = &i->layers[n];

		layerworker_done(&l->worker);
		if (l->lock_fd >= 0) /* unfinished: the files of a refused layer are useless */
			store_abandon_layer(i->store, l->id);
		layer_done(l);
	}
	config_done(&i->config);
	free(i);
}

void install_freep(struct install **i)
{
	install_free(*i);
	*i = NULL;
}

static int read_documents(struct install *i, const char *manifest_digest, struct err *e)
{
	cleanup_free char *manifest = NULL, *config = NULL;
	size_t len = 0;

	(void)snprintf(i->manifest_digest, sizeof(i->manifest_digest), "%s", manifest_digest);
	if (store_read_blob(i->store, manifest_digest, MANIFEST_MAX_BYTES, &manifest, &len, e) < 0)
		return -1;
	if (manifest_parse(manifest, len, &i->manifest, e) < 0)
		return err_wrap(e, "manifest %s", manifest_digest);
	if (store_read_blob(i->store, i->manifest.config.digest, CONFIG_MAX_BYTES, &config, &len,
			    e) < 0)
		return -1;
	if (config_parse(config, len, &i->config, e) < 0)
		return err_wrap(e, "config %s", i->manifest.config.digest);
	if (i->config.diff_count != i->manifest.layer_count)
		return err_set(e, ERR_INVALID, "the manifest has %u layers, the config names %u",
			       i->manifest.layer_count, i->config.diff_count);
	return 0;
}

static void finish(struct install *i, unsigned layer, enum progress_state state)
{
	i->layers[layer].state = INSTALL_FINISHED;
	i->finished++;
	progress_set(i->progress, i->layers[layer].line, state,
		     i->manifest.layers[layer].size_bytes);
}

static int look_at_layers(struct install *i, bool is_doubted, struct err *e)
{
	char ids[MANIFEST_LAYERS_MAX][RECORD_ID_BYTES + 1];

	store_name_layers(&i->manifest,
			  (const char(*)[REFERENCE_DIGEST_MAX_BYTES])i->config.diff_ids, ids);
	for (unsigned n = 0; n < i->manifest.layer_count; n++) {
		const struct manifest_blob *blob = &i->manifest.layers[n];

		memcpy(i->layers[n].id, ids[n], sizeof(ids[n]));
		i->layers[n].line = progress_add(i->progress, blob->digest, blob->size_bytes);
		if (is_doubted && !store_is_vouched(i->store, ids[n]) &&
		    store_remove_layer(i->store, ids[n], e) < 0)
			return -1;
		if (store_has_layer(i->store, ids[n]) && store_has_blob(i->store, blob->digest))
			finish(i, n, PROGRESS_KEPT);
		else if (store_has_blob(i->store, blob->digest))
			i->layers[n].state = INSTALL_READY;
	}
	return 0;
}

int install_open(const struct store *s, struct progress *p, const char *manifest_digest,
		 bool is_doubted, struct install **ret, struct err *e)
{
	CLEANUP(install_freep) struct install *i = mem_alloc(sizeof(*i));

	i->store = s;
	i->progress = p;
	for (unsigned n = 0; n < MANIFEST_LAYERS_MAX; n++)
		layer_init(&i->layers[n]);
	if (read_documents(i, manifest_digest, e) < 0 || look_at_layers(i, is_doubted, e) < 0)
		return -1;
	*ret = take_ptr(i);
	return 0;
}

void install_blob_is_there(struct install *i, unsigned layer)
{
	if (i->layers[layer].state == INSTALL_NO_BLOB)
		i->layers[layer].state = INSTALL_READY;
}

static int start(struct install *i, unsigned layer, struct err *e)
{
	struct install_layer *l = &i->layers[layer];
	cleanup_fd int archive_fd = -1;
	struct layerworker_options o = {
		.operation = "unpack",
		.words = (const char *const[]){ i->store->owners, NULL },
		.userns_fd = i->store->userns_fd,
		.lock_fds = { i->store->lock_fd, -1 },
	};

	if (store_begin_layer(i->store, l->id, &l->dir_fd, &l->lock_fd, e) < 0)
		return e->code == ERR_BUSY ? 0 : -1;
	if (l->dir_fd < 0) {
		finish(i, layer, PROGRESS_KEPT);
		return 0;
	}
	if (store_open_blob(i->store, i->manifest.layers[layer].digest, &archive_fd, e) < 0)
		return -1;
	o.dir_fd = l->dir_fd;
	o.archive_fd = archive_fd;
	o.lock_fds[1] = l->lock_fd;
	if (layerworker_start(&o, &l->worker, e) < 0)
		return -1;
	l->state = INSTALL_RUNNING;
	i->running++;
	progress_set(i->progress, l->line, PROGRESS_UNPACKING,
		     i->manifest.layers[layer].size_bytes);
	return 0;
}

/* The worker's output is "<diff id>\n", then the NUL-terminated names of implied directories. */
static int check_result(const struct install *i, unsigned layer, struct err *e)
{
	const struct layerworker *w = &i->layers[layer].worker;
	const char *end = w->output_len ? memchr(w->output, '\n', w->output_len) : NULL;
	const char *expected = i->config.diff_ids[layer];
	char found[REFERENCE_DIGEST_MAX_BYTES];

	if (!end || (size_t)(end - w->output) < strlen(expected))
		return err_set(e, ERR_SYSTEM, "the process that unpacks broke its protocol");
	/* a hostile archive may have chosen every byte of it */
	(void)snprintf(found, sizeof(found), "%.*s", (int)strlen(expected), w->output);
	if (!reference_is_digest(found) ||
	    w->output[w->output_len - 1] != (end + 1 == w->output + w->output_len ? '\n' : '\0'))
		return err_set(e, ERR_SYSTEM, "the process that unpacks broke its protocol");
	if (strcmp(found, expected) != 0)
		return err_set(e, ERR_INVALID,
			       "its content is %s, which is not what the image's config says (%s)",
			       found, expected);
	return 0;
}

static int take_up(struct install *i, unsigned layer, struct err *e)
{
	struct install_layer *l = &i->layers[layer];
	bool has_ended = false;

	if (layerworker_read(&l->worker, &has_ended, e) < 0)
		return -1;
	if (!has_ended)
		return 0;
	i->running--;
	if (layerworker_wait(&l->worker, e) < 0 || check_result(i, layer, e) < 0)
		return err_wrap(e, "layer %s", i->manifest.layers[layer].digest);
	l->state = INSTALL_UNPACKED;
	return 0;
}

/* The names after the first line; *ret_len is 0 if there are none. */
static const char *implied_names(const struct layerworker *w, size_t *ret_len)
{
	const char *end = memchr(w->output, '\n', w->output_len);

	*ret_len = w->output_len - (size_t)(end + 1 - w->output);
	return end + 1;
}

/*
 * Implied directories get the attributes of the layers below: a worker copies them, and gets the
 * names through an anonymous file.
 */
static int settle(struct install *i, unsigned layer, struct err *e)
{
	size_t len = 0;
	const char *names = implied_names(&i->layers[layer].worker, &len);
	cleanup_fd int names_fd = memfd_create("agentkernel-implied", MFD_CLOEXEC);
	cleanup_buf struct buf lower;
	const char *words[3] = { i->layers[layer].id, NULL, NULL };
	const struct layerworker_options o = {
		.operation = "settle",
		.words = words,
		.dir_fd = i->store->layers_fd,
		.archive_fd = names_fd,
		.userns_fd = i->store->userns_fd,
		.lock_fds = { i->store->lock_fd, -1 },
	};
	int r;

	buf_init(&lower, BUF_TEXT_MAX_BYTES);
	r = names_fd < 0 ? -errno : file_write_all(names_fd, names, len);
	if (r < 0)
		return err_sys(e, -r, "note a layer's directories");
	for (unsigned n = layer; n > 0; n--)
		buf_addf(&lower, "%s%s", n == layer ? "" : ":", i->layers[n - 1].id);
	words[1] = buf_text(&lower);
	return layerworker_run(&o, e);
}

/* Renames complete layers to their final names, from the lowest up. */
static int finish_unpacked(struct install *i, struct err *e)
{
	for (unsigned n = 0; n < i->manifest.layer_count; n++) {
		struct install_layer *l = &i->layers[n];
		size_t implied_len = 0;

		if (l->state == INSTALL_FINISHED)
			continue;
		if (l->state != INSTALL_UNPACKED)
			return 0;
		(void)implied_names(&l->worker, &implied_len);
		if (n > 0 && implied_len > 0 && settle(i, n, e) < 0)
			return err_wrap(e, "layer %s", i->manifest.layers[n].digest);
		if (store_finish_layer(i->store, l->id, e) < 0)
			return -1;
		layer_done(l);
		finish(i, n, PROGRESS_DONE);
	}
	return 0;
}

int install_step(struct install *i, struct err *e)
{
	for (unsigned n = 0; n < i->manifest.layer_count; n++)
		if (i->layers[n].state == INSTALL_RUNNING && take_up(i, n, e) < 0)
			return -1;
	if (finish_unpacked(i, e) < 0)
		return -1;
	for (unsigned n = 0; n < i->manifest.layer_count && i->running < INSTALL_WORKERS_MAX; n++)
		if (i->layers[n].state == INSTALL_READY && start(i, n, e) < 0)
			return -1;
	return 0;
}

unsigned install_get_watched(const struct install *i, int *ret_fds, unsigned max)
{
	unsigned count = 0;

	for (unsigned n = 0; n < i->manifest.layer_count && count < max; n++)
		if (i->layers[n].state == INSTALL_RUNNING)
			ret_fds[count++] = i->layers[n].worker.output_fd;
	return count;
}

static int wait_for_layers(struct install *i, struct err *e)
{
	while (i->finished < i->manifest.layer_count) {
		int fds[INSTALL_WORKERS_MAX];
		struct pollfd polled[INSTALL_WORKERS_MAX];
		unsigned count = install_get_watched(i, fds, INSTALL_WORKERS_MAX);

		for (unsigned n = 0; n < count; n++)
			polled[n] = (struct pollfd){ .fd = fds[n], .events = POLLIN };
		if (poll(polled, count, INSTALL_LOOK_AGAIN_MS) < 0 && errno != EINTR)
			return err_sys(e, errno, "wait for workers");
		if (install_step(i, e) < 0)
			return -1;
		progress_draw(i->progress);
	}
	return 0;
}

/* ---- the record ---- */

/* A layer with an opaque root hides all below it, but overlay ignores that mark on a root. */
static bool is_root_opaque(const struct store *s, const char *id)
{
	cleanup_fd int fd = -1;
	struct err ignored;
	char value;

	return store_open_layer(s, id, &fd, &ignored) == 0 &&
	       fgetxattr(fd, "user.overlay.opaque", &value, sizeof(value)) > 0;
}

void install_read_accounts(const struct store *s, struct record *r)
{
	const char *names[RECORD_LAYERS_MAX];

	for (unsigned i = 0; i < r->layer_count; i++)
		names[i] = r->layers[i];
	r->passwd = layeraccounts_read(s->layers_fd, names, r->layer_count, "etc/passwd");
	r->group = layeraccounts_read(s->layers_fd, names, r->layer_count, "etc/group");
}

static void list_layers(const struct install *i, struct record *r)
{
	for (unsigned n = i->manifest.layer_count; n > 0; n--) {
		memcpy(r->layers[r->layer_count++], i->layers[n - 1].id, RECORD_ID_BYTES + 1);
		if (is_root_opaque(i->store, i->layers[n - 1].id))
			break;
	}
}

static void fill_record(const struct install *i, struct record *r)
{
	r->digest = mem_dup(i->manifest_digest);
	r->config = mem_dup(i->manifest.config.digest);
	r->created = mem_dup(i->config.created);
	r->added_s = (uint64_t)time(NULL);
	for (unsigned n = 0; n < i->manifest.layer_count; n++)
		r->size_bytes += i->manifest.layers[n].size_bytes;
	list_layers(i, r);
	r->user = mem_dup(i->config.user);
	r->workdir = mem_dup(i->config.workdir);
	install_read_accounts(i->store, r);
}

int install_finish(struct install *i, char ret_id[RECORD_ID_BYTES + 1], struct err *e)
{
	CLEANUP(record_done) struct record r = { 0 };

	if (wait_for_layers(i, e) < 0)
		return -1;
	fill_record(i, &r);
	r.env = take_ptr(i->config.env);
	r.entrypoint = take_ptr(i->config.entrypoint);
	r.cmd = take_ptr(i->config.cmd);
	r.onbuild = take_ptr(i->config.onbuild);
	r.shell = take_ptr(i->config.shell);
	if (store_put_record(i->store, &r, e) < 0)
		return -1;
	memcpy(ret_id, r.id, RECORD_ID_BYTES + 1);
	return 0;
}
