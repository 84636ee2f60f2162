# Shortcuts for common tasks. The build itself uses CMake; see CMakePresets.json.
SHELL := /bin/bash
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
BIN = $(BUILD)/bin

.PHONY: all setup build demo bench test check test-asan test-exhaustive python-test \
        install uninstall docs clean

all: build

setup:
	@tools/setup.sh

build: setup
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) --preset release > $(BUILD)/configure.log 2>&1 \
	  || { cat $(BUILD)/configure.log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@$(BIN)/posenc-demo

bench: build
	@$(BIN)/posenc-bench --suite --benchmark_out=$(BUILD)/bench.json $(BENCH_FLAGS)

test: build
	@cmake --build $(BUILD) -j $(JOBS) --target posenc-test-depends
	@python3 test/run-tests.py --build-dir $(BUILD) -j $(JOBS)

# Builds a wheel of the Python package, installs it in a virtual environment, and
# tests it. POSENC_TEST_PYTHON=PYTHON adds the packages of another Python.
python-test: build
	@python3 python/run-tests.py --build-dir $(BUILD)

# Evaluates each math function for every f32, which takes about two hours on two
# cores. POSENC_EXHAUSTIVE_STEP=N takes every Nth number. docs/numerics.md has the
# results.
test-exhaustive: build
	@cmake --build $(BUILD) -j $(JOBS) --target PosencExhaustiveTests
	@$(BUILD)/test/fixture/PosencExhaustiveTests --gtest_brief=1

# Quick tests for development, in less than 3 minutes: each stage of the compiler on
# small inputs, without measurements, other CPUs, GPUs and exhaustive checks.
CHECK_UNITS = PosencIRTests PosencFrontendTests PosencReferenceTests \
              PosencRuntimeTests
CHECK = /Posenc(IR|Frontend|Reference|Runtime)Tests/|Posenc :: ((IR|Transforms|Conversion|Pipelines|Frontend|Codegen|Compile|Docs|Layering)/|Run/(inputs.test|library.test|attention.mlir|reference.mlir))
check: build
	@cmake --build $(BUILD) -j $(JOBS) --target $(CHECK_UNITS)
	@python3 test/run-tests.py --build-dir $(BUILD) -j $(JOBS) \
	  --filter '$(CHECK)'

# Runs the tests with the address and undefined-behaviour sanitizers.
test-asan: setup
	@cmake -S . -B $(BUILD)-asan --preset asan > /dev/null
	@cmake --build $(BUILD)-asan -j $(JOBS) --target all posenc-test-depends
	@python3 test/run-tests.py --build-dir $(BUILD)-asan -j $(JOBS)

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

uninstall:
	@cmake -DPREFIX=$(DESTDIR)$(PREFIX) -P cmake/Uninstall.cmake

docs: build
	@cmake --build $(BUILD) --target posenc-docs

clean:
	@rm -rf $(BUILD) $(BUILD)-asan
