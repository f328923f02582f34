#pragma once
/*
 * escape - a program that runs inside a sandbox and tries to get out, one case after another.
 *
 * A case is a function that makes real system calls and then reports the result, in its own
 * process, which the report ends. Success of the attack is "escaped"; an answer of a protection is
 * "denied", with the errno or a word, and counts only if it is one of the case's expected answers.
 * Everything else is "broken": an attempt that failed for another reason proves nothing.
 *
 * Arguments are harmless without protection: a kernel setting is written with its current value,
 * and a call that would end the machine gets an argument that the kernel refuses after checking
 * privileges. So the same program, run outside, shows that each attempt works.
 *
 * Targets outside are given as KEY=VALUE: canary("file") is the path of a secret. A case without
 * its canary reports "absent".
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum case_flag {
	CASE_SLOW = 1 << 0,  /* takes more than a few milliseconds: only on request */
	CASE_ALONE = 1 << 1, /* needs a special sandbox: only by its name */
};

struct escape_case {
	const char *id;
	const char *name;    /* what is tried */
	const char *wall;    /* what stops it */
	const char *answers; /* expected errno names and words, separated by | */
	void (*attempt)(void);
	unsigned flags;
};

/* Each theme is a file with a table that ends with an empty row. */
extern const struct escape_case cases_fs[], cases_proc[], cases_namespaces[], cases_kernel[],
	cases_terminal[], cases_network[], cases_limits[], cases_neighbours[];

/* ---- reporting the result; none of these returns ---- */

_Noreturn void say_denied(int error);
_Noreturn void say_denied_as(const char *word);
_Noreturn void say_escaped(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void say_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void say_works(void); /* for neighbours: what must not be denied */

/* Escaped if the result is not negative, else denied with errno. */
_Noreturn void say_result(long result, const char *what);

/* For several attempts in one case: the first one that works is the result. */
struct tally {
	const char *words[12];
	unsigned count;
};

void tally_add(struct tally *t, const char *word);
void tally_error(struct tally *t, int error);
_Noreturn void tally_say(const struct tally *t);

/* Escaped if it works, else adds the answer. */
void tally_result(struct tally *t, long result, const char *what);
void tally_read(struct tally *t, const char *path);       /* one byte; "empty" if there is none */
void tally_write_back(struct tally *t, const char *path); /* writes its content back */
void tally_write(struct tally *t, const char *path, const char *text);

/* ---- canaries and small tools ---- */

const char *canary(const char *key); /* does not return if it was not given */
bool has_canary(const char *key);
long canary_number(const char *key);
bool has_canary_text(const char *text, size_t len);
pid_t victim(void);       /* pid 1, or, outside, a substitute process */
char state_of(pid_t pid); /* a letter as in /proc/PID/stat; X if it is invisible */
const char *errno_name(int error);
const char *own_path(void); /* of this program */

/* How often pid 1 has forwarded SIGUSR2 to this program, as it does for signals from outside. */
unsigned passed_on(void);

/* A private file: in /tmp, or the working directory; outside, in a given directory. */
const char *scratch(const char *name);
