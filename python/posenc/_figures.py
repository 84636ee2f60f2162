# ===- _figures.py - parts of pictures -------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Parts of the pictures of `posenc.viz`: figures, maps with a key of colours, axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._errors import Error

# Texts of SVG stay texts, and names of files have no formulas.
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "posenc", "text.parse_math": False}
# The colour of elements without a value.
BLANK = "0.82"


def with_matplotlib(function: Callable) -> Callable:
    """A function that draws, with the settings of all pictures."""
    @functools.wraps(function)
    def draw(*arguments, **keywords):
        try:
            import matplotlib
        except ImportError:
            raise Error("pictures need matplotlib: pip install 'posenc[viz]'") from None
        with matplotlib.rc_context(SETTINGS):
            return function(*arguments, **keywords)

    return draw


def make_figure(width: float, height: float):
    """Returns a figure of a size in inches, which notebooks show as they are given it."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_map(axis, values: np.ndarray, title: str, key: str, *, extent=None,
             blank: str = "", **options):
    """Draws a matrix, and its key of colours. What is masked is grey, and `blank` says what
    that means."""
    import matplotlib
    from matplotlib.patches import Patch

    values = np.ma.masked_invalid(values)
    colors = matplotlib.colormaps[options.pop("cmap", "RdBu_r")].with_extremes(bad=BLANK)
    # Elements are squares unless there are many.
    options.setdefault("aspect", "auto")
    image = axis.imshow(values, colors, interpolation="nearest", extent=extent, **options)
    axis.figure.colorbar(image, ax=axis, label=key, pad=0.02)
    axis.set_title(title)
    if blank and np.ma.getmaskarray(values).any():
        axis.legend(handles=[Patch(color=BLANK, label=blank)], loc="lower left",
                    fontsize="small", framealpha=0.9)
    return image


def count_in_thousands(*lines) -> None:
    """Makes the numbers of axes such as 20k and 1M."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    for line in lines:
        line.set_major_formatter(EngFormatter(sep=""))
        line.set_minor_formatter(NullFormatter())


def find_limit(values: np.ndarray) -> float:
    """Returns the largest absolute value, and 1 if there is none above 0."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0
