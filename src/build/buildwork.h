#pragma once
/*
 * buildwork - what the parts of a running build share: its stages, its jobs, and what each kind of
 * step (buildrun, buildcopy) needs of the loop (builder).
 */
#include "base/buf.h"
#include "build/builder.h"
#include "build/buildstate.h"
#include "build/buildstore.h"
#include "build/runstep.h"
#include "build/stepcache.h"
#include "engine/helper.h"
#include "named/layertransfer.h"

#define BUILDWORK_JOBS_MAX 16u
#define BUILDWORK_IMAGES_MAX 64u    /* that one build is made from */
#define BUILDWORK_TRIGGERS_MAX 256u /* ONBUILD of one image */

struct buildwork_result { /* of a job, through its pipe */
	struct err error;
	struct runstep_result run;
	struct layertransfer_result packed;
};

enum buildwork_kind { JOB_NONE, JOB_RUN, JOB_COPY, JOB_PACK };

struct buildwork_job {
	enum buildwork_kind kind;
	unsigned stage, number; /* of the step */
	const struct dockerfile_instruction *instruction;
	const char *file; /* that the instruction is in */
	pid_t pid;
	int result_fd, output_fd, lifeline_fd, lock_fd;
	uint64_t started_ms;
	char work[BUILDSTORE_WORK_MAX_BYTES]; /* beneath the layers: "making/..." */
	char layer[RECORD_ID_BYTES + 1];      /* JOB_PACK: its name; "" while it is in .work */
	unsigned layer_index;                 /* JOB_PACK: of the stage's layers */
	char *key;                            /* that the step will be found by */
	char *content_key; /* of a COPY from the context, to which the digest is added; NULL: none
			    */
	char *blob;        /* name of the blob in partial/ */
	char node[RECORD_ID_BYTES + 1];
	uint64_t made_s;
	bool returns;          /* the last byte of its output was a carriage return */
	struct buf line, tail; /* output: the line that is not complete, and the last of it */
};

enum buildwork_state { STAGE_WAITS, STAGE_RUNS, STAGE_DONE };

struct buildwork_stage {
	const struct plan_stage *plan;
	enum buildwork_state state;
	struct buildstate built;
	struct dockerfile triggers[BUILDWORK_TRIGGERS_MAX]; /* ONBUILD of the image below */
	unsigned trigger_count;
	unsigned at;    /* instruction, triggers first */
	unsigned packs; /* layers that are being packed */
	bool has_job;
	bool waits_for_lock;
	unsigned steps, step; /* for people */
};

struct builder {
	const struct builder_options *o;
	struct buildwork_stage *stages;
	struct buildwork_job jobs[BUILDWORK_JOBS_MAX];
	struct stepcache cache;
	struct buildstore store;
	struct images images[BUILDWORK_IMAGES_MAX];
	char *image_names[BUILDWORK_IMAGES_MAX];
	unsigned image_count;
	struct helper program;
	unsigned step_count, cached_count, jobs_max;
	bool has_failed;
	struct err failure;
};

/* What a child process does: its result goes back through a pipe. */
typedef int buildwork_fn(void *context, struct buildwork_result *ret, struct err *e);

/* ---- builder's, for the kinds of steps ---- */

ERR_CHECKED int builder_start_child(struct builder *b, struct buildwork_job *j, buildwork_fn *fn,
				    void *context, bool has_output, struct err *e);
/* 1: it was done before; 0: it has to be done, and is ours to do; 2: another build is at it. */
ERR_CHECKED int builder_look_up(struct builder *b, struct buildwork_stage *s,
				struct buildwork_job *j, struct err *e);
void builder_announce(struct builder *b, struct buildwork_job *j);
/* The layers that a --from names, and what a step depends on when it uses them. */
ERR_CHECKED int builder_find_from(struct builder *b, const char *from, char **ret_lower,
				  char **ret_node, struct err *e);
/* Takes the tabs from the beginnings of the lines, for "<<-". */
void builder_chomp(char *text);

/* ---- the kinds of steps: as builder_look_up(), or -1 ---- */

ERR_CHECKED int buildrun_begin(struct builder *b, struct buildwork_stage *s,
			       struct buildwork_job *j, struct err *e);
ERR_CHECKED int buildcopy_begin(struct builder *b, struct buildwork_stage *s,
				struct buildwork_job *j, struct err *e);
ERR_CHECKED int buildcopy_begin_workdir(struct builder *b, struct buildwork_stage *s,
					struct buildwork_job *j, struct err *e);
/* For a process that copies: `context` is a struct copystep. */
ERR_CHECKED int buildcopy_work(void *context, struct err *e);
