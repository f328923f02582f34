/*
 * mappedfiles - which files a sandbox's processes can write to through memory; see mappedfiles.h.
 *
 * All processes of a sandbox descend from its init. A process may hand its mappings on to a child
 * and end before we have read them; so /proc is listed until no new descendant appears.
 */
#include "named/mappedfiles.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 8

struct process {
	uint64_t pid, parent;
	bool is_inside, is_read;
};

struct processes {
	struct process *list;
	size_t count;
};

static uint64_t find_parent(uint64_t pid)
{
	char path[64], line[512];
	unsigned long long parent = 0;
	const char *end;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	/* the name, in parentheses, may contain anything */
	line[fread(line, 1, sizeof(line) - 1, file)] = '\0';
	(void)fclose(file);
	end = strrchr(line, ')');
	if (!end || sscanf(end + 1, " %*c %llu", &parent) != 1)
		return 0;
	return parent;
}

static int compare_pids(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct process *find(const struct processes *p, uint64_t pid)
{
	const struct process wanted = { .pid = pid };

	if (p->count == 0)
		return NULL;
	return bsearch(&wanted, p->list, p->count, sizeof(*p->list), compare_pids);
}

/* Replaces the list, sorted by pid; processes read before stay marked. */
static void list_processes(struct processes *p)
{
	struct processes now = { 0 };
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	size_t room = 0;

	while (dir && (entry = readdir(dir))) {
		uint64_t pid = strtoull(entry->d_name, NULL, 10);
		const struct process *known;

		if (pid == 0)
			continue;
		known = find(p, pid);
		if (now.count == room) {
			room = room ? room * 2 : 256;
			now.list = mem_grow(now.list, room, sizeof(*now.list));
		}
		now.list[now.count++] = (struct process){ .pid = pid,
							  .parent = find_parent(pid),
							  .is_read = known && known->is_read };
	}
	if (dir)
		(void)closedir(dir);
	if (now.count > 1)
		qsort(now.list, now.count, sizeof(*now.list), compare_pids);
	free(p->list);
	*p = now;
}

static void mark_inside(const struct processes *p, uint64_t init_pid)
{
	bool has_changed = true;

	while (has_changed) {
		has_changed = false;
		for (size_t i = 0; i < p->count; i++) {
			struct process *one = &p->list[i];
			const struct process *parent;

			if (one->is_inside)
				continue;
			parent = one->pid == init_pid ? NULL : find(p, one->parent);
			one->is_inside = one->pid == init_pid || (parent && parent->is_inside);
			has_changed |= one->is_inside;
		}
	}
}

/* "ADDRESSES rw-s OFFSET DEVICE INODE   /PATH\n"; a newline in the path is "\012". */
static void add_line(char *line, struct buf *out)
{
	const char *flags = strchr(line, ' ');
	char *path = strchr(line, '/');
	unsigned long long inode = 0;
	char *to;

	if (!flags || strlen(flags) < 5 || flags[2] != 'w' || flags[4] != 's' || !path)
		return;
	if (sscanf(flags, " %*s %*s %*s %llu", &inode) != 1)
		inode = 0;
	buf_addf(out, "%llu ", inode);
	path++;
	to = path;
	for (const char *from = path; *from && *from != '\n';) {
		bool is_newline = strncmp(from, "\\012", 4) == 0;

		*to++ = is_newline ? '\n' : *from;
		from += is_newline ? 4 : 1;
	}
	buf_add(out, path, (size_t)(to - path));
	buf_add(out, "", 1);
}

static void read_process(uint64_t pid, struct buf *out)
{
	cleanup_free char *line = NULL;
	size_t room = 0;
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%llu/maps", (unsigned long long)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	while (getline(&line, &room, file) > 0)
		add_line(line, out);
	(void)fclose(file);
}

void mappedfiles_collect(uint64_t init_pid, struct buf *out)
{
	struct processes p = { 0 };
	bool is_new = init_pid > 1;

	for (int round = 0; is_new && round < ROUNDS_MAX; round++) {
		is_new = false;
		list_processes(&p);
		mark_inside(&p, init_pid);
		for (size_t i = 0; i < p.count; i++) {
			if (!p.list[i].is_inside || p.list[i].is_read)
				continue;
			p.list[i].is_read = true;
			is_new = true;
			read_process(p.list[i].pid, out);
		}
	}
	free(p.list);
}
