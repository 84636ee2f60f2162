# ===- _warmup.py - compilation ahead ---------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`warmup`: compiles what a model will call, before it does."""

from __future__ import annotations

import concurrent.futures
import contextvars
import os
from collections.abc import Callable
from typing import Any

import torch
import transformers

from .._errors import Error

# The compilations that calls of kernels need, while `warmup` looks for them.
_jobs: contextvars.ContextVar[dict[tuple, None] | None] = contextvars.ContextVar(
    "_jobs", default=None)


def postpone(compile_kernel: Callable[..., Any], *arguments) -> bool:
    """Notes what a call would compile and returns True if `warmup` looks for that. Then
    the results of the call do not matter."""
    jobs = _jobs.get()
    if jobs is not None:
        jobs[(compile_kernel, *arguments)] = None
    return jobs is not None


def is_looking() -> bool:
    """Whether `warmup` looks for calls of kernels."""
    return _jobs.get() is not None


def _run(model: transformers.PreTrainedModel, inputs: dict[str, Any]) -> None:
    """Runs a prompt and, if the model has a cache, one more token."""
    results = model(**inputs)
    cache = getattr(results, "past_key_values", None)
    cache = cache if cache is not None else getattr(results, "cache", None)
    if cache is None:
        return
    tokens = inputs["input_ids"][:, -1:]
    names = "cache", "past_key_values"
    others = {name: value for name, value in inputs.items()
              if name not in (*names, "input_ids", "attention_mask", "position_ids")}
    mask = inputs.get("attention_mask")
    if mask is not None:
        others["attention_mask"] = torch.cat([mask, torch.ones_like(tokens)], 1)
    name = names[0] if hasattr(results, "cache") else names[1]
    model(tokens, **{name: cache}, **others)


def warmup(model: transformers.PreTrainedModel, *, padding: bool = False,
           **inputs: Any) -> int:
    """Compiles what a model will call: for prompts, and for single tokens after them,
    several functions at the same time. The model runs with a prompt of a few tokens,
    whose attention is not computed. Returns the number of functions.

    padding: also those for batches with padding
    inputs: the model's, if `input_ids` are not enough

    Raises Error for a model that calls no kernels, as it was not enabled.
    """
    if "input_ids" not in inputs:
        inputs["input_ids"] = torch.ones((1, 2), dtype=torch.int64, device=model.device)
    token = _jobs.set({})
    try:
        with torch.no_grad():
            _run(model, inputs)
            if padding:
                mask = torch.ones_like(inputs["input_ids"])
                mask[:, 0] = 0
                _run(model, {**inputs, "attention_mask": mask})
        jobs = [*(_jobs.get() or ())]
    finally:
        _jobs.reset(token)
    if not jobs:
        raise Error(f"{type(model).__name__} calls no kernels: pass it to "
                    "posenc.transformers.enable() first")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(job, *arguments) for job, *arguments in jobs]:
            future.result()
    return len(jobs)
