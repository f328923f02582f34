/* loopback - a working "localhost"; see loopback.h. */
#include "host/loopback.h"

#include "base/cleanup.h"

#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int loopback_up(struct err *e)
{
	cleanup_fd int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (socket_fd < 0)
		return err_sys(e, errno, "open a socket for the loopback interface");
	if (ioctl(socket_fd, SIOCSIFFLAGS, &request) < 0)
		return err_sys(e, errno, "bring up the loopback interface");
	return 0;
}
