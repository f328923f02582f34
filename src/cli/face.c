/* face - executes a server program; see face.h. */
#include "cli/face.h"

#include "base/mem.h"
#include "engine/helper.h"
#include "rpc/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void face_add(struct face *f, char *word)
{
	f->words = mem_grow(f->words, f->count + 2, sizeof(*f->words));
	f->words[f->count++] = word;
	f->words[f->count] = NULL;
}

void face_add_pair(struct face *f, const char *option, const char *value)
{
	face_add(f, mem_dup(option));
	face_add(f, mem_dup(value));
}

void face_done(struct face *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->words[i]);
	free(f->words);
	free(f->path);
}

int face_begin(struct face *f, const char *program, struct err *e)
{
	char launcher[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", launcher, sizeof(launcher) - 1);

	if (len < 0)
		return err_sys(e, errno, "find this program");
	launcher[len] = '\0';
	if (helper_find(program, &f->path, e) < 0)
		return -1;
	face_add_pair(f, program, launcher);
	return 0;
}

static void add_rate(struct face *f, const struct toolpolicy *t)
{
	if (t->rate_calls == 0)
		return;
	face_add(f, mem_dup("--rate"));
	face_add(f, mem_format("%" PRIu64 ":%" PRIu64, t->rate_calls, t->rate_window_ms));
}

void face_add_ceiling(struct face *f, const struct request *r)
{
	for (size_t i = 0; i < r->typed_count; i++) {
		const struct policy_setting *s = &r->settings.list[i];
		const char *name = policy_field_name(s->field);

		const char *key = s->layer == POLICY_MAXIMUM ? WIRE_MAXIMUM : WIRE_CEILING;

		face_add(f, s->text ? mem_format("%s=%s=%s", key, name, s->text)
				    : mem_format("%s=%s", key, name));
	}
	if (r->config_path)
		face_add(f, mem_format(WIRE_CONFIG "=%s", r->config_path));
	if (r->has_no_config)
		face_add(f, mem_dup(WIRE_NO_CONFIG "=yes"));
	add_rate(f, &r->config.user.tools);
	add_rate(f, &r->config.project.tools);
}

int face_become(const struct face *f, char *const *environ_list, struct err *e)
{
	(void)execve(f->path, f->words, environ_list);
	return err_sys(e, errno, "start '%s'", f->path);
}
