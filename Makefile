# agentkernel: one Makefile for building, testing, installing.
#
#   make                build/agentkernel
#   sudo make install   builds, installs to PREFIX (default /usr/local), honours DESTDIR
#   sudo make check     all tests (SAN=1: with ASan and UBSan; TESTING=1: a build whose walls
#                       can be removed and whose system calls can be made to fail, never installed)
#   make check-slow     some of its files as further callers: two minutes that are not in check
#   make check-faults   every system call of every operation fails once (OPERATIONS="run exec": of these)
#   make check-walls    each wall left out in turn: which attacks get through then
#   make security-cases docs/SECURITY-CASES.md, from a run of tests/escape
#   make check-vm       the bats files and attacks on Debian's 6.1 kernel with cgroup v2, in QEMU
#                       (FILES="tests/cli/walls.bats tests/escape/run": these alone)
#   make check-compat   real software inside and outside, and every difference (PROGRAMS="java php": these alone)
#   make check-valgrind the helper programs under valgrind, driven by the suite's own tests
#   make soak           twenty minutes of mixed load, and everything is as before; before that, four
#                       minutes of commands that race for the same sandboxes
#   make storm          commands and HTTP calls while supervisors, gates, daemon and server are killed
#   make analyse        gcc -fanalyzer, cppcheck and clang-tidy over src/
#   make fuzz TIME=60   every fuzz target for so many seconds, with clang (ENGINE=afl: with AFL++)
#   make fuzz-report    executions and coverage of each target (ENGINE=afl for fuzz: with AFL++)
#   make bench          side-by-side benchmarks
#   make uninstall | clean | format
#
# The launcher is linked statically with musl: it starts in a fifth of the time that a dynamic
# glibc program takes. Unit tests use glibc, cmocka and sanitizers; SAN=1 builds the launcher so too.

VERSION := 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
SAN ?=
TESTING ?=
BUILD := build$(if $(filter 1,$(SAN)),/san)$(if $(filter 1,$(TESTING)),/testing)
CC := gcc
MUSL_CC := musl-gcc
V ?=
Q := $(if $(V),,@)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY: # keep the unit tests' objects

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 \
	-Wpointer-arith -Wundef -Wimplicit-fallthrough -Wno-missing-field-initializers \
	-Wno-format-nonliteral -Wno-format-truncation -Werror
COMMON_FLAGS := -std=gnu17 -D_GNU_SOURCE -Isrc -I$(BUILD)/gen -g $(WARNINGS) \
	-DAGENTKERNEL_VERSION='"$(VERSION)"' $(if $(filter 1,$(TESTING)),-DAGENTKERNEL_TESTING)
HARDENING := -fstack-protector-strong -fPIE
# what asks before each system call whether it has to fail, and where a source needs other words
FAULT_FLAGS := $(if $(filter 1,$(TESTING)),-include tests/faults/fault.h)
FAULT_SOURCE := $(if $(filter 1,$(TESTING)),tests/faults/fault.c)

# musl-gcc does not look where the kernel's headers are; these links are all it needs.
KERNEL_HEADERS := $(BUILD)/kernel-headers
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)

# Where the programs of a build with sanitizers leave what these report: every caller of the tests can
# reach /tmp, and the name is the build's own.
REPORTS := $(if $(filter 1,$(SAN)),/tmp/agentkernel-reports-$(shell echo $(abspath $(BUILD)) | cksum | cut -d' ' -f1))
# what only builds for tests have
TEST_SOURCES := $(FAULT_SOURCE) $(if $(filter 1,$(SAN)),tests/sanitizer/reports.c)

ifeq ($(SAN),1)
LAUNCHER_CC := $(CC)
LAUNCHER_FLAGS := $(COMMON_FLAGS) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer -DREPORTS_FILE='"$(REPORTS)"'
LAUNCHER_LDFLAGS := -fsanitize=address,undefined
HELPER_FLAGS := $(LAUNCHER_FLAGS)
HELPER_LDFLAGS := $(LAUNCHER_LDFLAGS)
else
LAUNCHER_CC := $(MUSL_CC)
LAUNCHER_FLAGS := $(COMMON_FLAGS) -O2 $(HARDENING) -isystem $(KERNEL_HEADERS) \
	-ffunction-sections -fdata-sections
LAUNCHER_LDFLAGS := -static -Wl,-z,relro,-z,now,--gc-sections
HELPER_FLAGS := $(COMMON_FLAGS) -O2 -D_FORTIFY_SOURCE=2 $(HARDENING)
HELPER_LDFLAGS := -pie -Wl,-z,relro,-z,now,--as-needed
endif

# ---- sources -----------------------------------------------------------------------------

# Lists of system calls, turned into BPF while building.
CALL_LISTS := src/sandbox/seccomp_rules.c src/net/confine_rules.c src/image/layer_rules.c
BPF_HEADERS := $(addprefix $(BUILD)/gen/,seccomp_bpf.h confine_bpf.h layer_bpf.h)
BUILD_ONLY := src/base/callfilter_compile.c $(CALL_LISTS)

# Which build this is: a digest of the sources, written anew only when it changes.
BUILDID_HEADER := $(BUILD)/gen/buildid_text.h
BUILDID := $(shell cat $(sort $(wildcard src/*/*.[ch] src/*/*.def src/engine/plugin/*)) Makefile 2>/dev/null | sha256sum | cut -c1-12)$(if $(filter 1,$(SAN)),-s)$(if $(filter 1,$(TESTING)),-t)
$(shell mkdir -p $(BUILD)/gen && echo '#define BUILDID_TEXT "$(BUILDID)"' | cmp -s - $(BUILDID_HEADER) || \
	echo '#define BUILDID_TEXT "$(BUILDID)"' > $(BUILDID_HEADER))

# What agents are told about us, turned into arrays.
PLUGIN_TEXTS := $(wildcard src/engine/plugin/*)
PLUGIN_HEADER := $(BUILD)/gen/plugin_texts.h

# What is in the gate alone, with libevent and c-ares; what the two programs share.
GATE_ONLY := $(addprefix src/net/,gate.c flow.c flowcheck.c flowstate.c lane.c dial.c resolve.c nameserver.c effort.c confine.c)
GATE_SHARED := $(addprefix src/base/,buildid.c err.c shown.c mem.c buf.c parse.c file.c clock.c hash.c wall.c title.c) \
	$(addprefix src/policy/,address.c domain.c egress.c) \
	$(filter-out $(GATE_ONLY) $(CALL_LISTS) src/net/netns.c,$(wildcard src/net/*.c))
GATE_OBJECTS := $(patsubst src/%.c,$(BUILD)/gate/%.o,$(GATE_ONLY) $(GATE_SHARED))
GATE_LIBRARIES := -levent_core -lcares

# What fetches and unpacks images, with libcurl, libarchive, ISA-L, OpenSSL and jansson; the
# launcher itself only reads what that leaves.
IMAGE_FOR_ALL := $(addprefix src/image/,reference.c record.c)
IMAGE_MAIN := src/image/tool.c
IMAGE_ONLY := $(filter-out $(IMAGE_FOR_ALL) $(CALL_LISTS),$(wildcard src/image/*.c))
IMAGE_SHARED := $(addprefix src/base/,buildid.c err.c shown.c mem.c buf.c parse.c file.c path.c clock.c hash.c json.c suggest.c sweep.c keyrows.c wall.c title.c) \
	src/policy/address.c $(wildcard src/base/toml*.c $(IMAGE_FOR_ALL))
IMAGE_OBJECTS := $(patsubst src/%.c,$(BUILD)/image/%.o,$(IMAGE_ONLY) $(IMAGE_SHARED))
IMAGE_LIBRARIES := -lcurl -larchive -lcrypto -ljansson -lisal -lzstd -lz

# What speaks to programs, with jansson (MCP), libevent and OpenSSL (HTTP); errands of the launcher
# do what is asked.
FACE_MAINS := src/mcp/server.c src/http/httpd.c
FACE_ONLY := $(wildcard src/mcp/*.c src/http/*.c src/ops/*.c)
FACE_SHARED := $(addprefix src/base/,buildid.c err.c shown.c mem.c buf.c file.c clock.c json.c keyrows.c suggest.c timestamp.c title.c) \
	$(addprefix src/policy/,operation.c ratelimit.c)
FACE_OBJECTS := $(patsubst src/%.c,$(BUILD)/face/%.o,$(filter src/ops/%,$(FACE_ONLY)) $(FACE_SHARED))
MCP_OBJECTS := $(FACE_OBJECTS) $(patsubst src/%.c,$(BUILD)/face/%.o,$(filter src/mcp/%,$(FACE_ONLY)))
MCP_LIBRARIES := -ljansson
SERVE_OBJECTS := $(FACE_OBJECTS) $(patsubst src/%.c,$(BUILD)/face/%.o,$(filter src/http/% src/mcp/protocol.c src/mcp/answer.c,$(FACE_ONLY)))
SERVE_LIBRARIES := -levent_core -levent_extra -levent_openssl -lssl -lcrypto -ljansson

SOURCES := $(filter-out $(BUILD_ONLY) $(GATE_ONLY) $(IMAGE_ONLY) $(FACE_ONLY),$(wildcard src/*/*.c))
OBJECTS := $(SOURCES:src/%.c=$(BUILD)/launcher/%.o)

UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
LIBRARY_SOURCES := $(filter-out src/cli/main.c,$(SOURCES)) $(filter-out $(IMAGE_MAIN),$(IMAGE_ONLY)) \
	$(filter-out $(FACE_MAINS) $(filter-out $(addprefix src/http/,head.c keys.c origin.c),$(wildcard src/http/*.c)),$(FACE_ONLY))
UNIT_OBJECTS := $(LIBRARY_SOURCES:src/%.c=$(BUILD)/unit-objects/%.o)
UNIT_FLAGS := $(COMMON_FLAGS) -O1 -U_FORTIFY_SOURCE -fsanitize=address,undefined \
	-fno-sanitize-recover=all

# A fuzz target is one file. gcc replays its corpus in `make check`; clang looks for more.
FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS := $(FUZZ_TARGETS:%=$(BUILD)/replay/%)
FUZZ_SOURCES := $(filter-out $(BUILD_ONLY) $(GATE_ONLY) $(IMAGE_MAIN) $(FACE_MAINS), \
	$(wildcard $(addsuffix /*.c,$(addprefix src/,base policy net image ops mcp)))) $(addprefix src/http/,head.c origin.c) src/engine/auditline.c \
	src/sandbox/order.c src/sandbox/tasklog.c
FUZZ_CC := clang
FUZZ_FLAGS := $(COMMON_FLAGS) -Wno-unknown-warning-option -O1 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all
FUZZ_FOUND := build/fuzz/found
TIME ?= 60

PROBE := $(BUILD)/probe
ESCAPE := $(BUILD)/escape
RESOLVER := $(BUILD)/resolver
KEEPER := $(BUILD)/keeper
FILETOOL := $(BUILD)/filetool

# ---- building ----------------------------------------------------------------------------

.PHONY: all
all: $(BUILD)/agentkernel $(BUILD)/agentkernel-gate $(BUILD)/agentkernel-image $(BUILD)/agentkernel-mcp \
	$(BUILD)/agentkernel-serve $(BUILD)/agentkernel.1

$(KERNEL_HEADERS)/.done:
	@mkdir -p $(@D)
	@ln -sfn /usr/include/linux $(@D)/linux
	@ln -sfn /usr/include/asm-generic $(@D)/asm-generic
	@if [ -d /usr/include/$(MULTIARCH)/asm ]; then \
		ln -sfn /usr/include/$(MULTIARCH)/asm $(@D)/asm; \
	else \
		ln -sfn /usr/include/asm $(@D)/asm; \
	fi
	@touch $@

$(BUILD)/seccomp_compile: src/sandbox/seccomp_rules.c src/sandbox/seccomp.h
$(BUILD)/confine_compile: src/net/confine_rules.c src/net/gate.h
$(BUILD)/layer_compile: src/image/layer_rules.c
$(BUILD)/%_compile: src/base/callfilter_compile.c src/base/callfilter.h
	@mkdir -p $(@D)
	@echo '  CC   $@'
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -Isrc -O1 $(WARNINGS) -o $@ $(filter %.c,$^) -lseccomp

$(BUILD)/gen/%_bpf.h: $(BUILD)/%_compile
	@mkdir -p $(@D)
	@echo '  GEN  $@'
	$(Q)$< > $@

# skill.md becomes plugin_skill_md[], ended by a NUL
$(PLUGIN_HEADER): $(PLUGIN_TEXTS) Makefile
	@mkdir -p $(@D)
	@echo '  GEN  $@'
	$(Q)for text in $(PLUGIN_TEXTS); do \
		echo "static const unsigned char plugin_$$(basename $$text | tr . _)[] = {" && \
		od -An -v -tx1 $$text | sed 's/ \(..\)/0x\1, /g' && echo '0 };' || exit 1; \
	done > $@

$(addsuffix /engine/plugintext.o,$(BUILD)/launcher $(BUILD)/unit-objects): $(PLUGIN_HEADER)

$(BUILD)/launcher/%.o: src/%.c $(BPF_HEADERS) $(KERNEL_HEADERS)/.done Makefile
	@mkdir -p $(@D)
	@echo '  CC   $<'
	$(Q)$(LAUNCHER_CC) $(LAUNCHER_FLAGS) $(FAULT_FLAGS) -MMD -MP -c -o $@ $<

ifeq ($(TESTING),1)
%/policy/policy.o: FAULT_FLAGS += -DFAULT_OWN_READ
%/image/layerpack.o: FAULT_FLAGS += -DFAULT_OWN_WRITE
%/mcp/protocol.o: FAULT_FLAGS := # a send() of its own, and no call to the system
%/sandbox/imageroot.o: FAULT_FLAGS += -DFAULT_HAS_MOUNT
endif

$(BUILD)/agentkernel: $(OBJECTS) $(TEST_SOURCES)
	@echo '  LD   $@'
	$(Q)$(LAUNCHER_CC) $(LAUNCHER_FLAGS) $(LAUNCHER_LDFLAGS) -o $@ $(OBJECTS) $(TEST_SOURCES)

$(BUILD)/gate/%.o: src/%.c $(BPF_HEADERS) Makefile
	@mkdir -p $(@D)
	@echo '  CC   $< (gate)'
	$(Q)$(CC) $(HELPER_FLAGS) $(FAULT_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/agentkernel-gate: $(GATE_OBJECTS) $(TEST_SOURCES)
	@echo '  LD   $@'
	$(Q)$(CC) $(HELPER_FLAGS) $(HELPER_LDFLAGS) -o $@ $(GATE_OBJECTS) $(TEST_SOURCES) $(GATE_LIBRARIES)

$(BUILD)/image/%.o: src/%.c $(BPF_HEADERS) Makefile
	@mkdir -p $(@D)
	@echo '  CC   $< (image)'
	$(Q)$(CC) $(HELPER_FLAGS) $(FAULT_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/agentkernel-image: $(IMAGE_OBJECTS) $(TEST_SOURCES)
	@echo '  LD   $@'
	$(Q)$(CC) $(HELPER_FLAGS) $(HELPER_LDFLAGS) -o $@ $(IMAGE_OBJECTS) $(TEST_SOURCES) $(IMAGE_LIBRARIES)

$(BUILD)/face/%.o: src/%.c $(BPF_HEADERS) Makefile
	@mkdir -p $(@D)
	@echo '  CC   $< (face)'
	$(Q)$(CC) $(HELPER_FLAGS) $(FAULT_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/agentkernel-mcp: $(MCP_OBJECTS) $(TEST_SOURCES)
	@echo '  LD   $@'
	$(Q)$(CC) $(HELPER_FLAGS) $(HELPER_LDFLAGS) -o $@ $(MCP_OBJECTS) $(TEST_SOURCES) $(MCP_LIBRARIES)

$(BUILD)/agentkernel-serve: $(SERVE_OBJECTS) $(TEST_SOURCES)
	@echo '  LD   $@'
	$(Q)$(CC) $(HELPER_FLAGS) $(HELPER_LDFLAGS) -o $@ $(SERVE_OBJECTS) $(TEST_SOURCES) $(SERVE_LIBRARIES)

$(BUILD)/agentkernel.1: $(BUILD)/agentkernel
	@echo '  GEN  $@'
	$(Q)$(BUILD)/agentkernel help --man > $@

-include $(OBJECTS:.o=.d) $(UNIT_OBJECTS:.o=.d) $(GATE_OBJECTS:.o=.d) $(IMAGE_OBJECTS:.o=.d) $(MCP_OBJECTS:.o=.d) $(SERVE_OBJECTS:.o=.d)

# ---- packages ----------------------------------------------------------------------------

# Installs what is missing with apt; elsewhere names it and stops. Quick when nothing is.
.PHONY: build-packages test-packages
build-packages:
	@tools/packages build
test-packages:
	@tools/packages test
	@[ "$$(id -u)" -ne 0 ] || { tools/packages net && tools/packages image; }

# ---- tests -------------------------------------------------------------------------------

$(BUILD)/unit-objects/%.o: src/%.c $(BPF_HEADERS) Makefile
	@mkdir -p $(@D)
	@echo '  CC   $< (unit)'
	$(Q)$(CC) $(UNIT_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/unit/%: tests/unit/%.c $(wildcard tests/unit/*.h) $(UNIT_OBJECTS)
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC) $(UNIT_FLAGS) -Itests/unit -o $@ $< $(UNIT_OBJECTS) -lcmocka $(IMAGE_LIBRARIES)

$(BUILD)/replay/%: tests/fuzz/%.c tests/fuzz/replay.c $(wildcard tests/fuzz/*.h) $(UNIT_OBJECTS)
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(CC) $(UNIT_FLAGS) -Itests/fuzz -o $@ $< tests/fuzz/replay.c $(UNIT_OBJECTS) \
		$(IMAGE_LIBRARIES)

$(PROBE): $(wildcard tests/probe/*.c) $(KERNEL_HEADERS)/.done
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(MUSL_CC) $(COMMON_FLAGS) -isystem $(KERNEL_HEADERS) -O1 -static -o $@ tests/probe/*.c

$(ESCAPE): $(wildcard tests/escape/*.[ch]) $(KERNEL_HEADERS)/.done
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(MUSL_CC) $(COMMON_FLAGS) -isystem $(KERNEL_HEADERS) -O1 -static -o $@ tests/escape/*.c

$(RESOLVER): tests/net/resolver.c $(KERNEL_HEADERS)/.done
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(MUSL_CC) $(COMMON_FLAGS) -isystem $(KERNEL_HEADERS) -O1 -static -o $@ $<

$(KEEPER): tests/net/keeper.c
$(FILETOOL): tests/named/filetool.c
$(KEEPER) $(FILETOOL): $(OBJECTS) $(TEST_SOURCES)
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(LAUNCHER_CC) $(LAUNCHER_FLAGS) $(LAUNCHER_LDFLAGS) -o $@ \
		$(filter %.c,$^) $(filter-out %/cli/main.o,$(OBJECTS))

.PHONY: check
check: build-packages test-packages
	@$(MAKE) --no-print-directory -j$$(nproc) check-built SAN=$(SAN) TESTING=$(TESTING)

# For the tests that let system calls fail: the launcher is enough.
.PHONY: testing-launcher
testing-launcher:
	@[ -n "$(SAN)$(TESTING)" ] || $(MAKE) --no-print-directory TESTING=1 build/testing/agentkernel

.PHONY: check-built
check-built: testing-launcher all $(UNIT_TESTS) $(REPLAYS) $(PROBE) $(ESCAPE) $(RESOLVER) $(KEEPER) $(FILETOOL)
	@BUILD=$(abspath $(BUILD)) REPORTS=$(REPORTS) tests/run-all

# What takes long and is left out of check: files of it as further callers.
.PHONY: check-slow
check-slow: build-packages test-packages
	@$(MAKE) --no-print-directory -j$$(nproc) all $(PROBE) $(ESCAPE) $(RESOLVER) $(KEEPER) $(FILETOOL)
	@BUILD=$(abspath $(BUILD)) REPORTS=$(REPORTS) SLOW=1 tests/run-all

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

# Real coding agents in sandboxes: by hand, since they are 1.3 GB.
.PHONY: check-agents
check-agents: all $(PROBE)
	@tools/packages net
	@BUILD=$(abspath $(BUILD)) tests/agents/install
	@for caller in root user; do AS=$$caller BUILD=$(abspath $(BUILD)) bats tests/agents/agents.bats || exit 1; done

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
	@$(MAKE) --no-print-directory testing-launcher all $(PROBE) $(ESCAPE) $(RESOLVER) $(KEEPER) $(FILETOOL)
	@BUILD=$(abspath $(BUILD)) FILES="$(FILES)" tests/vm/check-vm

# ---- analysers ---------------------------------------------------------------------------

# gcc: what is not known about other files is told by tools/analyse.h. Left out: it takes a variable with
# a cleanup attribute for used before its initialiser has run.
# cppcheck: queue.h, without which it cannot read TAILQ_HEAD; one file that it cannot parse at all.
ANALYSED := $(filter-out src/base/err.c $(BUILD_ONLY),$(wildcard src/*/*.c))
ANALYSE_FLAGS := $(COMMON_FLAGS) -include tools/analyse.h -Wno-unused-value -Wno-unknown-warning-option
ANALYSER_OFF := -Wno-analyzer-use-of-uninitialized-value
QUEUE_HEADER := $(firstword $(wildcard /usr/include/$(MULTIARCH)/sys/queue.h /usr/include/sys/queue.h))

$(BUILD)/analyse/%.gcc: src/%.c $(BPF_HEADERS) $(PLUGIN_HEADER) tools/analyse.h Makefile
	@mkdir -p $(@D)
	@echo '  GCC  $<'
	$(Q)$(CC) $(ANALYSE_FLAGS) -O1 -fanalyzer $(ANALYSER_OFF) -c -o $@ $<

$(BUILD)/analyse/%.tidy: src/%.c $(BPF_HEADERS) $(PLUGIN_HEADER) tools/analyse.h .clang-tidy Makefile
	@mkdir -p $(@D)
	@echo '  TIDY $<'
	$(Q)clang-tidy --quiet $< -- $(ANALYSE_FLAGS) 2>$@.log || { cat $@.log; exit 1; }
	@touch $@

$(BUILD)/analyse/cppcheck: $(wildcard src/*/*.[ch]) $(BPF_HEADERS) Makefile
	@mkdir -p $(@D)
	@echo '  CPPCHECK src'
	$(Q)cppcheck -j2 --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --std=c11 -D_GNU_SOURCE -D__x86_64__ \
		-DAGENTKERNEL_VERSION='""' -Isrc -I$(BUILD)/gen --include=$(QUEUE_HEADER) \
		--suppress=internalAstError:src/engine/plugin.c src
	@touch $@

.PHONY: analyse analyse-built
analyse: build-packages
	@tools/packages analyse
	@$(MAKE) --no-print-directory -j2 -k analyse-built
analyse-built: $(BUILD)/analyse/cppcheck $(ANALYSED:src/%.c=$(BUILD)/analyse/%.gcc) $(ANALYSED:src/%.c=$(BUILD)/analyse/%.tidy)

# ---- fuzzing -----------------------------------------------------------------------------

build/fuzz/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(FUZZ_SOURCES) $(BPF_HEADERS) $(wildcard src/*/*.h) Makefile
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -Itests/fuzz -o $@ $< $(FUZZ_SOURCES) $(IMAGE_LIBRARIES)

# The same targets with AFL++, whose driver calls them in one process (persistent mode).
AFL_FLAGS := $(COMMON_FLAGS) -Wno-unknown-warning-option -O1 -fsanitize=fuzzer,undefined -fno-sanitize-recover=all
build/afl/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(FUZZ_SOURCES) $(BPF_HEADERS) $(wildcard src/*/*.h) Makefile
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)AFL_QUIET=1 AFL_USE_ASAN=1 afl-clang-fast $(AFL_FLAGS) -Itests/fuzz -o $@ $< $(FUZZ_SOURCES) $(IMAGE_LIBRARIES)

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
COVERAGE_FLAGS := $(COMMON_FLAGS) -Wno-unknown-warning-option -O1 -fprofile-instr-generate -fcoverage-mapping \
	-fsanitize=fuzzer-no-link
COVERAGE_OBJECTS := $(FUZZ_SOURCES:src/%.c=build/coverage/objects/%.o)
build/coverage/objects/%.o: src/%.c $(BPF_HEADERS) $(wildcard src/*/*.h) Makefile
	@mkdir -p $(@D)
	@echo '  CC   $< (coverage)'
	$(Q)$(FUZZ_CC) $(COVERAGE_FLAGS) -c -o $@ $<
build/coverage/%: tests/fuzz/%.c $(wildcard tests/fuzz/*.h) $(COVERAGE_OBJECTS)
	@mkdir -p $(@D)
	@echo '  LD   $@'
	$(Q)$(FUZZ_CC) $(COVERAGE_FLAGS) -fsanitize=fuzzer -Itests/fuzz -o $@ $< $(COVERAGE_OBJECTS) $(IMAGE_LIBRARIES)

.PHONY: fuzz-report
fuzz-report:
	@tools/packages fuzz
	@$(MAKE) --no-print-directory -j$$(nproc) $(FUZZ_TARGETS:%=build/coverage/%)
	@tests/fuzz/report $(TIME) $(FUZZ_TARGETS)

# ---- installing --------------------------------------------------------------------------

INSTALLED := $(DESTDIR)$(PREFIX)/bin/agentkernel \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-gate \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-image \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-mcp \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-serve \
	$(DESTDIR)$(PREFIX)/share/man/man1/agentkernel.1 \
	$(DESTDIR)$(PREFIX)/share/bash-completion/completions/agentkernel \
	$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_agentkernel \
	$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/agentkernel.fish \
	$(foreach whose,system user,$(foreach kind,service socket, \
		$(DESTDIR)$(PREFIX)/lib/systemd/$(whose)/agentkernel.$(kind)))

.PHONY: install
install: build-packages
	@[ -z "$(TESTING)" ] || { echo 'a TESTING build is not installed: its walls can be removed'; exit 1; }
	@$(MAKE) --no-print-directory all
	@install -d $(dir $(INSTALLED))
	install -m 755 $(BUILD)/agentkernel $(DESTDIR)$(PREFIX)/bin/agentkernel
	install -m 755 $(BUILD)/agentkernel-gate $(BUILD)/agentkernel-image $(BUILD)/agentkernel-mcp \
		$(BUILD)/agentkernel-serve $(DESTDIR)$(PREFIX)/libexec/agentkernel/
	install -m 644 $(BUILD)/agentkernel.1 $(DESTDIR)$(PREFIX)/share/man/man1/agentkernel.1
	@$(BUILD)/agentkernel completion bash \
		> $(DESTDIR)$(PREFIX)/share/bash-completion/completions/agentkernel
	@$(BUILD)/agentkernel completion zsh \
		> $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_agentkernel
	@$(BUILD)/agentkernel completion fish \
		> $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/agentkernel.fish
	@for unit in system/agentkernel.service system/agentkernel.socket user/agentkernel.service user/agentkernel.socket; do \
		sed 's|@PREFIX@|$(PREFIX)|' share/systemd/$$unit > $(DESTDIR)$(PREFIX)/lib/systemd/$$unit || exit 1; \
	done
	@$(MAKE) --no-print-directory install-apparmor
	@echo "agentkernel is installed; try: agentkernel run python3 -c 'print(6*7)'"

# A profile that allows this program user namespaces, where AppArmor keeps them from programs without one. Older versions
# than 4 have no word for it: their parser would complain at every start of the machine. A machine where it cannot be
# installed or loaded still has agentkernel: doctor says what is missing.
APPARMOR ?= /etc/apparmor.d
APPARMOR_PARSER ?= apparmor_parser
APPARMOR_PROFILE := $(DESTDIR)$(APPARMOR)/agentkernel
.PHONY: install-apparmor uninstall-apparmor
install-apparmor:
	@if [ -e $(APPARMOR)/abi/4.0 ] && install -d $(dir $(APPARMOR_PROFILE)) 2>/dev/null && [ -w $(dir $(APPARMOR_PROFILE)) ]; then \
		program=$(PREFIX)/bin/agentkernel; \
		[ -n "$(DESTDIR)" ] || program=$$(realpath -m "$$program"); \
		sed "s|@PROGRAM@|$$program|" share/apparmor/agentkernel > $(APPARMOR_PROFILE) && echo 'install $(APPARMOR_PROFILE)' || exit 1; \
		[ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ] && command -v $(APPARMOR_PARSER) >/dev/null || exit 0; \
		$(APPARMOR_PARSER) -r $(APPARMOR_PROFILE) || echo 'the AppArmor profile could not be loaded now: the next start of this machine does'; \
	fi

uninstall-apparmor:
	@if grep -qs '"$(PREFIX)/bin/agentkernel"\|"$(realpath $(PREFIX))/bin/agentkernel"' $(APPARMOR_PROFILE); then \
		[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ! command -v $(APPARMOR_PARSER) >/dev/null || \
			$(APPARMOR_PARSER) -R $(APPARMOR_PROFILE) || true; \
		rm -f $(APPARMOR_PROFILE); \
	fi

.PHONY: uninstall
uninstall: uninstall-apparmor
	rm -f $(INSTALLED)
	-rmdir $(DESTDIR)$(PREFIX)/libexec/agentkernel

# ---- the rest ----------------------------------------------------------------------------

.PHONY: bench
bench: all
	@AGENTKERNEL=$(abspath $(BUILD))/agentkernel bench/all

.PHONY: format
format:
	clang-format -i src/*/*.[ch] tests/probe/*.c tests/escape/*.[ch] tests/net/*.c tests/unit/*.[ch] \
		tests/fuzz/*.[ch] tests/faults/*.[ch] tests/sanitizer/*.c tests/valgrind/*.c bench/*.c

.PHONY: clean
clean:
	rm -rf build
