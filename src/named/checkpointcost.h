#pragma once
/* checkpointcost - what each checkpoint costs alone: how much of the disk its removal frees. */
#include "base/err.h"

struct ak;
struct checkpoint_list;

/*
 * Fills in alone_bytes. Layers that another checkpoint or a sandbox stands on are not freed, nor
 * are files that other layers share. Walks the other layers, which takes time.
 */
ERR_CHECKED int checkpointcost_find(const struct ak *ak, struct checkpoint_list *list,
				    struct err *e);
