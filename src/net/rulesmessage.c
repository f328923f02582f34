/*
 * rulesmessage - sends network rules from a supervisor to a gate; see rulesmessage.h.
 *
 * Hostile input: none expected, because the supervisor is trusted. Everything is checked anyway: a
 * gate that misreads a message would apply rules that nobody set.
 */
#include "net/rulesmessage.h"

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

#define TEXT_MAX_BYTES 32u
#define DESCRIPTORS_MAX 4u /* room to notice too many; the kernel closes further ones */
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

void rulesmessage_done(struct rulesmessage *o)
{
	egress_done(&o->egress);
}

/* ---- the rules ---- */

int rulesmessage_write(const struct egress *g, int *ret_fd, struct err *e)
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
int rulesmessage_read(int fd, struct egress *ret, struct err *e)
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

int rulesmessage_send(int socket_fd, int rules_fd, uint64_t bandwidth_bytes_per_s)
{
	union control control = { 0 };
	char text[TEXT_MAX_BYTES];
	struct iovec data = { .iov_base = text };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_SPACE(sizeof(int)),
	};

	data.iov_len = (size_t)snprintf(text, sizeof(text), RULESMESSAGE_RULES "%" PRIu64,
					bandwidth_bytes_per_s);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &rules_fd, sizeof(int));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
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

static int read_ruling(const char *text, size_t len, int rules_fd, struct rulesmessage *ret,
		       struct err *e)
{
	size_t word_len = strlen(RULESMESSAGE_RULES);
	struct err ignored;

	if (strlen(text) != len || strncmp(text, RULESMESSAGE_RULES, word_len) != 0 ||
	    parse_count(text + word_len, 0, RULESMESSAGE_RATE_MAX_BYTES_PER_S,
			&ret->bandwidth_bytes_per_s, &ignored) < 0)
		return err_set(e, ERR_CORRUPT, "the supervisor sent an invalid order");
	return rulesmessage_read(rules_fd, &ret->egress, e);
}

int rulesmessage_receive(int socket_fd, enum rulesmessage_kind *ret_kind, struct rulesmessage *ret,
			 struct err *e)
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
	cleanup_fd int rules_fd = -1;
	ssize_t n = recvmsg(socket_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned count;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		*ret_kind = RULESMESSAGE_NONE;
		return 0;
	}
	if (n <= 0) {
		*ret_kind = RULESMESSAGE_END;
		return 0;
	}
	count = take_descriptors(&message, &rules_fd);
	text[n] = '\0';
	if (count != 1 || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return err_set(e, ERR_CORRUPT, "the supervisor sent an invalid order");
	*ret_kind = RULESMESSAGE_NEW;
	return read_ruling(text, (size_t)n, rules_fd, ret, e);
}
