/*
 * callfilter_compile - build tool: turns a list of rules into BPF programs, as a C header.
 *
 * Theory of operation. libseccomp knows the system call numbers of this architecture; we generate
 * the programs ourselves, because their layout affects the start-up time of every sandbox. The
 * kernel runs a new filter once for each call number to find those that are always allowed, so a
 * linear list of 300 comparisons costs ten times as much to install as a binary search (407 against
 * 42 microseconds). So each number gets an action, neighbours with the same action become ranges, a
 * balanced tree with return instructions as leaves searches the ranges, and argument checks follow
 * the tree.
 *
 * BPF's conditional jumps reach 255 instructions, which the upper half of the tree exceeds: a
 * long branch is a jump over a plain JA.
 */
#include "base/callfilter.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 1024 /* call numbers; the highest today is under 500 */
#define CODE_MAX 2048   /* instructions of one program, below BPF's own 4096 */
#define RANGE_MAX NUMBER_MAX
#define CONDITIONAL_REACH 255

#if defined(__x86_64__)
#define NATIVE_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#error "no audit architecture known for this machine"
#endif

/* What happens to a call number: a fixed action, or a rule with argument checks. */
struct fate {
	enum rule_action action;
	const struct rule *rule; /* for RULE_CHECK */
};

struct range {
	unsigned first; /* up to the next range's first */
	struct fate fate;
};

struct program {
	struct sock_filter code[CODE_MAX];
	unsigned count;
	/* jumps to argument checks, patched once the check's position is known */
	struct {
		unsigned at;
		const struct rule *rule;
	} patch[CODE_MAX];
	unsigned patch_count;
};

static void emit(struct program *p, struct sock_filter instruction)
{
	assert(p->count < CODE_MAX);
	p->code[p->count++] = instruction;
}

static void emit_return(struct program *p, uint32_t value)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

static void emit_leaf(struct program *p, struct fate fate)
{
	switch (fate.action) {
	case RULE_ALLOW:
		emit_return(p, SECCOMP_RET_ALLOW);
		break;
	case RULE_EPERM:
		emit_return(p, SECCOMP_RET_ERRNO | EPERM);
		break;
	case RULE_ENOSYS:
		emit_return(p, SECCOMP_RET_ERRNO | ENOSYS);
		break;
	case RULE_CHECK:
		p->patch[p->patch_count].at = p->count;
		p->patch[p->patch_count++].rule = fate.rule;
		emit(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
		break;
	}
}

static unsigned middle_of(unsigned first, unsigned last)
{
	return (first + last + 1) / 2;
}

/* Number of instructions that emit_tree() will need. */
static unsigned tree_size(unsigned first, unsigned last)
{
	unsigned middle = middle_of(first, last);
	unsigned left;

	if (first == last)
		return 1;
	left = tree_size(first, middle - 1);
	return (left > CONDITIONAL_REACH ? 2 : 1) + left + tree_size(middle, last);
}

/* Emits a search of ranges[first..last]; the accumulator holds the call number. */
static void emit_tree(struct program *p, const struct range *ranges, unsigned first, unsigned last)
{
	unsigned middle = middle_of(first, last);
	unsigned left;

	if (first == last) {
		emit_leaf(p, ranges[first].fate);
		return;
	}
	left = tree_size(first, middle - 1);
	if (left > CONDITIONAL_REACH) {
		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
						     ranges[middle].first, 0, 1));
		emit(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, left));
	} else {
		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
						     ranges[middle].first, (uint8_t)left, 0));
	}
	emit_tree(p, ranges, first, middle - 1);
	emit_tree(p, ranges, middle, last);
}

static bool is_jump(enum step_then then)
{
	return then == STEP_NEXT || then == STEP_GOTO;
}

/* One side of a comparison: a return, or a jump that emit_check() patches. */
static void emit_then(struct program *p, enum step_then then, const struct rule_step *step)
{
	if (is_jump(then))
		emit(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	else if (then == STEP_ALLOW)
		emit_return(p, SECCOMP_RET_ALLOW);
	else
		emit_return(p, SECCOMP_RET_ERRNO | (uint32_t)step->error);
}

#define STEPS_MAX 32
#define LOW_HALF_OFFSET(argument) (offsetof(struct seccomp_data, args) + 8u * (argument))

/* Each step: load, mask, compare, then one instruction for a match and one for a miss. */
static void emit_check(struct program *p, const struct rule *rule)
{
	unsigned step_at[STEPS_MAX + 1];
	unsigned jump_at[2 * STEPS_MAX], jump_to[2 * STEPS_MAX], jumps = 0;

	assert(rule->step_count <= STEPS_MAX);
	for (unsigned i = 0; i < rule->step_count; i++) {
		const struct rule_step *s = &rule->steps[i];
		const enum step_then sides[] = { s->on_match, s->on_miss };

		step_at[i] = p->count;
		emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						     (uint32_t)LOW_HALF_OFFSET(s->argument)));
		emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, s->mask));
		emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, s->value, 0, 1));
		for (unsigned side = 0; side < 2; side++) {
			if (is_jump(sides[side])) {
				jump_at[jumps] = p->count;
				jump_to[jumps] = sides[side] == STEP_NEXT ? i + 1 : s->go_to;
				assert(jump_to[jumps] > i && jump_to[jumps] < rule->step_count);
				jumps++;
			}
			emit_then(p, sides[side], s);
		}
	}
	for (unsigned i = 0; i < jumps; i++)
		p->code[jump_at[i]].k = step_at[jump_to[i]] - jump_at[i] - 1;
}

/* Every check is emitted once; all jumps to it are patched. */
static void emit_checks(struct program *p)
{
	for (unsigned i = 0; i < p->patch_count; i++) {
		unsigned start = p->count;

		if (!p->patch[i].rule)
			continue;
		for (unsigned j = i + 1; j < p->patch_count; j++) {
			if (p->patch[j].rule != p->patch[i].rule)
				continue;
			p->code[p->patch[j].at].k = start - p->patch[j].at - 1;
			p->patch[j].rule = NULL;
		}
		p->code[p->patch[i].at].k = start - p->patch[i].at - 1;
		emit_check(p, p->patch[i].rule);
	}
}

/* Missing in some distributions' libseccomp. From 424 on all architectures share the numbers. */
static const struct {
	const char *name;
	int number;
} newer_call[] = {
	{ "quotactl_fd", 443 },
	{ "landlock_create_ruleset", 444 },
	{ "landlock_add_rule", 445 },
	{ "landlock_restrict_self", 446 },
	{ "memfd_secret", 447 },
	{ "process_mrelease", 448 },
	{ "futex_waitv", 449 },
	{ "set_mempolicy_home_node", 450 },
	{ "cachestat", 451 },
	{ "fchmodat2", 452 },
	{ "map_shadow_stack", 453 },
	{ "futex_wake", 454 },
	{ "futex_wait", 455 },
	{ "futex_requeue", 456 },
	{ "mseal", 462 },
};

/* An unknown name is an error: it is misspelt, and the call would silently be refused. */
static int resolve(const char *name)
{
	int number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name);

	if (number != __NR_SCMP_ERROR)
		return number;
	for (size_t i = 0; i < sizeof(newer_call) / sizeof(newer_call[0]); i++)
		if (strcmp(newer_call[i].name, name) == 0)
			return newer_call[i].number;
	fprintf(stderr, "callfilter_compile: no system call '%s'\n", name);
	exit(1);
}

static void apply_rule(const struct rule *rule, struct fate fates[NUMBER_MAX])
{
	char *names = strdup(rule->names);
	char *rest = names;
	char *name;

	assert(names);
	while ((name = strsep(&rest, " "))) {
		int number = resolve(name);

		/* negative: this architecture does not have the call */
		if (number >= 0 && number < NUMBER_MAX)
			fates[number] = (struct fate){ rule->action, rule };
	}
	free(names);
}

static bool is_same_fate(struct fate a, struct fate b)
{
	return a.action == b.action && (a.action != RULE_CHECK || a.rule == b.rule);
}

static unsigned make_ranges(unsigned variant, struct range ranges[RANGE_MAX])
{
	struct fate fates[NUMBER_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < NUMBER_MAX; i++)
		fates[i] = (struct fate){ RULE_ENOSYS, NULL };
	for (size_t i = 0; i < callfilter_rules_count; i++)
		if ((callfilter_rules[i].only_in & ~variant) == 0)
			apply_rule(&callfilter_rules[i], fates);
	for (unsigned i = 0; i < NUMBER_MAX; i++)
		if (i == 0 || !is_same_fate(fates[i], fates[i - 1]))
			ranges[count++] = (struct range){ i, fates[i] };
	return count;
}

/* Kills processes of another architecture, whose numbers mean other calls. */
static void compile(unsigned variant, struct program *p)
{
	static struct range ranges[RANGE_MAX];
	unsigned count = make_ranges(variant, ranges);

	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, arch)));
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_AUDIT_ARCH, 1, 0));
	emit_return(p, SECCOMP_RET_KILL_PROCESS);
	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, nr)));
	/* numbers from NUMBER_MAX on, also those with x32's bit 30, are in the last range */
	emit_tree(p, ranges, 0, count - 1);
	emit_checks(p);
}

int main(void)
{
	static struct program p;

	printf("/* generated by callfilter_compile */\n#include <linux/filter.h>\n");
	for (unsigned variant = 0; variant < callfilter_variant_count; variant++) {
		memset(&p, 0, sizeof(p));
		compile(variant, &p);
		printf("static const struct sock_filter %s_code_%u[] = {\n", callfilter_name,
		       variant);
		for (unsigned i = 0; i < p.count; i++)
			printf("{0x%x,%u,%u,0x%x},\n", p.code[i].code, p.code[i].jt, p.code[i].jf,
			       p.code[i].k);
		printf("};\n");
	}
	printf("static const struct { const struct sock_filter *code; unsigned short count; } "
	       "%s_bpf[] = {\n",
	       callfilter_name);
	for (unsigned variant = 0; variant < callfilter_variant_count; variant++)
		printf("{%s_code_%u, sizeof(%s_code_%u) / sizeof(%s_code_%u[0])},\n",
		       callfilter_name, variant, callfilter_name, variant, callfilter_name,
		       variant);
	printf("};\n");
	return 0;
}
