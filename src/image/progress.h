#pragma once
/*
 * progress - shows the progress of a pull on stderr.
 *
 * On a terminal one line per layer, redrawn in place: name, bar, bytes, speed, state. Otherwise a
 * line for each completed step. Or nothing.
 */
#include <stdint.h>

#define PROGRESS_LINES_MAX 128u
#define PROGRESS_NAME_MAX_BYTES 20u
#define PROGRESS_DRAW_EVERY_MS 100u

enum progress_mode { PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_BARS };

enum progress_state {
	PROGRESS_WAITING,
	PROGRESS_MOVING, /* bytes arrive */
	PROGRESS_RETRYING,
	PROGRESS_FETCHED,
	PROGRESS_UNPACKING,
	PROGRESS_DONE,
	PROGRESS_KEPT, /* existed already */

	PROGRESS_STATE_COUNT
};

struct progress_line {
	char name[PROGRESS_NAME_MAX_BYTES];
	enum progress_state state;
	uint64_t done_bytes, total_bytes;
	uint64_t began_us;    /* time of the first byte of this attempt */
	uint64_t began_bytes; /* bytes present at that time */
	uint64_t ended_us;
};

struct progress {
	enum progress_mode mode;
	struct progress_line lines[PROGRESS_LINES_MAX];
	unsigned count;
	unsigned drawn; /* lines on the screen, to be redrawn */
	uint64_t drawn_at_us;
};

/* "auto": bars if stderr is a terminal, lines otherwise. */
void progress_init(struct progress *p, const char *mode_name);

/* Prints a headline, unless the mode is none. */
void progress_say(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the new line's number. The first characters of the digest are its name. */
unsigned progress_add(struct progress *p, const char *digest, uint64_t total_bytes);
void progress_set(struct progress *p, unsigned line, enum progress_state state,
		  uint64_t done_bytes);

/* Draws if it is due; `progress_end` draws the final state. */
void progress_draw(struct progress *p);
void progress_end(struct progress *p);

/* Formats one line for a terminal of this width; also for tests. */
struct buf;
void progress_format_line(const struct progress_line *l, unsigned columns, uint64_t now_us,
			  struct buf *out);
