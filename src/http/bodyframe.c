/* bodyframe - moves one HTTP/1.1 body from one buffer to another; see bodyframe.h. */
#include "http/bodyframe.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAST_CHUNK "0\r\n\r\n"

void bodyframe_init(struct bodyframe *f, enum bodyframe_kind kind, uint64_t length)
{
	*f = (struct bodyframe){ .kind = kind, .left = length };
	f->writes_chunks = kind == BODYFRAME_CHUNKED;
}

/* Moves bytes; with their own chunk around them if the body is written in chunks. */
static size_t move(struct bodyframe *f, struct evbuffer *from, struct evbuffer *to, size_t most)
{
	size_t len = evbuffer_get_length(from);
	char line[24];

	if (len > most)
		len = most;
	if (len == 0)
		return 0;
	if (f->writes_chunks) {
		int n = snprintf(line, sizeof(line), "%zx\r\n", len);

		(void)evbuffer_add(to, line, (size_t)n);
	}
	(void)evbuffer_remove_buffer(from, to, len);
	if (f->writes_chunks)
		(void)evbuffer_add(to, "\r\n", 2);
	return len;
}

static int move_length(struct bodyframe *f, struct evbuffer *from, struct evbuffer *to, size_t most)
{
	f->left -= move(f, from, to, f->left < most ? (size_t)f->left : most);
	return f->left == 0;
}

/* 1: *line is the next line, to be freed; 0: it is not complete; -1: too long, or a bare LF. */
static int take_line(struct evbuffer *from, char **line)
{
	size_t len = 0;
	struct evbuffer_ptr at = evbuffer_search_eol(from, NULL, &len, EVBUFFER_EOL_LF);

	*line = NULL;
	if (at.pos < 0)
		return evbuffer_get_length(from) > BODYFRAME_LINE_MAX_BYTES ? -1 : 0;
	if (at.pos > (ev_ssize_t)BODYFRAME_LINE_MAX_BYTES)
		return -1;
	*line = evbuffer_readln(from, &len, EVBUFFER_EOL_LF);
	if (!*line || len == 0 || (*line)[len - 1] != '\r' || strlen(*line) != len)
		return -1;
	(*line)[len - 1] = '\0';
	return 1;
}

static int read_size(struct bodyframe *f, const char *line)
{
	size_t digits = strspn(line, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > 15 || (line[digits] && !strchr("; \t", line[digits])))
		return -1;
	f->left = strtoull(line, NULL, 16);
	f->state = f->left ? BODYFRAME_DATA : BODYFRAME_TRAILER;
	return f->left <= BODYFRAME_CHUNK_MAX_BYTES ? 0 : -1;
}

/* 1: that was the end; 0: go on; -1: invalid. */
static int on_line(struct bodyframe *f, const char *line)
{
	if (f->state == BODYFRAME_SIZE)
		return read_size(f, line);
	if (f->state == BODYFRAME_DATA_END) {
		f->state = BODYFRAME_SIZE;
		return *line ? -1 : 0;
	}
	f->trailer_bytes += strlen(line) + 2;
	return f->trailer_bytes > BODYFRAME_TRAILERS_MAX_BYTES ? -1 : !*line;
}

static int move_chunks(struct bodyframe *f, struct evbuffer *from, struct evbuffer *to, size_t most)
{
	for (;;) {
		char *line;
		int r;

		if (f->state == BODYFRAME_DATA) {
			size_t len = move(f, from, to, f->left < most ? (size_t)f->left : most);

			f->left -= len;
			most -= len;
			if (f->left > 0)
				return 0;
			f->state = BODYFRAME_DATA_END;
		}
		r = take_line(from, &line);
		if (r == 1)
			r = on_line(f, line) ?: 2;
		free(line);
		if (r == 1)
			(void)evbuffer_add(to, LAST_CHUNK, sizeof(LAST_CHUNK) - 1);
		if (r != 2)
			return r;
	}
}

int bodyframe_move(struct bodyframe *f, struct evbuffer *from, struct evbuffer *to,
		   size_t max_bytes)
{
	switch (f->kind) {
	case BODYFRAME_LENGTH:
		return move_length(f, from, to, max_bytes);
	case BODYFRAME_CHUNKED:
		return move_chunks(f, from, to, max_bytes);
	case BODYFRAME_UNTIL_END:
		(void)move(f, from, to, max_bytes);
		return 0;
	case BODYFRAME_NONE:
		break;
	}
	return 1;
}

int bodyframe_end(struct bodyframe *f, struct evbuffer *to)
{
	if (f->kind != BODYFRAME_UNTIL_END)
		return f->kind == BODYFRAME_NONE ? 1 : -1;
	if (f->writes_chunks)
		(void)evbuffer_add(to, LAST_CHUNK, sizeof(LAST_CHUNK) - 1);
	return 1;
}
