/* replay - runs a fuzz target over every file of the given folders, without clang. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MAX_BYTES (1u << 20)

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int replay_file(int dir_fd, const char *name)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_at(dir_fd, name, INPUT_MAX_BYTES, &text, &len);

	if (r < 0) {
		fprintf(stderr, "replay: read '%s': %s\n", name, strerror(-r));
		return -1;
	}
	(void)LLVMFuzzerTestOneInput((const uint8_t *)text, len);
	return 0;
}

/* Returns the number of files, or -1. */
static int replay_folder(const char *path)
{
	CLEANUP(closedirp) DIR *dir = opendir(path);
	const struct dirent *entry;
	int count = 0;

	if (!dir) {
		fprintf(stderr, "replay: '%s' cannot be opened\n", path);
		return -1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay_file(dirfd(dir), entry->d_name) < 0)
			return -1;
		count++;
	}
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = replay_folder(argv[i]);

		if (count < 0)
			return 1;
		total += count;
	}
	printf("%s: %d inputs\n", argc > 1 ? argv[1] : "replay", total);
	return total > 0 ? 0 : 1;
}
