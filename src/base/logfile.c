/* logfile - log lines for an operator in a bounded file; see logfile.h. */
#include "base/logfile.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/shown.h"
#include "base/timestamp.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void logfile_init(struct logfile *l, int dir_fd, const char *name)
{
	*l = (struct logfile){ .dir_fd = dir_fd, .name = name, .fd = -1 };
}

void logfile_done(struct logfile *l)
{
	cleanup_closep(&l->fd);
}

/* Another process that shares the file may have renamed it: then the name has another inode. */
static int open_current(struct logfile *l)
{
	cleanup_free char *old = mem_format("%s.1", l->name);
	struct stat named, open_file;

	if (l->fd >= 0 && (fstatat(l->dir_fd, l->name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
			   fstat(l->fd, &open_file) < 0 || named.st_ino != open_file.st_ino))
		cleanup_closep(&l->fd);
	if (l->fd >= 0 && open_file.st_size >= (off_t)LOGFILE_MAX_BYTES) {
		(void)renameat(l->dir_fd, l->name, l->dir_fd, old);
		cleanup_closep(&l->fd);
	}
	if (l->fd < 0)
		l->fd = openat(l->dir_fd, l->name,
			       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			       0600);
	return l->fd;
}

void logfile_say(struct logfile *l, const char *format, ...)
{
	char time[TIMESTAMP_TEXT_MAX_BYTES], lost[48] = "";
	char words[LOGFILE_LINE_MAX_BYTES], line[LOGFILE_LINE_MAX_BYTES + 128];
	va_list args;
	int len;

	if (l->dir_fd < 0)
		return;
	va_start(args, format);
	(void)vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	shown_replace(words);
	if (l->lost)
		(void)snprintf(lost, sizeof(lost), " (%u lines before it were lost)", l->lost);
	len = snprintf(line, sizeof(line), "%s [%d] %s%s\n",
		       timestamp_format(timestamp_now_ms(), time), (int)getpid(), words, lost);
	if (open_current(l) >= 0 && write(l->fd, line, (size_t)len) == len)
		l->lost = 0;
	else
		l->lost++;
}
