# ===- _rotations.py - the numbers of a model's rotations ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The numbers of rotary encodings that `posenc.viz` shows: results of compiled kernels."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._compile import compile, read_source
from ._contexts import read_context
from ._errors import Error

# The last position of the error maps is 2^20: contexts of today end there.
_ERROR_POSITIONS = np.unique(np.concatenate([
    [0], np.round(2.0 ** np.linspace(0, 20, 241)).astype(np.int64)]))
_COLUMNS = 256  # of the map of a whole context
_BINS = 240  # of distances
_SAMPLES = 32  # distances of a bin that are next to each other, and as many that are not
_SHORTEST = 4  # positions that are shown of the shortest context


@dataclasses.dataclass
class Rotation:
    """The numbers of one rotation of a model.

    context: tokens that the model was trained for, or None if that is unknown
    near, far: cosines (pairs, positions) of the first positions, and of the context
    far_positions: the positions of `far`, one for each column of a picture
    wavelengths: positions per turn of each pair; infinite for pairs without rotation
    distances, scores, low_scores, high_scores: the mean over pairs of the product of a
        rotated query and key of ones, divided by that of distance 0: at some distances of
        their positions, the smallest and the largest one between two of these
    error_positions, errors, usual_errors: absolute errors (pairs, positions) of cos and
        sin, whichever is larger, of the exact tables and of angles rounded to f32;
        the second is None for configs that the precision hf_f32 rejects
    """

    name: str
    context: int | None
    near: np.ndarray
    far: np.ndarray
    far_positions: np.ndarray
    wavelengths: np.ndarray
    distances: np.ndarray
    scores: np.ndarray
    low_scores: np.ndarray
    high_scores: np.ndarray
    error_positions: np.ndarray
    errors: np.ndarray
    usual_errors: np.ndarray | None


class _Tables:
    """Calls the table and the rotation of one suffix, such as `_full_attention`."""

    def __init__(self, config: dict, suffix: str, precision: str | None = None,
                 dtype: str = "f32"):
        kernels = compile(config, dtype=dtype, pairing="half", precision=precision,
                          kernels=[f"sincos{suffix}", f"rope{suffix}"], opt_level=0,
                          no_warnings=True)
        self._sincos = getattr(kernels, f"sincos{suffix}")
        self._rope = getattr(kernels, f"rope{suffix}")
        functions = {one["name"]: one for one in kernels.metadata["functions"]}
        inputs = {one["name"]: one["shape"] for one in functions[f"rope{suffix}"]["inputs"]}
        self._axes = len(inputs["positions"]) == 3 and inputs["positions"][0]
        self._query, self._key = inputs["q"], inputs["k"]
        if functions[f"rope{suffix}"]["inputs"][2]["dtype"] != "i64":
            raise Error("its positions are coordinates rather than integers, and are not "
                        "shown")

    def _spread(self, positions: np.ndarray) -> np.ndarray:
        """All axes of a model with several have the same position."""
        return np.broadcast_to(positions, (self._axes, *positions.shape)).copy() if (
            self._axes) else positions

    def sincos(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns cos and sin in f32, of the shape (positions, pairs)."""
        return self._sincos(self._spread(positions))

    def rotate_ones(self, positions: np.ndarray, pairs: int) -> tuple:
        """Returns the same from the rotation of pairs (1, 0), in the kernels' type."""
        width = self._query[3]
        cos, _ = self.sincos(positions)
        early = positions <= 1
        for offset in (0, width - 2 * pairs):
            query = np.zeros((1, len(positions), self._query[2], width))
            query[..., offset:offset + pairs] = 1
            key = np.zeros((1, len(positions), *self._key[2:]))
            rotated = self._rope(query, key, self._spread(positions[None]))[0][0, :, 0]
            part = rotated[:, offset:offset + 2 * pairs]
            # Only the right window has the cosines of the table.
            if np.abs(part[early, :pairs] - cos[early]).max() < 1e-6:
                return part[:, :pairs], part[:, pairs:]
        raise Error("the rotated channels of a head were not found")


def _measure_errors(config: dict, suffix: str, pairs: int):
    exact = _Tables(config, suffix, dtype="f64").rotate_ones(_ERROR_POSITIONS, pairs)

    def compare(tables: _Tables) -> np.ndarray:
        found = tables.sincos(_ERROR_POSITIONS)
        return np.maximum(*(np.abs(one.astype(np.float64) - other)
                            for one, other in zip(found, exact))).T
    errors = compare(_Tables(config, suffix))
    try:
        return errors, compare(_Tables(config, suffix, precision="hf_f32"))
    except Error:
        return errors, None


def _parse(text: str | bytes, what: str) -> dict:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Error(f"'{what}' is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise Error(f"'{what}' is not the object of a config.json")
    return config


def _remove_scaling(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config without the scaling of its frequencies, in any of its spellings."""
    result: dict[str, Any] = {}
    for key, value in config.items():
        if key == "rope_scaling" and isinstance(value, Mapping):
            # mRoPE and the base are no scaling.
            value = {name: one for name, one in value.items()
                     if name in ("mrope_section", "rope_theta", "mrope_interleaved")}
            value = {"rope_type": "default", **value} if value else None
        elif key == "rope_parameters" and isinstance(value, Mapping):
            value = {name: _remove_scaling({"rope_parameters": one})["rope_parameters"]
                     if isinstance(one, Mapping) else one for name, one in value.items()}
            if "rope_type" in value:
                value["rope_type"] = "default"
                for name in ("factor", "low_freq_factor", "high_freq_factor",
                             "original_max_position_embeddings", "attention_factor",
                             "beta_fast", "beta_slow", "short_factor", "long_factor"):
                    value.pop(name, None)
        elif isinstance(value, Mapping):
            value = _remove_scaling(value)
        result[key] = value
    return result


def measure(source: str | os.PathLike | Mapping[str, Any],
            name: str | None = None, *, scaling: bool = True) -> list[Rotation]:
    """Returns the numbers of each rotation of a config.

    source: a config.json: its path, its folder, its text, or a dict
    name: what titles call it (default: the name of the file, or the model type)
    scaling: False leaves the scaling of frequencies out

    Raises Error for what is no config, and for a model without rotary embeddings.
    """
    if isinstance(source, Mapping):
        config = dict(source)
    elif isinstance(source, str) and source.lstrip().startswith("{"):
        config = _parse(source, "config.json")
    else:
        file, text = read_source(source)
        config = _parse(text, file)
        path = os.path.abspath(source)
        name = name or (os.path.basename(path) if os.path.isdir(path) else
                        os.path.splitext(os.path.basename(path))[0])
        try:
            return measure(config, name, scaling=scaling)
        except Error as error:
            # The compiler does not know the name of the file.
            raise Error(f"{source}: {error}") from None
    if not scaling:
        config = _remove_scaling(config)
    name = name or config.get("model_type", "model")
    name = name.encode(errors="replace").decode()  # Names of files may not be UTF-8.
    listing = compile(config, kernels=None, opt_level=0, no_warnings=True)
    suffixes = [function.removeprefix("sincos") for function in dir(listing)
                if function.startswith("sincos")]
    if not suffixes:
        raise Error(f"'{name}' has no rotary embedding")
    context = read_context(config)
    return [_measure(config, f"{name}{suffix.replace('_', ' ')}", suffix, context)
            for suffix in suffixes]


def _find_bins(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns distances on a logarithmic scale, and for each of them distances between it
    and the next one: some that are next to each other, which short waves turn in, and some
    over the whole range."""
    first = np.unique(np.concatenate([
        [0], np.round(np.geomspace(1, length - 1, _BINS)).astype(np.int64)]))
    ends = np.append(first[1:] - 1, first[-1])
    steps = np.arange(_SAMPLES)
    near = np.minimum(first[:, None] + steps, ends[:, None])
    spread = first[:, None] + ((ends - first)[:, None] * steps) // (_SAMPLES - 1)
    return first, np.concatenate([near, spread], axis=1)


def _measure(config: dict, name: str, suffix: str, context: int | None) -> Rotation:
    length = max(context or 4096, _SHORTEST)
    far = np.unique(np.linspace(0, length - 1, _COLUMNS).astype(np.int64))
    distances, samples = _find_bins(length)
    # One call, so that frequencies that depend on its length are the same for all.
    near = np.arange(min(256, length))
    parts = [near, far, distances, samples.ravel()]
    cos, sin = _Tables(config, suffix).sincos(np.concatenate(parts))
    ends = np.cumsum([len(part) for part in parts])
    near_cos, far_cos, scores, all_scores = np.split(cos.astype(np.float64), ends[:-1])
    factor, score = near_cos[0, 0], scores[0].mean()
    all_scores = all_scores.mean(1).reshape(samples.shape) / score
    with np.errstate(divide="ignore"):
        # The angle at position 1 is the frequency: it is below pi for all models.
        wavelengths = 2 * np.pi / np.abs(np.arctan2(sin[1].astype(np.float64), cos[1]))
    errors, usual = _measure_errors(config, suffix, cos.shape[1])
    return Rotation(name, context, near_cos.T / factor, far_cos.T / factor, far,
                    wavelengths, distances, scores.mean(1) / score, all_scores.min(1),
                    all_scores.max(1), _ERROR_POSITIONS, errors, usual)
