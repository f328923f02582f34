/* progress - shows the progress of a pull; see progress.h. */
#include "image/progress.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#define COLUMNS_DEFAULT 80u
#define ROWS_DEFAULT 24u
#define BAR_MAX_COLUMNS 40u
#define BAR_MIN_COLUMNS 5u
#define FIXED_COLUMNS 65u /* of a line, without the bar */
#define SCREEN_MAX_BYTES (64u << 10)

static const char *const state_words[] = {
	[PROGRESS_WAITING] = "waiting",       [PROGRESS_MOVING] = "downloading",
	[PROGRESS_RETRYING] = "trying again", [PROGRESS_FETCHED] = "downloaded",
	[PROGRESS_UNPACKING] = "unpacking",   [PROGRESS_DONE] = "done",
	[PROGRESS_KEPT] = "already there",
};

static_assert(COUNT_OF(state_words) == PROGRESS_STATE_COUNT, "a state has no words");

void progress_init(struct progress *p, const char *mode_name)
{
	*p = (struct progress){ .mode = PROGRESS_PLAIN };
	if (strcmp(mode_name, "none") == 0)
		p->mode = PROGRESS_NONE;
	else if (strcmp(mode_name, "plain") != 0 && isatty(STDERR_FILENO))
		p->mode = PROGRESS_BARS;
}

static void show(const struct buf *b)
{
	/* a closed stderr must not stop a pull */
	if (b->len > 0)
		(void)file_write_all(STDERR_FILENO, b->bytes, b->len);
}

void progress_say(struct progress *p, const char *fmt, ...)
{
	cleanup_buf struct buf line;
	char text[512];
	va_list args;

	buf_init(&line, BUF_TEXT_MAX_BYTES);
	if (p->mode == PROGRESS_NONE)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_addf(&line, "agentkernel: %s\n", text);
	show(&line);
}

unsigned progress_add(struct progress *p, const char *digest, uint64_t total_bytes)
{
	struct progress_line *l = &p->lines[p->count];
	const char *colon = strchr(digest, ':');

	assert(p->count < PROGRESS_LINES_MAX);
	*l = (struct progress_line){ .total_bytes = total_bytes };
	(void)snprintf(l->name, sizeof(l->name), "%.12s", colon ? colon + 1 : digest);
	return p->count++;
}

static void format_speed(const struct progress_line *l, uint64_t now_us, char *out, size_t size)
{
	uint64_t end_us = l->ended_us ? l->ended_us : now_us;
	uint64_t took_us = end_us > l->began_us ? end_us - l->began_us : 0;
	char amount[PARSE_FORMAT_MAX_BYTES];

	out[0] = '\0';
	if (l->began_us == 0 || took_us < 1000)
		return;
	(void)snprintf(out, size, "%s/s",
		       parse_format_bytes(
			       (l->done_bytes - l->began_bytes) * 1000 / (took_us / 1000), amount));
}

static void print_step(const struct progress_line *l)
{
	cleanup_buf struct buf line;
	char amount[PARSE_FORMAT_MAX_BYTES], speed[PARSE_FORMAT_MAX_BYTES + 4];

	buf_init(&line, BUF_TEXT_MAX_BYTES);
	format_speed(l, clock_now_us(), speed, sizeof(speed));
	buf_addf(&line, "agentkernel: %s: %s", l->name, state_words[l->state]);
	if (l->state == PROGRESS_FETCHED)
		buf_addf(&line, " %s%s%s", parse_format_bytes(l->total_bytes, amount),
			 speed[0] ? ", " : "", speed);
	buf_add_text(&line, "\n");
	show(&line);
}

void progress_set(struct progress *p, unsigned line, enum progress_state state, uint64_t done_bytes)
{
	struct progress_line *l = &p->lines[line];
	bool is_new = l->state != state;

	if (state == PROGRESS_MOVING && l->began_us == 0) {
		l->began_us = clock_now_us();
		l->began_bytes = done_bytes;
	}
	if (state >= PROGRESS_FETCHED && l->ended_us == 0)
		l->ended_us = clock_now_us();
	l->state = state;
	l->done_bytes = done_bytes;
	if (is_new && p->mode == PROGRESS_PLAIN && state != PROGRESS_MOVING &&
	    state != PROGRESS_UNPACKING && state != PROGRESS_WAITING)
		print_step(l);
}

static void format_bar(const struct progress_line *l, unsigned columns, struct buf *out)
{
	uint64_t full = l->state >= PROGRESS_FETCHED ? columns
			: l->total_bytes == 0        ? 0
						     : l->done_bytes * columns / l->total_bytes;

	buf_add_text(out, "[");
	for (unsigned i = 0; i < columns; i++)
		buf_add_text(out, i < full ? "=" : i == full ? ">" : " ");
	buf_add_text(out, "]");
}

void progress_format_line(const struct progress_line *l, unsigned columns, uint64_t now_us,
			  struct buf *out)
{
	char done[PARSE_FORMAT_MAX_BYTES], total[PARSE_FORMAT_MAX_BYTES];
	char speed[PARSE_FORMAT_MAX_BYTES + 4], amounts[2 * PARSE_FORMAT_MAX_BYTES + 4];
	unsigned bar = columns > FIXED_COLUMNS ? columns - FIXED_COLUMNS : 0;

	if (bar > BAR_MAX_COLUMNS)
		bar = BAR_MAX_COLUMNS;
	format_speed(l, now_us, speed, sizeof(speed));
	(void)snprintf(amounts, sizeof(amounts), "%s/%s", parse_format_bytes(l->done_bytes, done),
		       parse_format_bytes(l->total_bytes, total));
	buf_addf(out, "%-12s ", l->name);
	if (bar >= BAR_MIN_COLUMNS) {
		format_bar(l, bar, out);
		buf_add_text(out, " ");
	}
	buf_addf(out, "%-21.21s %-12.12s %-13.13s", amounts, speed, state_words[l->state]);
}

static void get_screen(unsigned *ret_rows, unsigned *ret_columns)
{
	struct winsize size = { 0 };

	*ret_rows = ROWS_DEFAULT;
	*ret_columns = COLUMNS_DEFAULT;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 && size.ws_col > 1) {
		*ret_rows = size.ws_row;
		*ret_columns = size.ws_col;
	}
}

/* If there are more lines than the screen has, finished ones are hidden first. */
static bool is_shown(const struct progress *p, unsigned line, unsigned skip)
{
	unsigned finished_before = 0;

	if (p->lines[line].state < PROGRESS_DONE)
		return true;
	for (unsigned i = 0; i < line; i++)
		finished_before += p->lines[i].state >= PROGRESS_DONE;
	return finished_before >= skip;
}

static void draw(struct progress *p)
{
	cleanup_buf struct buf screen;
	unsigned rows, columns, skip, shown = 0;

	get_screen(&rows, &columns);
	skip = p->count > rows - 1 ? p->count - (rows - 1) : 0;
	buf_init(&screen, SCREEN_MAX_BYTES);
	if (p->drawn > 0)
		buf_addf(&screen, "\033[%uA", p->drawn);
	for (unsigned i = 0; i < p->count && shown < rows - 1; i++) {
		cleanup_buf struct buf line;

		buf_init(&line, BUF_TEXT_MAX_BYTES);
		if (!is_shown(p, i, skip))
			continue;
		progress_format_line(&p->lines[i], columns, clock_now_us(), &line);
		buf_addf(&screen, "\r%.*s\033[K\n", (int)columns - 1, buf_text(&line));
		shown++;
	}
	if (shown < p->drawn)
		buf_add_text(&screen, "\033[J");
	p->drawn = shown;
	show(&screen);
}

void progress_draw(struct progress *p)
{
	uint64_t now_us = clock_now_us();

	if (p->mode != PROGRESS_BARS || p->count == 0 ||
	    now_us - p->drawn_at_us < PROGRESS_DRAW_EVERY_MS * 1000)
		return;
	p->drawn_at_us = now_us;
	draw(p);
}

void progress_end(struct progress *p)
{
	if (p->mode == PROGRESS_BARS && p->count > 0)
		draw(p);
	p->count = 0;
	p->drawn = 0;
}
