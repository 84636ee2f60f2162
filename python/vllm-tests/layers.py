# ===- layers.py - attention layers of a model -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""A module of its own, as vLLM's processes import its functions by their names."""


def set_scales(model, keys, values):
    """Sets the scales of caches, as checkpoints of quantized models do."""
    from vllm.model_executor.layers.attention import Attention

    for layer in model.modules():
        if isinstance(layer, Attention):
            layer._k_scale.fill_(keys)
            layer._v_scale.fill_(values)
            layer._k_scale_float, layer._v_scale_float = keys, values


def count_layers(model):
    """Returns the numbers of attention layers that run kernels of Posenc, and of those
    that do not."""
    from vllm.model_executor.layers.attention import Attention

    layers = [layer for layer in model.modules() if isinstance(layer, Attention)]
    # vLLM derives a class of its own for cross attention.
    ours = [layer for layer in layers if any(
        one.__module__.startswith("posenc.") for one in type(layer.impl).__mro__)
        and layer.impl.obstacle is None and layer.impl.kernels.functions]
    return len(ours), len(layers) - len(ours)
