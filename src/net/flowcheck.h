#pragma once
/*
 * flowcheck - what the client of a connection says, looked at before it goes on.
 *
 * The client's bytes are held back for as long as sniff has not released them. Every host that they
 * name is judged by the rules as a connection to it would be, and remembered for when the rules
 * change. What is refused is refused in the words of its protocol where that can be done.
 *
 * Functions that return bool: false, the flow is gone.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow;

#define FLOWCHECK_HELD_MAX_S 30u             /* for the first bytes to become whole */
#define FLOWCHECK_HELD_MAX_BYTES (16u << 20) /* of all; beyond, what is not whole is refused */
#define FLOWCHECK_TUNNELS_MAX 8u             /* CONNECT within CONNECT on one connection */
#define FLOWCHECK_READ_BYTES (16u << 10)     /* at once while bytes are looked at */

void flowcheck_init(struct flow *c);
size_t flowcheck_get_held_max(void); /* of one flow, in bytes */

bool flowcheck_on_client(struct flow *c, const uint8_t *bytes, size_t len);
bool flowcheck_on_server(struct flow *c, const uint8_t *bytes, size_t len);
bool flowcheck_on_client_end(struct flow *c);

/* The rules are new: may it still ask for whom it has asked? */
bool flowcheck_judge(struct flow *c);

/* Tells the client and the journal; closing is left to the caller. */
void flowcheck_refuse(struct flow *c, const char *problem);
