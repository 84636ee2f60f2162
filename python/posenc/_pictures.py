# ===- _pictures.py - figures of positional encodings ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The figures of `posenc.viz`, whose numbers are results of compiled kernels."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._compile import compile
from ._errors import Error
from ._figures import (
    count_in_thousands, draw_map, find_limit, make_figure, with_matplotlib)
from ._flex import flex_attention
from ._page import draw_rotations, draw_spectrum
from ._rotations import measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Source = str | os.PathLike | Mapping[str, Any]
# Columns of values of a call that finds scores, and channels of its queries.
_WIDTH, _CHANNELS = 64, 16
_MAX_TOKENS = 8192


def _check_size(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not (
            low <= value <= high):
        raise Error(f"{name} is {value!r}, expected an integer from {low} to {high}")
    return int(value)


@with_matplotlib
def rotations(*sources: Source) -> Figure:
    """Draws rotary encodings: the cosines by position and pair, the wavelengths next to the
    context, scores by distance, and the errors of cos and sin next to those of angles that
    are rounded to f32.

    sources: config.json files: paths, folders, texts or dicts

    Returns the figure. Raises Error for what is no config, and without matplotlib.
    """
    if not sources:
        raise Error("expected at least one config")
    return draw_rotations([one for source in sources for one in measure(source)])


@with_matplotlib
def frequencies(source: Source) -> Figure:
    """Draws the wavelengths of a model's pairs of channels, original and scaled by its
    `rope_scaling`, and the factors between them.

    source: a config.json: its path, its folder, its text, or a dict

    Returns the figure. Raises Error for what is no config, for a config without a scaling,
    and without matplotlib.
    """
    scaled, original = measure(source), measure(source, scaling=False)
    if all(np.array_equal(one.wavelengths, other.wavelengths)
           for one, other in zip(scaled, original)):
        raise Error(f"'{scaled[0].name}' has no scaling of frequencies (rope_scaling)")
    figure = make_figure(12, 4.2 * len(scaled))
    for axes, one, before in zip(figure.subplots(len(scaled), 2, squeeze=False), scaled,
                                 original):
        name, one.name, before.name = one.name, "scaled", "original"
        draw_spectrum(axes[0], [before, one])
        axes[0].set_title(f"{name}: wavelength of each pair")
        axes[1].plot(one.wavelengths / before.wavelengths, ".-", color="C1", markersize=5,
                     label="scaled / original")
        axes[1].set(title=f"{name}: factor of the wavelengths", ylabel="factor",
                    xlabel="pair of channels", ylim=(0, None))
        axes[1].legend(loc="upper left")
        count_in_thousands(axes[0].yaxis)
    return figure


def _make_table(tokens: int, channels: int, base: float) -> np.ndarray:
    """Returns a sinusoidal table of f64, all sines before all cosines."""
    kind = f"tensor<?x{channels}xf64>"
    kernels = compile(f"""
func.func @table(%first: i64, %t: {kind}) -> {kind} {{
  %r = posenc.sinusoidal sin_cos #posenc.frequencies<dim = {channels}, base = {base:.17e}>
    positions(%first : i64) outs(%t : {kind})
  return %r : {kind}
}}
""", opt_level=0)
    table = np.zeros((tokens, channels))
    return kernels.table(0, table, out=table)


def _check_table(tokens: Any, channels: Any, base: Any) -> tuple[int, int, float]:
    channels = _check_size("channels", channels, 2, 4096)
    if channels % 2 or not isinstance(base, (int, float)) or not base > 1:
        raise Error(f"channels is {channels} and base {base!r}, expected an even number and "
                    "one above 1")
    return _check_size("tokens", tokens, 2, _MAX_TOKENS), channels, float(base)


@with_matplotlib
def sinusoidal(tokens: int = 128, channels: int = 128, base: float = 10000.0) -> Figure:
    """Draws a table of sines and cosines, as of the first transformers.

    tokens, channels: the size of the table
    base: the base of the frequencies

    Returns the figure. Raises Error for sizes that are no table, and without matplotlib.
    """
    tokens, channels, base = _check_table(tokens, channels, base)
    figure = make_figure(9, 5)
    axis = figure.subplots()
    draw_map(axis, _make_table(tokens, channels, base),
             f"Sinusoidal table, base {base:g}: {channels // 2} sines, then "
             f"{channels // 2} cosines", "element", vmin=-1, vmax=1)
    axis.axvline(channels / 2 - .5, color="black", linewidth=1)
    axis.set(xlabel="channel", ylabel="position (tokens)")
    return figure


@with_matplotlib
def similarity(tokens: int = 128, channels: int = 128, base: float = 10000.0) -> Figure:
    """Draws how similar the rows of a sinusoidal table are: their cosine similarity by both
    positions, and by the distance of positions.

    tokens, channels: the size of the table
    base: the base of the frequencies

    Returns the figure. Raises Error for sizes that are no table, and without matplotlib.
    """
    tokens, channels, base = _check_table(tokens, channels, base)
    table = _make_table(tokens, channels, base)
    products = table @ table.T / (channels / 2)  # Each sine and cosine adds up to 1.
    figure = make_figure(11, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    low = min(0.0, float(products.min()))
    draw_map(left, products, f"Similarity of rows, base {base:g}, {channels} channels",
             "cosine similarity", cmap="viridis", vmin=low, vmax=1, aspect="equal")
    left.set(xlabel="position (tokens)", ylabel="position (tokens)")
    right.plot(products[0], label="cosine similarity")
    right.axhline(0, color="0.6", linewidth=1)
    right.set(title="Similarity by distance", xlabel="distance (tokens)",
              ylabel="cosine similarity")
    right.legend()
    return figure


@with_matplotlib
def alibi(heads: int = 8, tokens: int = 64) -> Figure:
    """Draws the biases of ALiBi that heads add to scores.

    heads: the number of heads, of which each has a slope
    tokens: the largest distance that is shown

    Returns the figure. Raises Error for other sizes, and without matplotlib.
    """
    heads = _check_size("heads", heads, 1, 128)
    tokens = _check_size("tokens", tokens, 2, _MAX_TOKENS)
    kind = f"tensor<{heads}x?xf64>"
    kernels = compile(f"""
func.func @biases(%t: {kind}) -> {kind} {{
  %zero = arith.constant 0 : index
  %r = linalg.generic {{indexing_maps = [affine_map<(h, d) -> (h, d)>],
                        iterator_types = ["parallel", "parallel"]}} outs(%t : {kind}) {{
    ^bb0(%out: f64):
      %h = linalg.index 0 : index
      %d = linalg.index 1 : index
      %x = posenc.alibi(%h, %d, %zero) heads = {heads} : f64
      linalg.yield %x : f64
  }} -> {kind}
  return %r : {kind}
}}
""", opt_level=0)
    biases = np.zeros((heads, tokens + 1))
    biases = kernels.biases(biases, out=biases)
    figure = make_figure(12, 4.2)
    left, right = figure.subplots(1, 2)
    draw_map(left, biases, f"ALiBi: biases of {heads} heads", "bias", cmap="viridis",
             extent=(-.5, tokens + .5, heads - .5, -.5))
    left.set(xlabel="distance (tokens)", ylabel="head")
    _count_heads(left.yaxis)
    shown = np.unique(np.linspace(0, heads - 1, min(heads, 8)).astype(int))
    _draw_lines(right, biases[shown], [f"head {one}" for one in shown])
    right.set(title="ALiBi: bias by distance", xlabel="distance (tokens)", ylabel="bias")
    return figure


def _count_heads(line) -> None:
    from matplotlib.ticker import MaxNLocator

    line.set_major_locator(MaxNLocator(integer=True))


def _draw_lines(axis, rows: np.ndarray, labels: Sequence[str]) -> None:
    import matplotlib

    colors = matplotlib.colormaps["viridis"](np.linspace(0, .9, len(rows)))
    for row, label, color in zip(rows, labels, colors):
        axis.plot(row, color=color, label=label)
    axis.legend(fontsize="small", loc="lower left")


@with_matplotlib
def t5_buckets(buckets: int = 32, max_distance: int = 128, distance: int = 160) -> Figure:
    """Draws the buckets of relative positions that T5 has a learned bias for: in encoders,
    where half of them are for later keys, and in decoders.

    buckets: their number
    max_distance: the distance from which on there is one bucket
    distance: the largest distance that is shown

    Returns the figure. Raises Error for other sizes, and without matplotlib.
    """
    buckets = 2 * _check_size("buckets / 2", buckets / 2 if buckets % 2 else buckets // 2,
                              2, 512)
    max_distance = _check_size("max_distance", max_distance, buckets // 2 + 1, 1 << 20)
    distance = _check_size("distance", distance, 1, _MAX_TOKENS)

    def write(name: str, word: str) -> str:
        return f"""
func.func @{name}(%t: tensor<?xi64>, %first: i64) -> tensor<?xi64> {{
  %f = arith.index_cast %first : i64 to index
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>],
                        iterator_types = ["parallel"]}} outs(%t : tensor<?xi64>) {{
    ^bb0(%out: i64):
      %i = linalg.index 0 : index
      %relative = arith.addi %i, %f : index
      %b = posenc.t5_bucket{word} %relative buckets = {buckets} max_distance = {max_distance}
        : index
      %x = arith.index_cast %b : index to i64
      linalg.yield %x : i64
  }} -> tensor<?xi64>
  return %r : tensor<?xi64>
}}
"""

    kernels = compile(write("encoder", " bidirectional") + write("decoder", ""), opt_level=0)
    relative = np.arange(-distance, distance + 1)
    figure = make_figure(12, 4.2)
    for axis, name, method in zip(figure.subplots(1, 2), ("encoder", "decoder"),
                                  (kernels.encoder, kernels.decoder)):
        table = np.zeros(len(relative), np.int64)
        found = method(table, -distance, out=table)
        axis.step(relative, found, where="mid", color="C0", label="bucket")
        for number, at in enumerate((-max_distance, max_distance)):
            if abs(at) <= distance and (name == "encoder" or at < 0):
                axis.axvline(at, color="0.5", linestyle="--", linewidth=1,
                             label=None if number else f"distance {max_distance}")
        axis.set(title=f"T5: {buckets} buckets of a{'n' * (name == 'encoder')} {name}",
                 xlabel="key position - query position (tokens)", ylabel="bucket")
        axis.legend(loc="best", fontsize="small")
    return figure


# ===----------------------------------------------------------------------===#
# Functions of flex_attention
# ===----------------------------------------------------------------------===#


def _find_framework(functions: Sequence[Callable | None]) -> Any:
    """Returns the module of the framework that functions use: PyTorch or JAX if they have
    its arrays or call it, else NumPy."""
    for function in filter(None, functions):
        try:
            found = inspect.getclosurevars(function)
        except TypeError:  # It is no function of Python.
            continue
        values = [*found.nonlocals.values(), *found.globals.values(),
                  *(getattr(function, "__defaults__", None) or ())]
        for value in values:
            kind = getattr(value, "__name__", None) if inspect.ismodule(value) else (
                type(value).__module__)
            name = str(kind).partition(".")[0]
            if name == "torch":
                return sys.modules["torch"]
            if name in ("jax", "jaxlib"):
                return sys.modules["jax"].numpy
    return np


def _is_array(value) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _make_inputs(q, k, batch: int, head: int, functions: Sequence[Callable | None],
                 score: float) -> tuple[Any, Any, Any]:
    """Returns a framework, query and key."""
    if _is_array(q) and _is_array(k):
        for name, array in (("q", q), ("k", k)):
            if len(array.shape) != 4:
                raise Error(f"{name} has {len(array.shape)} dimensions, expected [batch, "
                            "heads, tokens, channels], or a number of tokens")
        torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
        if torch is not None and isinstance(q, torch.Tensor):
            return torch, q.detach(), k.detach()
        xp = jax.numpy if jax is not None and isinstance(q, jax.Array) else np
        return xp, q, k
    queries = _check_size("q", q, 1, _MAX_TOKENS)
    keys = _check_size("k", k, 1, _MAX_TOKENS)
    xp = _find_framework(functions)
    # JAX has f64 only if it is told to.
    dtype = xp.float32 if xp.__name__ == "jax.numpy" else xp.float64
    query, key = (np.zeros((batch + 1, head + 1, tokens, _CHANNELS))
                  for tokens in (queries, keys))
    query[..., 0], key[..., 0] = score, 1
    make = xp.asarray
    return xp, make(query, dtype=dtype), make(key, dtype=dtype)


def _find_scores(q, k, batch: int, head: int, score: float, scale: float | None,
                 **functions: Any) -> np.ndarray:
    """Returns the scores [queries, keys] of a kernel of flex_attention, minus infinity
    where a key is hidden. They are logarithms of the weights, which select keys if values
    are the rows of the identity."""
    batch = _check_size("batch", batch, 0, 1 << 20)
    head = _check_size("head", head, 0, 1 << 20)
    xp, query, key = _make_inputs(q, k, batch, head, list(functions.values()), score)
    if batch >= query.shape[0] or head >= query.shape[1]:
        raise Error(f"batch is {batch} and head {head}, but q has the shape "
                    f"{tuple(query.shape)}")
    if not _is_array(q):
        scale = 1.0
    keys, parts = int(key.shape[2]), []
    shape = (int(key.shape[0]), int(key.shape[1]), keys, _WIDTH)
    for first in range(0, keys, _WIDTH):
        rows = np.eye(keys, _WIDTH, -first)
        value = xp.asarray(np.broadcast_to(rows, shape).copy(), dtype=key.dtype)
        output, lse = flex_attention(query, key, value, scale=scale, return_lse=True,
                                     enable_gqa=True, **functions)
        part, sums = (np.asarray(one[batch, head].tolist(), np.float64)
                      for one in (output, lse))
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append(np.log(part) + sums[:, None])
    scores = np.concatenate(parts, axis=1)[:, :keys]
    return np.where(np.isnan(scores), -np.inf, scores)


def _make_square(values: np.ndarray) -> tuple[Any, Any, str]:
    """Returns a figure, its axis, and the aspect: elements are squares unless there are many
    more of one side."""
    ratio = values.shape[0] / values.shape[1]
    figure = make_figure(6.8, min(max(5.2 * ratio + .6, 2.5), 9))
    return figure, figure.subplots(), "equal" if 0.35 < ratio < 1.7 else "auto"


def _label_pairs(axis) -> None:
    axis.set(xlabel="key index (tokens)", ylabel="query index (tokens)")


def _name(function: Callable) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else name


@with_matplotlib
def mask(mask_mod: Callable, q: Any, k: Any, *, batch: int = 0, head: int = 0) -> Figure:
    """Draws which keys queries see, as a kernel of `posenc.flex_attention` computes it.

    mask_mod: a function of batch, head, query index and key index that tells whether the
        key is visible
    q, k: the numbers of queries and keys, or arrays [batch, heads, tokens, channels] of
        query and key
    batch, head: which ones are shown

    Returns the figure. Raises Error for what `posenc.flex_attention` does not take, and
    without matplotlib.
    """
    from matplotlib.colors import ListedColormap

    if not callable(mask_mod):
        raise Error(f"mask_mod is a {type(mask_mod).__name__}, expected a function")
    if _is_array(q) and _is_array(k):  # Only their sizes count.
        batch_of, head_of = (int(one) for one in q.shape[:2])
        if batch >= batch_of or head >= head_of:
            raise Error(f"batch is {batch} and head {head}, but q has the shape "
                        f"{tuple(q.shape)}")
        q, k = int(q.shape[2]), int(k.shape[2])
    visible = _find_scores(q, k, batch, head, 0.0, None, mask_mod=mask_mod) > -np.inf
    colors = "0.93", "#1f5fa8"
    figure, axis, aspect = _make_square(visible)
    image = axis.imshow(visible, ListedColormap(colors), vmin=0, vmax=1,
                        interpolation="nearest", aspect=aspect)
    axis.set_title(f"{_name(mask_mod)}, batch {batch}, head {head}: {visible.mean():.1%} of "
                   "pairs are visible", fontsize="medium")
    key = figure.colorbar(image, ax=axis, ticks=(.25, .75), pad=0.02)
    key.ax.set_yticklabels(("hidden", "visible"))
    _label_pairs(axis)
    return figure


@with_matplotlib
def score_mod(score_mod: Callable, q: Any, k: Any, *, mask_mod: Callable | None = None,
              batch: int = 0, head: int = 0, score: float = 0.0,
              scale: float | None = None) -> Figure:
    """Draws the scores that a `score_mod` returns, as a kernel of `posenc.flex_attention`
    computes them.

    score_mod: a function of a score, batch, head, query index and key index, which returns
        the new score
    q, k: the numbers of queries and keys, or arrays [batch, heads, tokens, channels] of
        query and key
    mask_mod: a function of batch, head, query index and key index that tells whether the
        key is visible
    batch, head: which ones are shown
    score: the score of each pair before `score_mod`, if q and k are numbers
    scale: the factor of products of arrays (default: the channels' number to the power -1/2)

    Scores are read from weights: those that are 700 (JAX: 85) below the largest of a query
    are shown as hidden. Returns the figure. Raises Error for what `posenc.flex_attention`
    does not take, and without matplotlib.
    """
    if not callable(score_mod):
        raise Error(f"score_mod is a {type(score_mod).__name__}, expected a function")
    scores = _find_scores(q, k, batch, head, score, scale, score_mod=score_mod,
                          mask_mod=mask_mod)
    figure, axis, aspect = _make_square(scores)
    limit = find_limit(scores)
    draw_map(axis, np.where(np.isinf(scores), np.nan, scores),
             f"scores of {_name(score_mod)}, batch {batch}, head {head}", "score",
             vmin=-limit, vmax=limit, blank="hidden", aspect=aspect)
    _label_pairs(axis)
    return figure
