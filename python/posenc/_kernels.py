# ===- _kernels.py - compiled functions as methods -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Classes whose methods are the functions of a kernel library."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._errors import Error
from ._methods import Names, make_method


class Kernels:
    """Compiled kernels: a method for each function.

    Arrays are of NumPy, PyTorch or JAX, on the CPU, and are not copied. Results are
    arrays of the framework of the first input, unless `out` has arrays for them.
    Methods may be called by several threads at the same time.
    """

    __module__ = "posenc"
    metadata: dict
    """The library's metadata: functions, signatures, targets, versions."""
    _functions: dict[str, Any] = {}
    _spec: str | None = None

    if TYPE_CHECKING:
        # Type checkers do not see the methods, which are made when compiling.
        def __getattr__(self, name: str) -> Callable[..., Any]: ...

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
        from ._compile import compile_spec

        return compile_spec, (self._spec,)

    def __copy__(self) -> Kernels:
        return self  # Kernels have no state.

    def __deepcopy__(self, memo: dict) -> Kernels:
        return self

    def __repr__(self) -> str:
        return (f"<posenc.Kernels of {', '.join(self._functions)} for "
                f"{', '.join(self.metadata['targets'])}>")


def make_kernels(code, spec: str | None = None) -> Kernels:
    """Returns the kernels of compiled code: an object of a class of its own."""
    metadata = json.loads(code.metadata)
    methods: dict[str, Any] = {}
    functions = {}
    names = Names({*dir(Kernels), "metadata"})
    for function in metadata["functions"]:
        if "tvm_ffi" not in function:
            continue  # There is code for GPUs only.
        identifier = names.add(function["name"])
        methods[identifier] = make_method(function, identifier, code, spec)
        functions[function["name"]] = identifier
    listed = ", ".join(functions)
    members = {"__module__": "posenc", "_functions": functions, "_spec": spec,
               "__doc__": f"Kernels for {', '.join(metadata['targets'])}: {listed}.\n\n"
                          + (Kernels.__doc__ or "").split("\n\n", 1)[1], **methods}
    kernels = type("Kernels", (Kernels,), members)()
    kernels.metadata = metadata
    return kernels
