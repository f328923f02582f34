/* stageroot - mounts a stage's root; see stageroot.h. */
#include "build/stageroot.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPTIONS_MAX_BYTES 4096 /* the kernel takes one page */

int stageroot_enter(const struct stageroot *s, struct err *e)
{
	struct stat here, known;

	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(e, errno, "leave the mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, errno, "make the mounts private");
	if (chdir(s->layers_path) < 0 || stat(".", &here) < 0 || fstat(s->layers_fd, &known) < 0)
		return err_sys(e, errno, "enter '%s'", s->layers_path);
	if (here.st_dev != known.st_dev || here.st_ino != known.st_ino)
		return err_set(e, ERR_BUSY, "'%s' was replaced during the build", s->layers_path);
	return 0;
}

/* The overlay's root is the upper directory, so that gets the highest layer's attributes. */
static int make_upper(const struct stageroot *s, struct err *e)
{
	cleanup_free char *upper = mem_format("%s/upper", s->work);
	cleanup_free char *work = mem_format("%s/work", s->work);
	cleanup_free char *highest = mem_dup_bytes(s->lower, strcspn(s->lower, ":"));
	struct stat st;

	if (mkdir(work, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "prepare a layer");
	if (mkdir(upper, 0755) < 0)
		return errno == EEXIST ? 0 : err_sys(e, errno, "prepare a layer");
	if (stat(highest, &st) < 0)
		return err_sys(e, errno, "look at the root of a layer");
	if (chown(upper, st.st_uid, st.st_gid) < 0 && errno != EINVAL && errno != EPERM)
		return err_sys(e, errno, "give the root of a layer to its owner");
	if (chmod(upper, st.st_mode & 07777) < 0)
		return err_sys(e, errno, "set the mode of a layer's root");
	return 0;
}

static int mount_at(const char *place, const char *options, unsigned long flags, int *ret_fd,
		    struct err *e)
{
	int fd;

	if (mkdir(place, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "prepare a stage's root");
	if (mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV | flags, options) < 0)
		return err_sys(e, errno, "mount a stage's layers");
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open a stage's root");
	*ret_fd = fd;
	return 0;
}

int stageroot_mount(const struct stageroot *s, int *ret_fd, struct err *e)
{
	cleanup_free char *place = mem_format("%s/root", s->work);
	char options[OPTIONS_MAX_BYTES];

	if (make_upper(s, e) < 0)
		return -1;
	if (snprintf(options, sizeof(options),
		     "index=off,userxattr,lowerdir=%s,upperdir=%s/upper,workdir=%s/work", s->lower,
		     s->work, s->work) >= (int)sizeof(options))
		return err_set(e, ERR_LIMIT, "the stage has more layers than a mount can name");
	return mount_at(place, options, 0, ret_fd, e);
}

/* Overlay wants two layers where there is none on top. */
int stageroot_mount_lower(const struct stageroot *s, const char *lower, int *ret_fd, struct err *e)
{
	cleanup_free char *place = mem_format("%s/from", s->work);
	cleanup_free char *empty = mem_format("%s/nothing", s->work);
	char options[OPTIONS_MAX_BYTES];

	if (mkdir(empty, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "prepare a stage's root");
	if (snprintf(options, sizeof(options), "index=off,userxattr,lowerdir=%s:%s", lower,
		     empty) >= (int)sizeof(options))
		return err_set(e, ERR_LIMIT, "the stage has more layers than a mount can name");
	return mount_at(place, options, MS_RDONLY, ret_fd, e);
}
