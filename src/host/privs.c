/* privs - ids, capabilities, keys; see privs.h. */
#include "host/privs.h"

#include "base/wall.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITIES_MAX 64
#define CAP_BIT(cap) (1ull << (cap))

/*
 * CAP_SETFCAP is left out: a file capability set in a root caller's workspace would be valid
 * outside, where the mapped owner is the host's root.
 */
static const uint64_t package_manager_set =
	CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER) | CAP_BIT(CAP_FSETID) |
	CAP_BIT(CAP_KILL) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_SETUID) |
	CAP_BIT(CAP_NET_BIND_SERVICE) | CAP_BIT(CAP_SYS_CHROOT);

static int hide(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, errno, "make a process private");
	return 0;
}

static int take_fresh_keyring(struct err *e)
{
	/* ENOSYS: kernel without keyrings */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		return err_sys(e, errno, "start a new session keyring");
	return 0;
}

int privs_seclude(struct err *e)
{
	if (wall_stands(WALL_OWN_KEYRING) && take_fresh_keyring(e) < 0)
		return -1;
	return wall_stands(WALL_HIDDEN_INIT) ? hide(e) : 0;
}

/*
 * EINVAL marks the last capability that this kernel knows. Reads before dropping, because a drop
 * copies the process's credentials even if the capability is already gone.
 */
static int drop_bounding(uint64_t keep, struct err *e)
{
	for (unsigned cap = 0; cap < CAPABILITIES_MAX; cap++) {
		int has = keep & CAP_BIT(cap) ? 0 : prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

		if (has < 0 && errno == EINVAL)
			break;
		if (has < 0)
			return err_sys(e, errno, "look at capability %u", cap);
		if (has && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return err_sys(e, errno, "drop capability %u for good", cap);
	}
	return 0;
}

static int set_capabilities(uint64_t keep, struct err *e)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	for (unsigned half = 0; half < 2; half++) {
		data[half].effective = (uint32_t)(keep >> (32 * half));
		data[half].permitted = data[half].effective;
	}
	if (!wall_stands(WALL_CAPABILITIES))
		return 0;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(e, errno, "clear ambient capabilities");
	if (syscall(SYS_capset, &header, data) < 0)
		return err_sys(e, errno, "set capabilities");
	return 0;
}

int privs_drop(const struct privs_options *o, struct err *e)
{
	uint64_t keep = o->has_capabilities ? package_manager_set : 0;

	/* The bounding set first: dropping from it needs CAP_SETPCAP, which goes next. */
	if (wall_stands(WALL_BOUNDING_SET) && drop_bounding(keep, e) < 0)
		return -1;
	if (o->can_switch_ids && o->group_count > 0 &&
	    syscall(SYS_setgroups, (size_t)o->group_count, o->groups) < 0)
		return err_sys(e, errno, "take the user's groups");
	if (o->can_switch_ids && o->gid != 0 && syscall(SYS_setresgid, o->gid, o->gid, o->gid) < 0)
		return err_sys(e, errno, "become group %u", (unsigned)o->gid);
	if (o->can_switch_ids && o->uid != 0 && syscall(SYS_setresuid, o->uid, o->uid, o->uid) < 0)
		return err_sys(e, errno, "become user %u", (unsigned)o->uid);
	if (set_capabilities(keep, e) < 0)
		return -1;
	if (wall_stands(WALL_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "give up new privileges");
	return 0;
}

int privs_bound_init(struct err *e)
{
	return drop_bounding(package_manager_set, e);
}

int privs_drop_init(unsigned flags, struct err *e)
{
	uint64_t keep = 0;

	if (flags & PRIVS_WATCHES)
		keep |= CAP_BIT(CAP_SYS_PTRACE);
	if (flags & PRIVS_SERVES)
		keep |= package_manager_set | CAP_BIT(CAP_SETPCAP);
	if (flags & PRIVS_SERVES && !(flags & PRIVS_BOUNDED) && privs_bound_init(e) < 0)
		return -1;
	if (set_capabilities(keep, e) < 0)
		return -1;
	if (wall_stands(WALL_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "give up new privileges");
	return 0;
}

int privs_die_with_parent(struct err *e)
{
	if (wall_stands(WALL_PARENTS_DEATH) && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, errno, "bind init to its supervisor");
	return 0;
}

int privs_clear(struct err *e)
{
	return set_capabilities(0, e);
}
