# ===- test_on_use.py - functions that are compiled when they are used ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Functions of a config that are compiled when they are first used, and several of them
at the same time."""

import json
import os
import pickle
import subprocess
import sys
import threading
import warnings

import pytest

import posenc
from posenc import _source
from posenc._compile import prepare
from posenc._compiler import CompiledCode
from conftest import CONFIG, check_rope


@pytest.fixture
def compiled(monkeypatch):
    """The functions that are compiled one by one, in this order."""
    names = []

    class Code(CompiledCode):
        def __init__(self, name, source, options):
            super().__init__(name, source, options)
            names.append(options[-1])

    monkeypatch.setattr(_source, "CompiledCode", Code)
    return names


def test_functions_are_compiled_when_they_are_used(compiled):
    kernels = posenc.compile(CONFIG, opt_level=0)
    assert list(kernels) == ["sincos", "rope", "attention", "decode"]
    assert "attention" in dir(kernels) and "for x86-64" in repr(kernels) and not compiled
    for _ in range(2):
        check_rope(kernels)
        assert compiled == ["--kernels=rope"]
    again = pickle.loads(pickle.dumps(kernels))
    assert compiled == ["--kernels=rope"] and again._spec == kernels._spec
    check_rope(again)
    assert compiled == ["--kernels=rope"] * 2
    functions = kernels.metadata["functions"]
    assert [function["name"] for function in functions] == list(kernels)
    assert kernels.metadata["prefix"] == "posenc" and len(compiled) == 5
    # What is asked for by name is compiled at once.
    posenc.compile(CONFIG, opt_level=0, kernels=["sincos", "rope"])
    assert sorted(compiled[5:]) == ["--kernels=rope", "--kernels=sincos"]


def test_threads_that_use_the_same_function(compiled):
    kernels = posenc.compile(CONFIG, opt_level=0)
    threads = [threading.Thread(target=check_rope, args=(kernels,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiled == ["--kernels=rope"]


def test_functions_are_compiled_at_the_same_time(monkeypatch):
    """Two threads are within the compiler: each waits there for the other."""
    both = threading.Barrier(2, timeout=60)

    class Code(CompiledCode):
        def __init__(self, name, source, options):
            both.wait()
            super().__init__(name, source, options)

    monkeypatch.setattr(_source, "CompiledCode", Code)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    prepare(posenc.compile(CONFIG, opt_level=0), ["sincos", "rope"])


def test_errors_and_warnings_of_a_function(monkeypatch):
    """They appear when it is used, each warning once."""
    kernels = posenc.compile(CONFIG, opt_level=0, stack_limit=1)
    for use in (lambda: kernels.rope, lambda: prepare(kernels, ["sincos", "rope"])):
        with pytest.raises(posenc.CompileError, match="stack"):
            use()

    class Code(CompiledCode):
        def __init__(self, name, source, options):
            super().__init__(name, source, options)
            self.warnings = [*self.warnings, "slow"]

    monkeypatch.setattr(_source, "CompiledCode", Code)
    config = {**CONFIG, "model_type": "unheard_of"}
    with pytest.warns(posenc.CompileWarning, match="unheard_of"):
        kernels = posenc.compile(config, opt_level=0)
    with pytest.warns(posenc.CompileWarning) as caught:
        kernels.sincos
    assert [str(one.message) for one in caught] == ["slow"]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_rope(kernels)


FORK_WHILE_WAITING = """
import json, os, signal, sys
import posenc
from posenc._compile import prepare

children = []

def fork(*_):
    child = os.fork()
    if child:
        children.append(child)
    else:
        children.clear()

signal.signal(signal.SIGALRM, fork)
signal.setitimer(signal.ITIMER_REAL, 0.1)
kernels = posenc.compile(json.loads(sys.argv[1]))
os.sched_getaffinity = lambda process: {0, 1, 2}
prepare(kernels)
assert kernels.rope
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(len(children))
"""


def test_a_fork_by_a_signal_handler_while_functions_are_compiled():
    """The child has none of the threads that compile, and compiles by itself."""
    result = subprocess.run([sys.executable, "-c", FORK_WHILE_WAITING, json.dumps(CONFIG)],
                            text=True, capture_output=True, check=False, timeout=300,
                            env={**os.environ, "POSENC_CACHE": "off"})
    assert sorted(result.stdout.splitlines()) == ["0", "1"], result.stderr
