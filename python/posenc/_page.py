# ===- _page.py - figures of rotary encodings ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The page of `posenc.viz` about rotations, drawn by matplotlib."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence

import numpy as np

from ._figures import count_in_thousands, draw_map, make_figure, with_matplotlib

_TEXT = """Pairs at the top turn once every few positions; those at the bottom tell only
distant positions apart. Pairs whose turns take less than 6 of the 256 columns of the map of
the whole context are grey there, since its colours would be no waves of theirs. A pair
whose wavelength is above the dashed line turns less than once in the whole context. The
score is the product of a rotated query and key, all of whose channels are equal, divided by
that at the same position: the area is between the smallest and the largest score of nearby
distances. Errors of cos and sin are in f32, relative to the f64 kernel. Angles that are
rounded to f32, as in most frameworks, lose a bit whenever the position doubles."""
_LEAST_ERROR = 1e-9
# Columns of a map that a turn of a pair takes, so that its wave is seen as one.
_TURN = 6


def get_title(rotations: Sequence) -> str:
    return "Rotary encoding of " + ", ".join(one.name for one in rotations)


def _draw_cosines(axis, values: np.ndarray, title: str, end: float, blank: str = "") -> None:
    draw_map(axis, values, title, "cos", vmin=-1, vmax=1, blank=blank,
             extent=(0, end, len(values), 0))
    axis.set(xlabel="position (tokens)", ylabel="pair of channels")


def _hide_short_waves(one) -> np.ndarray:
    """Returns the cosines of the context, without pairs that have few columns for a turn,
    whose colours are no waves of the encoding."""
    step = one.far_positions[-1] / max(len(one.far_positions) - 1, 1)
    return np.where(one.wavelengths[:, None] < _TURN * step, np.nan, one.far)


def _draw_errors(axis, positions: np.ndarray, errors: np.ndarray, title: str) -> None:
    mesh = axis.pcolormesh(positions[1:], np.arange(len(errors)),
                           np.maximum(errors[:, 1:], _LEAST_ERROR), norm="log",
                           vmin=_LEAST_ERROR, vmax=1, cmap="inferno", rasterized=True)
    axis.figure.colorbar(mesh, ax=axis, label="absolute error", pad=0.02)
    axis.set(title=f"{title}: largest error {errors.max():.2g}",
             xlabel="position (tokens)", ylabel="pair of channels", xscale="log",
             ylim=(len(errors) - .5, -.5))


def draw_spectrum(axis, rotations: Sequence) -> None:
    for number, one in enumerate(rotations):
        axis.semilogy(one.wavelengths, "o", markersize=3, color=f"C{number}",
                      label=one.name)
    for context in sorted({one.context for one in rotations if one.context}):
        axis.axhline(context, color="0.4", linestyle="--", linewidth=1)
        axis.annotate(f"context {context:,}", (0.01, context), va="bottom",
                      xycoords=("axes fraction", "data"), fontsize="small")
    axis.set(title="Wavelength of each pair", xlabel="pair of channels",
             ylabel="wavelength (tokens per turn)")
    axis.legend(loc="upper left")


def _draw_scores(axis, rotations: Sequence) -> None:
    for number, one in enumerate(rotations):
        axis.fill_between(one.distances[1:], one.low_scores[1:], one.high_scores[1:],
                          color=f"C{number}", alpha=0.45, linewidth=0, label=one.name)
        middle = (one.low_scores + one.high_scores) / 2
        axis.plot(one.distances[1:], middle[1:], color=f"C{number}", linewidth=1)
    axis.set(title="Score by distance: smallest to largest", xscale="log",
             xlabel="distance (tokens)", ylabel="score / score at distance 0")
    axis.legend()


@with_matplotlib
def draw_rotations(rotations: Sequence):
    """Returns a figure: rows of cosines, wavelengths and scores, rows of errors."""
    count = len(rotations)
    figure = make_figure(14, 3.6 * (2 * count + 1))
    rows = figure.subplots(2 * count + 1, 2)
    draw_spectrum(rows[count, 0], rotations)
    _draw_scores(rows[count, 1], rotations)
    for one, cosines, errors in zip(rotations, rows, rows[count + 1:]):
        _draw_cosines(cosines[0], one.near, f"{one.name}: the first positions",
                      one.near.shape[1])
        _draw_cosines(cosines[1], _hide_short_waves(one), f"{one.name}: the whole context",
                      one.far_positions[-1] + 1, f"turns shorter than {_TURN} columns")
        _draw_errors(errors[0], one.error_positions, one.errors, f"{one.name}, Posenc")
        if one.usual_errors is None:
            errors[1].set_axis_off()
        else:
            _draw_errors(errors[1], one.error_positions, one.usual_errors,
                         f"{one.name}, angles in f32")
    count_in_thousands(*(axis.xaxis for axis in rows.flat), rows[count, 0].yaxis)
    return figure


@with_matplotlib
def make_picture(rotations: Sequence, kind: str) -> bytes:
    """Returns a picture of some rotations (posenc.viz.Rotation): `html`, which is one file
    with SVG and PNG in it, or a format of matplotlib."""
    data = io.BytesIO()
    draw_rotations(rotations).savefig(data, format="svg" if kind == "html" else kind,
                                      dpi=80)
    if kind != "html":
        return data.getvalue()
    svg = data.getvalue().decode()
    title = html.escape(get_title(rotations))
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title></head><body><h1>{title}</h1><p>{_TEXT}</p>"
            f"{svg[svg.index('<svg'):]}</body></html>\n").encode()
