# Shortcuts for common tasks. The build itself uses CMake; see CMakePresets.json.
SHELL := /bin/bash
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
# Seconds after which the tests end; those without a result have failed.
TEST_TIMEOUT ?= 3600
# Time (of Unix) after which tests without a result are skipped, by name.
TEST_DEADLINE ?=
# The LLVM 22.1 to build with, if it is not Debian's; needs a BUILD of its own.
POSENC_LLVM ?=
export POSENC_LLVM
# Further options of cmake, such as -DCMAKE_CXX_COMPILER=g++.
CMAKE_FLAGS ?=
BIN = $(BUILD)/bin

.PHONY: all setup required build demo bench test test-build check debug-test debug-check \
        debug-check-build test-asan coverage test-exhaustive python-test python-packages \
        vllm-test exporters-test models-test prove mutants fuzz fuzzer search files \
        compare-packages lint lint-tools lint-tidy lint-includes wheel sbom install \
        uninstall docs docs-site clean

all: build

# Installs what the build and all tests need.
setup:
	@tools/setup.sh test

# Says what is missing to build. Only setup and the targets that call it install it.
required:
	@tools/setup.sh check

# $(call configure,FOLDER,PRESET)
configure = mkdir -p $(1) && \
  { cmake -S . -B $(1) --preset $(2) $(POSENC_LLVM:%=-DPOSENC_LLVM=%) \
    $(CMAKE_FLAGS) > $(1)/configure.log 2>&1 || { cat $(1)/configure.log; exit 1; }; }
# $(call run_tests,FOLDER)
run_tests = python3 test/run-tests.py --build-dir $(1) -j $(JOBS) \
  --timeout $(TEST_TIMEOUT) $(TEST_DEADLINE:%=--deadline %)

build: required
	@$(call configure,$(BUILD),release)
	@cmake --build $(BUILD) -j $(JOBS)

demo:
	@tools/setup.sh build
	@$(MAKE) --no-print-directory build
	@$(BIN)/posenc-demo

bench: build
	@$(BIN)/posenc-bench --suite --benchmark_out=$(BUILD)/bench.json $(BENCH_FLAGS)

test: setup
	@$(MAKE) --no-print-directory test-build
	@$(call run_tests,$(BUILD))

# Builds what `make test` runs.
test-build: build
	@cmake --build $(BUILD) -j $(JOBS) --target posenc-test-depends

# Builds a wheel of the Python package, installs it in a virtual environment, and
# tests it. POSENC_TEST_PYTHON=PYTHON adds the packages of another Python.
python-test: build
	@python3 python/run-tests.py --build-dir $(BUILD)

# Installs the packages of python-test, which needs no build.
python-packages: setup
	@python3 python/run-tests.py --build-dir $(BUILD) --only-packages

# Compares models in vLLM with Posenc's kernels and with vLLM's own. Installs vLLM for
# CPUs (5 GB) in the build folder. POSENC_TEST_PYTHON=PYTHON adds the packages of another
# Python.
vllm-test: build
	@python3 python/vllm-tests/run.py --build-dir $(BUILD)

# Exports models with the newest PyTorch, transformers, torch-mlir, ONNX and JAX of PyPI,
# and compares what is found with what they have. POSENC_TEST_PYTHON=PYTHON adds the
# packages of another Python.
exporters-test: build
	@python3 python/exporter-tests/run.py --build-dir $(BUILD)

# Compiles whole decoders of the size of Llama 3.2 1B, and compares them with ONNX Runtime,
# OpenVINO and PyTorch, which needs 20 GB of memory. POSENC_TEST_PYTHON=PYTHON adds
# the packages of another Python.
models-test: build
	@python3 python/model-tests/run.py --build-dir $(BUILD)

# Builds a wheel that needs no LLVM on the machine, in build/wheel.
wheel: build
	@python3 python/make-wheel.py --build-dir $(BUILD)

# Writes the bill of materials of that wheel, as CycloneDX, in build/sbom.
sbom: build
	@python3 python/make-sbom.py --build-dir $(BUILD)

# Builds all packages from two folders, on other dates and in other time zones, and
# compares their bytes, which takes as long as two builds. PACKAGES names some of them.
PACKAGES ?= sdist,runtime,install,wheel
compare-packages: required
	@mkdir -p $(BUILD)
	@python3 python/compare-packages.py --build-dir $(BUILD) --jobs $(JOBS) --only $(PACKAGES)

# Evaluates each math function for every f32, and tables of all positions below 2^20, which
# takes about two hours on two cores. POSENC_EXHAUSTIVE_STEP=N takes every Nth number or
# tile. docs/numerics.md has the results.
test-exhaustive: build
	@cmake --build $(BUILD) -j $(JOBS) --target PosencExhaustiveTests
	@$(BUILD)/test/fixture/PosencExhaustiveTests --gtest_brief=1

# Proves the folds, the bounds of masks, the arithmetic of sizes and the loops over tiles
# of attention, by the solver z3 or on all values of small domains, and prints a table of
# the rules. A rule without a proof fails.
prove: setup
	@$(MAKE) --no-print-directory build
	@cmake --build $(BUILD) -j $(JOBS) --target PosencProofs
	@$(BUILD)/test/fixture/PosencProofs --jobs=$(JOBS) .

# Changes MUTANTS places of lib/ and runtime/, one at a time, in a copy of the sources, and
# lists the changes that no test finds. MUTANTS_SEED draws others, and MUTANTS_FLAGS may
# have rooms, such as --room=lib/IR. Goes on where an interrupted run was.
MUTANTS ?= 100
MUTANTS_SEED ?= 1
MUTANTS_FLAGS ?=
mutants: setup
	@python3 test/mutants/run.py --work=$(BUILD)/mutants --jobs=$(JOBS) \
	  --count=$(MUTANTS) --seed=$(MUTANTS_SEED) $(MUTANTS_FLAGS)

# Quick tests for development, in less than 3 minutes: each stage of the compiler on
# small inputs, without measurements, other CPUs, GPUs and exhaustive checks.
CHECK_UNITS = PosencIRTests PosencFrontendTests PosencReferenceTests \
              PosencRuntimeTests
CHECK = /Posenc(IR|Frontend|Reference|Runtime)Tests/|Posenc :: ((IR|Raise|Import|Transforms|Conversion|Pipelines|Frontend|Codegen|Compile|Docs|Layering|Style)/|Run/(inputs.test|library.test|attention.mlir|reference.mlir))
check: build
	@cmake --build $(BUILD) -j $(JOBS) --target $(CHECK_UNITS)
	@$(call run_tests,$(BUILD)) --filter '$(CHECK)'

# Runs the tests with assertions, those of LLVM's headers included, and with the
# verifier after each pass.
debug-test: required
	@$(call configure,$(BUILD)-debug,debug)
	@cmake --build $(BUILD)-debug -j $(JOBS) --target all posenc-test-depends
	@$(call run_tests,$(BUILD)-debug)

# Half of the lit tests of check, which each commit draws, all unit tests of check, and the
# fuzz tests, in that build, of which only a part is built.
DEBUG_TARGETS = posenc-opt posenc-compile posenc-run $(CHECK_UNITS) PosencFuzzTests
debug-check-build: required
	@$(call configure,$(BUILD)-debug,debug)
	@cmake --build $(BUILD)-debug -j $(JOBS) --target $(DEBUG_TARGETS)
debug-check: debug-check-build
	@$(call run_tests,$(BUILD)-debug) --filter '/PosencFuzzTests/|$(CHECK)' --draw 2

# Runs the tests with the address and undefined-behaviour sanitizers.
test-asan: required
	@$(call configure,$(BUILD)-asan,asan)
	@cmake --build $(BUILD)-asan -j $(JOBS) --target all posenc-test-depends
	@$(call run_tests,$(BUILD)-asan)

# Searches inputs that crash, hang, or end without an error message: libFuzzer on each door
# of test/fuzz/doors for TIME seconds, in a build with sanitizers and assertions. DOORS
# names some of them. FUZZ_FLAGS=--merge=FOLDER keeps inputs that reach new code.
ifneq ($(origin TIME),command line)
TIME = 60
endif
unexport TIME
DOORS ?=
FUZZ_FLAGS ?=
# The environment's TIME is the format of time(1).
fuzz: fuzzer
	@python3 test/fuzz/run-fuzz.py --fuzzer $(BUILD)-fuzz/bin/posenc-fuzz --jobs $(JOBS) \
	  --work $(BUILD)-fuzz/fuzz --time $(TIME) --doors '$(DOORS)' $(FUZZ_FLAGS)
fuzzer: setup
	@$(call configure,$(BUILD)-fuzz,fuzz)
	@cmake --build $(BUILD)-fuzz -j $(JOBS) --target posenc-fuzz

# Compares random programs with other systems: each search of python/run-searches.py for
# TIME seconds, with programs that the date draws. SEARCHES names some of them.
# POSENC_TEST_PYTHON=PYTHON adds the packages of another Python; searches that need PyTorch
# are skipped if neither has it and POSENC_TEST_CUDA_WHEELS=1 does not allow 3 GB.
SEARCHES ?=
search: build
	@python3 python/run-searches.py --build-dir $(BUILD) --time $(TIME) --searches '$(SEARCHES)'

# Runs the tests in a build that counts the lines they execute, and prints the share of
# each folder, also if tests fail. COVERAGE_TARGETS and COVERAGE_FILTER build and run a
# part.
COVERAGE_TARGETS = all posenc-test-depends
COVERAGE_FILTER =
coverage: required
	@$(call configure,$(BUILD)-coverage,coverage)
	@cmake --build $(BUILD)-coverage -j $(JOBS) --target $(COVERAGE_TARGETS)
	@rm -rf $(BUILD)-coverage/profiles
	@$(call run_tests,$(BUILD)-coverage) --filter '$(COVERAGE_FILTER)' || \
	  echo "coverage: tests failed"
	@python3 test/print-coverage.py --build-dir $(BUILD)-coverage

# Runs the checks of .pre-commit-config.yaml on all files of git.
pre_commit = PRE_COMMIT_HOME=$(abspath $(BUILD))/lint/hooks $(BUILD)/lint/bin/pre-commit
lint: lint-tools
	@$(pre_commit) run --all-files --show-diff-on-failure

# Installs their tools from PyPI in the build folder.
lint-tools:
	@mkdir -p $(BUILD) && python3 -m venv $(BUILD)/lint
	@$(BUILD)/lint/bin/pip install --quiet --require-hashes -r test/locks/lint.txt
	@$(pre_commit) install-hooks

# The library with one object for each file: after a change less is compiled, and
# compile_commands.json has the command of each file.
files: required
	@$(call configure,$(BUILD)-files,files)
	@cmake --build $(BUILD)-files -j $(JOBS)

# Runs clang-tidy 22 (Debian's package clang-tidy-22) on the files of TIDY.
CLANG_TIDY ?= clang-tidy-22
TIDY ?= $(wildcard lib/*/*.cpp lib/*/*/*.cpp runtime/lib/*.cpp tools/*/*.cpp)
lint-tidy: files
	@printf '%s\n' $(TIDY) | xargs -P $(JOBS) -n 1 $(CLANG_TIDY) -p $(BUILD)-files --quiet

# Compiles the files that match INCLUDES without precompiled headers, which hide the
# includes that a file lacks. All files take an hour of one core.
INCLUDES ?=
lint-includes: files
	@python3 test/Layering/compile-alone.py -j $(JOBS) $(BUILD)-files '$(INCLUDES)'

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

uninstall:
	@cmake -DPREFIX=$(DESTDIR)$(PREFIX) -P cmake/Uninstall.cmake

docs: build
	@cmake --build $(BUILD) --target posenc-docs

# Makes the site of the documentation in build/site. Installs mkdocs from PyPI in the build
# folder. Links to sources are links to POSENC_SOURCE_URL, if it is set.
docs-site:
	@mkdir -p $(BUILD) && python3 -m venv $(BUILD)/mkdocs
	@$(BUILD)/mkdocs/bin/pip install --quiet --require-hashes -r test/locks/site.txt
	@python3 docs/make-site.py $(BUILD)/site-sources
	@POSENC_SITE_SOURCES=$(abspath $(BUILD))/site-sources $(BUILD)/mkdocs/bin/mkdocs build \
	  --strict --site-dir $(abspath $(BUILD))/site

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-coverage $(BUILD)-debug $(BUILD)-files \
	  $(BUILD)-fuzz
