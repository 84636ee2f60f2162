# ===- torch.py - operators of PyTorch -------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Operators of PyTorch: right under autograd, torch.compile and torch.export.

    ops = posenc.torch.operators(posenc.compile("config.json"))
    q, k = ops.rope(q, k, positions)       # with derivatives
    o = ops.attention(q, k, v, positions)  # without

or, without a config, `posenc.torch.rope(q, k, positions, theta=…)`. And

    model = torch.compile(model, backend="posenc")

compiles a model with its rotations and attentions by kernels (`explain_backend`), and

    function = posenc.torch.compile_exported(torch.export.export(model, inputs))

a whole program (`compile_exported`).

There are two operators, `posenc::rope` and `posenc::call`. The kernels are a string
argument: the config or module and the options that they are compiled from. So an
exported program is complete: loaded in another process, it compiles its kernels at
the first call, or takes them from the cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch._dynamo.backends import registry

from ._flex._torch_replace import replace_flex_attention
from ._kernels import Kernels
from ._operators import call, find, register
from ._torch_rope import rope

__all__ = ["Operators", "compile_exported", "explain_backend", "operators",
           "replace_flex_attention", "ring_attention", "rope"]

rope.__module__ = __name__  # It is printed by help().


def __getattr__(name: str) -> Any:
    # What imports torch.distributed or compilers is imported when it is asked for.
    if name == "ring_attention":
        from ._ring import ring_attention

        return ring_attention
    if name == "explain_backend":
        from ._torch_backend import explain_backend

        return explain_backend
    if name == "compile_exported":
        from ._torch_export import compile_exported

        return compile_exported
    raise AttributeError(f"module 'posenc.torch' has no attribute '{name}'")


def _compile_graph(module, inputs, **options):
    from ._torch_backend import backend

    return backend(module, inputs, **options)


# An installed package has an entry point for it, which may have been loaded.
if "posenc" not in registry._COMPILER_FNS:
    registry.register_backend(_compile_graph, name="posenc")


class _Operator:
    """A function of kernels, which is compiled when the operator is called or asked for
    its signature."""

    def __init__(self, spec: str, name: str):
        self.__name__ = name
        self._spec = spec

    def __call__(self, *inputs, **named):
        return call(self._spec, self.__name__, inputs, named)

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(find(self._spec)[self.__name__])
        return signature.replace(parameters=[
            one for key, one in signature.parameters.items() if key != "out"])

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return find(self._spec)[self.__name__].__doc__

    def __reduce__(self):
        return _Operator, (self._spec, self.__name__)


class Operators:
    """The functions of kernels as operators of PyTorch, one method for each. `rope`
    of a config has derivatives, and the others refuse them."""

    def __init__(self, kernels: Kernels):
        spec = register(kernels)
        vars(self).update({name: _Operator(spec, name) for name in kernels})
        self._kernels = kernels

    def __reduce__(self):
        return operators, (self._kernels,)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        names = ", ".join(key for key in vars(self) if not key.startswith("_"))
        raise AttributeError(f"no function '{name}': there are {names}")


def operators(kernels: Kernels) -> Operators:
    """Returns the functions of kernels as operators of PyTorch.

    kernels: those of `posenc.compile`. Raises Error for a loaded library, which cannot be
        compiled again where an exported program runs
    """
    return Operators(kernels)
