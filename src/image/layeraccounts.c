/* layeraccounts - passwd and group in layers; see layeraccounts.h. */
#include "image/layeraccounts.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "policy/account.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

/* Reads one of the image's own files in one layer, following no link. Returns -errno. */
static int read_in_layer(int layer_fd, const char *path, char **ret)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	cleanup_fd int fd = (int)syscall(SYS_openat2, layer_fd, path, &how, sizeof(how));
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len = 0;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	r = file_read_fd(fd, ACCOUNT_FILE_MAX_BYTES, &text, &len);
	if (r < 0)
		return r;
	if (strlen(text) != len)
		return -EINVAL;
	*ret = take_ptr(text);
	return 0;
}

static bool hides_below(int layer_fd, const char *dir)
{
	char path[32], value;
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", layer_fd, dir);
	if (fstatat(layer_fd, dir, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return !S_ISDIR(st.st_mode) ||
	       lgetxattr(path, "user.overlay.opaque", &value, sizeof(value)) > 0;
}

static bool is_opaque(int layer_fd)
{
	char value;

	return fgetxattr(layer_fd, "user.overlay.opaque", &value, sizeof(value)) > 0;
}

/*
 * A whiteout, a link or anything but a plain file ends the search: then there is no such file for
 * us.
 */
char *layeraccounts_read(int layers_fd, const char *const *names, unsigned count, const char *path)
{
	for (unsigned n = 0; n < count; n++) {
		cleanup_fd int fd = openat(layers_fd, names[n],
					   O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		char *text = NULL;
		int r;

		if (fd < 0)
			break;
		r = read_in_layer(fd, path, &text);
		if (r == 0)
			return text;
		if (r != -ENOENT || hides_below(fd, "etc") || is_opaque(fd))
			break;
	}
	return mem_dup("");
}
