/* buildstate - a stage at one point; see buildstate.h. */
#include "build/buildstate.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "build/expand.h"
#include "policy/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEALTH_MAX_MS (366ull * 24 * 3600 * 1000)
#define PORT_RANGE_MAX 4096u

void buildstate_init(struct buildstate *s)
{
	*s = (struct buildstate){ .base_lower = mem_dup(""),
				  .user = mem_dup(""),
				  .workdir = mem_dup("") };
}

void buildstate_done(struct buildstate *s)
{
	char ***lists[] = { &s->env, &s->args,    &s->shell, &s->entrypoint,
			    &s->cmd, &s->onbuild, &s->rows,  &s->history };

	for (size_t i = 0; i < COUNT_OF(lists); i++)
		keyrows_list_free(lists[i]);
	free(s->base_id);
	free(s->base_lower);
	free(s->user);
	free(s->workdir);
	*s = (struct buildstate){ 0 };
}

static char **copy_list(char *const *list)
{
	char **copy = NULL;

	for (; list && *list; list++)
		(void)keyrows_list_add(&copy, *list);
	return copy;
}

static void set_list(char ***to, char *const *from)
{
	char **copy = copy_list(from);

	keyrows_list_free(to);
	*to = copy;
}

static void set_text(char **to, const char *from)
{
	char *copy = from ? mem_dup(from) : NULL;

	free(*to);
	*to = copy;
}

void buildstate_copy(const struct buildstate *from, struct buildstate *to)
{
	buildstate_done(to);
	*to = *from;
	to->base_id = from->base_id ? mem_dup(from->base_id) : NULL;
	to->base_lower = mem_dup(from->base_lower);
	to->env = copy_list(from->env);
	to->args = NULL; /* each stage declares its own */
	to->shell = copy_list(from->shell);
	to->entrypoint = copy_list(from->entrypoint);
	to->cmd = copy_list(from->cmd);
	to->onbuild = copy_list(from->onbuild);
	to->user = mem_dup(from->user);
	to->workdir = mem_dup(from->workdir);
	to->rows = copy_list(from->rows);
	to->history = copy_list(from->history);
	to->has_cmd = false;
}

void buildstate_take_record(struct buildstate *s, const struct record *r, const char *lower)
{
	set_text(&s->base_id, r->id);
	set_text(&s->base_lower, lower);
	(void)snprintf(s->node, sizeof(s->node), "image-%s", r->id);
	set_list(&s->env, r->env);
	set_list(&s->shell, r->shell);
	set_list(&s->entrypoint, r->entrypoint);
	set_list(&s->cmd, r->cmd);
	set_list(&s->onbuild, r->onbuild);
	set_text(&s->user, r->user);
	set_text(&s->workdir, r->workdir);
}

char *buildstate_lower(const struct buildstate *s, const char *empty)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	for (unsigned i = s->layer_count; i > 0; i--)
		buf_addf(&out, "%s%s", out.len ? ":" : "", s->layers[i - 1].name);
	if (s->base_lower[0])
		buf_addf(&out, "%s%s", out.len ? ":" : "", s->base_lower);
	return mem_dup(out.len ? buf_text(&out) : empty);
}

/* ---- variables ---- */

static const char *find_value(char *const *list, const char *name)
{
	size_t len = strlen(name);

	for (; list && *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return *list + len + 1;
	return NULL;
}

static const char *get_variable(void *context, const char *name)
{
	const struct buildstate *s = context;
	const char *value = find_value(s->env, name);

	return value ? value : find_value(s->args, name);
}

static int expand(const struct buildstate *s, const struct plan *p, unsigned flags,
		  const char *text, char **ret, struct err *e)
{
	const struct expand x = { p->file->escape, flags, get_variable, (void *)(uintptr_t)s };

	return expand_word(&x, text, ret, e);
}

int buildstate_expand(const struct buildstate *s, const struct plan *p, const char *text,
		      char **ret, struct err *e)
{
	return expand(s, p, 0, text, ret, e);
}

int buildstate_expand_text(const struct buildstate *s, const struct plan *p, const char *text,
			   char **ret, struct err *e)
{
	return expand(s, p, EXPAND_AS_IS, text, ret, e);
}

static int add(char ***list, const char *text, struct err *e)
{
	return keyrows_list_add(list, text)
		       ? 0
		       : err_set(e, ERR_LIMIT, "more than %u entries", KEYROWS_LIST_MAX);
}

static int set_value(char ***list, const char *name, const char *value, struct err *e)
{
	size_t len = strlen(name);
	cleanup_free char *text = mem_format("%s=%s", name, value);

	for (char **at = *list; at && *at; at++) {
		if (strncmp(*at, name, len) == 0 && ((*at)[len] == '=' || !(*at)[len])) {
			free(*at);
			*at = take_ptr(text);
			return 0;
		}
	}
	return add(list, text, e);
}

void buildstate_add_path(struct buildstate *s)
{
	struct err ignored;

	if (!find_value(s->env, "PATH"))
		(void)!set_value(&s->env, "PATH", ENVIRONMENT_PATH, &ignored);
}

char **buildstate_variables(const struct buildstate *s, const struct plan *p)
{
	static const char *const proxies[] = { "HTTP_PROXY",  "http_proxy", "HTTPS_PROXY",
					       "https_proxy", "FTP_PROXY",  "ftp_proxy",
					       "NO_PROXY",    "no_proxy",   "ALL_PROXY",
					       "all_proxy" };
	char **list = NULL;
	struct err ignored;

	for (size_t i = 0; i < COUNT_OF(proxies); i++) {
		const char *value = find_value(p->given, proxies[i]);

		if (value)
			(void)!set_value(&list, proxies[i], value, &ignored);
	}
	for (char **arg = s->args; arg && *arg; arg++)
		(void)keyrows_list_add(&list, *arg);
	for (char **env = s->env; env && *env; env++) {
		const char *sign = strchr(*env, '=');
		cleanup_free char *name = mem_dup_bytes(*env, (size_t)(sign - *env));

		(void)!set_value(&list, name, sign + 1, &ignored);
	}
	if (!list)
		list = mem_alloc(sizeof(*list));
	return list;
}

int buildstate_path(const struct buildstate *s, const char *text, char **ret, struct err *e)
{
	cleanup_free char *path =
		path_absolute(s->workdir[0] ? s->workdir : "/", text[0] ? text : ".");
	size_t len = strlen(text);
	bool has_slash = len > 0 && (text[len - 1] == '/' || strcmp(text, ".") == 0 ||
				     (len > 1 && strcmp(text + len - 2, "/.") == 0));

	if (!path)
		return err_set(e, ERR_INVALID, "'%.200s' climbs above '/'", text);
	*ret = has_slash && strcmp(path, "/") != 0 ? mem_format("%s/", path) : take_ptr(path);
	return 0;
}

/* ---- instructions ---- */

typedef int apply_fn(struct buildstate *s, const struct plan *p,
		     const struct dockerfile_instruction *i, struct err *e);

static int apply_env(struct buildstate *s, const struct plan *p,
		     const struct dockerfile_instruction *i, struct err *e)
{
	CLEANUP(keyrows_list_free) char **names = NULL, **values = NULL;

	/* the values before this instruction count for all of it */
	for (unsigned n = 0; n + 2 < i->word_count; n += 3) {
		cleanup_free char *name = NULL, *value = NULL;

		if (buildstate_expand(s, p, i->words[n].text, &name, e) < 0 ||
		    buildstate_expand(s, p, i->words[n + 1].text, &value, e) < 0 ||
		    add(&names, name, e) < 0 || add(&values, value, e) < 0)
			return -1;
		if (!name[0])
			return err_set(e, ERR_INVALID, "the name of a variable is empty");
	}
	for (size_t n = 0; names && names[n]; n++)
		if (set_value(&s->env, names[n], values[n], e) < 0)
			return -1;
	return 0;
}

static int apply_label(struct buildstate *s, const struct plan *p,
		       const struct dockerfile_instruction *i, struct err *e)
{
	for (unsigned n = 0; n + 2 < i->word_count; n += 3) {
		cleanup_free char *name = NULL, *value = NULL, *row = NULL;

		if (buildstate_expand(s, p, i->words[n].text, &name, e) < 0 ||
		    buildstate_expand(s, p, i->words[n + 1].text, &value, e) < 0)
			return -1;
		row = mem_format("label=%s=%s", name, value);
		if (add(&s->rows, row, e) < 0)
			return -1;
	}
	return 0;
}

static int apply_arg(struct buildstate *s, const struct plan *p,
		     const struct dockerfile_instruction *i, struct err *e)
{
	for (unsigned n = 0; n < i->word_count; n++) {
		const char *text = i->words[n].text, *sign = strchr(text, '=');
		cleanup_free char *name =
			mem_dup_bytes(text, sign ? (size_t)(sign - text) : strlen(text));
		const char *given = find_value(p->given, name);
		cleanup_free char *value = NULL;

		if (!given && sign && buildstate_expand(s, p, sign + 1, &value, e) < 0)
			return -1;
		if (!given && !sign)
			given = find_value(p->globals, name);
		if ((given || value) && set_value(&s->args, name, given ? given : value, e) < 0)
			return -1;
	}
	return 0;
}

static int each_word(struct buildstate *s, const struct plan *p,
		     const struct dockerfile_instruction *i, const char *key, struct err *e)
{
	for (unsigned n = 0; n < i->word_count; n++) {
		cleanup_free char *word = NULL, *row = NULL;

		if (buildstate_expand(s, p, i->words[n].text, &word, e) < 0)
			return -1;
		if (!word[0])
			return err_set(e, ERR_INVALID, "'%.60s' is empty", i->words[n].text);
		row = mem_format("%s=%s", key, word);
		if (add(&s->rows, row, e) < 0)
			return -1;
	}
	return 0;
}

static int apply_volume(struct buildstate *s, const struct plan *p,
			const struct dockerfile_instruction *i, struct err *e)
{
	return each_word(s, p, i, "volume", e);
}

/* "80", "80/udp", "90-92": docker's "HOST:PORT" has no meaning in an image. */
static int add_ports(struct buildstate *s, const char *word, struct err *e)
{
	unsigned first = 0, last = 0;
	char protocol[8] = "tcp";
	int used = 0;

	if (sscanf(word, "%5u%n", &first, &used) != 1)
		used = 0;
	last = first;
	if (used && word[used] == '-') {
		int more = 0;

		if (sscanf(word + used, "-%5u%n", &last, &more) != 1)
			used = 0;
		else
			used += more;
	}
	if (used && word[used] == '/') {
		(void)snprintf(protocol, sizeof(protocol), "%.7s", word + used + 1);
		used += 1 + (int)strlen(protocol);
	}
	if (!used || word[used] || first == 0 || last < first || last > 65535 ||
	    last - first >= PORT_RANGE_MAX ||
	    (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0 &&
	     strcmp(protocol, "sctp") != 0))
		return err_set(e, ERR_INVALID,
			       "'%.60s' is no port (80, 80/udp or 8000-8010, from 1 to 65535)",
			       word);
	for (unsigned port = first; port <= last; port++) {
		cleanup_free char *row = mem_format("port=%u/%s", port, protocol);

		if (add(&s->rows, row, e) < 0)
			return -1;
	}
	return 0;
}

static int apply_expose(struct buildstate *s, const struct plan *p,
			const struct dockerfile_instruction *i, struct err *e)
{
	const struct expand x = { p->file->escape, 0, get_variable, s };

	for (unsigned n = 0; n < i->word_count; n++) {
		CLEANUP(keyrows_list_free) char **words = NULL;

		if (expand_words(&x, i->words[n].text, &words, e) < 0)
			return -1;
		for (char **word = words; *word; word++)
			if (add_ports(s, *word, e) < 0)
				return -1;
	}
	return 0;
}

static int apply_stopsignal(struct buildstate *s, const struct plan *p,
			    const struct dockerfile_instruction *i, struct err *e)
{
	return each_word(s, p, i, "stopsignal", e);
}

static int apply_maintainer(struct buildstate *s, const struct plan *p,
			    const struct dockerfile_instruction *i, struct err *e)
{
	cleanup_free char *row = mem_format("author=%s", i->words[0].text);

	(void)p;
	return add(&s->rows, row, e);
}

static int apply_user(struct buildstate *s, const struct plan *p,
		      const struct dockerfile_instruction *i, struct err *e)
{
	char *user = NULL;

	if (buildstate_expand(s, p, i->words[0].text, &user, e) < 0)
		return -1;
	free(s->user);
	s->user = user;
	return 0;
}

/* The list form as it is, else the shell with the text. */
static int set_command(const struct buildstate *s, const struct dockerfile_instruction *i,
		       unsigned from, char ***ret, struct err *e)
{
	static const char *const usual[] = { "/bin/sh", "-c", NULL };
	char **list = NULL;
	int r = 0;

	if (!i->is_json && i->word_count > from) {
		bool is_set = s->shell && s->shell[0];

		for (size_t n = 0; is_set && s->shell[n] && r == 0; n++)
			r = add(&list, s->shell[n], e);
		for (size_t n = 0; !is_set && usual[n] && r == 0; n++)
			r = add(&list, usual[n], e);
	}
	for (unsigned n = from; n < i->word_count && r == 0; n++)
		r = add(&list, i->words[n].text, e);
	if (r < 0) {
		keyrows_list_free(&list);
		return -1;
	}
	keyrows_list_free(ret);
	*ret = list;
	return 0;
}

static int apply_cmd(struct buildstate *s, const struct plan *p,
		     const struct dockerfile_instruction *i, struct err *e)
{
	(void)p;
	s->has_cmd = true;
	return set_command(s, i, 0, &s->cmd, e);
}

/* A CMD of the image below is the argument of its own entrypoint. */
static int apply_entrypoint(struct buildstate *s, const struct plan *p,
			    const struct dockerfile_instruction *i, struct err *e)
{
	(void)p;
	if (!s->has_cmd)
		keyrows_list_free(&s->cmd);
	return set_command(s, i, 0, &s->entrypoint, e);
}

static int apply_shell(struct buildstate *s, const struct plan *p,
		       const struct dockerfile_instruction *i, struct err *e)
{
	(void)p;
	return set_command(s, i, 0, &s->shell, e);
}

static int add_health_time(struct buildstate *s, const struct dockerfile_instruction *i,
			   const char *flag, const char *key, struct err *e)
{
	const char *text = plan_flag(i, flag);
	cleanup_free char *row = NULL;
	uint64_t ms = 0;

	if (!text)
		return 0;
	if (strcmp(text, "0") != 0 && parse_duration_ms(text, 0, HEALTH_MAX_MS, &ms, e) < 0)
		return err_wrap(e, "--%s", flag);
	row = mem_format("%s=%" PRIu64, key, ms * 1000000);
	return add(&s->rows, row, e);
}

static int apply_health(struct buildstate *s, const struct plan *p,
			const struct dockerfile_instruction *i, struct err *e)
{
	bool is_none = strcasecmp(i->words[0].text, "NONE") == 0;
	const char *retries = plan_flag(i, "retries");
	cleanup_free char *row = NULL;
	uint64_t count = 0;

	(void)p;
	if (add(&s->rows, "set=health", e) < 0 || add(&s->rows,
						      is_none      ? "health=NONE"
						      : i->is_json ? "health=CMD"
								   : "health=CMD-SHELL",
						      e) < 0)
		return -1;
	for (unsigned n = 1; n < i->word_count; n++) {
		cleanup_free char *word = mem_format("health=%s", i->words[n].text);

		if (add(&s->rows, word, e) < 0)
			return -1;
	}
	if (add_health_time(s, i, "interval", "health-interval", e) < 0 ||
	    add_health_time(s, i, "timeout", "health-timeout", e) < 0 ||
	    add_health_time(s, i, "start-period", "health-start", e) < 0 ||
	    add_health_time(s, i, "start-interval", "health-start-interval", e) < 0)
		return -1;
	if (!retries)
		return 0;
	if (!keyrows_read_number(retries, 1000000, &count))
		return err_set(e, ERR_INVALID, "--retries=%.40s is no number", retries);
	row = mem_format("health-retries=%" PRIu64, count);
	return add(&s->rows, row, e);
}

static int apply_onbuild(struct buildstate *s, const struct plan *p,
			 const struct dockerfile_instruction *i, struct err *e)
{
	(void)p;
	return add(&s->onbuild, i->rest, e);
}

static const struct {
	const char *keyword;
	apply_fn *apply;
} rows[] = {
	{ "arg", apply_arg },
	{ "cmd", apply_cmd },
	{ "entrypoint", apply_entrypoint },
	{ "env", apply_env },
	{ "expose", apply_expose },
	{ "healthcheck", apply_health },
	{ "label", apply_label },
	{ "maintainer", apply_maintainer },
	{ "onbuild", apply_onbuild },
	{ "shell", apply_shell },
	{ "stopsignal", apply_stopsignal },
	{ "user", apply_user },
	{ "volume", apply_volume },
};

bool buildstate_only_describes(const struct dockerfile_instruction *i)
{
	for (size_t n = 0; n < COUNT_OF(rows); n++)
		if (strcmp(rows[n].keyword, i->keyword) == 0)
			return true;
	return false;
}

int buildstate_apply(struct buildstate *s, const struct plan *p,
		     const struct dockerfile_instruction *i, struct err *e)
{
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		if (strcmp(rows[n].keyword, i->keyword) != 0)
			continue;
		if (rows[n].apply(s, p, i, e) < 0)
			return dockerfile_err_wrap(p->file->name, i, e);
		buildstate_note(s, i, false);
		return 0;
	}
	return err_set(e, ERR_INVALID, "'%s' does more than describe", i->keyword);
}

void buildstate_note(struct buildstate *s, const struct dockerfile_instruction *i, bool has_layer)
{
	cleanup_buf struct buf text;

	buf_init(&text, BUF_TEXT_MAX_BYTES);
	buf_addf(&text, "%s=", has_layer ? "history" : "empty");
	for (const char *c = i->keyword; *c; c++)
		buf_addf(&text, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	for (char **flag = i->flags; flag && *flag; flag++)
		buf_addf(&text, " %s", *flag);
	buf_addf(&text, " %s", i->rest);
	(void)keyrows_list_add(&s->history, buf_text(&text));
}

/* ---- the description ---- */

static void put_list(struct buf *out, const char *key, char *const *list)
{
	keyrows_put(out, "set", key);
	for (; list && *list; list++)
		keyrows_put(out, key, *list);
}

static void put_rows(struct buf *out, char *const *list)
{
	for (; list && *list; list++)
		buf_add(out, *list, strlen(*list) + 1);
}

void buildstate_format(const struct buildstate *s, uint64_t created_s, struct buf *out)
{
	if (s->base_id)
		keyrows_put(out, "base", s->base_id);
	keyrows_put_number(out, "created", created_s);
	for (unsigned i = 0; i < s->layer_count; i++) {
		const struct buildstate_layer *l = &s->layers[i];
		cleanup_free char *row = mem_format("%s %s %s %" PRIu64, l->name, l->diff_id,
						    l->digest, l->size_bytes);

		keyrows_put(out, "layer", row);
	}
	put_list(out, "env", s->env);
	put_list(out, "entrypoint", s->entrypoint);
	put_list(out, "cmd", s->cmd);
	put_list(out, "shell", s->shell);
	put_list(out, "onbuild", s->onbuild);
	if (s->user[0])
		keyrows_put(out, "user", s->user);
	if (s->workdir[0])
		keyrows_put(out, "workdir", s->workdir);
	put_rows(out, s->rows);
	put_rows(out, s->history);
}
