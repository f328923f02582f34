/*
 * logshare - limits how much of the network log one sandbox may fill; see logshare.h.
 *
 * Hostile input: the memory, if an earlier gate was taken over. Every gate sets the rates and sizes
 * again and limits the levels to the size, so the worst case is a full share.
 */
#include "net/logshare.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int logshare_create(int *ret_fd, struct err *e)
{
	cleanup_fd int fd = memfd_create("agentkernel-logshare", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const uint64_t now_ms = clock_now_ms();
	struct logshare *s;

	if (fd < 0 || ftruncate(fd, sizeof(*s)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_sys(e, errno, "create the memory for a share of the network log");
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return err_sys(e, errno, "map the memory for a share of the network log");
	for (unsigned i = 0; i < LOGSHARE_KINDS; i++) {
		throttle_init(&s->parts[i].first, LOGSHARE_BYTES_PER_S, LOGSHARE_FIRST_BYTES,
			      now_ms);
		throttle_init(&s->parts[i].counts, LOGSHARE_BYTES_PER_S, LOGSHARE_COUNT_BYTES,
			      now_ms);
	}
	(void)munmap(s, sizeof(*s));
	*ret_fd = take_fd(&fd);
	return 0;
}

static void set_sizes(struct throttle *t, uint64_t burst)
{
	t->rate_per_s = LOGSHARE_BYTES_PER_S;
	t->burst = burst;
	if (t->level_milli > burst * 1000)
		t->level_milli = burst * 1000;
}

struct logshare *logshare_open(int fd)
{
	cleanup_fd int own_fd = -1;
	struct logshare *s = MAP_FAILED;
	struct err ignored;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(*s))
		fd = logshare_create(&own_fd, &ignored) < 0 ? -1 : own_fd;
	if (fd >= 0)
		s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return NULL;
	for (unsigned i = 0; i < LOGSHARE_KINDS; i++) {
		set_sizes(&s->parts[i].first, LOGSHARE_FIRST_BYTES);
		set_sizes(&s->parts[i].counts, LOGSHARE_COUNT_BYTES);
	}
	return s;
}

void logshare_close(struct logshare *s)
{
	if (s)
		(void)munmap(s, sizeof(*s));
}
