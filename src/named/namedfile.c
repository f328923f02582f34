/*
 * namedfile - writes files of a sandbox's directory; see namedfile.h.
 */
#include "named/namedfile.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RULES_FILE "rules" /* the network rules before the first change */
#define NOTICES_FILE "notices"
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/*
 * Exchanges the file with its successor, for files that need not survive a power cut: a rename over
 * an existing file makes ext4 flush the new one at once, and the caller would wait for that.
 */
static int swap_files(int dir_fd, const char *temporary, const char *name)
{
	if (syscall(SYS_renameat2, dir_fd, temporary, dir_fd, name, RENAME_EXCHANGE) < 0)
		return renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
	(void)unlinkat(dir_fd, temporary, 0);
	return 0;
}

bool namedfile_is_full(int sys)
{
	return sys == ENOSPC || sys == EDQUOT;
}

/* Writes the file completely or not at all, also on a full disk. */
int namedfile_replace(int dir_fd, const char *name, const struct buf *bytes, unsigned flags,
		      struct err *e)
{
	cleanup_free char *temporary = mem_format(".%s.new", name);
	cleanup_fd int fd = -1;
	int r;

	if (bytes->is_cut)
		return err_set(e, ERR_LIMIT, "'%s' is too long", name);
	(void)unlinkat(dir_fd, temporary, 0); /* left by a killed process; we hold the lock */
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, errno, "write '%s'", name);
	r = file_write_all(fd, bytes->bytes, bytes->len);
	if (r == 0 && flags & NAMEDFILE_SWAP)
		r = swap_files(dir_fd, temporary, name);
	else if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, temporary, 0);
		return err_sys(e, -r, "write '%s'", name);
	}
	return 0;
}

int namedfile_save_notices(const struct named *n, const struct buf *texts, struct err *e)
{
	return namedfile_replace(n->dir_fd, NOTICES_FILE, texts, 0, e);
}

void namedfile_take_notices(const struct named *n, char ***ret)
{
	cleanup_free char *texts = NULL;
	size_t len = 0;

	if (file_read_at(n->dir_fd, NOTICES_FILE, NAMEDFILE_NOTICES_MAX_BYTES, &texts, &len) < 0)
		return;
	(void)unlinkat(n->dir_fd, NOTICES_FILE, 0);
	for (size_t at = 0; at < len; at += strlen(texts + at) + 1)
		(void)keyrows_list_add(ret, texts + at);
}

int namedfile_keep_rules(const struct named *n, const struct egress *rules, struct err *e)
{
	cleanup_buf struct buf text;

	buf_init(&text, EGRESS_TEXT_MAX_BYTES);
	if (faccessat(n->dir_fd, RULES_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	egress_save(rules, &text);
	return namedfile_replace(n->dir_fd, RULES_FILE, &text, 0, e);
}

int namedfile_restore_rules(const struct named *n, struct egress *rules, struct err *e)
{
	cleanup_free char *text = NULL;
	struct egress kept = { 0 };
	size_t len = 0;
	int r = file_read_at(n->dir_fd, RULES_FILE, EGRESS_TEXT_MAX_BYTES, &text, &len);

	if (r == -ENOENT)
		return 0; /* the rules were never changed */
	if (r < 0)
		return err_sys(e, -r, "read the network rules of sandbox '%s'", n->name);
	if (egress_load(text, &kept, e) < 0)
		return err_wrap(e, "sandbox '%s'", n->name);
	egress_done(rules);
	*rules = kept;
	return 0;
}
