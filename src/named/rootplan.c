/* rootplan - collects what a named sandbox's root is mounted from; see rootplan.h. */
#include "named/rootplan.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "engine/images.h"
#include "named/layerstore.h"
#include "named/named.h"
#include "named/nameddisk.h"
#include "state/statedir.h"
#include "policy/policy.h"
#include "host/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOWER_MAX_BYTES 8192u

void rootplan_init(struct rootplan *p)
{
	*p = (struct rootplan){ .disk_fd = -1 };
	rootspec_init(&p->root);
}

void rootplan_done(struct rootplan *p)
{
	for (unsigned i = 0; i < ROOTSPEC_SOURCE_COUNT; i++)
		cleanup_closep(&p->root.dirs[i].tree_fd);
	cleanup_closep(&p->disk_fd);
	free(p->disk_path);
	free(p->layers_path);
	free(p->checkpoints);
	rootplan_init(p);
}

static int describe(struct rootspec_dir *dir, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	*dir = (struct rootspec_dir){
		.path = path, .device = st.st_dev, .inode = st.st_ino, .tree_fd = -1
	};
	return 0;
}

/* The quota's project id, derived from the sandbox's id; never 0, the default project. */
static uint32_t project_of(const struct named *n)
{
	char digits[9];

	(void)snprintf(digits, sizeof(digits), "%.8s", n->id);
	return (uint32_t)strtoul(digits, NULL, 16) | 1u;
}

static int mount_disk(struct rootplan *p, int dir_fd, struct err *e)
{
	cleanup_closep(&p->disk_fd);
	return disk_mount_file(dir_fd, &p->root.dirs[ROOTSPEC_DISK].tree_fd, &p->disk_fd, e);
}

static int limit_disk(struct rootplan *p, const struct named *n, uint64_t limit_bytes,
		      struct err *e)
{
	cleanup_fd int dir_fd = fcntl(p->disk_fd, F_DUPFD_CLOEXEC, 0);
	const char *why = NULL;

	if (dir_fd < 0)
		return err_sys(e, errno, "open '%s'", p->disk_path);
	if (disk_has_file(dir_fd)) {
		if (disk_grow_file(dir_fd, limit_bytes, e) < 0)
			return -1;
		return mount_disk(p, dir_fd, e);
	}
	switch (disk_find_way(dir_fd, &why)) {
	case DISK_QUOTA:
		return disk_set_quota(dir_fd, project_of(n), limit_bytes, e);
	case DISK_FILE:
		if (disk_make_file(dir_fd, limit_bytes, e) < 0)
			return -1;
		return mount_disk(p, dir_fd, e);
	case DISK_NONE:
		break;
	}
	return err_set(e, ERR_UNSUPPORTED, "%s (leave it out, or use run, whose disk is memory)",
		       why);
}

static char *find_disk(const struct ak *ak, const struct named *n, struct err *e)
{
	char disk[NAMEDDISK_NAME_MAX_BYTES];
	cleanup_free char *all = NULL;

	nameddisk_format(n->disk_number, disk);
	if (statedir_path(ak, NAMED_DIR, &all, e) < 0)
		return NULL;
	return mem_format("%s/%s/%s", all, n->name, disk);
}

int rootplan_change_disk(const struct ak *ak, const struct named *n, uint64_t limit_bytes,
			 struct err *e)
{
	cleanup_free char *path = find_disk(ak, n, e);
	cleanup_fd int dir_fd = -1;
	uint64_t bytes = 0;

	if (!path)
		return -1;
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (!disk_has_file(dir_fd)) {
		const char *why = NULL;

		/* the image file is created at the first start */
		return disk_find_way(dir_fd, &why) == DISK_QUOTA
			       ? disk_set_quota(dir_fd, project_of(n), limit_bytes, e)
			       : ROOTPLAN_AT_NEXT_START;
	}
	if (disk_get_file_bytes(dir_fd, &bytes, e) < 0)
		return -1;
	if (limit_bytes < bytes) {
		char amount[PARSE_FORMAT_MAX_BYTES];

		return err_set(e, ERR_INVALID, "a disk can grow, not shrink: it has %s",
			       parse_format_bytes(bytes, amount));
	}
	return ROOTPLAN_AT_NEXT_START;
}

static void name_checkpoints(struct rootplan *p, char *const *layers)
{
	cleanup_buf struct buf names;

	buf_init(&names, LOWER_MAX_BYTES);
	for (unsigned i = 0; layers[i]; i++)
		buf_addf(&names, "%s%s", i ? ":" : "", layers[i]);
	p->checkpoints = mem_dup(buf_text(&names));
	p->root.checkpoints = p->checkpoints;
}

int rootplan_open(struct rootplan *p, const struct ak *ak, const struct named *n,
		  const struct policy *policy, const struct images *image, struct err *e)
{
	p->disk_path = find_disk(ak, n, e);
	if (!p->disk_path || statedir_path(ak, LAYERSTORE_DIR, &p->layers_path, e) < 0)
		return -1;
	if (describe(&p->root.dirs[ROOTSPEC_DISK], p->disk_path, e) < 0)
		return -1;
	p->disk_fd = open(p->disk_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->disk_fd < 0)
		return err_sys(e, errno, "open '%s'", p->disk_path);
	if (n->has_disk_limit && limit_disk(p, n, policy->disk_bytes, e) < 0)
		return err_wrap(e, "--disk");
	if (image) {
		p->root.layers = image->root.layers;
		p->root.dirs[ROOTSPEC_LAYERS] = image->root.dirs[ROOTSPEC_LAYERS];
		p->root.dirs[ROOTSPEC_LAYERS].tree_fd = -1;
	}
	if (!n->layers || !n->layers[0])
		return 0;
	name_checkpoints(p, n->layers);
	return describe(&p->root.dirs[ROOTSPEC_CHECKPOINTS], p->layers_path, e);
}
