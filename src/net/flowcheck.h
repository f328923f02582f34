#pragma once
/*
 * flowcheck - checks the bytes of a connection's client before they are forwarded.
 *
 * The client's bytes are held until sniff releases them. Every host that they name is checked
 * against the rules as a connection to it would be, and remembered for rule changes. A refusal is
 * sent in the client's protocol if possible.
 *
 * Functions that return bool return false if the flow was freed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow;

#define FLOWCHECK_HELD_MAX_S 30u             /* for the first bytes to become complete */
#define FLOWCHECK_HELD_MAX_BYTES (16u << 20) /* of all flows; above, incomplete ones are refused   \
					      */
#define FLOWCHECK_TUNNELS_MAX 8u             /* CONNECT within CONNECT on one connection */
#define FLOWCHECK_READ_BYTES (16u << 10)     /* per read while bytes are inspected */

void flowcheck_init(struct flow *c);
size_t flowcheck_get_held_max(void); /* of one flow, in bytes */

bool flowcheck_on_client(struct flow *c, const uint8_t *bytes, size_t len);
bool flowcheck_on_server(struct flow *c, const uint8_t *bytes, size_t len);
bool flowcheck_on_client_end(struct flow *c);

/* After new rules: are all hosts that the client asked for still allowed? */
bool flowcheck_judge(struct flow *c);

/* Tells the client and logs the refusal; the caller closes the flow. */
void flowcheck_refuse(struct flow *c, const char *problem);
