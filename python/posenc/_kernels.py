# ===- _kernels.py - compiled functions as methods -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Classes whose methods are the functions of a kernel library."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import tempfile
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._compiler import CompiledCode
from ._errors import Error
from ._methods import TRACED_INSTEAD, Names, make_method, make_traceable
from ._source import Source, warn
from ._spec import write_spec


class _Metadata:
    """The metadata of kernels, made of that of all functions when it is first read."""

    def __get__(self, kernels: Kernels | None, owner: type) -> Any:
        if kernels is None:
            return self
        kernels.metadata = kernels._collect_metadata()
        return kernels.metadata


class Kernels:
    """Compiled kernels: a method for each function.

    Arrays are of NumPy, PyTorch, JAX or CuPy, on the CPU or on a CUDA device, and are
    not copied. Results are arrays of the framework of the first input, on its device,
    unless `out` has arrays for them. On a CUDA device, kernels are put into the current
    stream of the framework, and a function is compiled for the device when it is first
    called there.
    Methods may be called by several threads at the same time.
    """

    __module__ = "posenc"
    _functions: dict[str, Any] = {}  # The methods' names.
    _spec: str | None = None
    _declared: Any = None  # Which dimensions may be divided, if that was declared.
    _source: Source | None = None  # of functions that are compiled when they are used

    if TYPE_CHECKING:
        metadata: dict
        """The library's metadata: functions, signatures, targets, versions."""

        # Type checkers do not see the methods, which are made when compiling.
        def __getattr__(self, name: str) -> Callable[..., Any]: ...
    else:
        metadata = _Metadata()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """Returns a function by its name."""
        if name not in self._functions:
            raise Error(f"no function '{name}': there are "
                        f"{', '.join(self._functions) or 'none'}")
        return getattr(self, self._functions[name])

    def __iter__(self) -> Iterator[str]:
        """The names of the functions."""
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __reduce__(self):
        """Pickles what the kernels were compiled from."""
        if self._spec is None:
            raise Error("kernels of a loaded library cannot be pickled: pickle its path")
        return compile_spec, (self._spec,)

    def __copy__(self) -> Kernels:
        return self  # Kernels have no state.

    def __deepcopy__(self, memo: dict) -> Kernels:
        return self

    def __repr__(self) -> str:
        targets = self._source.targets if self._source else self.metadata["targets"]
        return (f"<posenc.Kernels of {', '.join(self._functions)} for "
                f"{', '.join(targets)}>")

    def _describe(self, name: str) -> dict:
        """Returns the metadata of one function."""
        if name not in self._functions:
            raise Error(f"no function '{name}' in the kernels")
        metadata = self._source.get(name, 2)[1] if self._source else self.metadata
        return _find(metadata, name)

    def _prepare(self, names: Iterable[str] | None = None) -> None:
        """Compiles functions that were not used yet, or all of them, at the same time."""
        if self._source is not None:
            names = list(self._functions if names is None else names)
            self._source.prepare(names)
            for name in names:
                self[name]  # Raises its errors.

    def _collect_metadata(self) -> dict:
        if self._source is None:
            raise AttributeError("metadata")
        self._prepare()
        functions = [self._describe(name) for name in self._functions]
        first = next(iter(self._functions))
        return {**self._source.get(first, 3)[1], "functions": functions}


def _find(metadata: dict, name: str) -> dict:
    return next(one for one in metadata["functions"] if one["name"] == name)


class _Pending:
    """A function that is compiled when it is looked up. Then the method is in its
    place."""

    def __init__(self, source: Source, name: str, spec: str | None):
        self._source, self._name, self._spec = source, name, spec
        self._traceable = make_traceable(spec, name)

    def __set_name__(self, owner: type, identifier: str) -> None:
        self._owner, self._identifier = owner, identifier

    def __get__(self, kernels: Kernels | None, owner: type) -> Callable[..., Any]:
        code, metadata = self._source.get(self._name, 2)
        function = _find(metadata, self._name)
        method = make_method(function, self._identifier, code, self._spec)
        setattr(self._owner, self._identifier, method)
        return method if kernels is None else types.MethodType(method, kernels)

    def _get_traceable(self, kernels: Kernels, owner: type) -> Callable[..., Any]:
        return functools.partial(self._traceable, kernels)

    vars(__get__)[TRACED_INSTEAD] = _get_traceable


# By what they were compiled from, as long as they are in use.
known_kernels: weakref.WeakValueDictionary[str, Kernels] = weakref.WeakValueDictionary()


def _make(names: Iterable[str], targets: Sequence[str], spec: str | None,
          make: Callable[[str, str], Any], **members: Any) -> Kernels:
    """Returns the kernels of functions: an object of a class of its own. `make` returns
    the member of a name and a Python name."""
    identifiers = Names({*dir(Kernels), "metadata"})
    functions = {name: identifiers.add(name) for name in names}
    doc = (f"Kernels for {', '.join(targets)}: {', '.join(functions)}.\n\n"
           + (Kernels.__doc__ or "").split("\n\n", 1)[1])
    members.update(__module__="posenc", __doc__=doc, _functions=functions, _spec=spec)
    for name, identifier in functions.items():
        members[identifier] = make(name, identifier)
    kernels = type("Kernels", (Kernels,), members)()
    if spec is not None:
        known_kernels.setdefault(spec, kernels)
    return kernels


def make_kernels(code, spec: str | None = None) -> Kernels:
    """Returns the kernels of compiled code."""
    metadata = json.loads(code.metadata)
    names = [function["name"] for function in metadata["functions"]
             if "tvm_ffi" in function]  # Others have code for Vulkan only.
    kernels = _make(names, metadata["targets"], spec,
                    lambda name, identifier: make_method(
                        _find(metadata, name), identifier, code, spec))
    kernels.metadata = metadata
    return kernels


def make_pending_kernels(source: Source, spec: str | None = None) -> Kernels:
    """Returns kernels whose functions are compiled when they are used."""
    return _make(source.names, source.targets, spec,
                 lambda name, _: _Pending(source, name, spec), _source=source)


# ===----------------------------------------------------------------------===#
# Compilation
# ===----------------------------------------------------------------------===#


def build(name: str, text: bytes, flags: Sequence[str],
          files: Mapping[str, tuple[str, bytes]], level: int, *, on_use: bool,
          spec: str | None = None, report: str | None = None) -> Kernels:
    """Compiles all functions at once, or each when it is first used. `files` are flags
    with paths and their content. `level` is as in `warn`, and `spec` what `write_spec`
    returns, if it is known. `report` is the path of a report on functions that are
    compiled at once."""
    if on_use:
        source = Source(name, text, flags)
        warn(source.warnings, level + 1)
        return make_pending_kernels(source, spec or write_spec(
            name, text, flags, {}, source.functions, on_use))
    code = CompiledCode(
        name, text, [*flags, *(f"{flag}={path}" for flag, (path, _) in files.items()),
                     *([f"--report={report}"] if report else [])])
    warn(code.warnings, level + 1)
    contents = {flag: content for flag, (_, content) in files.items()}
    return make_kernels(code, spec or write_spec(
        name, text, flags, contents, json.loads(code.metadata)["functions"], on_use))


def compile_spec(spec: str) -> Kernels:
    """Compiles what `Kernels._spec` describes, without warnings."""
    fields = json.loads(spec)
    with contextlib.ExitStack() as stack:
        if fields["files"]:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="posenc-"))
        files = {}
        for flag, text in fields["files"].items():
            path, content = os.path.join(folder, flag.strip("-")), base64.b64decode(text)
            with open(path, "wb") as file:
                file.write(content)
            files[flag] = path, content
        flags = [flag for flag in fields["flags"] if flag != "--no-warnings"]
        return build(
            fields["name"], base64.b64decode(fields["source"]),
            [*flags, "--no-warnings"], files, level=2, on_use=fields["on_use"], spec=spec)
