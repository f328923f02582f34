#pragma once
/* sandboxview - formats named sandboxes for people and programs. */
#include "base/buf.h"
#include "base/json.h"
#include "named/control.h"
#include "named/checkpoint.h"
#include "named/inventory.h"

struct ak;

#define SANDBOXVIEW_AGE_MAX_BYTES 32

/* "running", "stopped (supervisor died)", "damaged: ..." */
void sandboxview_format_state(const struct inventory_entry *entry, struct buf *out);

/* Age as "5 min", "3 h", "12 d". */
void sandboxview_format_age(uint64_t then_s, char out[SANDBOXVIEW_AGE_MAX_BYTES]);

/* Why the last checkpoint by interval failed; NULL: it did not. */
const char *sandboxview_find_trouble(const struct inventory_entry *entry);

void sandboxview_add_members(struct json *j, const struct inventory_entry *entry);
/* Resource usage; unknown values are null. */
void sandboxview_add_figures(struct json *j, const struct control_stats *s);
void sandboxview_add_checkpoint(struct json *j, const struct checkpoint *c);
void sandboxview_add_object(struct json *j, const struct inventory_entry *entry);

/* Loads a named sandbox's policy, for a command that takes a name or run's options, not both. */
struct request;
ERR_CHECKED int sandboxview_load_policy(const struct ak *ak, const char *name,
					const struct request *r, struct policy *ret, struct err *e);
