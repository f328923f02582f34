/*
 * names - maps synthetic addresses to names; see names.h.
 *
 * Theory of operation. The shared memory is an array of names; the index in it is the address. A
 * private hash table finds a name's index; each gate rebuilds it from the array, so a gate that
 * dies at any point leaves nothing inconsistent: the count is raised after the name is written. The
 * file is sparse: only used entries cost memory.
 */
#include "net/names.h"

#include "base/hash.h"
#include "base/mem.h"
#include "net/plan.h"
#include "policy/domain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define NAME_BYTES 256 /* DOMAIN_MAX_BYTES and the NUL, rounded up */
#define INDEX_MIN_COUNT 256u

struct shared {
	uint32_t count;
	uint32_t unused[63];
	char name[NAMES_MAX][NAME_BYTES];
};

struct names {
	struct shared *shared;
	uint32_t seed;        /* random, so that nobody can choose colliding names */
	uint32_t *index;      /* position + 1; 0: free */
	uint32_t index_count; /* a power of two, more than twice the names */
};

int names_create(int *ret_fd, struct err *e)
{
	int fd = memfd_create("agentkernel-names", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(e, errno, "create the table of names");
	/* sealed: a gate that could shrink it could crash the next one */
	if (ftruncate(fd, sizeof(struct shared)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int sys = errno;

		(void)close(fd);
		return err_sys(e, sys, "size the table of names");
	}
	*ret_fd = fd;
	return 0;
}

/* Returns the slot of `name` in the index, or the free slot for it. */
static uint32_t *find(const struct names *n, const char *name)
{
	uint32_t at = hash_text(n->seed, name);

	for (;; at++) {
		uint32_t *slot = &n->index[at & (n->index_count - 1)];

		if (*slot == 0 || strcmp(n->shared->name[*slot - 1], name) == 0)
			return slot;
	}
}

static void rebuild(struct names *n)
{
	free(n->index);
	n->index = mem_alloc(n->index_count * sizeof(*n->index));
	for (uint32_t i = 0; i < n->shared->count; i++)
		*find(n, n->shared->name[i]) = i + 1;
}

/* Checks the memory, which an earlier, compromised gate may have written. */
static bool is_sound(const struct shared *s)
{
	if (s->count > NAMES_MAX)
		return false;
	for (uint32_t i = 0; i < s->count; i++) {
		char normal[DOMAIN_MAX_BYTES + 1];
		struct domain_problem ignored;
		size_t len = strnlen(s->name[i], NAME_BYTES);

		if (len > DOMAIN_MAX_BYTES ||
		    !domain_normalize(s->name[i], len, DOMAIN_WIRE, normal, &ignored) ||
		    strcmp(normal, s->name[i]) != 0)
			return false;
	}
	return true;
}

int names_open(int fd, struct names **ret, struct err *e)
{
	struct names *n;
	struct shared *shared =
		mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (shared == MAP_FAILED)
		return err_sys(e, errno, "map the table of names");
	if (!is_sound(shared)) {
		(void)munmap(shared, sizeof(*shared));
		return err_set(e, ERR_CORRUPT, "the table of names is damaged");
	}
	n = mem_alloc(sizeof(*n));
	n->shared = shared;
	(void)!getrandom(&n->seed, sizeof(n->seed), GRND_NONBLOCK);
	n->index_count = INDEX_MIN_COUNT;
	while (n->index_count < shared->count * 2 + 2)
		n->index_count *= 2;
	rebuild(n);
	*ret = n;
	return 0;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	(void)munmap(n->shared, sizeof(*n->shared));
	free(n->index);
	free(n);
}

static void place_to_address(uint32_t place, struct address *ret)
{
	uint32_t v4 = PLAN_SYNTHETIC_FIRST + place;

	*ret = (struct address){
		.bits = 32,
		.bytes = { (uint8_t)(v4 >> 24), (uint8_t)(v4 >> 16), (uint8_t)(v4 >> 8),
			   (uint8_t)v4 },
	};
}

bool names_get_address(struct names *n, const char *name, struct address *ret)
{
	uint32_t *slot = find(n, name);
	uint32_t place;

	if (*slot) {
		place_to_address(*slot - 1, ret);
		return true;
	}
	place = n->shared->count;
	if (place == NAMES_MAX)
		return false;
	memcpy(n->shared->name[place], name, strlen(name) + 1);
	__atomic_store_n(&n->shared->count, place + 1, __ATOMIC_RELEASE);
	*slot = place + 1;
	if (n->shared->count * 2 >= n->index_count) {
		n->index_count *= 2;
		rebuild(n);
	}
	place_to_address(place, ret);
	return true;
}

static uint32_t to_number(const struct address *a)
{
	return PLAN_V4(a->bytes[0], a->bytes[1], a->bytes[2], a->bytes[3]);
}

const char *names_get_name(const struct names *n, const struct address *a)
{
	uint32_t place;

	if (a->bits != 32 || to_number(a) < PLAN_SYNTHETIC_FIRST)
		return NULL;
	place = to_number(a) - PLAN_SYNTHETIC_FIRST;
	return place < n->shared->count ? n->shared->name[place] : NULL;
}

bool names_is_synthetic(const struct address *a)
{
	static const struct address_network range = {
		{ 32, { PLAN_SYNTHETIC_BASE >> 24, PLAN_SYNTHETIC_BASE >> 16 & 0xff } },
		PLAN_SYNTHETIC_PREFIX_BITS,
	};

	return address_is_in(a, &range);
}
