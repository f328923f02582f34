/* buildcopy - begins a COPY, ADD or WORKDIR: its words, and what it depends on; see buildwork.h. */
#include "build/buildwork.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "build/copylist.h"
#include "build/copystep.h"
#include "build/fetchstep.h"
#include "build/ignore.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int buildcopy_work(void *context, struct err *e)
{
	return copystep_run(context, e);
}

static char *key_of_copy(const struct builder *b, const struct buildwork_stage *s, const char *kind,
			 const struct copystep *c, const char *more)
{
	cleanup_buf struct buf key;

	buf_init(&key, STEPRECORD_MAX_BYTES);
	buf_addf(&key,
		 "%s\nparent=%s\nepoch=%" PRIu64 "\ndestination=%s\nowner=%s\nmode=%s\n%d %d\n",
		 kind, s->built.node, b->o->epoch_s, c->destination, c->owner ? c->owner : "",
		 c->mode ? c->mode : "", c->keeps_parents, c->unpacks);
	for (char *const *word = c->words; word && *word; word++)
		buf_addf(&key, "word=%zu %s\n", strlen(*word), *word);
	for (unsigned n = 0; n < c->text_count; n++)
		buf_addf(&key, "text=%s %zu %s\n", c->texts[n].name, strlen(c->texts[n].content),
			 c->texts[n].content);
	buf_addf(&key, "%s\n", more);
	return mem_dup(buf_text(&key));
}

/* All that belongs to one COPY while it is prepared and started. */
struct copy_prepared {
	struct copystep work;
	struct copylist list;
	char **words, **addresses;
	char *destination, *owner, *mode, *lower, *from_lower, *from_node, *where, *empty,
		*checksum;
	struct copystep_text texts[DOCKERFILE_HEREDOCS_MAX];
	char *contents[DOCKERFILE_HEREDOCS_MAX];
	struct ignore *excluded;
};

static void copy_prepared_done(struct copy_prepared *c)
{
	char *texts[] = { c->destination, c->owner,     c->mode,  c->lower,
			  c->from_lower,  c->from_node, c->where, c->empty };

	copylist_done(&c->list);
	keyrows_list_free(&c->words);
	keyrows_list_free(&c->addresses);
	free(c->checksum);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < COUNT_OF(c->contents); i++)
		free(c->contents[i]);
	ignore_free(c->excluded);
}

static int expand_flag(const struct builder *b, const struct buildwork_stage *s,
		       const struct dockerfile_instruction *i, const char *flag, char **ret,
		       struct err *e)
{
	const char *text = plan_flag(i, flag);

	return text ? buildstate_expand(&s->built, b->o->plan, text, ret, e) : 0;
}

static int read_excluded(const struct dockerfile_instruction *i, struct ignore **ret, struct err *e)
{
	cleanup_buf struct buf text;

	buf_init(&text, IGNORE_FILE_MAX_BYTES);
	for (unsigned n = 0; plan_nth_flag(i, "exclude", n); n++)
		buf_addf(&text, "%s\n", plan_nth_flag(i, "exclude", n));
	return text.len ? ignore_parse("--exclude", buf_text(&text), text.len, ret, e) : 0;
}

static bool is_heredoc_word(const struct dockerfile_instruction *i, const char *word)
{
	return i->heredoc_count > 0 && strncmp(word, "<<", 2) == 0;
}

static int read_texts(const struct builder *b, const struct buildwork_stage *s,
		      const struct dockerfile_instruction *i, struct copy_prepared *c,
		      struct err *e)
{
	for (unsigned n = 0; n < i->heredoc_count; n++) {
		const struct dockerfile_heredoc *h = &i->heredocs[n];

		if (h->expands) {
			if (buildstate_expand_text(&s->built, b->o->plan, h->content,
						   &c->contents[n], e) < 0)
				return -1;
		} else {
			c->contents[n] = mem_dup(h->content);
		}
		if (h->is_chomp)
			builder_chomp(c->contents[n]);
		c->texts[n] = (struct copystep_text){ h->name, c->contents[n] };
	}
	c->work.texts = c->texts;
	c->work.text_count = i->heredoc_count;
	return 0;
}

static bool is_address(const char *word)
{
	return strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0;
}

static bool is_repository(const char *word)
{
	size_t len = strlen(word);

	return strncmp(word, "git@", 4) == 0 || strncmp(word, "git://", 6) == 0 ||
	       strncmp(word, "ssh://", 6) == 0 ||
	       (is_address(word) && len > 4 &&
		(strcmp(word + len - 4, ".git") == 0 || strstr(word, ".git#")));
}

static int check_addresses(const struct copy_prepared *c, struct err *e)
{
	size_t count = keyrows_list_count(c->addresses), len = strlen(c->destination);

	if (c->checksum && (count != 1 || c->words || !reference_is_digest(c->checksum)))
		return err_set(e, ERR_INVALID,
			       "--checksum=sha256:DIGEST is for one address (https://...)");
	if (count && (c->words || c->work.text_count))
		return err_set(e, ERR_UNSUPPORTED,
			       "addresses and files in one ADD (write two instructions)");
	if (count > 1 && c->destination[len - 1] != '/')
		return err_set(
			e, ERR_INVALID,
			"several sources need a destination that is a directory and ends in '/'");
	for (size_t i = 0; i < count; i++) {
		const char *name = strrchr(c->addresses[i], '/') + 1;

		if (c->destination[len - 1] == '/' && strcspn(name, "?#") == 0)
			return err_set(e, ERR_INVALID, "'%.100s' has no name for a file",
				       c->addresses[i]);
	}
	return 0;
}

static int read_copy_words(struct builder *b, struct buildwork_stage *s,
			   const struct dockerfile_instruction *i, struct copy_prepared *c,
			   struct err *e)
{
	unsigned last = i->word_count - 1;

	for (unsigned n = 0; n <= last; n++) {
		cleanup_free char *word = NULL;

		if (n < last && is_heredoc_word(i, i->words[n].text))
			continue;
		if (buildstate_expand(&s->built, b->o->plan, i->words[n].text, &word, e) < 0)
			return -1;
		if (n == last)
			return buildstate_path(&s->built, word, &c->destination, e);
		if (is_repository(word))
			return err_set(
				e, ERR_UNSUPPORTED,
				"'%.100s': a repository is cloned by a RUN, whose network is the "
				"gate's (RUN git clone ...)",
				word);
		if (strcmp(i->keyword, "add") == 0 && is_address(word)
			    ? !keyrows_list_add(&c->addresses, word)
			    : !keyrows_list_add(&c->words, word))
			return err_set(e, ERR_LIMIT, "more than %u sources", KEYROWS_LIST_MAX);
	}
	return 0;
}

static int prepare_copy(struct builder *b, struct buildwork_stage *s,
			const struct dockerfile_instruction *i, struct copy_prepared *c,
			struct err *e)
{
	struct copystep *step = &c->work;
	const char *from = plan_flag(i, "from");

	*c = (struct copy_prepared){ 0 };
	if (plan_flag(i, "keep-git-dir"))
		return err_set(e, ERR_UNSUPPORTED,
			       "--keep-git-dir is for repositories, which are cloned by a RUN");
	if (expand_flag(b, s, i, "checksum", &c->checksum, e) < 0)
		return -1;
	if (read_copy_words(b, s, i, c, e) < 0 || expand_flag(b, s, i, "chown", &c->owner, e) < 0 ||
	    expand_flag(b, s, i, "chmod", &c->mode, e) < 0 || read_texts(b, s, i, c, e) < 0 ||
	    read_excluded(i, &c->excluded, e) < 0 || check_addresses(c, e) < 0)
		return -1;
	c->empty = mem_dup(b->store.empty);
	c->lower = buildstate_lower(&s->built, c->empty);
	*step = (struct copystep){ .context_fd = -1,
				   .texts = step->texts,
				   .text_count = step->text_count,
				   .words = c->words,
				   .excluded = c->excluded,
				   .destination = c->destination,
				   .owner = c->owner,
				   .mode = c->mode,
				   .keeps_parents = plan_flag(i, "parents"),
				   .unpacks = strcmp(i->keyword, "add") == 0,
				   .program = &b->program };
	if (from) {
		if (builder_find_from(b, from, &c->from_lower, &c->from_node, e) < 0)
			return -1;
		c->where = mem_format("'%.100s'", from);
		step->from_lower = c->from_lower;
	} else {
		c->where = mem_dup("the context");
	}
	step->where = c->where;
	return 0;
}

static int list_context(struct builder *b, struct copy_prepared *c, struct err *e)
{
	const struct copylist_options o = { .root_fd = b->o->context_fd,
					    .ignored = b->o->ignored,
					    .excluded = c->excluded,
					    .where = c->where };

	if (c->words && b->o->context_fd < 0)
		return err_set(e, ERR_INVALID,
			       "there is no context to copy from (name a directory)");
	for (char **word = c->words; word && *word; word++)
		if (copylist_add(&c->list, &o, *word, e) < 0)
			return -1;
	c->work.list = &c->list;
	c->work.context_fd = b->o->context_fd;
	return 0;
}

struct copy_child {
	const struct copystep *work;
};

static int do_copy_job(void *context, struct buildwork_result *ret, struct err *e)
{
	const struct copy_child *c = context;
	struct owner_job job = { 0 };

	(void)ret;
	if (owner_start(buildcopy_work, (void *)(uintptr_t)c->work, &job, e) < 0)
		return -1;
	return owner_finish(&job, e);
}

static int start_copy(struct builder *b, struct buildwork_job *j, struct copy_prepared *c,
		      struct err *e)
{
	struct copy_child child = { &c->work };

	if (buildstore_make_work(&b->store, j->work, e) < 0)
		return -1;
	c->work.has_one_owner = strcmp(b->store.owners, "one") == 0;
	c->work.root =
		(struct stageroot){ b->store.layers_fd, b->store.layers_path, j->work, c->lower };
	j->kind = JOB_COPY;
	return builder_start_child(b, j, do_copy_job, &child, false, e);
}

/* ---- addresses ---- */

struct add_child {
	const struct builder *b;
	struct copy_prepared *prepared;
	const char *work;
	int lifeline_fd;
};

/* Fetched files as sources, with the names that the addresses end in. */
static void list_fetched(struct copy_prepared *c, size_t index)
{
	const char *name = strrchr(c->addresses[index], '/') + 1;
	struct copylist *l = &c->list;

	l->entries = mem_grow(l->entries, l->count + 1, sizeof(*l->entries));
	l->entries[l->count] = (struct copylist_entry){ .path = mem_format("fetched-%zu", index),
							.mode = S_IFREG | 0600 };
	l->sources = mem_grow(l->sources, l->source_count + 1, sizeof(*l->sources));
	l->sources[l->source_count++] = (struct copylist_source){
		.path = mem_format("fetched-%zu", index),
		.given = mem_dup_bytes(name, strcspn(name, "?#")),
		.first = l->count,
		.count = 1,
	};
	l->count++;
}

static int fetch_one(const struct add_child *a, size_t index, struct err *e)
{
	static const struct timespec times[2]; /* its own time is not known: 1970, as elsewhere */
	cleanup_free char *path = mem_format("%s/fetched-%zu", a->work, index);
	cleanup_fd int fd =
		openat(a->b->store.layers_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const struct fetchstep s = { .ak = a->b->o->ak,
				     .policy = a->b->o->policy,
				     .program = a->b->program.path,
				     .address = a->prepared->addresses[index],
				     .checksum = a->prepared->checksum,
				     .out_fd = fd,
				     .lifeline_fd = a->lifeline_fd };

	if (fd < 0)
		return err_sys(e, errno, "keep what is fetched");
	if (fetchstep_run(&s, e) < 0)
		return -1;
	if (futimens(fd, times) < 0)
		return err_sys(e, errno, "keep what is fetched");
	list_fetched(a->prepared, index);
	return 0;
}

static int do_add(void *context, struct buildwork_result *ret, struct err *e)
{
	const struct add_child *a = context;
	struct copy_child copy = { &a->prepared->work };

	for (size_t i = 0; a->prepared->addresses[i]; i++)
		if (fetch_one(a, i, e) < 0)
			return -1;
	a->prepared->work.context_fd =
		openat(a->b->store.layers_fd, a->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->prepared->work.context_fd < 0)
		return err_sys(e, errno, "find what was fetched");
	a->prepared->work.list = &a->prepared->list;
	a->prepared->work.unpacks = false; /* as with other builders */
	return do_copy_job(&copy, ret, e);
}

/* Without a digest that it must have, what an address holds is not known before it is fetched. */
static int begin_addresses(struct builder *b, struct buildwork_stage *s, struct buildwork_job *j,
			   struct copy_prepared *c, struct err *e)
{
	struct add_child child = { .b = b, .prepared = c, .work = j->work };
	cleanup_fd int inner_fd = -1;
	cleanup_buf struct buf more;
	int ends[2], found;

	buf_init(&more, STEPRECORD_MAX_BYTES);
	for (char **address = c->addresses; *address; address++)
		buf_addf(&more, "address=%s\n", *address);
	if (c->checksum) {
		buf_addf(&more, "checksum=%s", c->checksum);
		j->key = key_of_copy(b, s, "add", &c->work, buf_text(&more));
		found = builder_look_up(b, s, j, e);
		if (found != 0)
			return found;
	} else {
		j->content_key = key_of_copy(b, s, "add-content", &c->work, buf_text(&more));
	}
	builder_announce(b, j);
	if (buildstore_make_work(&b->store, j->work, e) < 0)
		return -1;
	c->work.has_one_owner = strcmp(b->store.owners, "one") == 0;
	c->work.root =
		(struct stageroot){ b->store.layers_fd, b->store.layers_path, j->work, c->lower };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	inner_fd = child.lifeline_fd = ends[0];
	j->lifeline_fd = ends[1];
	j->kind = JOB_COPY;
	return builder_start_child(b, j, do_add, &child, true, e);
}

int buildcopy_begin(struct builder *b, struct buildwork_stage *s, struct buildwork_job *j,
		    struct err *e)
{
	CLEANUP(copy_prepared_done) struct copy_prepared c;
	char print[COPYLIST_PRINT_BYTES];
	cleanup_free char *more = NULL;
	int found;

	if (prepare_copy(b, s, j->instruction, &c, e) < 0)
		return -1;
	if (c.addresses)
		return begin_addresses(b, s, j, &c, e);
	if (c.from_node) {
		more = mem_format("from=%s", c.from_node);
		j->key = key_of_copy(b, s, "copy", &c.work, more);
	} else {
		if (list_context(b, &c, e) < 0)
			return -1;
		copylist_fingerprint(&c.list, print);
		more = mem_format("print=%s", print);
		j->key = key_of_copy(b, s, "copy-files", &c.work, more);
		j->content_key = key_of_copy(b, s, "copy-content", &c.work, "");
	}
	found = builder_look_up(b, s, j, e);
	if (found != 0)
		return found;
	builder_announce(b, j);
	return start_copy(b, j, &c, e);
}

int buildcopy_begin_workdir(struct builder *b, struct buildwork_stage *s, struct buildwork_job *j,
			    struct err *e)
{
	CLEANUP(copy_prepared_done) struct copy_prepared c = { 0 };
	cleanup_free char *word = NULL, *path = NULL;
	size_t len;
	int found;

	if (buildstate_expand(&s->built, b->o->plan, j->instruction->words[0].text, &word, e) < 0 ||
	    buildstate_path(&s->built, word, &path, e) < 0)
		return -1;
	len = strlen(path);
	if (len > 1 && path[len - 1] == '/')
		path[len - 1] = '\0';
	c.empty = mem_dup(b->store.empty);
	c.lower = buildstate_lower(&s->built, c.empty);
	c.owner = s->built.user[0] ? mem_dup(s->built.user) : NULL;
	c.destination = mem_dup(path);
	c.work = (struct copystep){ .context_fd = -1,
				    .destination = c.destination,
				    .owner = c.owner,
				    .makes_directory = true };
	j->key = key_of_copy(b, s, "workdir", &c.work, "");
	free(s->built.workdir);
	s->built.workdir = take_ptr(path);
	found = builder_look_up(b, s, j, e);
	if (found != 0)
		return found;
	builder_announce(b, j);
	return start_copy(b, j, &c, e);
}
