/*
 * agentuse - counts the users of an agent's sandbox; see agentuse.h.
 *
 * Two bytes of the file are locked: the first, exclusively, by a process that begins or ends; the
 * second, shared, by all users.
 */
#include "agents/agentuse.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define LOCKS_DIR "agents"

enum byte { BYTE_CHANGE, BYTE_USE };

void agentuse_init(struct agentuse *u)
{
	u->fd = -1;
}

void agentuse_done(struct agentuse *u)
{
	cleanup_closep(&u->fd);
}

static int lock(const struct agentuse *u, enum byte byte, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	while (fcntl(u->fd, F_OFD_SETLKW, &l) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int agentuse_begin(struct agentuse *u, const struct ak *ak, const char *name, struct err *e)
{
	cleanup_free char *dir = NULL;
	cleanup_free char *path = NULL;
	int r;

	if (statedir_make_path(ak, LOCKS_DIR, &dir, e) < 0)
		return -1;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", dir);
	path = mem_format("%s/%s", dir, name);
	u->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (u->fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	r = lock(u, BYTE_CHANGE, F_WRLCK);
	return r < 0 ? err_sys(e, -r, "lock '%s'", path) : 0;
}

void agentuse_began(struct agentuse *u)
{
	(void)lock(u, BYTE_USE, F_RDLCK); /* only read locks there, so no waiting */
	(void)lock(u, BYTE_CHANGE, F_UNLCK);
}

bool agentuse_end(struct agentuse *u)
{
	struct flock others = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = BYTE_USE, .l_len = 1
	};

	if (lock(u, BYTE_CHANGE, F_WRLCK) < 0)
		return false;
	return fcntl(u->fd, F_OFD_GETLK, &others) == 0 && others.l_type == F_UNLCK;
}
