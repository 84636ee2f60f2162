# The front door. Everything else is CMake: see CMakePresets.json.
SHELL := /bin/bash
BUILD ?= build
JOBS ?= $(shell nproc)
BIN = $(BUILD)/bin

.PHONY: all setup build demo bench test test-asan docs clean

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

# Address and undefined-behaviour sanitizers over this project's own code.
test-asan: setup
	@cmake -S . -B $(BUILD)-asan --preset asan > /dev/null
	@cmake --build $(BUILD)-asan -j $(JOBS) --target all posenc-test-depends
	@python3 test/run-tests.py --build-dir $(BUILD)-asan -j $(JOBS)

docs: build
	@cmake --build $(BUILD) --target posenc-docs

clean:
	@rm -rf $(BUILD) $(BUILD)-asan
