/*
 * pull - downloads an image from a registry into the store; see pull.h.
 *
 * Theory of operation. First the manifest and the config, one after the other: they are small and
 * determine the names of the layers. Then all missing layers at once; the registry's loop also
 * drives the installation (image/install), so a layer is unpacked while the next ones arrive.
 *
 * Locks: the missing blobs are locked in the order of their names, so that two pulls that share
 * layers cannot deadlock.
 */
#include "image/pull.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/install.h"
#include "image/registries.h"
#include "image/registry.h"
#include "image/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct fetch {
	const struct store *store;
	const struct pull_options *options;
	struct registry *registry;
	struct install *install; /* NULL while the config is fetched */
	struct registry_blob blobs[MANIFEST_LAYERS_MAX];
	unsigned layers[MANIFEST_LAYERS_MAX]; /* the layer of blobs[n] */
	unsigned count;
	uint64_t bytes;
};

static void fetch_done(struct fetch *f)
{
	for (unsigned n = 0; n < f->count; n++)
		if (f->blobs[n].fd >= 0)
			store_leave_blob(f->store, f->blobs[n].digest, take_fd(&f->blobs[n].fd));
	f->count = 0;
}

/* Locks the blob and adds it to the download, unless another process has completed it meanwhile. */
static int add_blob(struct fetch *f, const struct manifest_blob *blob, unsigned layer,
		    struct err *e)
{
	struct registry_blob *b = &f->blobs[f->count];
	int fd = -1;
	int r = store_begin_blob(f->store, blob->digest, STORE_NO_WAIT, &fd, e);

	if (r < 0 && e->code == ERR_BUSY) {
		progress_say(f->options->progress, "waiting for another pull of %.19s",
			     blob->digest);
		r = store_begin_blob(f->store, blob->digest, STORE_WAIT, &fd, e);
	}
	if (r < 0)
		return -1;
	if (fd < 0)
		return 0;
	*b = (struct registry_blob){ .size_bytes = blob->size_bytes, .fd = fd };
	(void)snprintf(b->digest, sizeof(b->digest), "%s", blob->digest);
	f->layers[f->count++] = layer;
	return 0;
}

static int on_blob(void *context, unsigned index, struct err *e)
{
	struct fetch *f = context;
	struct registry_blob *b = &f->blobs[index];

	f->bytes += b->size_bytes;
	if (store_finish_blob(f->store, b->digest, take_fd(&b->fd), e) < 0)
		return -1;
	if (!f->install)
		return 0;
	/* an image may have the same blob more than once */
	for (unsigned n = 0; n < f->install->manifest.layer_count; n++)
		if (strcmp(f->install->manifest.layers[n].digest, b->digest) == 0)
			install_blob_is_there(f->install, n);
	progress_set(f->options->progress, f->install->layers[f->layers[index]].line,
		     PROGRESS_FETCHED, b->size_bytes);
	return install_step(f->install, e);
}

static void show_progress(struct fetch *f)
{
	static const enum progress_state shown[] = {
		[REGISTRY_WAITING] = PROGRESS_WAITING,
		[REGISTRY_MOVING] = PROGRESS_MOVING,
		[REGISTRY_PAUSED] = PROGRESS_RETRYING,
	};

	for (unsigned n = 0; n < f->count; n++)
		if (f->blobs[n].state != REGISTRY_CHECKED)
			progress_set(f->options->progress, f->install->layers[f->layers[n]].line,
				     shown[f->blobs[n].state], f->blobs[n].done_bytes);
	progress_draw(f->options->progress);
}

static int on_tick(void *context, struct err *e)
{
	struct fetch *f = context;

	if (!f->install)
		return 0;
	show_progress(f);
	return install_step(f->install, e);
}

static unsigned get_watched(void *context, int ret_fds[REGISTRY_WATCHED_MAX])
{
	const struct fetch *f = context;

	return f->install ? install_get_watched(f->install, ret_fds, REGISTRY_WATCHED_MAX) : 0;
}

static int get_blobs(struct fetch *f, struct err *e)
{
	const struct registry_events events = {
		.context = f,
		.on_blob = on_blob,
		.on_tick = on_tick,
		.get_watched = get_watched,
	};
	int r = f->count ? registry_get_blobs(f->registry, f->blobs, f->count, &events, e) : 0;

	fetch_done(f);
	return r;
}

/* Adds the manifest for this machine to the store, resolving an index if there is one. */
static int get_manifest(struct fetch *f, char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e)
{
	const struct reference *ref = f->options->reference;
	char type[MANIFEST_TYPE_MAX_BYTES], asked[REFERENCE_DIGEST_MAX_BYTES];
	cleanup_buf struct buf text;
	struct manifest_blob chosen;
	bool is_index;

	buf_init(&text, MANIFEST_MAX_BYTES);
	if (registry_get_manifest(f->registry, ref->digest[0] ? ref->digest : ref->tag, &text, type,
				  asked, e) < 0)
		return -1;
	if (manifest_is_index(text.bytes, text.len, type, &is_index, e) < 0)
		return err_wrap(e, "manifest %s", asked);
	if (is_index) {
		if (manifest_choose(text.bytes, text.len, manifest_architecture(), &chosen, e) < 0)
			return -1;
		buf_done(&text);
		buf_init(&text, MANIFEST_MAX_BYTES);
		if (registry_get_manifest(f->registry, chosen.digest, &text, type, asked, e) < 0)
			return -1;
	}
	return store_add_blob(f->store, text.bytes, text.len, ret_digest, e);
}

static int get_config(struct fetch *f, const char *manifest_digest, struct err *e)
{
	struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = -1;

	if (store_read_blob(f->store, manifest_digest, MANIFEST_MAX_BYTES, &text, &len, e) == 0) {
		r = manifest_parse(text, len, m, e);
		if (r < 0)
			(void)err_wrap(e, "manifest %s", manifest_digest);
		if (r == 0 && !store_has_blob(f->store, m->config.digest)) {
			r = add_blob(f, &m->config, 0, e);
			if (r == 0)
				r = get_blobs(f, e);
		}
	}
	free(m);
	return r;
}

static int by_digest(const void *a, const void *b)
{
	const struct manifest_blob *const *left = a, *const *right = b;

	return strcmp((*left)->digest, (*right)->digest);
}

/* Downloads lower layers first, because the others are finished after them. */
static void order_by_layer(struct fetch *f)
{
	for (unsigned n = 1; n < f->count; n++) {
		for (unsigned at = n; at > 0 && f->layers[at] < f->layers[at - 1]; at--) {
			struct registry_blob blob = f->blobs[at];
			unsigned layer = f->layers[at];

			f->blobs[at] = f->blobs[at - 1];
			f->layers[at] = f->layers[at - 1];
			f->blobs[at - 1] = blob;
			f->layers[at - 1] = layer;
		}
	}
}

/* Locks the missing blobs, each once, in the order of their digests. */
static int lock_missing(struct fetch *f, struct err *e)
{
	const struct manifest *m = &f->install->manifest;
	const struct manifest_blob *missing[MANIFEST_LAYERS_MAX];
	unsigned count = 0;

	for (unsigned n = 0; n < m->layer_count; n++)
		if (!store_has_blob(f->store, m->layers[n].digest))
			missing[count++] = &m->layers[n];
	/* cppcheck-suppress uninitvar ; all below count are set */
	qsort(missing, count, sizeof(missing[0]), by_digest);
	for (unsigned n = 0; n < count; n++) {
		unsigned layer = (unsigned)(missing[n] - m->layers);

		if (n > 0 && strcmp(missing[n]->digest, missing[n - 1]->digest) == 0)
			continue;
		if (add_blob(f, missing[n], layer, e) < 0)
			return -1;
	}
	for (unsigned n = 0; n < m->layer_count; n++)
		if (store_has_blob(f->store, m->layers[n].digest))
			install_blob_is_there(f->install, n);
	order_by_layer(f);
	return 0;
}

/* The manifest gives the sizes: nothing is downloaded that does not fit. */
static int check_room(const struct fetch *f, struct err *e)
{
	uint64_t bytes = 0, available = 0;

	for (unsigned n = 0; n < f->count; n++) {
		const struct registry_blob *b = &f->blobs[n];
		struct stat st;

		if (fstat(b->fd, &st) == 0 && (uint64_t)st.st_size < b->size_bytes)
			bytes += b->size_bytes - (uint64_t)st.st_size;
	}
	if (f->count && room_check(f->blobs[0].fd, bytes, &available, e) < 0)
		return err_wrap(e, "fetch the layers");
	return 0;
}

/* The image that the name has in the store, and whether its files are trustworthy. */
struct local {
	char digest[REFERENCE_DIGEST_MAX_BYTES]; /* "" if there is none */
	bool is_doubted;
};

static void look_in_store(const struct store *s, const struct reference *ref, struct local *ret)
{
	CLEANUP(record_done) struct record r = { 0 };
	cleanup_fd int lock_fd = -1;
	struct err ignored;

	*ret = (struct local){ 0 };
	if (store_get_record(s, ref, &r, &lock_fd, &ignored) < 0)
		return;
	(void)snprintf(ret->digest, sizeof(ret->digest), "%s", r.digest);
	ret->is_doubted = !record_is_settled(s->records_fd, r.id);
}

/* After a machine crash a blob may have any content: invalid ones are removed. */
static bool has_all_blobs(const struct store *s, const char *manifest_digest, bool is_doubted)
{
	struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_free char *text = NULL;
	struct err ignored;
	size_t len = 0;
	bool has_all;

	has_all = (!is_doubted || store_check_blob(s, manifest_digest, &ignored) == 0) &&
		  store_read_blob(s, manifest_digest, MANIFEST_MAX_BYTES, &text, &len, &ignored) ==
			  0 &&
		  manifest_parse(text, len, m, &ignored) == 0;
	for (unsigned n = 0; has_all && n <= m->layer_count; n++) {
		const char *digest = n < m->layer_count ? m->layers[n].digest : m->config.digest;

		has_all = is_doubted ? store_check_blob(s, digest, &ignored) == 0
				     : store_has_blob(s, digest);
	}
	free(m);
	return has_all;
}

static int connect_registry(struct fetch *f, struct credentials *credentials,
			    struct registries *settings, struct err *e)
{
	const struct pull_options *o = f->options;
	const struct credentials_options where = registries_credentials(o->environ_list);
	struct registry_options options = {
		.reference = o->reference,
		.credentials = credentials,
		.connect_max_ms = o->has_short_wait ? PULL_SHORT_WAIT_MS : 0,
		.answer_max_ms = o->has_short_wait ? PULL_SHORT_ANSWER_MS : 0,
	};

	if (registries_load(o->environ_list, o->reference->host, settings, e) < 0 ||
	    credentials_find(&where, o->reference->host, credentials, e) < 0)
		return -1;
	options.mirrors = (const char *const *)settings->mirrors;
	options.is_insecure = settings->is_insecure;
	options.has_private_redirects = settings->has_private_redirects;
	options.total_max_ms = settings->timeout_ms;
	return registry_new(&options, &f->registry, e);
}

static int fetch_and_install(struct fetch *f, const struct local *local, struct pull_result *ret,
			     struct err *e)
{
	CLEANUP(install_freep) struct install *install = NULL;
	bool is_same;

	if (f->registry && get_manifest(f, ret->digest, e) < 0)
		return -1;
	if (f->registry && get_config(f, ret->digest, e) < 0)
		return -1;
	if (f->registry)
		registry_has_answered(f->registry);
	is_same = strcmp(local->digest, ret->digest) == 0;
	if (install_open(f->store, f->options->progress, ret->digest, is_same && local->is_doubted,
			 &install, e) < 0)
		return -1;
	f->install = install;
	if (f->registry) {
		char name[REFERENCE_MAX_BYTES + 1];

		if (lock_missing(f, e) < 0 || check_room(f, e) < 0)
			return -1;
		ret->fetched_count = f->count;
		reference_format_short(f->options->reference, name);
		if (f->count && f->options->progress->mode != PROGRESS_BARS)
			progress_say(f->options->progress, "pulling %s", name);
		if (get_blobs(f, e) < 0)
			return -1;
	}
	if (install_finish(install, ret->id, e) < 0)
		return -1;
	ret->layer_count = install->manifest.layer_count;
	ret->fetched_bytes = f->bytes;
	ret->is_new = !is_same;
	return 0;
}

int pull_image(const struct store *s, const struct pull_options *o, struct pull_result *ret,
	       struct err *e)
{
	CLEANUP(fetch_done) struct fetch f = { .store = s, .options = o };
	CLEANUP(registry_freep) struct registry *registry = NULL;
	CLEANUP(credentials_done) struct credentials credentials = { 0 };
	CLEANUP(registries_done) struct registries settings = { 0 };
	char name[REFERENCE_MAX_BYTES + 1];
	cleanup_fd int repair_fd = -1;
	struct local local;
	int r;

	*ret = (struct pull_result){ 0 };
	reference_format_short(o->reference, name);
	look_in_store(s, o->reference, &local);
	if (local.is_doubted) {
		if (store_lock_repair(s, &repair_fd, e) < 0)
			return -1;
		look_in_store(s, o->reference, &local); /* another process may have done it */
	}
	if (o->from != PULL_FROM_REGISTRY && local.digest[0] &&
	    has_all_blobs(s, local.digest, local.is_doubted)) {
		memcpy(ret->digest, local.digest, sizeof(ret->digest));
		progress_say(o->progress, "unpacking %s again from the store", name);
	} else if (o->from == PULL_FROM_STORE) {
		return err_set(e, ERR_NOT_FOUND,
			       "not whole in the store, and --pull never forbids to fetch it");
	} else {
		/* on a terminal, show at once what we wait for */
		if (o->progress->mode == PROGRESS_BARS)
			progress_say(o->progress, "pulling %s", name);
		if (connect_registry(&f, &credentials, &settings, e) < 0)
			return -1;
		registry = f.registry;
	}
	r = fetch_and_install(&f, &local, ret, e);
	progress_end(o->progress);
	if (r < 0)
		return -1;
	return store_set_name(s, o->reference, ret->id, e);
}
