# ===- _source.py - functions that are compiled when they are used ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A config or module each of whose functions is compiled when it is first used."""

from __future__ import annotations

import base64
import json
import os
import threading
import warnings
from collections.abc import Iterable, Sequence

from ._compiler import CompiledCode, Listing
from ._errors import CompileError, CompileWarning, Error
from ._once import once


def warn(lines: Iterable[str], level: int) -> None:
    """Gives warnings of the compiler. They are about the caller at `level`, of which 1
    is the one of this function."""
    for line in lines:
        warnings.warn(line, CompileWarning, stacklevel=level + 1)


class Source:
    """What functions are compiled from. Any number of threads may compile, each function
    is compiled once, and different functions are compiled at the same time."""

    def __init__(self, name: str, text: bytes, flags: Sequence[str]):
        listing = Listing(name, text, flags)
        self.targets = listing.targets
        self.functions = listing.functions
        self.names: list[str] = [function["name"] for function in listing.functions]
        self.warnings = listing.warnings
        self._given: set[str] = set()  # warnings of functions, each given once
        # The listing has given the warnings of the config.
        others = [flag for flag in flags if flag != "--no-warnings"
                  and not flag.startswith("--kernels=")]

        @once
        def compile_function(function: str) -> tuple[CompiledCode, dict]:
            code = CompiledCode(name, text, [
                *others, "--no-warnings", f"--kernels={function}"])
            return code, json.loads(code.metadata)

        self._compile = compile_function

    def get(self, name: str, level: int) -> tuple[CompiledCode, dict]:
        """Returns the code of a function, and the metadata of that code. `level` is as
        in `warn`."""
        code, metadata = self._compile(name)
        new = [line for line in code.warnings if line not in self._given]
        self._given.update(new)
        warn(new, level + 1)
        return code, metadata

    def prepare(self, names: Iterable[str]) -> None:
        """Compiles functions, as many at the same time as there are CPUs. Errors are
        left to `get`."""
        rest = list(dict.fromkeys(names))
        rest.reverse()

        def work() -> None:
            while rest:
                try:
                    self._compile(rest.pop())
                except (Error, IndexError):
                    pass

        threads: list[threading.Thread] = []
        try:
            for _ in range(min(len(rest), len(os.sched_getaffinity(0))) - 1):
                thread = threading.Thread(target=work, name="posenc-compile")
                thread.start()
                threads.append(thread)
        except RuntimeError:  # There can be no more threads.
            pass
        try:
            work()
        finally:
            rest.clear()  # An interrupt ends the work.
        for thread in threads:
            # In the child of a signal handler that forks here, the threads are gone
            # without a notice.
            while thread.is_alive():
                thread.join(timeout=0.1)


@once
def compile_for_cuda(spec: str | None, name: str,
                     target: str) -> tuple[CompiledCode, dict]:
    """Compiles a function of kernels for a CUDA device. Returns the code and the
    function's metadata."""
    if spec is None:
        raise Error(f"{name}: the library has no code for CUDA: compile it with "
                    f"--target={target}, too")
    fields = json.loads(spec)
    if any(flag.startswith("--target=") for flag in fields["flags"]):
        raise Error(f"{name}: there is no code for '{target}', since `target` has none: "
                    "leave it out, or add that target")
    # Tuning files and schedules are for CPUs.
    flags = [flag for flag in fields["flags"]
             if flag != "--no-warnings" and not flag.startswith("--kernels=")]
    try:
        code = CompiledCode(
            fields["name"], base64.b64decode(fields["source"]),
            [*flags, "--no-warnings", f"--kernels={name}", f"--target={target}"])
    except CompileError as error:
        raise CompileError(f"{name}: has no code for CUDA devices: {error}") from None
    [function] = json.loads(code.metadata)["functions"]
    return code, function
