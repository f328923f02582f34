/*
 * filetool - calls the functions for a named sandbox's files, for tests.
 *
 * filetool SANDBOX ACTION...
 *   read PATH [OFFSET [MAX]] | write PATH TEXT | append PATH TEXT | new PATH TEXT |
 *   deep PATH TEXT | list PATH | stat PATH | mkdir PATH | parents PATH |
 *   remove PATH | tree PATH
 */
#include "base/cleanup.h"
#include "named/files.h"
#include "state/ak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static int do_read(struct files *f, char **argv, struct err *e)
{
	cleanup_buf struct buf out;
	uint64_t size = 0;

	buf_init(&out, argv[1] && argv[2] ? strtoul(argv[2], NULL, 10) : 1u << 20);
	if (files_read(f, argv[0], argv[1] ? strtoull(argv[1], NULL, 10) : 0, &out, &size, e) < 0)
		return -1;
	printf("%llu:%.*s\n", (unsigned long long)size, (int)out.len, buf_text(&out));
	return 0;
}

static void print_entry(const struct files_entry *entry)
{
	printf("%s %o %u:%u %llu%s%s\n", entry->name, entry->mode, entry->uid, entry->gid,
	       (unsigned long long)entry->size_bytes, entry->target ? " -> " : "",
	       entry->target ? entry->target : "");
}

static int do_list(struct files *f, const char *path, struct err *e)
{
	CLEANUP(files_list_done) struct files_list list = { 0 };

	if (files_list(f, path, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		print_entry(&list.entries[i]);
	return 0;
}

static int do_stat(struct files *f, const char *path, struct err *e)
{
	CLEANUP(files_entry_done) struct files_entry entry = { 0 };

	if (files_stat(f, path, &entry, e) < 0)
		return -1;
	print_entry(&entry);
	return 0;
}

static int run(struct files *f, const char *op, char **argv, struct err *e)
{
	unsigned flags = strcmp(op, "append") == 0 ? FILES_APPEND
			 : strcmp(op, "new") == 0  ? FILES_NEW
			 : strcmp(op, "deep") == 0 ? FILES_PARENTS
						   : 0;

	if (strcmp(op, "read") == 0)
		return do_read(f, argv, e);
	if (strcmp(op, "list") == 0)
		return do_list(f, argv[0], e);
	if (strcmp(op, "stat") == 0)
		return do_stat(f, argv[0], e);
	if (strcmp(op, "mkdir") == 0 || strcmp(op, "parents") == 0)
		return files_mkdir(f, argv[0], op[0] == 'p' ? FILES_PARENTS : 0, 0755, e);
	if (strcmp(op, "remove") == 0 || strcmp(op, "tree") == 0)
		return files_remove(f, argv[0], op[0] == 't' ? FILES_TREE : 0, e);
	return files_write(f, argv[0], flags, 0640, argv[1], strlen(argv[1]), e);
}

int main(int argc, char **argv)
{
	CLEANUP(files_close) struct files f;
	struct err e = { 0 };
	CLEANUP(ak_close) struct ak ak = { 0 };

	files_init(&f);
	ak_open(&ak, environ);
	if (argc < 4)
		return 2;
	if (files_open(&ak, argv[1], &f, &e) == 0 && run(&f, argv[2], argv + 3, &e) == 0)
		return 0;
	fprintf(stderr, "%d %s\n", (int)e.code, e.msg);
	return 1;
}
