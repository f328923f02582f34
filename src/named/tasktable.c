/* tasktable - the supervisor's table of commands; see tasktable.h. */
#include "named/tasktable.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "protocol/order.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LOG_NAME_MAX_BYTES 24

struct task *tasktable_find(const struct tasktable *t, uint32_t id)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->rows[i].shown.id == id)
			return &t->rows[i];
	return NULL;
}

bool tasktable_is_alive(const struct task *task)
{
	return task->shown.ended_ms == 0;
}

unsigned tasktable_count_alive(const struct tasktable *t)
{
	unsigned count = 0;

	for (unsigned i = 0; i < t->count; i++)
		count += tasktable_is_alive(&t->rows[i]);
	return count;
}

unsigned tasktable_count_commands(const struct tasktable *t)
{
	unsigned count = 0;

	for (unsigned i = 0; i < t->count; i++)
		count += tasktable_is_alive(&t->rows[i]) && !t->rows[i].is_service;
	return count;
}

struct task *tasktable_find_shell(const struct tasktable *t)
{
	const uint32_t wanted = ORDER_TTY | ORDER_DETACHED;

	for (unsigned i = t->count; i-- > 0;)
		if (tasktable_is_alive(&t->rows[i]) && (t->rows[i].shown.flags & wanted) == wanted)
			return &t->rows[i];
	return NULL;
}

/* ---- logs ---- */

static void name_log(uint32_t id, unsigned half, char out[LOG_NAME_MAX_BYTES])
{
	(void)snprintf(out, LOG_NAME_MAX_BYTES, "log/%08" PRIx32 ".%u", id, half);
}

static void remove_logs(const struct tasktable *t, uint32_t id)
{
	char name[LOG_NAME_MAX_BYTES];

	for (unsigned half = 0; half < 2; half++) {
		name_log(id, half, name);
		(void)unlinkat(t->dir_fd, name, 0);
	}
}

int tasktable_open_log(const struct tasktable *t, uint32_t id, int ret_fds[2], struct err *e)
{
	char name[LOG_NAME_MAX_BYTES];
	int fds[2] = { -1, -1 };

	for (unsigned half = 0; half < 2; half++) {
		name_log(id, half, name);
		fds[half] = openat(t->dir_fd, name,
				   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fds[half] < 0) {
			(void)err_sys(e, errno, "create a log");
			cleanup_closep(&fds[0]);
			remove_logs(t, id);
			return -1;
		}
	}
	memcpy(ret_fds, fds, sizeof(fds));
	return 0;
}

/* ---- adding and removing ---- */

static void drop(struct tasktable *t, unsigned index)
{
	buf_done(&t->rows[index].words);
	memmove(&t->rows[index], &t->rows[index + 1], (t->count - index - 1) * sizeof(*t->rows));
	t->count--;
}

void tasktable_forget_ended(struct tasktable *t)
{
	unsigned ended = 0;

	for (unsigned i = t->count; i-- > 0;) {
		const struct task *task = &t->rows[i];

		if (tasktable_is_alive(task))
			continue;
		if (!(task->shown.flags & ORDER_DETACHED)) {
			drop(t, i);
		} else if (++ended > TASKTABLE_ENDED_MAX) {
			remove_logs(t, task->shown.id);
			drop(t, i);
		}
	}
}

static void describe(char *const *argv, char out[CONTROL_TEXT_MAX_BYTES])
{
	size_t len = 0;

	out[0] = '\0';
	for (; *argv && len + 1 < CONTROL_TEXT_MAX_BYTES; argv++) {
		int n = snprintf(out + len, CONTROL_TEXT_MAX_BYTES - len, "%s%s", len ? " " : "",
				 *argv);

		len += n > 0 ? (size_t)n : 0;
	}
}

/* Stores only complete arguments: a truncated one would look like another argument. */
static void keep_words(struct task *task, char *const *argv)
{
	buf_init(&task->words, CONTROL_WORDS_MAX_BYTES);
	for (; *argv && !task->command.is_cut; argv++) {
		size_t len = strlen(*argv) + 1;

		if (len > CONTROL_WORDS_MAX_BYTES - task->words.len)
			task->command.is_cut = 1;
		else
			buf_add(&task->words, *argv, len);
	}
}

uint32_t tasktable_choose_id(const struct tasktable *t)
{
	uint32_t id = ORDER_ALL;

	while (id == ORDER_ALL || tasktable_find(t, id))
		if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
			id++;
	return id;
}

void tasktable_add(struct tasktable *t, const struct order_command *c, char *const *argv)
{
	struct task *task;

	t->rows = mem_grow(t->rows, t->count + 1, sizeof(*t->rows));
	task = &t->rows[t->count++];
	*task = (struct task){ .shown = { .id = c->id,
					  .flags = c->flags,
					  .uid = c->uid,
					  .started_ms = timestamp_now_ms() } };
	describe(argv, task->shown.text);
	keep_words(task, argv);
}
