# ===- _report.py - which kernels the layers of a model run ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Which kernels the layers of a model run, and why."""

from __future__ import annotations

import importlib.metadata
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
import vllm
from vllm.logger import init_logger

from .._errors import Error
from ._metrics import record_layers, set_process
from ._options import get_mode

logger = init_logger("vllm.posenc")
# Why vLLM's kernels run where Posenc's should, for each layer and rotation that does.
fallbacks: list[str] = []


class Choice(NamedTuple):
    """The kernels of a layer: those of Posenc, or vLLM's for a reason."""

    layer: str
    reason: str | None


def fall_back(what: str, reason: str) -> str:
    """Warns that vLLM's kernels run where Posenc's should, and returns the reason."""
    if get_mode() == "require":
        raise Error(f"POSENC_VLLM=require: {what} would run vLLM's kernels: {reason}")
    fallbacks.append(reason)
    # The same reason is logged once for all layers.
    logger.warning_once("vLLM's kernels run where Posenc's should: %s", reason)
    return reason


def list_choices(layers: Mapping[str, Any]) -> list[Choice]:
    """Returns the choices for the attention layers among vLLM's layers."""
    # The plug-in is loaded before vLLM needs these.
    from vllm.model_executor.layers.attention import Attention, MLAAttention

    return [Choice(name, getattr(layer.impl, "obstacle", "they have a backend of their own"))
            for name, layer in layers.items()
            if isinstance(layer, (Attention, MLAAttention))]


def report(layers: Mapping[str, Any], config: Any) -> list[Choice]:
    """Records the choices for layers in the metrics, and returns them."""
    parallel = config.parallel_config
    # vLLM sets `data_parallel_rank` to 0 in engines that do not depend on each other.
    set_process(parallel.data_parallel_index, parallel.rank)
    choices = list_choices(layers)
    record_layers([(layers[choice.layer], choice.reason) for choice in choices])
    return choices


def find_cache() -> str:
    """Returns the folder in which the compiler caches code, or "none"."""
    folder = os.environ.get("POSENC_CACHE")
    if not folder:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(base, "posenc")
    return "none" if folder == "off" else folder


def list_versions() -> str:
    return (f"Posenc {importlib.metadata.version('posenc')}, vLLM {vllm.__version__}, "
            f"PyTorch {torch.__version__}")


def summarize(choices: Iterable[Choice], rotation: str) -> str:
    """Returns a line about a model."""
    reasons = Counter(choice.reason for choice in choices)
    ours, all_layers = reasons.pop(None, 0), sum(reasons.values())
    text = (f"{list_versions()}: Posenc's kernels run {ours} of {ours + all_layers} "
            "attention layers")
    text += "".join(f"; vLLM's run {count}: {reason}" for reason, count in reasons.items())
    return f"{text}; rotations: {rotation}; kernels are cached in: {find_cache()}"
