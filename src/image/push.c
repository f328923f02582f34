/* push - sends an image to a registry; see push.h. */
#include "image/push.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/manifest.h"
#include "image/registries.h"
#include "image/registry.h"
#include "image/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct pushing {
	const struct store *store;
	const struct push_options *options;
	struct registry *registry;
	struct push_result *result;
	unsigned line;
};

/* ---- where the registry may have a blob already ---- */

/* "+" is a slash in the names of names/. */
static bool read_name(const char *file, struct reference *ret)
{
	cleanup_free char *text = mem_dup(file);
	struct err ignored;

	for (char *c = text; *c; c++)
		if (*c == '+')
			*c = '/';
	return file[0] != '.' && reference_parse(text, ret, &ignored) == 0;
}

static bool image_has_blob(const struct store *s, const struct reference *ref, const char *digest)
{
	CLEANUP(record_done) struct record r = { 0 };
	CLEANUP(cleanup_freep) struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_fd int lock_fd = -1;
	cleanup_free char *text = NULL;
	struct err ignored;
	size_t len = 0;

	if (store_get_record(s, ref, &r, &lock_fd, &ignored) < 0 ||
	    store_read_blob(s, r.digest, MANIFEST_MAX_BYTES, &text, &len, &ignored) < 0 ||
	    manifest_parse(text, len, m, &ignored) < 0)
		return false;
	for (unsigned i = 0; i < m->layer_count; i++)
		if (strcmp(m->layers[i].digest, digest) == 0)
			return true;
	return false;
}

/* Another repository of the same registry that an image with this layer came from or went to. */
static char *find_other(const struct pushing *p, const char *digest)
{
	const struct reference *own = p->options->reference;
	int fd = openat(p->store->names_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	char *found = NULL;

	while (dir && !found && (entry = readdir(dir))) {
		struct reference ref;

		if (read_name(entry->d_name, &ref) && strcmp(ref.host, own->host) == 0 &&
		    strcmp(ref.path, own->path) != 0 && image_has_blob(p->store, &ref, digest))
			found = mem_dup(ref.path);
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

/* ---- sending ---- */

static void on_progress(void *context, uint64_t done_bytes)
{
	struct pushing *p = context;

	progress_set(p->options->progress, p->line, PROGRESS_MOVING, done_bytes);
	progress_draw(p->options->progress);
}

static int send_blob(struct pushing *p, const struct manifest_blob *blob, bool is_layer,
		     struct err *e)
{
	cleanup_free char *other = is_layer ? find_other(p, blob->digest) : NULL;
	cleanup_fd int fd = -1;
	struct upload_blob b = {
		.digest = blob->digest, .from = other, .on_progress = on_progress, .context = p
	};
	enum upload_outcome outcome;
	struct stat st;

	if (store_open_blob(p->store, blob->digest, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at blob %s", blob->digest);
	b.fd = fd;
	b.size_bytes = (uint64_t)st.st_size;
	p->line = progress_add(p->options->progress, blob->digest, b.size_bytes);
	if (upload_blob(p->registry, &b, &outcome, e) < 0)
		return -1;
	progress_set(p->options->progress, p->line,
		     outcome == UPLOAD_SENT ? PROGRESS_DONE : PROGRESS_KEPT, b.size_bytes);
	if (is_layer) {
		p->result->sent_count += outcome == UPLOAD_SENT;
		p->result->mounted_count += outcome == UPLOAD_MOUNTED;
	}
	if (outcome == UPLOAD_SENT)
		p->result->sent_bytes += b.size_bytes;
	return 0;
}

static int send_manifest(struct pushing *p, const char *digest, const struct manifest *m,
			 struct err *e)
{
	const struct reference *ref = p->options->reference;
	cleanup_fd int fd = -1;
	struct stat st;

	if (store_open_blob(p->store, digest, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at the manifest");
	return upload_manifest(p->registry, ref->tag[0] ? ref->tag : digest,
			       strstr(m->config.type, "docker") ? MANIFEST_TYPE_DOCKER
								: MANIFEST_TYPE_OCI,
			       fd, (uint64_t)st.st_size, e);
}

static int send_image(struct pushing *p, const char *digest, struct err *e)
{
	CLEANUP(cleanup_freep) struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (store_read_blob(p->store, digest, MANIFEST_MAX_BYTES, &text, &len, e) < 0 ||
	    manifest_parse(text, len, m, e) < 0)
		return -1;
	p->result->layer_count = m->layer_count;
	for (unsigned i = 0; i < m->layer_count; i++)
		if (send_blob(p, &m->layers[i], true, e) < 0)
			return -1;
	if (send_blob(p, &m->config, false, e) < 0)
		return -1;
	return send_manifest(p, digest, m, e);
}

int push_image(const struct store *s, const struct push_options *o, struct push_result *ret,
	       struct err *e)
{
	struct credentials_options where = registries_credentials(o->environ_list);
	CLEANUP(registries_done) struct registries config = { 0 };
	CLEANUP(credentials_done) struct credentials credentials = { 0 };
	CLEANUP(registry_freep) struct registry *registry = NULL;
	CLEANUP(record_done) struct record record = { 0 };
	struct pushing p = { .store = s, .options = o, .result = ret };
	cleanup_fd int lock_fd = -1;
	struct registry_options ro = { .reference = o->reference,
				       .is_pushed_to = true,
				       .credentials = &credentials };

	*ret = (struct push_result){ 0 };
	if (store_get_record(s, o->reference, &record, &lock_fd, e) < 0 ||
	    registries_load(o->environ_list, o->reference->host, &config, e) < 0 ||
	    credentials_find(&where, o->reference->host, &credentials, e) < 0)
		return -1;
	ro.is_insecure = config.is_insecure;
	ro.has_private_redirects = config.has_private_redirects;
	ro.total_max_ms = config.timeout_ms;
	if (registry_new(&ro, &registry, e) < 0)
		return -1;
	p.registry = registry;
	if (send_image(&p, record.digest, e) < 0)
		return err_wrap(e, "push '%s/%s'", o->reference->host, o->reference->path);
	(void)snprintf(ret->digest, sizeof(ret->digest), "%s", record.digest);
	return 0;
}
