/* checkpointcost - what each checkpoint costs alone; see checkpointcost.h. */
#include "named/checkpointcost.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "named/checkpoint.h"
#include "named/layerstore.h"
#include "named/inventory.h"
#include "named/named.h"
#include "tree/owner.h"
#include "tree/treeusage.h"

#include <string.h>

/* The layers of each record, once for each record that names them. */
static int list_uses(const struct ak *ak, char ***uses, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list sandboxes = { 0 };
	CLEANUP(checkpoint_list_done) struct checkpoint_list checkpoints = { 0 };

	if (inventory_list(ak, &sandboxes, e) < 0 || checkpoint_list(ak, NULL, &checkpoints, e) < 0)
		return -1;
	for (size_t i = 0; i < sandboxes.count; i++)
		for (char **l = sandboxes.entries[i].named.layers; l && *l; l++)
			(void)keyrows_list_add(uses, *l);
	for (size_t i = 0; i < checkpoints.count; i++)
		for (char **l = checkpoints.entries[i].layers; l && *l; l++)
			(void)keyrows_list_add(uses, *l);
	return 0;
}

static size_t count_uses(char *const *uses, const char *layer)
{
	size_t count = 0;

	for (; uses && *uses; uses++)
		count += strcmp(*uses, layer) == 0;
	return count;
}

struct counting {
	int fds[NAMED_LAYERS_MAX + 2];
	unsigned count;
	uint64_t bytes;
};

static int count_bytes(void *context, struct err *e)
{
	struct counting *c = context;

	return treeusage_count(c->fds, c->count, &c->bytes, e);
}

static int find_cost(int store_fd, char *const *uses, struct checkpoint *checkpoint, struct err *e)
{
	struct counting c = { 0 };
	int r = 0;

	for (char **l = checkpoint->layers; l && *l && c.count < COUNT_OF(c.fds) && r == 0; l++) {
		if (count_uses(uses, *l) > 1)
			continue;
		r = layerstore_open_layer(store_fd, *l, &c.fds[c.count], e);
		c.count += r == 0;
	}
	if (r == 0 && c.count > 0)
		r = owner_run(count_bytes, &c, &c, sizeof(c), e);
	while (c.count > 0)
		cleanup_closep(&c.fds[--c.count]);
	checkpoint->alone_bytes = c.bytes;
	checkpoint->has_cost = r == 0;
	return r;
}

int checkpointcost_find(const struct ak *ak, struct checkpoint_list *list, struct err *e)
{
	cleanup_fd int store_fd = -1;
	struct err ignored;
	char **uses = NULL;
	int r = list_uses(ak, &uses, e);

	if (r == 0)
		r = layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e);
	/* a layer that is damaged has no cost, but the others have */
	for (size_t i = 0; i < list->count && r == 0; i++)
		(void)!find_cost(store_fd, uses, &list->entries[i], &ignored);
	keyrows_list_free(&uses);
	return r;
}
