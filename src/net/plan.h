#pragma once
/*
 * plan - the addresses of a sandbox's network, the same in every sandbox.
 *
 * 198.18.0.0/15 is set aside for benchmarks and never routed on the internet, so a synthetic
 * address cannot be mistaken for a real one. The first few are taken: one that resolv.conf
 * names, one of the sandbox's own.
 */

#define PLAN_V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

#define PLAN_SYNTHETIC_BASE PLAN_V4(198, 18, 0, 0)
#define PLAN_SYNTHETIC_PREFIX_BITS 15
#define PLAN_SYNTHETIC_FIRST PLAN_V4(198, 18, 1, 0)

/* Asked for names; any other address would do, since every query ends at the gate. */
#define PLAN_RESOLV_CONF "nameserver 198.18.0.1\noptions edns0\n"

/* The sandbox's own, on loopback: what connections come from. */
#define PLAN_OWN_V4 PLAN_V4(198, 18, 0, 2)
#define PLAN_OWN_V6                                                                                \
	{                                                                                          \
		0xfd, 0x61, 0x6b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2                            \
	}

#define PLAN_GATE_PORT 1 /* tcpmux: nothing else has listened there for decades */
#define PLAN_DNS_PORT 53

/* For connections within one machine: nothing is lost there, and pacing only costs. */
#define PLAN_CONGESTION "reno"
