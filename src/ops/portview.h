#pragma once
/* portview - what users are told about published ports. */
struct op_events;
struct published;
struct publish;

/* Remarks a port that was chosen by the host, and one that other machines can reach. */
void portview_remark(const struct op_events *ev, const struct publish *spec, const char *at);
void portview_remark_all(const struct op_events *ev, const struct published *ports);
