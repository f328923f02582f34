#pragma once
/*
 * plan - the addresses of a sandbox's network, the same in every sandbox.
 *
 * 198.18.0.0/15 is reserved for benchmarks and never routed on the internet, so a synthetic address
 * cannot be mistaken for a real one. The first few are reserved: the one in resolv.conf and the
 * sandbox's own.
 */

#define PLAN_V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

#define PLAN_SYNTHETIC_BASE PLAN_V4(198, 18, 0, 0)
#define PLAN_SYNTHETIC_PREFIX_BITS 15
#define PLAN_SYNTHETIC_FIRST PLAN_V4(198, 18, 1, 0)

/* The name server; any other address would work too, because every query ends at the gate. */
#define PLAN_RESOLV_CONF "nameserver 198.18.0.1\noptions edns0\n"

/* The sandbox's own address, on loopback: the source of its connections. */
#define PLAN_OWN_V4 PLAN_V4(198, 18, 0, 2)
#define PLAN_OWN_V6                                                                                \
	{                                                                                          \
		0xfd, 0x61, 0x6b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2                            \
	}

#define PLAN_GATE_PORT 1 /* tcpmux: no other program uses this port */
#define PLAN_DNS_PORT 53

/* For connections within one machine: no packet is lost there, and pacing only adds delay. */
#define PLAN_CONGESTION "reno"
