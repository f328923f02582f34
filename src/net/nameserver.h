#pragma once
/*
 * nameserver - answers every DNS query of the sandbox, wherever it was sent.
 *
 * A name that no rule can allow does not exist (NXDOMAIN), and nobody outside hears of it. An
 * allowed name is looked up, so that "does not exist" stays true, and then gets a synthetic
 * address: a connection to that is a connection to exactly this name. TXT, MX and SRV records are
 * looked up and told as net/dnsrecord understood them; whoever they name is still judged when it is
 * connected to. There are no IPv6 addresses and no other records: programs go on with what there is.
 */
#include <stdbool.h>

struct gate;
struct nameserver;

#define NAMESERVER_WAITING_MAX 512u /* queries at one time; further ones get no answer */
#define NAMESERVER_STREAMS_MAX 64u  /* connections for queries over TCP */
#define NAMESERVER_STREAM_IDLE_S 15u

/* Sockets are borrowed; -1: none. */
struct nameserver *nameserver_new(struct gate *g, int v4_fd, int v6_fd);
bool nameserver_is_idle(struct nameserver *n); /* and nobody asked since the last time */
void nameserver_free(struct nameserver *n);

/* Reads no more queries, or goes on. What is pending is answered meanwhile. */
void nameserver_pause(struct nameserver *n, bool is_paused);

void nameserver_judge_all(struct nameserver *n); /* the rules are new */

/* A connection to port 53; takes fd. */
void nameserver_take_stream(struct nameserver *n, int fd);
