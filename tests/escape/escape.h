#pragma once
/*
 * escape - a program that runs inside a sandbox and tries to get out, one case after another.
 *
 * A case is a function that makes real system calls and then says how it went, in a process of its
 * own: saying ends it. What an attacker would gain is "escaped"; what a wall answered is "denied",
 * with the errno or a word, and counts only if it is one of the case's own answers. Everything else
 * is "broken": an attempt that failed for a reason that is not the wall proves nothing.
 *
 * Arguments are safe where there is no wall: a knob is written with the value it has, a call that
 * would end the machine gets an argument that the kernel refuses after it has looked at who asks.
 * So the same program, run outside, shows that each attempt works.
 *
 * What there is to reach outside is told as KEY=VALUE: canary("file") is the path of a secret. A
 * case whose canary was not given says "absent".
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum case_flag {
	CASE_SLOW = 1 << 0,  /* takes more than some milliseconds: only when asked for */
	CASE_ALONE = 1 << 1, /* needs a sandbox made for it: only by its name */
};

struct escape_case {
	const char *id;
	const char *name;    /* what is tried */
	const char *wall;    /* what stops it */
	const char *answers; /* of the wall: errno names and words, with | between */
	void (*attempt)(void);
	unsigned flags;
};

/* Each theme is a file with a table that ends with an empty row. */
extern const struct escape_case cases_fs[], cases_proc[], cases_namespaces[], cases_kernel[],
	cases_terminal[], cases_network[], cases_limits[], cases_neighbours[];

/* ---- saying how it went; none of these returns ---- */

_Noreturn void say_denied(int error);
_Noreturn void say_denied_as(const char *word);
_Noreturn void say_escaped(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void say_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void say_works(void); /* for neighbours: what must not be denied */

/* Escaped if the result is not negative, else denied with errno. */
_Noreturn void say_result(long result, const char *what);

/* Of several attempts in one case: the first that works is the case's answer. */
struct tally {
	const char *words[12];
	unsigned count;
};

void tally_add(struct tally *t, const char *word);
void tally_error(struct tally *t, int error);
_Noreturn void tally_say(const struct tally *t);

/* Escaped if it works, else one more answer. */
void tally_result(struct tally *t, long result, const char *what);
void tally_read(struct tally *t, const char *path); /* a byte of it; "empty" if there is none */
void tally_write_back(struct tally *t, const char *path); /* what it holds, into itself */
void tally_write(struct tally *t, const char *path, const char *text);

/* ---- canaries and small tools ---- */

const char *canary(const char *key); /* does not return if it was not given */
bool has_canary(const char *key);
long canary_number(const char *key);
bool has_canary_text(const char *text, size_t len);
pid_t victim(void);       /* pid 1, or, outside, the process that is there for it */
char state_of(pid_t pid); /* a letter, as in /proc/PID/stat; X if it cannot be seen */
const char *errno_name(int error);
const char *own_path(void); /* of this program */

/* How often pid 1 has passed SIGUSR2 on to this program: it does so for signals from outside. */
unsigned passed_on(void);

/* A file that only we see: in /tmp, or the working directory; outside, where we were told. */
const char *scratch(const char *name);
