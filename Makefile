# agentkernel: how it is built and installed. Tests, analysers and fuzzing: tests/tests.mk.
#
#   make                build/agentkernel and its helpers
#   sudo make install   builds, installs to PREFIX (default /usr/local), honours DESTDIR
#   sudo make check     all tests (SAN=1: with ASan and UBSan; TESTING=1: a build whose walls
#                       can be removed and whose system calls can be made to fail, never installed)
#   make bench          side-by-side benchmarks
#   make uninstall | clean | format
#
# A room (a directory of src/) becomes an archive in each flavour that needs it, and a program is a main and the archives
# below it: a new source is found by itself. Two flavours are installed. The launcher is linked statically with musl:
# it starts in a fifth of the time that a dynamic glibc program takes. Its helpers use glibc and their libraries.

VERSION := 0.1.0
# Of the library: changes when programs have to be built again.
SONUMBER := 0
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
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
.SECONDARY: # keep the tests' objects
.SECONDEXPANSION:

# ---- flavours ----------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 \
	-Wpointer-arith -Wundef -Wimplicit-fallthrough -Wno-missing-field-initializers \
	-Wno-format-nonliteral -Wno-format-truncation -Werror
COMMON_FLAGS := -std=gnu17 -D_GNU_SOURCE -Isrc -Iinclude -I$(BUILD)/gen -g $(WARNINGS) \
	-DAGENTKERNEL_VERSION='"$(VERSION)"' $(if $(filter 1,$(TESTING)),-DAGENTKERNEL_TESTING)
HARDENING := -fstack-protector-strong -fPIE
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=all

# musl-gcc does not look where the kernel's headers are; these links are all it needs.
KERNEL_HEADERS := $(BUILD)/kernel-headers
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)

ifeq ($(SAN),1)
# Where the programs leave what the sanitizers report: every caller of the tests can reach /tmp, and the name is the
# build's own.
REPORTS := /tmp/agentkernel-reports-$(shell echo $(abspath $(BUILD)) | cksum | cut -d' ' -f1)
CC_launcher := $(CC)
FLAGS_launcher := $(COMMON_FLAGS) -O1 $(SANITIZERS) -fno-omit-frame-pointer -DREPORTS_FILE='"$(REPORTS)"'
LDFLAGS_launcher := $(SANITIZERS)
FLAGS_helper := $(FLAGS_launcher)
LDFLAGS_helper := $(LDFLAGS_launcher)
else
CC_launcher := $(MUSL_CC)
FLAGS_launcher := $(COMMON_FLAGS) -O2 $(HARDENING) -isystem $(KERNEL_HEADERS) -ffunction-sections -fdata-sections
LDFLAGS_launcher := -static -Wl,-z,relro,-z,now,--gc-sections
FLAGS_helper := $(COMMON_FLAGS) -O2 -D_FORTIFY_SOURCE=2 $(HARDENING)
LDFLAGS_helper := -pie -Wl,-z,relro,-z,now,--as-needed
endif
CC_helper := $(CC)
CC_library := $(CC)
FLAGS_library := $(COMMON_FLAGS) -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIC -fvisibility=hidden
CC_unit := $(CC)
FLAGS_unit := $(COMMON_FLAGS) -O1 -U_FORTIFY_SOURCE $(SANITIZERS)

# What builds for tests have more: a question before each system call whether it has to fail, and where a source needs
# other words; a place for reports.
ifeq ($(TESTING),1)
FAULTS := -include tests/faults/fault.h
TEST_SOURCES := tests/faults/fault.c
%/policy/policy.o: FAULTS += -DFAULT_OWN_READ
%/image/layerpack.o: FAULTS += -DFAULT_OWN_WRITE
%/mcp/protocol.o: FAULTS := # a send() of its own, and no call to the system
%/sandbox/imageroot.o: FAULTS += -DFAULT_HAS_MOUNT
endif
TEST_SOURCES += $(if $(filter 1,$(SAN)),tests/sanitizer/reports.c)

# ---- programs ----------------------------------------------------------------------------

MAINS := $(addprefix src/,cli/main.c net/gate.c image/tool.c mcp/server.c http/httpd.c)
# Lists of system calls, turned into BPF while building.
CALL_LISTS := src/sandbox/seccomp_rules.c src/net/confine_rules.c src/image/layer_rules.c
BUILD_ONLY := src/base/callfilter_compile.c $(CALL_LISTS)
# What of two rooms is in the launcher: the rest needs the helpers' libraries.
SOURCES_launcher_net := $(addprefix src/net/,netns.c netlog.c gatemessage.c ownaddress.c journal.c names.c logshare.c throttle.c)
SOURCES_launcher_image := $(addprefix src/image/,reference.c record.c steprecord.c layeraccounts.c)

# sources of a room in a flavour, objects of sources, the archives of several rooms
sources = $(or $(SOURCES_$1_$2),$(filter-out $(MAINS) $(BUILD_ONLY),$(wildcard src/$2/*.c)))
objects = $(patsubst src/%.c,$(BUILD)/$1/%.o,$2)
archives = $(foreach room,$2,$(BUILD)/$1/$(room).a)

# $(call program,NAME,FLAVOUR,MAIN,ROOMS from the top down,LIBRARIES)
define program
BUILT += $(BUILD)/$1
OBJECTS += $(call objects,$2,$3) $(foreach room,$4,$(call objects,$2,$(call sources,$2,$(room))))
$(BUILD)/$1: $(call objects,$2,$3) $(call archives,$2,$4) $(TEST_SOURCES)
	@echo '  LD   $$@'
	$$(Q)$$(CC_$2) $$(FLAGS_$2) $$(LDFLAGS_$2) -o $$@ $(call objects,$2,$3) $(TEST_SOURCES) $(call archives,$2,$4) $5
endef

SERVE_LIBRARIES := -levent_core -levent_extra -levent_openssl -lssl -lcrypto -ljansson -lwslay -lnghttp2
IMAGE_LIBRARIES := -lcurl -larchive -lcrypto -ljansson -lisal -lzstd -lz
LAUNCHER_ROOMS := cli worker ops build agents pool named engine workspace tree state sandbox protocol host net image policy base
$(eval $(call program,agentkernel,launcher,src/cli/main.c,$(LAUNCHER_ROOMS)))
$(eval $(call program,agentkernel-gate,helper,src/net/gate.c,net policy base,-levent_core -lcares))
$(eval $(call program,agentkernel-image,helper,src/image/tool.c,image policy base,$(IMAGE_LIBRARIES)))
$(eval $(call program,agentkernel-mcp,helper,src/mcp/server.c,mcp rpc policy base,-ljansson))
$(eval $(call program,agentkernel-serve,helper,src/http/httpd.c,http mcp rpc policy base,$(SERVE_LIBRARIES)))

# The library: one object in which only what include/agentkernel.h declares is visible.
LIBRARY_ROOMS := library rpc policy base
LIBRARY := $(BUILD)/libagentkernel.a $(BUILD)/libagentkernel.so.$(SONUMBER)
OBJECTS += $(foreach room,$(LIBRARY_ROOMS),$(call objects,library,$(call sources,library,$(room))))
$(BUILD)/libagentkernel.o: $(call archives,library,$(LIBRARY_ROOMS))
	$(Q)$(CC) -r -nostdlib -o $@ -Wl,--whole-archive $(BUILD)/library/library.a -Wl,--no-whole-archive $(filter-out %/library.a,$^)
	$(Q)objcopy --localize-hidden $@
$(BUILD)/libagentkernel.a: $(BUILD)/libagentkernel.o
	@rm -f $@
	$(Q)ar rcs $@ $^
$(BUILD)/libagentkernel.so.$(SONUMBER): $(BUILD)/libagentkernel.o
	@echo '  LD   $@'
	$(Q)$(CC) -shared -Wl,-soname,$(@F),-z,relro,-z,now -o $@ $^ -ljansson
	$(Q)ln -sfn $(@F) $(BUILD)/libagentkernel.so

.PHONY: all
all: $(BUILT) $(BUILD)/agentkernel.1 $(BUILD)/libagentkernel.3 $(LIBRARY)

# $(BUILD)/FLAVOUR/ROOM.a
%.a: $$(call objects,$$(notdir $$(@D)),$$(call sources,$$(notdir $$(@D)),$$(basename $$(@F))))
	@rm -f $@
	$(Q)ar rcs $@ $^

GENERATED := $(addprefix $(BUILD)/gen/,seccomp_bpf.h confine_bpf.h layer_bpf.h plugin_texts.h template_texts.h)
define flavour
$(BUILD)/$1/%.o: src/%.c $$(GENERATED) $(KERNEL_HEADERS)/.done Makefile
	@mkdir -p $$(@D)
	@echo '  CC   $$<$(if $(filter launcher,$1),, ($1))'
	$$(Q)$$(CC_$1) $$(FLAGS_$1) $(if $(filter launcher helper,$1),$$(FAULTS)) -MMD -MP -c -o $$@ $$<
endef
$(foreach name,launcher helper library unit,$(eval $(call flavour,$(name))))

# The manual of the library, with the table of operations.
$(BUILD)/libagentkernel.3: share/man/libagentkernel.3 $(BUILD)/agentkernel
	@echo '  GEN  $@'
	$(Q)$(BUILD)/agentkernel help --man-operations > $@.operations
	$(Q)sed -e '/^@OPERATIONS@$$/{r $@.operations' -e 'd}' share/man/libagentkernel.3 > $@

$(BUILD)/agentkernel.1: $(BUILD)/agentkernel
	@echo '  GEN  $@'
	$(Q)$(BUILD)/agentkernel help --man > $@

# ---- generated ---------------------------------------------------------------------------

# Which build this is: a digest of the sources, written anew only when it changes.
BUILDID := $(shell cat $(sort $(wildcard src/*/*.[ch] src/*/*.def src/agents/plugin/* share/templates/*)) Makefile 2>/dev/null | sha256sum | cut -c1-12)$(if $(filter 1,$(SAN)),-s)$(if $(filter 1,$(TESTING)),-t)
$(shell mkdir -p $(BUILD)/gen && echo '#define BUILDID_TEXT "$(BUILDID)"' | cmp -s - $(BUILD)/gen/buildid_text.h || \
	echo '#define BUILDID_TEXT "$(BUILDID)"' > $(BUILD)/gen/buildid_text.h)

$(BUILD)/seccomp_compile: src/sandbox/seccomp_rules.c src/sandbox/seccomp.h
$(BUILD)/confine_compile: src/net/confine_rules.c src/net/gate.h
$(BUILD)/layer_compile: src/image/layer_rules.c
$(BUILD)/%_compile: src/base/callfilter_compile.c src/base/callfilter.h
	@mkdir -p $(@D)
	@echo '  CC   $@'
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -Isrc -O1 $(WARNINGS) -o $@ $(filter %.c,$^) -lseccomp

$(BUILD)/gen/%_bpf.h: $(BUILD)/%_compile
	@echo '  GEN  $@'
	$(Q)$< > $@

# What agents are told about us, turned into arrays: skill.md becomes plugin_skill_md[], ended by a NUL.
$(BUILD)/gen/plugin_texts.h: $(wildcard src/agents/plugin/*) Makefile
	@echo '  GEN  $@'
	$(Q)for text in $(wildcard src/agents/plugin/*); do \
		echo "static const unsigned char plugin_$$(basename $$text | tr . _)[] = {" && \
		od -An -v -tx1 $$text | sed 's/ \(..\)/0x\1, /g' && echo '0 };' || exit 1; \
	done > $@

# The recipes of templates: base.Dockerfile becomes template_base[], ended by a NUL.
TEMPLATES := base claude codex gemini opencode
$(BUILD)/gen/template_texts.h: $(TEMPLATES:%=share/templates/%.Dockerfile) Makefile
	@echo '  GEN  $@'
	$(Q)for name in $(TEMPLATES); do \
		echo "static const unsigned char template_$$name[] = {" && \
		od -An -v -tx1 share/templates/$$name.Dockerfile | sed 's/ \(..\)/0x\1, /g' && echo '0 };' || exit 1; \
	done > $@

$(KERNEL_HEADERS)/.done:
	@mkdir -p $(@D)
	@ln -sfn /usr/include/linux $(@D)/linux
	@ln -sfn /usr/include/asm-generic $(@D)/asm-generic
	@ln -sfn $(firstword $(wildcard /usr/include/$(MULTIARCH)/asm) /usr/include/asm) $(@D)/asm
	@touch $@

-include $(OBJECTS:.o=.d)

# Installs what is missing with apt; elsewhere names it and stops. Quick when nothing is.
.PHONY: build-packages
build-packages:
	@tools/packages build

# ---- installing --------------------------------------------------------------------------

INSTALLED := $(DESTDIR)$(PREFIX)/bin/agentkernel \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-gate \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-image \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-mcp \
	$(DESTDIR)$(PREFIX)/libexec/agentkernel/agentkernel-serve \
	$(DESTDIR)$(PREFIX)/include/agentkernel.h \
	$(addprefix $(DESTDIR)$(LIBDIR)/,libagentkernel.a libagentkernel.so libagentkernel.so.$(SONUMBER) \
		pkgconfig/libagentkernel.pc) \
	$(DESTDIR)$(PREFIX)/share/man/man3/libagentkernel.3 \
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
	install -m 644 include/agentkernel.h $(DESTDIR)$(PREFIX)/include/agentkernel.h
	install -m 644 $(LIBRARY) $(DESTDIR)$(LIBDIR)/
	@ln -sfn libagentkernel.so.$(SONUMBER) $(DESTDIR)$(LIBDIR)/libagentkernel.so
	@sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' share/pkgconfig/libagentkernel.pc \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/libagentkernel.pc
	install -m 644 $(BUILD)/libagentkernel.3 $(DESTDIR)$(PREFIX)/share/man/man3/libagentkernel.3
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig 2>/dev/null || true
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

include tests/tests.mk
include tests/checkpoints.mk
