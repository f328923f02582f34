/*
 * test_transfer - agentkernel-image, started by the launcher's own code to move files and layers;
 * repeated as root of a user namespace.
 */
#include "tarwriter.h"
#include "treeplace.h"

#include "engine/imagehelper.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

static char *program;
static char helper_path[PATH_MAX];
static struct helper helper = { .path = helper_path };
static char answer[4096];

#define WORDS(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static int start(const char *operation, const char *const *words, int dir_fd, int in, int out,
		 int answer_fd, struct imagehelper_job *job, struct err *e)
{
	const struct imagehelper_transfer t = { operation, words,     dir_fd, in,
						out,       answer_fd, &helper };

	return imagehelper_start(&t, job, e);
}

/* Runs one operation; its result is in `answer`. */
static int run(struct place *p, const char *operation, const char *const *words, int dir_fd, int in,
	       int out)
{
	cleanup_fd int answer_fd = memfd_create("answer", MFD_CLOEXEC);
	struct imagehelper_job job;
	ssize_t n;
	int r;

	if (start(operation, words, dir_fd, in, out, answer_fd, &job, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	r = imagehelper_wait(&job, &p->e);
	imagehelper_job_done(&job);
	n = pread(answer_fd, answer, sizeof(answer) - 1, 0);
	assert_true(n >= 0);
	answer[n] = '\0';
	return r;
}

static void expect_run(struct place *p, const char *operation, const char *const *words, int dir_fd,
		       int in, int out)
{
	if (run(p, operation, words, dir_fd, in, out) < 0)
		fail_msg("%s: %s", operation, p->e.msg);
}

static int memory(void)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void rewind_fd(int fd)
{
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

/* From p->from_fd to p->to_fd, both ends at the same time. */
static void move(struct place *p, const char *const *pack, const char *const *unpack)
{
	struct imagehelper_job packer, unpacker;
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	if (start("files-pack", pack, p->from_fd, -1, pipe_fds[1], -1, &packer, &p->e) < 0 ||
	    start("files-unpack", unpack, p->to_fd, pipe_fds[0], -1, -1, &unpacker, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	if (imagehelper_wait(&packer, &p->e) < 0 || imagehelper_wait(&unpacker, &p->e) < 0)
		fail_msg("%s", p->e.msg);
}

static void a_tree_goes_from_one_place_to_another(void **state)
{
	struct place *p = *state;

	make_file(p->from_fd, "a/d/f", "text");
	make_file(p->from_fd, "a/d/e/g", "more");
	make_directories(p->to_fd, "x/y");
	move(p, WORDS("name=a/d", "as=new"), WORDS("name=x/y"));
	expect_text(p->to_fd, "x/y/new/f", "text");
	expect_text(p->to_fd, "x/y/new/e/g", "more");
	move(p, WORDS("name=a/d/.", "as=."), WORDS("name=x"));
	expect_text(p->to_fd, "x/e/g", "more");
	move(p, WORDS("name=a/d/f", "as=one"), WORDS("name=."));
	expect_text(p->to_fd, "one", "text");
}

static void within_a_root_links_lead_within_it(void **state)
{
	struct place *p = *state;

	make_file(p->from_fd, "canary", "of the root");
	make_directories(p->from_fd, "d");
	assert_int_equal(symlinkat("../../../../canary", p->from_fd, "d/l"), 0);
	assert_int_equal(symlinkat("/d", p->from_fd, "dir"), 0);
	assert_int_equal(symlinkat("../../..", p->to_fd, "up"), 0);
	move(p, WORDS("name=/dir/l", "as=f", "root=yes", "follow=yes"),
	     WORDS("name=/up/", "root=yes"));
	expect_text(p->to_fd, "f", "of the root");
	move(p, WORDS("name=/dir/l", "as=l", "root=yes"), WORDS("name=/", "root=yes"));
	assert_true(S_ISLNK(look(p->to_fd, "l").st_mode));
	/* and without a root they lead to their real targets */
	assert_int_equal(symlinkat("../../canary", p->from_fd, "d/out"), 0);
	move(p, WORDS("name=d/out", "as=host", "follow=yes"), WORDS("name=."));
	expect_text(p->to_fd, "host", CANARY);
}

static void expect_error(struct place *p, const char *operation, const char *const *words,
			 enum err_code code, const char *text)
{
	cleanup_fd int fd = memory();

	assert_int_equal(run(p, operation, words, p->from_fd, -1, fd), -1);
	assert_string_equal(p->e.msg, text);
	assert_int_equal(p->e.code, code);
}

static void failures_come_home(void **state)
{
	struct place *p = *state;

	make_file(p->from_fd, "f", "x");
	expect_error(p, "files-pack", WORDS("name=no", "as=x"), ERR_NOT_FOUND, "'no' is not there");
	expect_error(p, "files-pack", WORDS("name=f/x", "as=x"), ERR_INVALID,
		     "'f/x' is not a directory");
	expect_error(p, "files-pack", WORDS("name=f", "as=../x"), ERR_INVALID,
		     "the name in the archive: the name climbs with '..'");
	expect_error(p, "files-unpack", WORDS("name=no"), ERR_NOT_FOUND, "'no' is not there");
	expect_error(p, "files-unpack", WORDS("owner=keep"), ERR_INVALID,
		     "unknown word 'owner=keep'");
	expect_error(p, "layer-pack", WORDS("form=rar"), ERR_INVALID, "unknown form 'rar'");
}

static void a_hostile_archive_reaches_nothing(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf archive = { .max = 1u << 20 };
	struct buf *b = &archive;
	cleanup_fd int fd = memory();

	ADD("up", '2', .link = "..");
	ADD("up/canary", .content = "bad");
	add_end(b);
	assert_int_equal(file_write_all(fd, b->bytes, b->len), 0);
	rewind_fd(fd);
	assert_int_equal(run(p, "files-unpack", WORDS("name=."), p->to_fd, fd, -1), -1);
	assert_string_equal(p->e.msg, "'up/canary': the name leads through a symbolic link");
	rewind_fd(fd);
	expect_run(p, "layer-unpack", WORDS("owners=one"), p->from_fd, fd, -1);
	expect_text(p->from_fd, "canary", "bad"); /* the layer is the root for it */
}

static const char *line(const char *key)
{
	static char value[256];
	const char *at = strstr(answer, key);

	if (!at)
		fail_msg("no %s in: %s", key, answer);
	at += strlen(key);
	(void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n"), at);
	return value;
}

static void layers_go_out_and_come_back(void **state)
{
	static const char *const forms[] = { "form=zstd", "form=gzip", "form=plain" };
	struct place *p = *state;
	char diff_id[256], digest[256], name[16];

	make_file(p->from_fd, "d/f", "text");
	if (mknodat(p->from_fd, "d/gone", S_IFCHR, 0) < 0) {
		print_message("needs root or a user namespace, for whiteouts\n");
		skip();
	}
	make_opaque(p->from_fd, "d");
	expect_run(p, "layer-digest", NULL, p->from_fd, -1, -1);
	strcpy(diff_id, line("diff-id="));
	for (unsigned i = 0; i < COUNT_OF(forms); i++) {
		cleanup_fd int fd = memory(), to_fd = -1;

		(void)snprintf(name, sizeof(name), "layer-%u", i);
		to_fd = make_directory(p->to_fd, name);
		expect_run(p, "layer-pack", WORDS(forms[i]), p->from_fd, -1, fd);
		assert_string_equal(line("diff-id="), diff_id);
		strcpy(digest, line("digest="));
		assert_int_equal(atol(line("\nbytes=")), lseek(fd, 0, SEEK_END));
		rewind_fd(fd);
		expect_run(p, "layer-unpack", NULL, to_fd, fd, -1);
		assert_string_equal(line("diff-id="), diff_id);
		assert_string_equal(line("\ndigest="), digest);
		assert_string_equal(line("entries="), "5");
		assert_string_equal(line("root-opaque="), "no");
		assert_true(is_whiteout(to_fd, "d/gone") && is_opaque(to_fd, "d"));
		expect_run(p, "layer-digest", NULL, to_fd, -1, -1);
		assert_string_equal(line("diff-id="), diff_id);
		expect_run(p, "layer-digest", WORDS("raw=yes"), to_fd, -1, -1);
		assert_string_not_equal(line("diff-id="), diff_id);
	}
}

/* With our own ids: only root of all owners can do it. */
static void owners_are_kept_on_demand(void **state)
{
	struct place *p = *state;

	if (!can_give_away(p)) {
		print_message("needs several owners\n");
		skip();
	}
	make_file(p->from_fd, "f", "x");
	assert_int_equal(fchownat(p->from_fd, "f", 12, 34, 0), 0);
	assert_int_equal(fchmodat(p->from_fd, "f", 04755, 0), 0);
	move(p, WORDS("name=f", "as=kept"), WORDS("owners=keep"));
	move(p, WORDS("name=f", "as=own"), WORDS("name=."));
	assert_int_equal(look(p->to_fd, "kept").st_uid, 12);
	assert_int_equal(look(p->to_fd, "kept").st_mode, S_IFREG | 04755);
	assert_int_equal(look(p->to_fd, "own").st_uid, 0);
	assert_int_equal(look(p->to_fd, "own").st_mode, S_IFREG | 0755);
}

/* Does it get a seccomp filter soon? */
static bool is_locked_in(pid_t pid)
{
	char path[64], text[8192];
	bool is_locked = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	for (unsigned i = 0; i < 500 && !is_locked; i++) {
		cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		assert_true(n > 0);
		text[n] = '\0';
		is_locked = strstr(text, "\nSeccomp:\t2\n") && strstr(text, "\nNoNewPrivs:\t1\n");
		(void)usleep(10000);
	}
	return is_locked;
}

static void expect_locked_in_and_ended(void **state, const char *operation)
{
	struct place *p = *state;
	struct imagehelper_job job;
	int pipe_fds[2];
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	if (start(operation, NULL, p->to_fd, pipe_fds[0], -1, -1, &job, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	pid = job.pid;
	assert_true(is_locked_in(pid));
	imagehelper_job_done(&job);
	imagehelper_job_done(&job);
	assert_int_equal(kill(pid, 0), -1);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

static void unpacking_files_is_locked_in(void **state)
{
	expect_locked_in_and_ended(state, "files-unpack");
}

static void unpacking_a_layer_is_locked_in(void **state)
{
	expect_locked_in_and_ended(state, "layer-unpack");
}

static void all_of_this_holds_in_a_user_namespace(void **state)
{
	int status;

	(void)state;
	if (is_inside())
		return;
	status = run_inside(program);
	if (status == 77) {
		print_message("needs user namespaces\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(a_tree_goes_from_one_place_to_another),
		TREE_TEST(within_a_root_links_lead_within_it),
		TREE_TEST(failures_come_home),
		TREE_TEST(a_hostile_archive_reaches_nothing),
		TREE_TEST(layers_go_out_and_come_back),
		TREE_TEST(owners_are_kept_on_demand),
		TREE_TEST(unpacking_files_is_locked_in),
		TREE_TEST(unpacking_a_layer_is_locked_in),
		cmocka_unit_test(all_of_this_holds_in_a_user_namespace),
	};
	char *slash;

	(void)argc;
	program = argv[0];
	(void)snprintf(helper_path, sizeof(helper_path), "%s", program);
	slash = strrchr(helper_path, '/');
	(void)strcpy(slash ? slash + 1 : helper_path, "../agentkernel-image");
	helper.fd = open(helper_path, O_PATH | O_CLOEXEC);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
