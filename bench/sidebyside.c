/*
 * sidebyside - time several commands against each other in one run
 *
 * Theory of operation
 *
 * Each row is a label and a command. After a warm-up, every round runs every row once: spawn,
 * exec, wait, with CLOCK_MONOTONIC read just before and just after. Not all runs of one row
 * and then all of the next: a virtual machine changes speed over seconds, and this way what
 * disturbs one row disturbs the others as well, and their ratio survives.
 *
 * The order follows a Williams design, rotated by one each round: every row takes every place
 * in turn and has every other row before it equally often. With a plain rotation, a row would
 * nearly always follow the same neighbour and pay for what that one leaves to be torn down.
 *
 * Two ratios to the reference row are given. "ratio" is the median over the rounds of (this
 * row / the reference, in the same round) and is the one to quote: drift cancels within a
 * round, and a row that runs in a few rounds only is compared with exactly those rounds. Low
 * and high bound the 95% confidence interval of that median, from order statistics, so they
 * assume nothing about the shape of the noise. "of medians" is the median of the row over the
 * median of the reference; if the two differ by much, the machine was not steady.
 *
 * A row that takes more than SLOW_NS in its fastest warm-up run gets --slow-rounds runs,
 * spread evenly over the rounds. A row that once exits with anything but 0, or cannot be
 * started, is reported with that status and none of its times count.
 *
 * The command is a path and is not looked up in $PATH: the search would be measured too.
 * This program does one thing, so an error of its own ends it (status 2) where it happens.
 */
#define _GNU_SOURCE /* environ */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 64
#define ROUNDS_MAX 1000000
#define IDLE_MAX_MS 60000
#define SLOW_NS 100000000ll

struct row {
	const char *label;
	char **argv;       /* points into main's argv, ends with NULL */
	int64_t *run_ns;   /* one per round, 0 where the row had no turn */
	int64_t warmup_ns; /* the fastest warm-up run, 0 before the first */
	bool is_slow;      /* takes part in --slow-rounds rounds only */
	char failure[80];  /* why the row is left out, "" while it is not */

	/* What comes out: 0 if the row failed, the ratios also if the reference did. */
	size_t run_count;
	double min_ms, median_ms, p95_ms;
	double ratio, ratio_low, ratio_high, ratio_of_medians;
};

struct bench {
	uint64_t rounds, slow_rounds, warmup, idle_ms;
	uint64_t bytes; /* moved by each run, 0: no throughput column */
	const char *reference_label, *json_path;
	const struct row *reference;
	struct row row[ROWS_MAX];
	size_t row_count;
	int label_width;                    /* of the longest label */
	double *scratch;                    /* room for one value per round */
	posix_spawn_file_actions_t actions; /* stdin, stdout and stderr are /dev/null */
};

static const struct option option[] = {
	{ "bytes", required_argument, NULL, 'b' },
	{ "help", no_argument, NULL, 'h' },
	{ "idle-ms", required_argument, NULL, 'i' },
	{ "json", required_argument, NULL, 'j' },
	{ "reference", required_argument, NULL, 'e' },
	{ "rounds", required_argument, NULL, 'n' },
	{ "row", required_argument, NULL, 'r' },
	{ "slow-rounds", required_argument, NULL, 's' },
	{ "warmup", required_argument, NULL, 'w' },
	{ 0 },
};

static _Noreturn void print_usage(int status)
{
	fputs("usage: sidebyside [OPTION...] --row LABEL COMMAND [ARG...] ';' ...\n"
	      "  --rounds N         measured rounds (100)\n"
	      "  --slow-rounds N    rounds for a row slower than 100 ms (30)\n"
	      "  --warmup N         runs of each row before measuring (3)\n"
	      "  --idle-ms MS       sleep before every single run (0)\n"
	      "  --reference LABEL  the row that the ratios refer to (the first)\n"
	      "  --bytes N          bytes moved by each run: adds a GiB/s column\n"
	      "  --json FILE        write the numbers there as well\n"
	      "Exit status: 0, 1 if a row failed, 2 if nothing could be measured.\n",
	      status == 0 ? stdout : stderr);
	exit(status);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static uint64_t parse_number(const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < min || value > max)
		errx(2, "'%s' is not a number from %ju to %ju", text, min, max);
	return value;
}

/* Takes "COMMAND [ARG...] ;" from argv and returns how many words that were. */
static int parse_row(struct bench *b, const char *label, char **argv)
{
	struct row *row = &b->row[b->row_count];
	int count = 0;

	if (b->row_count == ROWS_MAX)
		errx(2, "more than %d rows", ROWS_MAX);
	if (strpbrk(label, "\"\\\n\t"))
		errx(2, "label '%s' has a quote, backslash, tab or new line", label);
	while (argv[count] && strcmp(argv[count], ";") != 0)
		count++;
	if (count == 0 || !argv[count])
		errx(2, "row '%s' needs a command that ends with ';'", label);
	argv[count] = NULL;
	row->label = label;
	row->argv = argv;
	b->row_count++;
	b->label_width = MAX(b->label_width, (int)strlen(label));
	return count + 1;
}

static void parse_options(struct bench *b, int argc, char **argv)
{
	int c;

	/* "+": stop at the first word that is no option, or getopt would reorder the rows */
	while ((c = getopt_long(argc, argv, "+", option, NULL)) >= 0) {
		if (c == 'b')
			b->bytes = parse_number(optarg, 1, 1ull << 50);
		else if (c == 'e')
			b->reference_label = optarg;
		else if (c == 'i')
			b->idle_ms = parse_number(optarg, 0, IDLE_MAX_MS);
		else if (c == 'j')
			b->json_path = optarg;
		else if (c == 'n')
			b->rounds = parse_number(optarg, 1, ROUNDS_MAX);
		else if (c == 'r')
			optind += parse_row(b, optarg, argv + optind);
		else if (c == 's')
			b->slow_rounds = parse_number(optarg, 1, ROUNDS_MAX);
		else if (c == 'w')
			b->warmup = parse_number(optarg, 1, ROUNDS_MAX);
		else
			print_usage(c == 'h' ? 0 : 2);
	}
	if (argv[optind] || b->row_count == 0)
		errx(2, "%s", argv[optind] ? "a word outside of a row" : "no --row");
}

static const struct row *find_reference(const struct bench *b)
{
	for (size_t i = 0; i < b->row_count; i++)
		if (!b->reference_label || strcmp(b->row[i].label, b->reference_label) == 0)
			return &b->row[i];
	errx(2, "--reference '%s' is not the label of a row", b->reference_label);
}

/* Runs the row once. Returns how long it took, or 0 after noting why the row is out. */
static int64_t row_run(const struct bench *b, struct row *row)
{
	struct timespec idle = { (time_t)(b->idle_ms / 1000), (long)(b->idle_ms % 1000) * 1000000 };
	int64_t start, took;
	int r, status;
	pid_t pid;

	while (nanosleep(&idle, &idle) < 0 && errno == EINTR)
		;
	start = now_ns();
	r = posix_spawn(&pid, row->argv[0], &b->actions, NULL, row->argv, environ);
	if (r != 0) {
		snprintf(row->failure, sizeof(row->failure), "not started: %s", strerror(r));
		return 0;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			err(2, "wait for row '%s'", row->label);
	took = now_ns() - start;

	if (status == 0)
		return took;
	snprintf(row->failure, sizeof(row->failure), "%s %d",
		 WIFSIGNALED(status) ? "signal" : "exit",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return 0;
}

static void prepare(struct bench *b)
{
	b->reference = find_reference(b);
	for (size_t i = 0; i < b->row_count; i++)
		if (!(b->row[i].run_ns = calloc(b->rounds, sizeof(int64_t))))
			errx(2, "out of memory");
	b->scratch = calloc(b->rounds, sizeof(*b->scratch));
	if (!b->scratch || posix_spawn_file_actions_init(&b->actions) != 0 ||
	    posix_spawn_file_actions_addopen(&b->actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&b->actions, 1, "/dev/null", O_WRONLY, 0) != 0 ||
	    posix_spawn_file_actions_adddup2(&b->actions, 1, 2) != 0)
		errx(2, "out of memory");
}

static void warm_up(struct bench *b)
{
	for (uint64_t n = 0; n < b->warmup; n++) {
		for (size_t i = 0; i < b->row_count; i++) {
			struct row *row = &b->row[i];
			int64_t took = row->failure[0] ? 0 : row_run(b, row);

			if (took > 0 && (row->warmup_ns == 0 || took < row->warmup_ns))
				row->warmup_ns = took;
		}
	}
	for (size_t i = 0; i < b->row_count; i++)
		b->row[i].is_slow = b->row[i].warmup_ns > SLOW_NS;
}

/* Spreads the rounds of a slow row evenly, so that drift meets it as it meets the others. */
static bool is_due(const struct bench *b, const struct row *row, uint64_t round)
{
	uint64_t cap = row->is_slow ? MIN(b->slow_rounds, b->rounds) : b->rounds;

	return !row->failure[0] && (round + 1) * cap / b->rounds > round * cap / b->rounds;
}

/*
 * The place-th row of a round among count: 0, 1, n-1, 2, n-2, ... plus the round's number. For
 * an odd count only this and its mirror image together have all neighbours equally often.
 */
static size_t order(size_t place, size_t count, uint64_t round)
{
	size_t k = round / count % 2 ? count - 1 - place : place;

	return ((k % 2 ? (k + 1) / 2 : count - k / 2) + round) % count;
}

static void measure(struct bench *b)
{
	for (uint64_t round = 0; round < b->rounds; round++) {
		struct row *due[ROWS_MAX];
		size_t count = 0;

		for (size_t i = 0; i < b->row_count; i++)
			if (is_due(b, &b->row[i], round))
				due[count++] = &b->row[i];
		for (size_t place = 0; place < count; place++) {
			struct row *row = due[order(place, count, round)];

			row->run_ns[round] = row_run(b, row);
		}
	}
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of_sorted(const double *value, size_t count)
{
	return (value[(count - 1) / 2] + value[count / 2]) / 2;
}

static void summarize_times(const struct bench *b, struct row *row)
{
	double *scratch = b->scratch;
	size_t n = 0;

	for (uint64_t i = 0; i < b->rounds; i++)
		if (row->run_ns[i] > 0 && !row->failure[0])
			scratch[n++] = (double)row->run_ns[i] / 1e6;
	if (n == 0)
		return;
	qsort(scratch, n, sizeof(*scratch), compare_doubles);
	row->run_count = n;
	row->min_ms = scratch[0];
	row->median_ms = median_of_sorted(scratch, n);
	row->p95_ms = scratch[(n * 95 + 99) / 100 - 1];
}

/* After summarize_times() of all rows, since it needs the reference's median. */
static void summarize_ratios(const struct bench *b, struct row *row)
{
	const struct row *other = b->reference;
	double *scratch = b->scratch;
	size_t n = 0, half = 1;

	for (uint64_t i = 0; i < b->rounds && row->run_count && other->run_count; i++)
		if (row->run_ns[i] > 0 && other->run_ns[i] > 0)
			scratch[n++] = (double)row->run_ns[i] / (double)other->run_ns[i];
	if (n == 0)
		return;
	qsort(scratch, n, sizeof(*scratch), compare_doubles);
	row->ratio = median_of_sorted(scratch, n);
	row->ratio_of_medians = row->median_ms / other->median_ms;
	/* The ranks n/2 -+ 0.98 sqrt(n) bound the median at 95%; half is that, rounded up. */
	while (half * half < n)
		half++;
	row->ratio_low = scratch[n / 2 > half ? n / 2 - half : 0];
	row->ratio_high = scratch[n / 2 + half < n ? n / 2 + half : n - 1];
}

static void summarize(struct bench *b)
{
	for (struct row *row = b->row; row < b->row + b->row_count; row++)
		summarize_times(b, row);
	for (struct row *row = b->row; row < b->row + b->row_count; row++)
		summarize_ratios(b, row);
}

static void print_table(const struct bench *b)
{
	int width = b->label_width;

	printf("%-*s   runs    min ms median ms    p95 ms", width, "label");
	printf("    ratio  95%% low 95%% high of medians%s\n", b->bytes ? "   GiB/s" : "");
	for (const struct row *r = b->row; r < b->row + b->row_count; r++) {
		if (r->failure[0]) {
			printf("%-*s failed: %s\n", width, r->label, r->failure);
			continue;
		}
		printf("%-*s %6zu %9.3f %9.3f %9.3f", width, r->label, r->run_count, r->min_ms,
		       r->median_ms, r->p95_ms);
		if (r->ratio > 0)
			printf(" %8.3f %8.3f %8.3f %10.3f", r->ratio, r->ratio_low, r->ratio_high,
			       r->ratio_of_medians);
		if (b->bytes)
			printf(" %7.2f", (double)b->bytes / (1 << 30) / r->median_ms * 1e3);
		putchar('\n');
	}
}

/*
 * Nothing needs escaping: parse_row() has refused quotes and the rest is our own words. A row
 * that failed has the reason in "failed", "" otherwise, and zeroes for numbers.
 */
static void write_json(const struct bench *b)
{
	FILE *f = fopen(b->json_path, "we");

	if (!f)
		err(2, "open '%s'", b->json_path);
	fprintf(f, "{\"rounds\": %ju, \"idle_ms\": %ju, \"reference\": \"%s\", \"rows\": [",
		b->rounds, b->idle_ms, b->reference->label);
	for (const struct row *r = b->row; r < b->row + b->row_count; r++) {
		fprintf(f, "%s\n  {\"label\": \"%s\", ", r > b->row ? "," : "", r->label);
		fprintf(f, "\"failed\": \"%s\", \"runs\": %zu, ", r->failure, r->run_count);
		fprintf(f, "\"min_ms\": %f, \"median_ms\": %f, ", r->min_ms, r->median_ms);
		fprintf(f, "\"p95_ms\": %f, \"ratio\": %f, ", r->p95_ms, r->ratio);
		fprintf(f, "\"ratio_low\": %f, \"ratio_high\": %f, ", r->ratio_low, r->ratio_high);
		fprintf(f, "\"ratio_of_medians\": %f}", r->ratio_of_medians);
	}
	fputs("\n]}\n", f);
	if (fclose(f) != 0)
		err(2, "write '%s'", b->json_path);
}

int main(int argc, char **argv)
{
	static struct bench b = { .rounds = 100, .slow_rounds = 30, .warmup = 3, .label_width = 5 };
	int status = 0;

	parse_options(&b, argc, argv);
	prepare(&b);
	warm_up(&b);
	measure(&b);
	summarize(&b);
	print_table(&b);
	if (b.json_path)
		write_json(&b);
	for (size_t i = 0; i < b.row_count; i++)
		status |= b.row[i].failure[0] != '\0';
	return status;
}
