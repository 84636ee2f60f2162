# ===- _page.py - figures of rotary encodings -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The pictures of `posenc.viz`, drawn by matplotlib."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._errors import Error

_TEXT = """Cosines are blue at -1, white at 0 and red at 1. Pairs at the top turn once every
few positions; those at the bottom tell only distant positions apart. A pair whose
wavelength is above the dashed line turns less than once in the whole context. The score is
the product of a rotated query and key, all of whose channels are equal, divided by that at
the same position. Errors of cos and sin are in f32, relative to the f64 kernel, from black
at 1e-9 to yellow at 1. Angles that are rounded to f32, as in most frameworks, lose a bit
whenever the position doubles."""
# Texts of SVG stay texts, and names of files have no formulas.
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "posenc", "text.parse_math": False}


def get_title(rotations: Sequence) -> str:
    return "Rotary encoding of " + ", ".join(one.name for one in rotations)


def _draw_map(axis, values: np.ndarray, title: str, end: float) -> None:
    axis.imshow(values, "RdBu_r", vmin=-1, vmax=1, aspect="auto",
                extent=(0, end, len(values), 0))
    axis.set(title=title, xlabel="position", ylabel="pair")


def _draw_errors(axis, positions: np.ndarray, errors: np.ndarray, title: str) -> None:
    axis.pcolormesh(positions[1:], np.arange(len(errors)),
                    np.maximum(errors[:, 1:], 1e-9), norm="log", vmin=1e-9, vmax=1,
                    cmap="inferno", rasterized=True)
    axis.set(title=f"{title}: largest error {errors.max():.2g}", xlabel="position",
             ylabel="pair", xscale="log", ylim=(len(errors) - .5, -.5))


def _draw_spectrum(axis, rotations: Sequence) -> None:
    for number, one in enumerate(rotations):
        axis.semilogy(one.wavelengths, "o", markersize=3, color=f"C{number}")
        if one.context:
            axis.axhline(one.context, color=f"C{number}", linestyle="--")
            axis.annotate(f"context {one.context:,}", (0, one.context), va="bottom")
    axis.set(title="Wavelength of each pair", xlabel="pair", ylabel="positions per turn")


def _draw_scores(axis, rotations: Sequence) -> None:
    for one in rotations:
        axis.semilogx(one.distances[1:], one.scores[1:], label=one.name)
    axis.set(title="Score by distance", xlabel="distance", ylabel="score")
    axis.legend()


def _draw(rotations: Sequence):
    """Returns a figure: rows of cosines, wavelengths and scores, rows of errors."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, NullFormatter

    count = len(rotations)
    figure = Figure(figsize=(13, 3.6 * (2 * count + 1)), layout="constrained")
    rows = figure.subplots(2 * count + 1, 2)
    _draw_spectrum(rows[count, 0], rotations)
    _draw_scores(rows[count, 1], rotations)
    for one, cosines, errors in zip(rotations, rows, rows[count + 1:]):
        _draw_map(cosines[0], one.near, f"{one.name}: the first positions",
                  one.near.shape[1])
        _draw_map(cosines[1], one.far, "the whole context", one.far_positions[-1] + 1)
        _draw_errors(errors[0], one.error_positions, one.errors, f"{one.name}, Posenc")
        if one.usual_errors is None:
            errors[1].set_axis_off()
        else:
            _draw_errors(errors[1], one.error_positions, one.usual_errors,
                         "the usual f32 recipe")
    for line in [axis.xaxis for axis in rows.flat] + [rows[count, 0].yaxis]:
        line.set_major_formatter(EngFormatter(sep=""))
        line.set_minor_formatter(NullFormatter())
    return figure


def make_picture(rotations: Sequence, kind: str) -> bytes:
    """Returns a picture of some rotations (posenc.viz.Rotation): `html`, which is one file
    with SVG and PNG in it, or a format of matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise Error("pictures need matplotlib: pip install 'posenc[viz]'") from None
    data = io.BytesIO()
    with matplotlib.rc_context(_SETTINGS):
        _draw(rotations).savefig(data, format="svg" if kind == "html" else kind, dpi=80)
    if kind != "html":
        return data.getvalue()
    svg = data.getvalue().decode()
    title = html.escape(get_title(rotations))
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title></head><body><h1>{title}</h1><p>{_TEXT}</p>"
            f"{svg[svg.index('<svg'):]}</body></html>\n").encode()
