/*
 * gatemessage - what a supervisor tells a gate; see gatemessage.h.
 *
 * Hostile input: none expected, because the supervisor is trusted. Everything is checked anyway: a
 * gate that misreads a message would apply rules that nobody set.
 */
#include "net/gatemessage.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define TEXT_MAX_BYTES 48u
#define RULES "rules "       /* followed by a rate */
#define LISTEN "listen "     /* followed by a number and a port */
#define UNLISTEN "unlisten " /* followed by a number */
#define DESCRIPTORS_MAX 4u   /* room to notice too many; the kernel closes further ones */
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

void gatemessage_init(struct gatemessage *m)
{
	*m = (struct gatemessage){ .kind = GATEMESSAGE_NONE, .listen_fd = -1 };
}

void gatemessage_done(struct gatemessage *m)
{
	egress_done(&m->egress);
	cleanup_closep(&m->listen_fd);
}

/* ---- the rules ---- */

int gatemessage_write(const struct egress *g, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = memfd_create("agentkernel-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cleanup_buf struct buf text;
	int r;

	buf_init(&text, EGRESS_TEXT_MAX_BYTES);
	egress_save(g, &text);
	if (text.is_cut)
		return err_set(e, ERR_LIMIT, "the network rules are too long");
	r = fd < 0 ? -errno : file_write_all(fd, text.bytes, text.len);
	if (r < 0)
		return err_sys(e, -r, "write down the network rules");
	/* sealed: a compromised gate must not choose the rules of the next one */
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_sys(e, errno, "seal the network rules");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Uses pread(), because other holders of the descriptor share its offset. */
int gatemessage_read(int fd, struct egress *ret, struct err *e)
{
	cleanup_buf struct buf text;
	char part[4096];
	int seals = fcntl(fd, F_GET_SEALS);
	ssize_t n;
	off_t at = 0;

	buf_init(&text, EGRESS_TEXT_MAX_BYTES);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return err_set(e, ERR_CORRUPT, "the network rules are not in sealed memory");
	while (!text.is_cut && (n = pread(fd, part, sizeof(part), at)) != 0) {
		if (n < 0)
			return err_sys(e, errno, "read the network rules");
		buf_add(&text, part, (size_t)n);
		at += n;
	}
	if (text.is_cut || strlen(buf_text(&text)) != text.len)
		return err_set(e, ERR_CORRUPT, "the network rules are damaged");
	return egress_load(buf_text(&text), ret, e);
}

/* ---- the message ---- */

static int send_text(int socket_fd, const char *text, int fd)
{
	union control control = { 0 };
	struct iovec data = { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
	}
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int gatemessage_send(int socket_fd, int rules_fd, uint64_t bandwidth_bytes_per_s)
{
	char text[TEXT_MAX_BYTES];

	(void)snprintf(text, sizeof(text), RULES "%" PRIu64, bandwidth_bytes_per_s);
	return send_text(socket_fd, text, rules_fd);
}

int gatemessage_send_listen(int socket_fd, uint32_t number, uint16_t inner, int listen_fd)
{
	char text[TEXT_MAX_BYTES];

	(void)snprintf(text, sizeof(text), LISTEN "%" PRIu32 " %u", number, inner);
	return send_text(socket_fd, text, listen_fd);
}

int gatemessage_send_unlisten(int socket_fd, uint32_t number)
{
	char text[TEXT_MAX_BYTES];

	(void)snprintf(text, sizeof(text), UNLISTEN "%" PRIu32, number);
	return send_text(socket_fd, text, -1);
}

/* Receives all descriptors, keeps the first and closes the others. Returns their number. */
static unsigned take_descriptors(struct msghdr *message, int *ret_fd)
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (count++ == 0)
				*ret_fd = fd;
			else
				(void)close(fd);
		}
	}
	return count;
}

static int invalid(struct err *e)
{
	return err_set(e, ERR_CORRUPT, "the supervisor sent an invalid message");
}

static int read_rules(const char *words, int rules_fd, struct gatemessage *ret, struct err *e)
{
	ret->kind = GATEMESSAGE_RULES;
	if (parse_count(words, 0, GATEMESSAGE_RATE_MAX_BYTES_PER_S, &ret->bandwidth_bytes_per_s,
			e) < 0)
		return invalid(e);
	return gatemessage_read(rules_fd, &ret->egress, e);
}

static int read_number(const char *word, struct gatemessage *ret, struct err *e)
{
	uint64_t number = 0;

	if (parse_count(word, 0, UINT32_MAX, &number, e) < 0)
		return invalid(e);
	ret->number = (uint32_t)number;
	return 0;
}

static int read_listen(char *words, int *fd, struct gatemessage *ret, struct err *e)
{
	char *port = strchr(words, ' ');
	uint64_t inner = 0;

	if (!port)
		return invalid(e);
	*port++ = '\0';
	if (read_number(words, ret, e) < 0 || parse_count(port, 1, UINT16_MAX, &inner, e) < 0)
		return invalid(e);
	ret->kind = GATEMESSAGE_LISTEN;
	ret->inner = (uint16_t)inner;
	ret->listen_fd = take_fd(fd);
	return 0;
}

static int read_text(char *text, unsigned fd_count, int *fd, struct gatemessage *ret, struct err *e)
{
	if (strncmp(text, RULES, sizeof(RULES) - 1) == 0 && fd_count == 1)
		return read_rules(text + sizeof(RULES) - 1, *fd, ret, e);
	if (strncmp(text, LISTEN, sizeof(LISTEN) - 1) == 0 && fd_count == 1)
		return read_listen(text + sizeof(LISTEN) - 1, fd, ret, e);
	if (strncmp(text, UNLISTEN, sizeof(UNLISTEN) - 1) == 0 && fd_count == 0) {
		ret->kind = GATEMESSAGE_UNLISTEN;
		return read_number(text + sizeof(UNLISTEN) - 1, ret, e);
	}
	return invalid(e);
}

int gatemessage_receive(int socket_fd, struct gatemessage *ret, struct err *e)
{
	union control control = { 0 };
	char text[TEXT_MAX_BYTES];
	struct iovec data = { .iov_base = text, .iov_len = sizeof(text) - 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	cleanup_fd int fd = -1;
	ssize_t n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned count;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		ret->kind = GATEMESSAGE_END;
		return 0;
	}
	count = take_descriptors(&message, &fd);
	text[n] = '\0';
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || strlen(text) != (size_t)n)
		return invalid(e);
	return read_text(text, count, &fd, ret, e);
}
