/* etchide - a layer of whiteouts over the host's /etc; see etchide.h. */
#include "host/etchide.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "policy/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Names that the sandbox never takes from the host, because it writes its own file or none. */
static const char *const own_names[] = {
	"passwd",     "group",         "hosts", "hostname",
	"machine-id", "nsswitch.conf", "mtab",  "resolv.conf",
};

bool etchide_is_own(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(own_names); i++)
		if (strcmp(name, own_names[i]) == 0)
			return true;
	return false;
}

/*
 * Creates a whiteout in layer_fd for /etc/name, also if that does not exist yet. Parent directories
 * are created and merge with the host's; if a parent is not a directory on the host, there is
 * nothing to hide.
 */
static int hide(int host_etc_fd, int layer_fd, const char *name, struct err *e)
{
	char part[PATH_MAX];
	struct stat st;

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		if ((size_t)snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name) >=
		    sizeof(part))
			return err_set(e, ERR_LIMIT, "a name in /etc is too long");
		if (fstatat(host_etc_fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			return 0;
		if (mkdirat(layer_fd, part, 0755) == 0 || errno == EEXIST)
			continue;
		return errno == ENOTDIR ? 0 : err_sys(e, errno, "hide /etc/%s", name);
	}
	/* EEXIST: hidden already; ENOTDIR: a parent is hidden */
	if (mknodat(layer_fd, name, S_IFCHR, makedev(0, 0)) == 0 || errno == EEXIST ||
	    errno == ENOTDIR)
		return 0;
	return err_sys(e, errno, "hide /etc/%s", name);
}

int etchide_open(int *ret_fd, struct err *e)
{
	int fd = openat(AT_FDCWD, "/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "open /etc");
	*ret_fd = fd;
	return 0;
}

int etchide_make_layer(int layer_fd, char *const *etc_private, struct err *e)
{
	cleanup_fd int host_etc_fd = -1;

	if (!wall_stands(WALL_ETC_HIDDEN))
		return 0;
	if (etchide_open(&host_etc_fd, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(own_names); i++)
		if (hide(host_etc_fd, layer_fd, own_names[i], e) < 0)
			return -1;
	for (size_t i = 0; i < credential_etc_count; i++)
		if (hide(host_etc_fd, layer_fd, credential_etc[i], e) < 0)
			return -1;
	for (char *const *name = etc_private; name && *name; name++)
		if (hide(host_etc_fd, layer_fd, *name, e) < 0)
			return -1;
	return 0;
}
