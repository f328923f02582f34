/* plan - stages of a Dockerfile and their needs; see plan.h. */
#include "build/plan.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "build/expand.h"
#include "image/reference.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 128u
#define FLAGS_MAX 8u

/* What each instruction takes: its flags, how many words. */
static const struct shape {
	const char *keyword;
	unsigned min, max; /* words; 0: any number */
	const char *usage;
	const char *flags[FLAGS_MAX];
} shapes[] = {
	{ "add",
	  2,
	  0,
	  "ADD [--chown=USER:GROUP] SOURCE... DESTINATION",
	  { "chown", "chmod", "link", "checksum", "keep-git-dir", "exclude" } },
	{ "arg", 1, 0, "ARG NAME[=VALUE]", { 0 } },
	{ "cmd", 0, 0, "CMD [\"PROGRAM\", \"ARGUMENT\"]", { 0 } },
	{ "copy",
	  2,
	  0,
	  "COPY [--from=STAGE] [--chown=USER:GROUP] SOURCE... DESTINATION",
	  { "from", "chown", "chmod", "link", "parents", "exclude" } },
	{ "entrypoint", 0, 0, "ENTRYPOINT [\"PROGRAM\", \"ARGUMENT\"]", { 0 } },
	{ "env", 3, 0, "ENV NAME=VALUE", { 0 } },
	{ "expose", 1, 0, "EXPOSE PORT[/PROTOCOL]", { 0 } },
	{ "from", 1, 3, "FROM IMAGE [AS NAME]", { "platform" } },
	{ "healthcheck",
	  1,
	  0,
	  "HEALTHCHECK [--interval=TIME] CMD COMMAND, or HEALTHCHECK NONE",
	  { "interval", "timeout", "start-period", "start-interval", "retries" } },
	{ "label", 3, 0, "LABEL NAME=VALUE", { 0 } },
	{ "maintainer", 1, 1, "MAINTAINER NAME", { 0 } },
	{ "onbuild", 0, 0, "ONBUILD INSTRUCTION", { 0 } },
	{ "run", 1, 0, "RUN COMMAND", { "mount", "network", "security" } },
	{ "shell", 1, 0, "SHELL [\"PROGRAM\", \"ARGUMENT\"]", { 0 } },
	{ "stopsignal", 1, 1, "STOPSIGNAL SIGNAL", { 0 } },
	{ "user", 1, 1, "USER NAME[:GROUP]", { 0 } },
	{ "volume", 1, 0, "VOLUME DIRECTORY", { 0 } },
	{ "workdir", 1, 1, "WORKDIR DIRECTORY", { 0 } },
};

static const struct shape *find_shape(const char *keyword)
{
	for (size_t i = 0; i < COUNT_OF(shapes); i++)
		if (strcmp(shapes[i].keyword, keyword) == 0)
			return &shapes[i];
	return NULL;
}

/* ---- one instruction ---- */

const char *plan_nth_flag(const struct dockerfile_instruction *i, const char *name, unsigned nth)
{
	size_t len = strlen(name);

	for (char **flag = i->flags; flag && *flag; flag++) {
		const char *text = *flag + 2;

		if (strncmp(text, name, len) != 0 || (text[len] != '=' && text[len] != '\0'))
			continue;
		if (nth-- == 0)
			return text[len] ? text + len + 1 : "";
	}
	return NULL;
}

const char *plan_flag(const struct dockerfile_instruction *i, const char *name)
{
	return plan_nth_flag(i, name, 0);
}

static int check_flag(const struct dockerfile *d, const struct dockerfile_instruction *i,
		      const struct shape *s, const char *flag, struct err *e)
{
	cleanup_free char *name = mem_dup_bytes(flag + 2, strcspn(flag + 2, "="));
	const char *near;
	unsigned count = 0;

	while (count < FLAGS_MAX && s->flags[count])
		count++;
	for (unsigned n = 0; n < count; n++)
		if (strcmp(s->flags[n], name) == 0)
			return 0;
	near = count ? suggest_nearest(name, s->flags, count) : NULL;
	return dockerfile_err(d->name, i, ERR_INVALID, e, "unknown flag '--%.40s'%s%s%s", name,
			      near ? ", did you mean '--" : "", near ? near : "",
			      near         ? "'?"
			      : count == 0 ? " (it takes none)"
					   : "");
}

static int check_words(const struct dockerfile *d, const struct dockerfile_instruction *i,
		       const struct shape *s, struct err *e)
{
	unsigned count = i->word_count + (i->heredoc_count > 0 && s->min > i->word_count);

	if (count < s->min || (s->max && count > s->max))
		return dockerfile_err(d->name, i, ERR_INVALID, e, "%s %s (it is: %s)",
				      count < s->min ? "too few" : "too many", "words", s->usage);
	for (unsigned n = 0; n < i->word_count; n++)
		if (strlen(i->words[n].text) != i->words[n].len)
			return dockerfile_err(
				d->name, i, ERR_INVALID, e,
				"a word has a NUL in it, which no program can be given");
	return 0;
}

static int check_health(const struct dockerfile *d, const struct dockerfile_instruction *i,
			struct err *e)
{
	bool is_none = strcasecmp(i->words[0].text, "NONE") == 0;

	if (!is_none && strcasecmp(i->words[0].text, "CMD") != 0)
		return dockerfile_err(d->name, i, ERR_INVALID, e, "'%.40s' is neither CMD nor NONE",
				      i->words[0].text);
	if (is_none ? i->word_count > 1 || i->flags : i->word_count < 2)
		return dockerfile_err(d->name, i, ERR_INVALID, e,
				      is_none ? "NONE stands alone" : "CMD needs a command");
	return 0;
}

static int check_onbuild(const struct dockerfile *d, const struct dockerfile_instruction *i,
			 struct err *e)
{
	static const char *const refused[] = { "from", "maintainer", "onbuild" };

	if (!i->sub)
		return dockerfile_err(d->name, i, ERR_INVALID, e, "an instruction is missing");
	for (size_t n = 0; n < COUNT_OF(refused); n++)
		if (strcmp(i->sub->keyword, refused[n]) == 0)
			return dockerfile_err(d->name, i, ERR_INVALID, e,
					      "'%s' may not be in an ONBUILD", refused[n]);
	return plan_check(d, i->sub, e);
}

int plan_check(const struct dockerfile *d, const struct dockerfile_instruction *i, struct err *e)
{
	const struct shape *s = find_shape(i->keyword);

	if (!s)
		return dockerfile_err(d->name, i, ERR_INVALID, e, "it is unknown");
	for (char **flag = i->flags; flag && *flag; flag++)
		if (check_flag(d, i, s, *flag, e) < 0)
			return -1;
	if (check_words(d, i, s, e) < 0)
		return -1;
	if (strcmp(i->keyword, "shell") == 0 && !i->is_json)
		return dockerfile_err(d->name, i, ERR_INVALID, e, "it needs a list in JSON: %s",
				      s->usage);
	if (strcmp(i->keyword, "healthcheck") == 0)
		return check_health(d, i, e);
	return strcmp(i->keyword, "onbuild") == 0 ? check_onbuild(d, i, e) : 0;
}

/* ---- variables before the first FROM ---- */

static const char *find_value(char *const *list, const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;

	for (; list && *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			found = *list + len + 1;
	return found;
}

static const char *get_global(void *context, const char *name)
{
	const struct plan *p = context;

	return find_value(p->globals, name);
}

static void add_platform(struct plan *p)
{
	static const char *const prefixes[] = { "TARGET", "BUILD" };

	for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
		const char *arch = reference_architecture();
		const struct {
			const char *name, *before, *value;
		} rows[] = {
			{ "PLATFORM", "linux/", arch },
			{ "OS", "", "linux" },
			{ "ARCH", "", arch },
			{ "VARIANT", "", "" },
		};

		for (size_t n = 0; n < COUNT_OF(rows); n++) {
			cleanup_free char *text = mem_format("%s%s=%s%s", prefixes[i], rows[n].name,
							     rows[n].before, rows[n].value);

			(void)keyrows_list_add(&p->globals, text);
		}
	}
}

static int add_global(struct plan *p, const struct dockerfile_instruction *i, struct err *e)
{
	const struct expand x = { p->file->escape, 0, get_global, p };

	for (unsigned n = 0; n < i->word_count; n++) {
		const char *text = i->words[n].text, *sign = strchr(text, '=');
		cleanup_free char *name =
			mem_dup_bytes(text, sign ? (size_t)(sign - text) : strlen(text));
		const char *given = find_value(p->given, name);
		cleanup_free char *value = NULL, *row = NULL;

		if (sign && !given && expand_word(&x, sign + 1, &value, e) < 0)
			return dockerfile_err_wrap(p->file->name, i, e);
		if (!given && !value)
			continue;
		row = mem_format("%s=%s", name, given ? given : value);
		if (!keyrows_list_add(&p->globals, row))
			return dockerfile_err(p->file->name, i, ERR_LIMIT, e,
					      "more than %u variables", KEYROWS_LIST_MAX);
	}
	return 0;
}

/* ---- stages ---- */

int plan_find_stage(const struct plan *p, const char *name)
{
	for (unsigned i = 0; i < p->count; i++)
		if (p->stages[i].name && strcasecmp(p->stages[i].name, name) == 0)
			return (int)i;
	if (name[0] && strlen(name) < 4 && !name[strspn(name, "0123456789")] &&
	    strtoul(name, NULL, 10) < p->count)
		return (int)strtoul(name, NULL, 10);
	return PLAN_NO_STAGE;
}

static int check_name(const struct plan *p, const struct dockerfile_instruction *i,
		      const char *name, struct err *e)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	cleanup_free char *lower = mem_dup(name);

	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	if (!isalpha((unsigned char)lower[0]) || lower[strspn(lower, allowed)] ||
	    strlen(lower) > NAME_MAX_BYTES)
		return dockerfile_err(p->file->name, i, ERR_INVALID, e,
				      "'%.60s' is no name for a stage (letters, digits, '-', '_', "
				      "'.', beginning with a letter)",
				      name);
	if (strcmp(lower, "scratch") == 0)
		return dockerfile_err(p->file->name, i, ERR_INVALID, e,
				      "'scratch' is the empty image, no name for a stage");
	if (plan_find_stage(p, lower) != PLAN_NO_STAGE)
		return dockerfile_err(p->file->name, i, ERR_INVALID, e,
				      "there is a stage '%.60s' already", name);
	return 0;
}

static int check_platform(const struct plan *p, const struct dockerfile_instruction *i,
			  struct err *e)
{
	const struct expand x = { p->file->escape, 0, get_global, (void *)(uintptr_t)p };
	cleanup_free char *own = mem_format("linux/%s", reference_architecture());
	const char *flag = plan_flag(i, "platform");
	cleanup_free char *platform = NULL;

	if (!flag)
		return 0;
	if (expand_word(&x, flag, &platform, e) < 0)
		return dockerfile_err_wrap(p->file->name, i, e);
	if (!platform[0] || strncmp(platform, own, strlen(own)) == 0)
		return 0;
	return dockerfile_err(p->file->name, i, ERR_UNSUPPORTED, e,
			      "--platform=%.60s: this machine builds for %s only", platform, own);
}

static int add_stage(struct plan *p, const struct dockerfile_instruction *i, struct err *e)
{
	const struct expand x = { p->file->escape, 0, get_global, p };
	struct plan_stage *s = &p->stages[p->count];
	bool has_name = i->word_count == 3;

	if (p->count == PLAN_STAGES_MAX)
		return dockerfile_err(p->file->name, i, ERR_LIMIT, e, "more than %u stages",
				      PLAN_STAGES_MAX);
	if (i->word_count == 2 || (has_name && strcasecmp(i->words[1].text, "AS") != 0))
		return dockerfile_err(p->file->name, i, ERR_INVALID, e,
				      "what follows the image is 'AS NAME'");
	if (check_platform(p, i, e) < 0 || (has_name && check_name(p, i, i->words[2].text, e) < 0))
		return -1;
	*s = (struct plan_stage){ .from = i, .list = i + 1, .base_stage = PLAN_NO_STAGE };
	if (expand_word(&x, i->words[0].text, &s->base, e) < 0)
		return dockerfile_err_wrap(p->file->name, i, e);
	if (!s->base[0]) {
		free(take_ptr(s->base)); /* the stage does not count yet */
		return dockerfile_err(
			p->file->name, i, ERR_INVALID, e,
			"'%.60s' is empty: give the ARG before the first FROM a value",
			i->words[0].text);
	}
	s->base_stage = plan_find_stage(p, s->base);
	if (s->base_stage != PLAN_NO_STAGE)
		s->needs[s->base_stage] = true;
	s->name = has_name ? mem_dup(i->words[2].text) : mem_format("%u", p->count);
	p->count++;
	return 0;
}

/* A stage by name or, of those before, by number. */
static int add_need(struct plan *p, unsigned at, const struct dockerfile_instruction *i,
		    const char *name, struct err *e)
{
	int stage = plan_find_stage(p, name);

	if (stage == PLAN_NO_STAGE)
		return 0; /* an image */
	if ((unsigned)stage >= at)
		return dockerfile_err(p->file->name, i, ERR_INVALID, e,
				      "--from=%.60s: that stage is not before this one", name);
	p->stages[at].needs[stage] = true;
	return 0;
}

static int find_mount_from(const char *mount, char **ret)
{
	const char *at = mount;

	*ret = NULL;
	while (*at) {
		size_t len = strcspn(at, ",");

		if (strncmp(at, "from=", 5) == 0)
			*ret = mem_dup_bytes(at + 5, len - 5);
		at += len + (at[len] == ',');
	}
	return *ret != NULL;
}

static int note_needs(struct plan *p, unsigned at, const struct dockerfile_instruction *i,
		      struct err *e)
{
	const char *from = plan_flag(i, "from");

	if (strcmp(i->keyword, "copy") == 0 && from)
		return add_need(p, at, i, from, e);
	for (unsigned n = 0; strcmp(i->keyword, "run") == 0; n++) {
		const char *mount = plan_nth_flag(i, "mount", n);
		cleanup_free char *stage = NULL;

		if (!mount)
			break;
		if (find_mount_from(mount, &stage) && add_need(p, at, i, stage, e) < 0)
			return -1;
	}
	return 0;
}

static int add_instruction(struct plan *p, const struct dockerfile_instruction *i, struct err *e)
{
	if (plan_check(p->file, i, e) < 0)
		return -1;
	if (strcmp(i->keyword, "from") == 0)
		return add_stage(p, i, e);
	if (p->count == 0 && strcmp(i->keyword, "arg") == 0)
		return add_global(p, i, e);
	if (p->count == 0)
		return dockerfile_err(p->file->name, i, ERR_INVALID, e,
				      "only ARG may stand before the first FROM");
	p->stages[p->count - 1].count++;
	return note_needs(p, p->count - 1, i, e);
}

static void want(struct plan *p, unsigned stage)
{
	p->stages[stage].is_wanted = true;
	for (unsigned i = 0; i < stage; i++)
		if (p->stages[stage].needs[i] && !p->stages[i].is_wanted)
			want(p, i);
}

static int choose_target(struct plan *p, const char *target, struct err *e)
{
	int found = target ? plan_find_stage(p, target) : (int)p->count - 1;

	if (found == PLAN_NO_STAGE)
		return err_set(e, ERR_NOT_FOUND, "--target: %s has no stage '%.60s'", p->file->name,
			       target);
	p->target = (unsigned)found;
	want(p, p->target);
	return 0;
}

int plan_make(const struct dockerfile *d, char **given, const char *target, struct plan *ret,
	      struct err *e)
{
	CLEANUP(plan_done) struct plan p = { .file = d, .given = given };

	p.stages = mem_alloc(PLAN_STAGES_MAX * sizeof(*p.stages));
	add_platform(&p);
	for (unsigned i = 0; i < d->count; i++)
		if (add_instruction(&p, &d->list[i], e) < 0)
			return -1;
	if (p.count == 0)
		return err_set(e, ERR_INVALID, "%s: there is no FROM", d->name);
	if (choose_target(&p, target, e) < 0)
		return -1;
	*ret = p;
	p = (struct plan){ 0 };
	return 0;
}

void plan_done(struct plan *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		free(p->stages[i].name);
		free(p->stages[i].base);
	}
	free(p->stages);
	keyrows_list_free(&p->globals);
	*p = (struct plan){ 0 };
}
