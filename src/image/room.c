/* room - limits how much of a file system images may fill; see room.h. */
#include "image/room.h"

#include "base/parse.h"

#include <errno.h>
#include <sys/vfs.h>

static uint64_t at_most(uint64_t number, uint64_t max)
{
	return number < max ? number : max;
}

int room_check(int fd, uint64_t bytes, uint64_t *ret_bytes, struct err *e)
{
	char text[PARSE_FORMAT_MAX_BYTES];
	uint64_t block, reserve, inodes, available;
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return err_sys(e, errno, "look how much room the file system has");
	block = st.f_bsize > 0 ? (uint64_t)st.f_bsize : 1;
	reserve =
		at_most((uint64_t)st.f_blocks * block / ROOM_RESERVE_PART, ROOM_RESERVE_MAX_BYTES);
	inodes = at_most((uint64_t)st.f_files / ROOM_RESERVE_PART, ROOM_RESERVE_MAX_INODES);
	available = (uint64_t)st.f_bavail * block;
	if (available < reserve || available - reserve < bytes)
		return err_sys(e, ENOSPC, "leave %s free for others",
			       parse_format_bytes(reserve, text));
	if (st.f_files > 0 && (uint64_t)st.f_ffree < inodes)
		return err_sys(e, ENOSPC, "leave %llu files (inodes) for others",
			       (unsigned long long)inodes);
	*ret_bytes = available - reserve;
	return 0;
}
