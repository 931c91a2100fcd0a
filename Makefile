# culprit: settings, then rules that build, then targets for users.
# make V=1 shows the commands; make help lists the targets.

OUT      ?= out
PREFIX   ?= /usr/local
CC       ?= gcc
VERSION  := 0.1.0
.DEFAULT_GOAL := programs
SANITIZE ?=
ifndef JOBS
JOBS     := $(shell nproc)
endif
WERROR   ?=
# The C tests run under sanitizers, from a build of their own.
ASAN     ?= $(OUT)-asan

override CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=314 -DCULPRIT_VERSION='"$(VERSION)"'
CFLAGS   ?= -O2 -g
override CFLAGS += -std=c17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wno-missing-field-initializers -Wno-format-truncation -pthread $(if $(WERROR),-Werror)
override CFLAGS += $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
override LDFLAGS += -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE))

# The flags of libraries, written once by ci/flags.sh, which also says what is missing and how to install it. Goals that build
# nothing themselves do without them.
flagless := demo deps check check-all unit kernel lab pages test steady sanitize mutate history clean help
ifneq ($(filter-out $(flagless),$(or $(MAKECMDGOALS),programs)),)
include $(OUT)/flags.mk
endif
# cmocka, which only tests need, may have been installed since.
$(OUT)/flags.mk: ci/flags.sh $(if $(CMOCKA_LIBS),,$(and $(wildcard /usr/include/cmocka.h),FORCE))
	@CC=$(CC) ci/flags.sh $@

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2))

# Sources by part. The agent links neither Lua nor libssh nor SQLite.
BASE_SRC   := $(wildcard harness/base/*.c)
RECORD_SRC := $(wildcard diag/record/*.c)
CORE_DIRS  := diag/fleet diag/import harness/lua harness/nodes harness/fs harness/lab harness/scenario harness/store \
              harness/judging harness/timeline harness/web/serve harness/run harness/live harness/replay harness/cli diag/app diag/causal diag/throttle diag/derive diag/log diag/flow diag/query diag/ship diag/judge diag/slow harness/table harness/web harness/web/timeline
AGENT_DIRS := harness/agent harness/replayer diag/app faults/primitives diag/capture diag/capture/ebpf diag/capture/ptrace diag/capture/sampler \
              diag/capture/tools
CORE_SRC   := $(BASE_SRC) $(RECORD_SRC) harness/agent/operations.c harness/replayer/modes.c diag/capture/choice.c $(wildcard $(CORE_DIRS:%=%/*.c))
AGENT_SRC  := $(BASE_SRC) $(RECORD_SRC) $(filter-out %.bpf.c,$(wildcard $(AGENT_DIRS:%=%/*.c)))
TEST_SRC   := $(wildcard ci/tests/*/*_test.c)
# Tests that act on the kernel, on devices or through a sshd of their own need root; the others are unit tests.
KERNEL_DIRS := agent capture primitives lab remote replayer throttle

core_obj  := $(CORE_SRC:%.c=$(OUT)/%.o)
agent_obj := $(AGENT_SRC:%.c=$(OUT)/%.o)
test_bin  := $(TEST_SRC:ci/tests/%.c=$(OUT)/tests/%)
kernel_bin := $(filter $(KERNEL_DIRS:%=$(OUT)/tests/%/%),$(test_bin))
unit_bin  := $(filter-out $(kernel_bin),$(test_bin))
helper_bin := $(patsubst ci/tests/helpers/%.c,$(OUT)/helpers/%,$(wildcard ci/tests/helpers/*.c))
# Parts of several programs.
fleet_maker := $(patsubst %,$(OUT)/ci/bench/fleet_%.o,maker maker_families)
fleet_trial := $(patsubst %,$(OUT)/ci/bench/fleet_%.o,trial tables tables_parts rivals) $(fleet_maker)
table61 := $(patsubst %,$(OUT)/ci/bench/%.o,averages ratios)
bench_bin := $(patsubst ci/bench/%.c,$(OUT)/bench/%,$(filter-out $(patsubst $(OUT)/%.o,%.c,$(fleet_trial) $(table61)),$(wildcard ci/bench/*.c)))

programs: $(OUT)/culprit $(OUT)/agent/culprit-agent ## build the program and its agent (the default goal)

# What shell tests call beside them, C tests included that make a run, ask a server or print a table.
shelled_bin := $(OUT)/tests/timeline/cell_test $(OUT)/tests/import/prometheus_test $(OUT)/tests/slow/slow_rule_test \
               $(OUT)/tests/store/remeasure_test
tools: programs $(helper_bin) $(bench_bin) $(shelled_bin) mpi
all: tools $(test_bin) ## build everything
unit-programs: programs $(unit_bin)
test-programs: programs $(helper_bin) $(test_bin)

# Programs and tests link only the objects that they use from the archives.
$(OUT)/libcore.a: $(filter-out $(OUT)/harness/cli/main.o,$(core_obj))
$(OUT)/libagent.a: $(filter-out $(OUT)/harness/agent/main.o,$(agent_obj))
$(OUT)/lib%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(OUT)/culprit: $(OUT)/harness/cli/main.o $(OUT)/libcore.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CORE_LIBS)

# The agent travels with its libraries and its loader, so that a target host
# needs nothing but sshd: see harness/agent/README.md.
$(OUT)/agent/culprit-agent: $(OUT)/harness/agent/main.o $(if $(SANITIZE),$(OUT)/ci/sanitize_options.o) $(OUT)/libagent.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(AGENT_LIBS)
	$(Q)ldd $@ | sed -n 's/.* => \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p' | sort -u | xargs -I{} cp -Lf {} $(@D)/

$(OUT)/ci/tests/%.o: needs_cmocka = $(if $(CMOCKA_LIBS),,$(error cmocka.h is missing: install what tests need with 'make deps'))
$(OUT)/tests/%: $(OUT)/ci/tests/%.o $(OUT)/libcore.a $(OUT)/libagent.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(TEST_LD) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CMOCKA_LIBS) $(TEST_LIBS)

# Programs that tests start and observe; they link nothing of the product.
$(OUT)/helpers/%: $(OUT)/ci/tests/helpers/%.o
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^

# Programs of make bench.
$(OUT)/bench/fleet_csv: $(fleet_maker)
$(OUT)/bench/fleet_families: $(fleet_trial)
$(OUT)/bench/table61: $(table61)
$(OUT)/tests/flow/averages_test: $(OUT)/ci/bench/averages.o
$(OUT)/tests/results/ratios_test: $(OUT)/ci/bench/ratios.o
$(OUT)/tests/fleet/maker_test: $(fleet_maker)
$(OUT)/tests/fleet/rivals_test: $(fleet_trial)
$(OUT)/bench/%: $(OUT)/ci/bench/%.o $(OUT)/libcore.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(CORE_LIBS)

# The parallel applications of Mesnier et al. 2007, where there is an MPI compiler.
ifndef MPICC
MPICC   := $(shell command -v mpicc)
endif
mpi_bin := $(if $(MPICC),$(patsubst workloads/mpi/%.c,$(OUT)/mpi/%,$(wildcard workloads/mpi/*.c)))
mpi: $(mpi_bin) ## build workloads/mpi
	$(if $(mpi_bin),,@echo '  SKIP   workloads/mpi: there is no mpicc (apt-get install libopenmpi-dev openmpi-bin)')
$(OUT)/mpi/%: workloads/mpi/%.c workloads/mpi/app.h
	$(call say,MPICC,$@)
	@mkdir -p $(@D)
	$(Q)$(MPICC) $(CPPFLAGS) -O2 -g -std=c17 -Wall -Wextra -Wshadow $(if $(WERROR),-Werror) -o $@ $<

$(OUT)/%.o: %.c
	$(needs_cmocka)$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

# The commit that --version names; written only when it has changed. Nothing outside a clone.
$(OUT)/gen/commit.h: FORCE
	@mkdir -p $(@D)
	@commit=$$(git -C . describe --always --dirty --abbrev=10 --exclude='*' 2>/dev/null); \
		printf '#define CULPRIT_COMMIT "%s"\n' "$$commit" | cmp -s - $@ || \
		printf '#define CULPRIT_COMMIT "%s"\n' "$$commit" >$@
FORCE:
$(OUT)/harness/cli/main.o: CPPFLAGS += -I$(OUT)/gen
$(OUT)/harness/cli/main.o: $(OUT)/gen/commit.h

# Call names come from the kernel's headers: the build machine's, and the generic ones for arm64.
arm64_unistd := -D__BITS_PER_LONG=64 -D__ARCH_WANT_RENAMEAT -D__ARCH_WANT_NEW_STAT -D__ARCH_WANT_SET_GET_RLIMIT \
                -D__ARCH_WANT_TIME32_SYSCALLS -D__ARCH_WANT_SYS_CLONE3 -D__ARCH_WANT_MEMFD_SECRET -include asm-generic/unistd.h
$(OUT)/gen/call_names.h: diag/record/call_names.awk
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ $(CC) -E -dM -include asm/unistd_64.h -xc /dev/null | LC_ALL=C sort | awk -v arch=x86_64 -f $< && \
	      $(CC) -E -dM $(arm64_unistd) -xc /dev/null | LC_ALL=C sort | awk -v arch=aarch64 -f $<; } >$@
$(OUT)/diag/record/calls.o: CPPFLAGS += -I$(OUT)/gen
$(OUT)/diag/record/calls.o: $(OUT)/gen/call_names.h

# The tracer's kernel programs: compiled for BPF, and embedded in the agent as a skeleton. Debian has bpftool in /usr/sbin,
# which is not in the PATH of users.
bpf_arch := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
$(OUT)/gen/ebpf.bpf.o: diag/capture/ebpf/trace.bpf.c $(wildcard diag/capture/ebpf/*.h)
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)clang -target bpf -mcpu=v3 -g -O2 -Wall -Wno-unused-function -D__TARGET_ARCH_$(bpf_arch) -I. \
		-I/usr/include/$(MULTIARCH) -c -o $@ $<
	$(Q)llvm-strip -g $@
$(OUT)/gen/ebpf.skel.h: $(OUT)/gen/ebpf.bpf.o
	$(call say,GEN,$@)
	$(Q)PATH="$$PATH:/usr/sbin" bpftool gen skeleton $< name ebpf_bpf >$@
$(OUT)/diag/capture/ebpf/ebpf.o: CPPFLAGS += -isystem $(OUT)/gen
$(OUT)/diag/capture/ebpf/ebpf.o: $(OUT)/gen/ebpf.skel.h

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

demo: ## one whole experiment: packages, build, lab, faults, diagnosis, table, clean-up
	$(Q)OUT=$(OUT) JOBS=$(JOBS) ci/demo.sh

# The parts of the suite. Each installs what it needs, builds it, and ends with a table (ci/check.sh).
check: deps ## every test: lint, unit, kernel, pages, lab (as root)
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) WERROR=$(WERROR) ci/check.sh lint unit kernel pages lab

check-all: ## as check, with the engines that only some tests need (a browser, Ceph, OrangeFS, ClickHouse, Slurm, MPI)
	$(Q)ci/install.sh --all
	$(Q)ci/orangefs.sh
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) WERROR=$(WERROR) ci/check.sh lint unit kernel pages lab

unit: deps ## C tests that need neither root nor lab nor network, under ASan and UBSan
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) ci/check.sh unit
kernel: deps ## C and shell tests of agent, primitives and tracers (as root)
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) ci/check.sh kernel
lab: deps ## shell tests of the program, most of them on labs (as root)
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) ci/check.sh lab
pages: ## pages in a browser
	$(Q)ci/install.sh --all
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) ci/check.sh pages
test: ## one test or folder: T=flow, T=ci/tests/flow/wire_test.c, T=ci/tests/cli/demo.t
	$(Q)OUT=$(OUT) ASAN=$(ASAN) JOBS=$(JOBS) ci/check.sh $(or $(T),$(error give T=FOLDER, T=ci/tests/FOLDER/NAME_test.c or T=ci/tests/FOLDER/NAME.t))
steady: ## a test N times beside stress-ng: T=ci/tests/flow/wire_test.c N=20
	$(Q)OUT=$(OUT) ci/steady.sh $(or $(N),20) $(or $(T),$(error give T=TEST and N=TIMES))
mutate: all ## mutants of the C product against its unit tests: N=20 SEED=1
	$(Q)OUT=$(OUT) ci/mutate.py -n $(or $(N),20) --seed $(or $(SEED),1)
history: ## new commits: their size, and a body that says why
	$(Q)ci/history.sh
compile_commands.json: $(OUT)/gen/call_names.h $(OUT)/gen/ebpf.skel.h $(OUT)/gen/commit.h FORCE ## the commands of the compilers, for clangd
	$(Q)ci/compile_commands.py >$@.new && mv $@.new $@

# The sanitizers' build: -O1 for frames in reports.
asan-%:
	$(Q)CFLAGS='-O1 -g' $(MAKE) --no-print-directory -j$(JOBS) OUT=$(ASAN) SANITIZE=address,undefined WERROR=$(WERROR) $*

sanitize: asan-test-programs ## all that ends by itself under ASan and UBSan, then a run on a lab (as root); TESTS="WORD ...": only those
	$(Q)OUT=$(ASAN) ci/sanitize.sh $(TESTS)
	$(Q)$(if $(TESTS),,OUT=$(ASAN) ci/sanitize_lab.sh)

check-vm: programs ## tests on virtual machines with Debian's kernels and systemd: VM_TESTS="tracers", VM_KERNELS="bookworm"
	$(Q)OUT=$(OUT) ci/vm/check.sh

check-bare: ## "make demo", "make" and "make unit", each as the first command on a bare Debian 12 (as root; half an hour)
	$(Q)ci/bare.sh

bench: all ## measure the performance goals, as ratios in one run
	$(Q)for b in ci/bench/*.sh; do echo "== $$b"; OUT=$(OUT) "$$b" || exit; done

# Each fuzzer instruments the code that it tests, and links the rest uninstrumented. Not part of all.
fuzz_of_import    := $(wildcard diag/import/*.c) $(BASE_SRC)
fuzz_of_fleet     := $(wildcard diag/fleet/*.c) $(BASE_SRC)
fuzz_of_base64    := harness/base/base64.c
fuzz_of_log       := $(RECORD_SRC) $(BASE_SRC)
fuzz_of_flow      := $(wildcard diag/flow/*.c) $(RECORD_SRC) $(BASE_SRC)
fuzz_of_ebpf      := $(RECORD_SRC) $(BASE_SRC) diag/capture/ebpf/events.c diag/capture/ebpf/describe.c diag/capture/ebpf/first_seen.c
fuzz_of_choice    := diag/capture/choice.c $(BASE_SRC)
fuzz_of_csv       := $(wildcard diag/import/*.c) diag/derive/series.c $(BASE_SRC)
fuzz_of_scenario  := harness/scenario/scenario.c harness/scenario/part.c harness/scenario/tracing.c harness/scenario/recorder.c harness/scenario/trigger.c harness/scenario/plan.c $(wildcard harness/lua/*.c) $(BASE_SRC)
fuzz_of_inventory := $(wildcard harness/nodes/inventory.c harness/nodes/reach.c harness/nodes/ssh_config.c harness/lua/*.c) $(BASE_SRC)
fuzz_of_agent     := harness/agent/dispatch.c harness/agent/operations.c
fuzz_of_timeline  := $(filter-out harness/web/timeline/html.c harness/web/timeline/encode%.c,$(wildcard harness/web/timeline/*.c)) $(BASE_SRC)
fuzz_of_zones     := diag/query/zones.c diag/query/zones_make.c diag/query/scan.c $(RECORD_SRC) $(BASE_SRC)
fuzz_of_rowbinary := diag/ship/rowbinary.c $(BASE_SRC)
fuzz_of_app       := $(wildcard diag/app/*.c) $(BASE_SRC)
fuzz_of_causal    := $(wildcard diag/causal/*.c diag/app/*.c) $(RECORD_SRC) $(BASE_SRC)
fuzz_of_replay    := harness/replay/merge.c diag/app/series.c $(BASE_SRC)
fuzz_of_capture   := harness/timeline/capture.c $(wildcard diag/app/*.c) $(BASE_SRC)
fuzz_of_views     := harness/web/serve/views.c harness/web/serve/dashboard_sql.c $(BASE_SRC)
fuzz_of_node      :=
fuzz_objects = $(patsubst %.c,$(OUT)/fuzz/%.o,$(fuzz_of_$(1)))
fuzz_bin := $(patsubst ci/fuzz/%.c,$(OUT)/fuzz/%,$(wildcard ci/fuzz/*.c))

fuzz: $(fuzz_bin) ## build the fuzzers of ci/fuzz (clang)

fuzz-long: fuzz ## run each fuzzer for an hour (FUZZ_SECONDS=N: so long), and say what was done and found
	$(Q)OUT=$(OUT) ci/fuzz/long.sh

.SECONDEXPANSION:
$(OUT)/fuzz/%_fuzz: $(OUT)/fuzz/ci/fuzz/%_fuzz.o $$(call fuzz_objects,$$*) $(OUT)/libcore.a $(OUT)/libagent.a
	$(call say,LINK,$@)
	$(Q)clang -fsanitize=fuzzer,address,undefined $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(OUT)/fuzz/%.o: %.c
	$(call say,FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)clang $(CPPFLAGS) -std=c17 -O1 -g -fsanitize=fuzzer-no-link,address,undefined $(PKG_CFLAGS) \
		-MMD -MP -c -o $@ $<
$(OUT)/fuzz/diag/record/calls.o: CPPFLAGS += -I$(OUT)/gen
$(OUT)/fuzz/diag/record/calls.o: $(OUT)/gen/call_names.h

lint: format headers lint-lua lint-shell lint-c history ## static checks of C, Lua and shell
lint-lua:
	$(Q)luacheck --quiet --no-color faults workloads scenarios diag harness
lint-shell:
	$(Q)shellcheck -s bash -S warning -e SC2154,SC2155 ci/*.sh ci/bench/*.sh ci/fuzz/*.sh $(wildcard ci/templates/*/*.sh ci/templates/*/*.sbatch ci/tests/*.t ci/tests/*/*.t ci/tests/*.sh ci/tests/*/*.sh ci/vm/*.sh ci/vm/*.t) .ci/run
lint-c:
	$(Q)cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning -j$(JOBS) \
		--suppress=unknownMacro --suppress=ctuuninitvar --suppress=nullPointerRedundantCheck -I. harness faults diag

# clang-format breaks neither comments nor strings: the second check finds those that are too wide.
c_files = $(shell git ls-files '*.c' '*.h' 2>/dev/null)
format: ## check the layout of C sources (.clang-format, 100 columns)
	$(Q)printf '%s\n' $(c_files) | xargs -P $(JOBS) -n 100 clang-format --dry-run -Werror
	$(Q)for f in $(c_files); do expand "$$f" | awk -v f="$$f" 'length > 100 { print f ":" NR ": wider than 100 columns"; bad = 1 } END { exit bad }' || bad=1; done; exit $${bad:-0}

# Headers of the programs in the kernel are clang's alone; shared.h is both sides'.
bpf_headers := $(filter-out %/ebpf.h %/rings.h %/shared.h,$(wildcard diag/capture/ebpf/*.h))
alone = printf '%s\n' $(1) | xargs -P $(JOBS) -I{} $(2) -I. -Werror=implicit-function-declaration -fsyntax-only -x c {}
headers: ## compile each header alone: it includes what it uses
	$(Q)$(call alone,$(filter-out $(bpf_headers) workloads/mpi/%,$(filter %.h,$(c_files))),$(CC) $(CPPFLAGS) -std=c17 $(PKG_CFLAGS))
	$(Q)$(call alone,$(bpf_headers) diag/capture/ebpf/shared.h,\
		clang -target bpf -D__TARGET_ARCH_$(bpf_arch) -I/usr/include/$(MULTIARCH))

figures: all ## draw the pages' figures anew from recorded runs and a made-up fleet (python3)
	$(Q)OUT=$(OUT) results/figures/detectors.py
	$(Q)OUT=$(OUT) results/figures/fleet.py
	$(Q)OUT=$(OUT) results/figures/doses.py
	$(Q)OUT=$(OUT) results/figures/roc.py
	$(Q)OUT=$(OUT) results/figures/fleets.py

install: programs ## install the program and its files below PREFIX (default /usr/local)
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/culprit $(DESTDIR)$(PREFIX)/share/culprit
	$(Q)install -m 755 $(OUT)/culprit $(DESTDIR)$(PREFIX)/bin/culprit
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/lib/culprit/agent && cp -r $(OUT)/agent $(DESTDIR)$(PREFIX)/lib/culprit/agent
	$(Q){ find faults workloads scenarios diag/detectors diag/findings harness/fs harness/lua -name '*.lua' -o -name '*.app'; ls results/*.csv; } | \
		xargs cp --parents -t $(DESTDIR)$(PREFIX)/share/culprit
	$(Q)find harness/web results/schemas -type f ! -name '*.[ch]' | xargs cp --parents -t $(DESTDIR)$(PREFIX)/share/culprit
	$(Q)install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(Q)cd $(DESTDIR)$(PREFIX)/share && ../bin/culprit help --man >man/man1/culprit.1 && \
		../bin/culprit help --completion bash >bash-completion/completions/culprit && \
		../bin/culprit help --completion zsh >zsh/site-functions/_culprit && \
		../bin/culprit help --completion fish >fish/vendor_completions.d/culprit.fish

# Folders of the system stay, even if they are empty.
uninstall: ## remove what 'make install' put below PREFIX
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/bin/culprit $(DESTDIR)$(PREFIX)/lib/culprit $(DESTDIR)$(PREFIX)/share/culprit
	$(Q)cd $(DESTDIR)$(PREFIX)/share && rm -f man/man1/culprit.1 bash-completion/completions/culprit zsh/site-functions/_culprit \
		fish/vendor_completions.d/culprit.fish
	$(Q)$(if $(filter /usr /usr/local,$(PREFIX)),:,cd $(DESTDIR)$(PREFIX) && rmdir -p --ignore-fail-on-non-empty share/man/man1 \
		share/bash-completion/completions share/zsh/site-functions share/fish/vendor_completions.d bin lib 2>/dev/null || true)

deb: programs ## a Debian package of this build, in OUT (dpkg-dev)
	$(Q)OUT=$(OUT) VERSION=$(VERSION) ci/deb/build.sh

deps: ## install the Debian packages that are missing (ci/packages.txt)
	$(Q)ci/install.sh

clean: ## remove everything that was built
	$(Q)rm -rf $(OUT) $(ASAN)

help: ## this list
	@sed -n 's/^\([a-z_.-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 30

.PHONY: all programs tools unit-programs test-programs unit kernel lab pages test steady mutate history sanitize mpi demo check check-all check-vm check-bare soak soak-steps bench fuzz fuzz-long lint lint-lua lint-shell lint-c format headers figures install uninstall deb deps clean help FORCE
.DELETE_ON_ERROR:
.SECONDARY:
