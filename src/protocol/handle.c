/* handle - a sandbox that runs, as its supervisor holds it; see handle.h. */
#include "protocol/handle.h"

void handle_init(struct handle *h)
{
	*h = (struct handle){
		.pid_fd = -1,
		.report_fd = -1,
		.lifeline_fd = -1,
		.tty_master_fd = -1,
		.dial_fd = -1,
		.orders_fd = -1,
		.root_fd = -1,
		.userns_fd = -1,
		.mntns_fd = -1,
	};
}

void handle_close(struct handle *h)
{
	cleanup_closep(&h->report_fd);
	cleanup_closep(&h->lifeline_fd);
	cleanup_closep(&h->tty_master_fd);
	cleanup_closep(&h->dial_fd);
	cleanup_closep(&h->orders_fd);
	cleanup_closep(&h->root_fd);
	cleanup_closep(&h->userns_fd);
	cleanup_closep(&h->mntns_fd);
	for (unsigned i = 0; i < h->socket_count; i++)
		cleanup_closep(&h->sockets[i]);
	h->pid = 0;
}
