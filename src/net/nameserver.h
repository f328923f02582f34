#pragma once
/*
 * nameserver - answers every DNS query of the sandbox, whatever server it was sent to.
 *
 * A name that no rule can allow does not exist (NXDOMAIN), and no query for it leaves the host. An
 * allowed name is resolved, so that "does not exist" is still reported, and then gets a synthetic
 * address: a connection to it is a connection to exactly this name. TXT, MX and SRV records are
 * looked up and returned as parsed by net/dnsrecord; connections to the hosts in them are still
 * checked. There are no IPv6 addresses and no other records: programs do without.
 */
#include <stdbool.h>

struct gate;
struct nameserver;

#define NAMESERVER_WAITING_MAX 512u /* pending queries; further ones get no answer */
#define NAMESERVER_STREAMS_MAX 64u  /* TCP connections with queries */
#define NAMESERVER_STREAM_IDLE_S 15u

/* Borrows the sockets; -1: none. */
struct nameserver *nameserver_new(struct gate *g, int v4_fd, int v6_fd);
bool nameserver_is_idle(struct nameserver *n); /* nothing pending, no query since the last call */
void nameserver_free(struct nameserver *n);

/* Stops reading queries, or continues. Pending ones are still answered. */
void nameserver_pause(struct nameserver *n, bool is_paused);

void nameserver_judge_all(struct nameserver *n); /* after new rules */

/* A connection to port 53; takes ownership of fd. */
void nameserver_take_stream(struct nameserver *n, int fd);
