# ===- _jax_operator.py - derivatives under JAX ----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls of `flex_attention` with arrays of JAX, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .._jax import vary
from .._kernels import Kernels
from ._gradient import GRADIENT, name_array_gradient

# By kernels, which a plan keeps.
_calls: dict[Kernels, Callable[..., Any]] = {}


def call(kernels: Kernels, inputs: Sequence[Any]):
    """Returns the output and the log-sum-exp."""
    if not any(isinstance(one, jax.core.Tracer) for one in inputs):
        return kernels["attention"](*inputs)
    function = _calls.get(kernels)
    if function is None:
        function = _calls[kernels] = _make_differentiable(kernels)
    return function(*vary(inputs, inputs))


def _make_differentiable(kernels: Kernels) -> Callable[..., Any]:
    @jax.custom_vjp
    def attend(*inputs):
        return tuple(kernels["attention"](*inputs))

    def forward(*inputs):
        results = attend(*inputs)
        return results, (inputs, results)

    def backward(residuals, cotangents):
        inputs, (output, lse) = residuals
        arguments = (*inputs[:3], output, lse, *cotangents, *inputs[3:])
        gradients = list(kernels[GRADIENT](*arguments))
        gradients[0] = gradients[0].astype(inputs[0].dtype)
        for number, array in enumerate(inputs[3:]):
            name = name_array_gradient(number)
            if not jax.numpy.issubdtype(array.dtype, jax.numpy.floating):
                gradients.append(np.zeros(array.shape, jax.dtypes.float0))
            elif name in kernels:
                gradients.append(kernels[name](*arguments).astype(array.dtype))
            else:
                gradients.append(jax.numpy.zeros_like(array))
        return tuple(gradients)

    attend.defvjp(forward, backward)
    return attend
