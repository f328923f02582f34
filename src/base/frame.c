/*
 * frame - messages between our own processes; see frame.h.
 *
 * Hostile input: any process that may connect to the socket. Lengths are checked before allocation,
 * unexpected descriptors are closed.
 */
#include "base/frame.h"

#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MAGIC 0x6b666b61u                     /* "akfk" */
#define INLINE_MAX_BYTES (64u << 10)          /* of a body in the message itself */
#define SENT_MAX (FRAME_DESCRIPTORS_MAX + 1u) /* plus the memory file */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct header {
	uint32_t magic;
	uint16_t version;
	uint16_t is_in_file;
	uint32_t kind;
	uint32_t len;
};

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(SENT_MAX * sizeof(int))];
};

static int open_file(const void *body, size_t len)
{
	cleanup_fd int fd = memfd_create("agentkernel-frame", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : file_write_all(fd, body, len);

	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	return take_fd(&fd);
}

static int send_message(int socket_fd, const struct header *h, const void *body, size_t len,
			const int *fds, unsigned fd_count, enum frame_flags flags)
{
	union control control = { 0 };
	struct iovec parts[] = { { (void *)h, sizeof(*h) }, { (void *)body, len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = len ? 2 : 1 };

	if (fd_count > 0) {
		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	if (sendmsg(socket_fd, &message,
		    MSG_NOSIGNAL | (flags & FRAME_NO_WAIT ? MSG_DONTWAIT : 0)) < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

int frame_send(int socket_fd, uint32_t kind, const void *body, size_t len, const int *fds,
	       unsigned fd_count)
{
	struct header h = { MAGIC, (uint16_t)buildid_version(FRAME_VERSION), len > INLINE_MAX_BYTES,
			    kind, (uint32_t)len };
	cleanup_fd int file_fd = -1;
	int all[SENT_MAX];

	if (len > FRAME_BODY_MAX_BYTES || fd_count > FRAME_DESCRIPTORS_MAX)
		return -EMSGSIZE;
	if (!h.is_in_file)
		return send_message(socket_fd, &h, body, len, fds, fd_count, FRAME_WAIT);
	file_fd = open_file(body, len);
	if (file_fd < 0)
		return file_fd;
	if (fd_count > 0)
		memcpy(all, fds, fd_count * sizeof(int));
	all[fd_count] = file_fd;
	return send_message(socket_fd, &h, NULL, 0, all, fd_count + 1, FRAME_WAIT);
}

int frame_send_now(int socket_fd, uint32_t kind, const void *body, size_t len, int fd)
{
	const struct header h = { MAGIC, (uint16_t)buildid_version(FRAME_VERSION), false, kind,
				  (uint32_t)len };

	return len > INLINE_MAX_BYTES
		       ? -EMSGSIZE
		       : send_message(socket_fd, &h, body, len, &fd, fd < 0 ? 0 : 1, FRAME_NO_WAIT);
}

bool frame_may_pass(int r)
{
	return r == -EAGAIN || r == -ENOMEM || r == -ENOBUFS;
}

void frame_done(struct frame *f)
{
	for (unsigned i = 0; i < f->fd_count; i++)
		cleanup_closep(&f->fds[i]);
	f->fd_count = 0;
	free(f->bytes);
	f->bytes = NULL;
}

struct descriptors {
	int fds[SENT_MAX];
	unsigned count;
};

static void descriptors_done(struct descriptors *d)
{
	for (unsigned i = 0; i < d->count; i++)
		cleanup_closep(&d->fds[i]);
}

static void take_descriptors(struct msghdr *message, struct descriptors *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		unsigned count = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (unsigned i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (d->count < SENT_MAX)
				d->fds[d->count++] = fd;
			else
				(void)close(fd);
		}
	}
}

/* The seals guarantee that the sender cannot change the content while we read it. */
static int read_file(int fd, size_t len, char **ret)
{
	cleanup_free char *bytes = NULL;
	struct stat st;
	size_t got = 0;

	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 ||
	    st.st_size != (off_t)len)
		return -EPROTO;
	bytes = mem_alloc(len + 1);
	while (got < len) {
		ssize_t n = pread(fd, bytes + got, len - got, (off_t)got);

		if (n <= 0)
			return -EPROTO;
		got += (size_t)n;
	}
	*ret = take_ptr(bytes);
	return 0;
}

static int check_header(const struct header *h, size_t total)
{
	if (total < sizeof(*h) || h->magic != MAGIC)
		return -EPROTO;
	if (h->version != buildid_version(FRAME_VERSION))
		return -EPROTONOSUPPORT;
	if (h->len > FRAME_BODY_MAX_BYTES || h->is_in_file > 1 ||
	    total != sizeof(*h) + (h->is_in_file ? 0 : h->len))
		return -EPROTO;
	return 0;
}

static int open_frame(const struct header *h, const char *body, struct descriptors *d,
		      struct frame *ret)
{
	unsigned own_count = d->count - (h->is_in_file ? 1 : 0);
	int r;

	if ((h->is_in_file && d->count == 0) || own_count > FRAME_DESCRIPTORS_MAX)
		return -EPROTO;
	*ret = (struct frame){ .kind = h->kind, .len = h->len };
	if (h->is_in_file) {
		r = read_file(d->fds[own_count], h->len, &ret->bytes);
		if (r < 0)
			return r;
	} else {
		ret->bytes = mem_alloc((size_t)h->len + 1);
		memcpy(ret->bytes, body, h->len);
	}
	for (unsigned i = 0; i < own_count; i++)
		ret->fds[ret->fd_count++] = take_fd(&d->fds[i]);
	return 1;
}

int frame_receive(int socket_fd, enum frame_flags flags, struct frame *ret)
{
	CLEANUP(descriptors_done) struct descriptors d = { .count = 0 };
	union control control = { 0 };
	struct header h = { 0 };
	char room[INLINE_MAX_BYTES];
	struct iovec parts[] = { { &h, sizeof(h) }, { room, sizeof(room) } };
	struct msghdr message = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	bool was_reset = false;
	ssize_t n;
	int r;

	/* a peer that closed early may have sent a message, which comes after the reset */
	errno = 0;
	do {
		was_reset = errno == ECONNRESET;
		n = recvmsg(socket_fd, &message,
			    MSG_CMSG_CLOEXEC | (flags & FRAME_NO_WAIT ? MSG_DONTWAIT : 0));
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !was_reset)));
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	take_descriptors(&message, &d);
	if (n == 0)
		return 0;
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EPROTO;
	r = check_header(&h, (size_t)n);
	return r < 0 ? r : open_frame(&h, room, &d, ret);
}
