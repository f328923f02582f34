/* doctor - what this host can do for sandboxes, and what to do about the rest; see doctor.h. */
#include "engine/doctor.h"

#include "base/cleanup.h"
#include "engine/backend.h"
#include "host/disk.h"
#include "state/statedir.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void doctor_set(struct doctor_finding *f, enum doctor_state state, const char *detail,
		const char *fix)
{
	f->state = state;
	(void)snprintf(f->detail, sizeof(f->detail), "%s", detail);
	(void)snprintf(f->fix, sizeof(f->fix), "%s", fix);
}

/* Not a protection either: --disk of named sandboxes. */
static void check_disk(const struct ak *ak, struct doctor_finding *f)
{
	cleanup_free char *path = NULL;
	cleanup_fd int fd = -1;
	const char *why = NULL;
	struct err e = { 0 };

	if (statedir_path(ak, ".", &path, &e) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) /* the state directory does not exist yet */
		fd = open("/var/lib", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	switch (disk_find_way(fd, &why)) {
	case DISK_QUOTA:
		doctor_set(f, DOCTOR_OK, "--disk of named sandboxes: a project quota", "");
		break;
	case DISK_FILE:
		doctor_set(f, DOCTOR_OK, "--disk of named sandboxes: a file system in a file", "");
		break;
	case DISK_NONE:
		doctor_set(
			f, DOCTOR_WEAKER, why,
			"named sandboxes have no --disk; run's disk is memory and always limited");
		break;
	}
}

size_t doctor_examine(const struct ak *ak, struct doctor_finding ret[DOCTOR_FINDINGS_MAX])
{
	size_t count = 0;

	for (const struct backend *const *b = backend_all; *b; b++)
		count += (*b)->probe(ret + count, DOCTOR_FINDINGS_MAX - 1 - count);
	ret[count] = (struct doctor_finding){ .wall = "disk limits" };
	check_disk(ak, &ret[count]);
	return count + 1;
}
