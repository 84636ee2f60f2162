# ===- layers.py - attention layers of a model -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A module of its own, as vLLM's processes import the function by its name."""


def count_layers(model):
    """Returns the numbers of attention layers that run kernels of Posenc, and of those
    that do not."""
    from vllm.model_executor.layers.attention import Attention

    layers = [layer for layer in model.modules() if isinstance(layer, Attention)]
    ours = [layer for layer in layers if type(layer.impl).__module__.startswith(
        "posenc.") and layer.impl.obstacle is None and layer.impl._functions]
    return len(ours), len(layers) - len(ours)
