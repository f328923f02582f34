# Tests, analysers and fuzzing: included by the Makefile.
#
#   make check          all tests
#   make check-slow     some of its files as further callers: two minutes that are not in check
#   make check-parity   a field that only the test build's table has, in every face
#   make check-faults   every system call of every operation fails once (OPERATIONS="run exec": of these)
#   make check-walls    each wall left out in turn: which attacks get through then
#   make security-cases docs/SECURITY-CASES.md, from a run of tests/escape
#   make check-vm       the bats files and attacks on Debian's 6.1 kernel with cgroup v2, in QEMU
#                       (FILES="tests/cli/walls.bats tests/escape/run": these alone)
#   make check-build    images from Dockerfiles, compared with buildah's
#   make check-agents   real coding agents in sandboxes
#   make check-compat   real software inside and outside, and every difference (PROGRAMS="java php": these alone)
#   make check-valgrind the helper programs under valgrind, driven by the suite's own tests
#   make check-checkpoints  checkpoints under load, with kill -9: tests/checkpoints.mk
#   make soak           twenty minutes of mixed load, and everything is as before; before that, four
#                       minutes of commands that race for the same sandboxes
#   make storm          commands and HTTP calls while supervisors, gates, daemon and server are killed
#   make analyse        gcc -fanalyzer, cppcheck and clang-tidy over src/
#   make fuzz TIME=60   every fuzz target for so many seconds, with clang (ENGINE=afl: with AFL++)
#   make fuzz-report    executions and coverage of each target

.PHONY: test-packages
test-packages:
	@tools/packages test
	@[ "$$(id -u)" -ne 0 ] || { tools/packages net && tools/packages image; }

# ---- programs of the tests ---------------------------------------------------------------

# Unit tests and replays of fuzz targets take what they need of every room, with glibc and sanitizers.
ROOMS := $(notdir $(patsubst %/,%,$(wildcard src/*/)))
UNIT_ARCHIVES = -Wl,--start-group $(call archives,$1,$(ROOMS)) -Wl,--end-group
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
# A fuzz target is one file. gcc replays its corpus in `make check`; clang looks for more.
FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS := $(FUZZ_TARGETS:%=$(BUILD)/replay/%)
-include $(foreach room,$(ROOMS),$(patsubst %.o,%.d,$(call objects,unit,$(call sources,unit,$(room)))))

$(BUILD)/unit/%: tests/unit/%.c $(wildcard tests/unit/*.h) $(call archives,unit,$(ROOMS))
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC) $(FLAGS_unit) -Itests/unit -o $@ $< $(call UNIT_ARCHIVES,unit) -lcmocka $(IMAGE_LIBRARIES) $(SERVE_LIBRARIES)

$(BUILD)/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $(wildcard tests/fuzz/*.h) $(call archives,unit,$(ROOMS))
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC) $(FLAGS_unit) -Itests/fuzz -o $@ $< tests/fuzz/replay.c $(call UNIT_ARCHIVES,unit) $(IMAGE_LIBRARIES) $(SERVE_LIBRARIES)

# What runs inside sandboxes, or in their place: static, for any root.
PROBE := $(BUILD)/probe
ESCAPE := $(BUILD)/escape
RESOLVER := $(BUILD)/resolver
$(PROBE): $(wildcard tests/probe/*.c)
$(ESCAPE): $(wildcard tests/escape/*.[ch])
$(RESOLVER): tests/net/resolver.c
$(PROBE) $(ESCAPE) $(RESOLVER): $(KERNEL_HEADERS)/.done
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(MUSL_CC) $(COMMON_FLAGS) -isystem $(KERNEL_HEADERS) -O1 -static -o $@ $(filter %.c,$^)

# Parts of the launcher with another main.
KEEPER := $(BUILD)/keeper
FILETOOL := $(BUILD)/filetool
$(KEEPER): tests/net/keeper.c
$(FILETOOL): tests/named/filetool.c
$(KEEPER) $(FILETOOL): $(call archives,launcher,$(LAUNCHER_ROOMS)) $(TEST_SOURCES)
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC_launcher) $(FLAGS_launcher) $(LDFLAGS_launcher) -o $@ $(filter %.c,$^) $(filter %.a,$^)

# Programs of others: the example as README has it, and one that the tests drive.
EXAMPLE := $(BUILD)/example
LIBCALL := $(BUILD)/libcall
$(EXAMPLE): share/examples/run.c $(BUILD)/libagentkernel.a
	@echo '  LD   $@'
	$(Q)$(CC) -Wall -Wextra -Werror -Iinclude -o $@ $^ -ljansson
$(LIBCALL): tests/named/libcall.c $(BUILD)/libagentkernel.so.$(SONUMBER)
	@echo '  LD   $@'
	$(Q)$(CC) -Wall -Wextra -Werror -Iinclude -o $@ $^ -pthread -Wl,-rpath,'$$ORIGIN'

TEST_PROGRAMS := $(PROBE) $(ESCAPE) $(RESOLVER) $(KEEPER) $(FILETOOL) $(EXAMPLE) $(LIBCALL)

# ---- tests -------------------------------------------------------------------------------

.PHONY: check
check: build-packages test-packages
	@$(MAKE) --no-print-directory -j$$(nproc) check-built SAN=$(SAN) TESTING=$(TESTING)

# For the tests that let system calls fail: the launcher is enough.
.PHONY: testing-launcher
testing-launcher:
	@[ -n "$(SAN)$(TESTING)" ] || $(MAKE) --no-print-directory TESTING=1 build/testing/agentkernel

# For the tests of `make install`, which is never that of a special build: they would build it within their time.
.PHONY: plain-build
plain-build:
	@[ -z "$(SAN)$(TESTING)" ] || $(MAKE) --no-print-directory SAN= TESTING= all

.PHONY: check-built
check-built: testing-launcher plain-build all $(UNIT_TESTS) $(REPLAYS) $(TEST_PROGRAMS)
	@BUILD=$(abspath $(BUILD)) REPORTS=$(REPORTS) tests/run-all

# What takes long and is left out of check: files of it as further callers.
.PHONY: check-slow
check-slow: build-packages test-packages
	@$(MAKE) --no-print-directory -j$$(nproc) all $(TEST_PROGRAMS)
	@BUILD=$(abspath $(BUILD)) REPORTS=$(REPORTS) SLOW=1 tests/run-all

.PHONY: check-parity
check-parity: build-packages test-packages
	@$(MAKE) --no-print-directory -j$$(nproc) TESTING=1 all build/testing/probe build/testing/libcall
	@BUILD=$(abspath build/testing) bats --tap tests/named/parity.bats

# Each system call of each operation fails once: the better part of an hour; OPERATIONS="run exec" takes these.
OPERATIONS ?=
.PHONY: check-faults
check-faults: build-packages test-packages
	@$(MAKE) --no-print-directory -j$$(nproc) TESTING=1 all
	@export BUILD=$(abspath build/testing); \
	tests/faults/sweep --user $(OPERATIONS) & user=$$!; \
	tests/faults/sweep $(OPERATIONS); root=$$?; \
	wait $$user && exit $$root

# What the attacks of tests/escape say on this machine, as a document.
.PHONY: security-cases
security-cases: all $(ESCAPE)
	@BUILD=$(abspath $(BUILD)) tests/escape/run --write

# Each wall taken away in turn: something must get through then.
.PHONY: check-walls
check-walls: build-packages
	@$(MAKE) --no-print-directory -j$$(nproc) build/testing/agentkernel build/testing/agentkernel-gate \
		build/testing/agentkernel-image build/testing/escape TESTING=1
	@BUILD=$(abspath build/testing) tests/escape/walls

# Images from Dockerfiles next to buildah's, as root; what is slow about pushing.
.PHONY: check-build
check-build: build-packages test-packages
	@tools/packages images-built
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(abspath $(BUILD)) tests/build/compare
	@BUILD=$(abspath $(BUILD)) bats --tap tests/build

# Real coding agents in sandboxes and as clients of the MCP server, with a scripted model: by hand, since they are 1.3 GB.
.PHONY: check-agents
check-agents: all $(PROBE)
	@tools/packages net
	@BUILD=$(abspath $(BUILD)) tests/agents/install
	@for caller in root user; do AS=$$caller BUILD=$(abspath $(BUILD)) bats tests/agents || exit 1; done

# Real software, inside and outside: about ten minutes, and 1 GB of packages.
PROGRAMS ?=
.PHONY: check-compat
check-compat: build-packages
	@tools/packages compat
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@BUILD=$(abspath $(BUILD)) tests/compat/check $(PROGRAMS)

# gate, image, mcp and serve under memcheck; what helps them to live there is of the tests alone.
VALGRIND_PARTS := $(addprefix $(BUILD)/valgrind/,preload.so native)
$(BUILD)/valgrind/preload.so: tests/valgrind/preload.c
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -g -O1 $(WARNINGS) -fPIC -shared -o $@ $<
$(BUILD)/valgrind/native: tests/valgrind/native.c
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -O1 $(WARNINGS) -o $@ $<

.PHONY: check-valgrind
check-valgrind: build-packages test-packages
	@tools/packages valgrind
	@$(MAKE) --no-print-directory -j$$(nproc) all $(PROBE) $(RESOLVER) $(KEEPER) $(VALGRIND_PARTS)
	@BUILD=$(abspath $(BUILD)) tests/valgrind/check $(FILES)

# Twenty minutes of mixed load: everything has to be at the end as it was at the beginning.
MINUTES ?= 20
.PHONY: soak
soak: all
	@BUILD=$(abspath $(BUILD)) tests/soak/races $(MINUTES)
	@BUILD=$(abspath $(BUILD)) tests/soak/soak --minutes $(MINUTES)

# Commands and HTTP calls while everything of ours is stopped and killed at random: MINUTES=30 is what counts.
.PHONY: storm
storm: all
	@BUILD=$(abspath $(BUILD)) tests/soak/storm --minutes $(MINUTES)

# The tests on another kernel, with cgroup v2 only, in an emulated machine.
FILES ?=
.PHONY: check-vm
check-vm: build-packages
	@tools/packages vm
	@$(MAKE) --no-print-directory testing-launcher all $(TEST_PROGRAMS)
	@BUILD=$(abspath $(BUILD)) FILES="$(FILES)" tests/vm/check-vm

# ---- analysers ---------------------------------------------------------------------------

# gcc: what is not known about other files is told by tools/analyse.h. Left out: it takes a variable with
# a cleanup attribute for used before its initialiser has run.
# cppcheck: queue.h, without which it cannot read TAILQ_HEAD; one file that it cannot parse at all.
ANALYSED := $(filter-out src/base/err.c $(BUILD_ONLY),$(wildcard src/*/*.c))
ANALYSE_FLAGS := $(COMMON_FLAGS) -include tools/analyse.h -Wno-unused-value -Wno-unknown-warning-option
ANALYSER_OFF := -Wno-analyzer-use-of-uninitialized-value
QUEUE_HEADER := $(firstword $(wildcard /usr/include/$(MULTIARCH)/sys/queue.h /usr/include/sys/queue.h))

$(BUILD)/analyse/%.gcc: src/%.c $(GENERATED) tools/analyse.h Makefile
	@mkdir -p $(@D)
	@echo '  GCC  $<'
	$(Q)$(CC) $(ANALYSE_FLAGS) -O1 -fanalyzer $(ANALYSER_OFF) -c -o $@ $<

$(BUILD)/analyse/%.tidy: src/%.c $(GENERATED) tools/analyse.h .clang-tidy Makefile
	@mkdir -p $(@D)
	@echo '  TIDY $<'
	$(Q)clang-tidy --quiet $< -- $(ANALYSE_FLAGS) 2>$@.log || { cat $@.log; exit 1; }
	@touch $@

$(BUILD)/analyse/cppcheck: $(wildcard src/*/*.[ch]) $(GENERATED) Makefile
	@mkdir -p $(@D)
	@echo '  CPPCHECK src'
	$(Q)cppcheck -j2 --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 -D_GNU_SOURCE -D__x86_64__ \
		-DAGENTKERNEL_VERSION='""' -Isrc -I$(BUILD)/gen --include=$(QUEUE_HEADER) \
		--suppress=internalAstError:src/agents/plugin.c src
	@touch $@

.PHONY: analyse analyse-built
analyse: build-packages
	@tools/packages analyse
	@$(MAKE) --no-print-directory -j2 -k analyse-built
analyse-built: $(BUILD)/analyse/cppcheck $(ANALYSED:src/%.c=$(BUILD)/analyse/%.gcc) $(ANALYSED:src/%.c=$(BUILD)/analyse/%.tidy)

# ---- fuzzing -----------------------------------------------------------------------------

# Three more flavours of the rooms: for libFuzzer, for AFL++, whose driver calls a target in one process, and for coverage.
CC_fuzz := clang
FLAGS_fuzz := $(COMMON_FLAGS) -Wno-unknown-warning-option -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LINK_fuzz := -fsanitize=fuzzer
CC_afl := AFL_QUIET=1 AFL_USE_ASAN=1 afl-clang-fast
FLAGS_afl := $(COMMON_FLAGS) -Wno-unknown-warning-option -O1 -fsanitize=undefined -fno-sanitize-recover=all
LINK_afl := -fsanitize=fuzzer
CC_coverage := clang
FLAGS_coverage := $(COMMON_FLAGS) -Wno-unknown-warning-option -O1 -fprofile-instr-generate -fcoverage-mapping -fsanitize=fuzzer-no-link
LINK_coverage := -fsanitize=fuzzer
define fuzz_flavour
$(call flavour,$1)
$(BUILD)/$1/fuzz_%: tests/fuzz/fuzz_%.c $(wildcard tests/fuzz/*.h) $(call archives,$1,$(ROOMS))
	@mkdir -p $$(@D)
	@echo '  LD   $$@'
	$$(Q)$$(CC_$1) $$(FLAGS_$1) $$(LINK_$1) -Itests/fuzz -o $$@ $$< $(call UNIT_ARCHIVES,$1) $(IMAGE_LIBRARIES) $(SERVE_LIBRARIES)
endef
$(foreach name,fuzz afl coverage,$(eval $(call fuzz_flavour,$(name))))

FUZZ_FOUND := build/fuzz/found
TIME ?= 60
.PHONY: fuzz-afl
fuzz-afl:
	@tools/packages afl
	@$(MAKE) --no-print-directory $(FUZZ_TARGETS:%=build/afl/%)
	@for target in $(FUZZ_TARGETS); do \
		out=build/afl/found/$$target; mkdir -p $$out && \
		AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 AFL_AUTORESUME=1 \
			afl-fuzz -V $(TIME) -i tests/fuzz/corpus/$$target -o $$out -- build/afl/$$target >$$out/log 2>&1 || { tail -n 20 $$out/log; exit 1; }; \
		sed -n "s/^\(execs_done\|corpus_count\|edges_found\|total_edges\|saved_crashes\|saved_hangs\) *: */\1 /p" \
			$$out/default/fuzzer_stats | tr '\n' ' ' | sed "s/^/$$target: /"; echo; \
		[ -z "$$(find $$out/default/crashes -name 'id:*' 2>/dev/null)" ] || { echo "crashes: $$out/default/crashes"; exit 1; }; \
	done

ENGINE ?= libfuzzer
.PHONY: fuzz
ifeq ($(ENGINE),afl)
fuzz: fuzz-afl
else
fuzz: fuzz-libfuzzer
endif

.PHONY: fuzz-libfuzzer
fuzz-libfuzzer:
	@tools/packages fuzz
	@$(MAKE) --no-print-directory $(FUZZ_TARGETS:%=build/fuzz/%)
	@for target in $(FUZZ_TARGETS); do \
		mkdir -p $(FUZZ_FOUND)/$$target && \
		build/fuzz/$$target -max_total_time=$(TIME) -max_len=4096 -print_final_stats=1 \
			-artifact_prefix=$(FUZZ_FOUND)/$$target- \
			$(FUZZ_FOUND)/$$target tests/fuzz/corpus/$$target || exit 1; \
	done

# How far each target gets, by clang's coverage: TIME=2 is enough for what the corpora reach.
.PHONY: fuzz-report
fuzz-report:
	@tools/packages fuzz
	@$(MAKE) --no-print-directory -j$$(nproc) $(FUZZ_TARGETS:%=build/coverage/%)
	@tests/fuzz/report $(TIME) $(FUZZ_TARGETS)
