# ===- _page.py - charts and heat maps as one HTML page ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The page of `posenc.viz`: inline SVG and PNG, without scripts and other files."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Callable, Sequence

import numpy as np

# Charts show one configuration in each of these colors, which are told apart in gray
# and by color-blind people.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 632, 300, 64, 44, 14

# From blue by way of white to red, and from black by way of purple to yellow.
_DIVERGING = np.array([[33, 72, 141], [121, 167, 210], [247, 247, 247],
                       [226, 145, 113], [153, 27, 40]], float)
_SEQUENTIAL = np.array([[12, 7, 38], [81, 18, 124], [183, 55, 121], [252, 137, 97],
                        [252, 253, 191]], float)

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5d6878; --line: #d7dce3;
  --back: #fbfbfc; --card: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa5b5;
  --line: #39414e; --back: #14171c; --card: #1c2027; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
  margin: 0 auto; max-width: 1420px; padding: 28px; }
h1 { font-size: 26px; margin: 0; } h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 12px; color: var(--soft); max-width: 92ch; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 22px; margin-top: 20px; }
.row { display: flex; flex-wrap: wrap; gap: 28px; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: 4px; }
svg { max-width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .frame { fill: none; stroke: var(--line); } svg .grid { stroke: var(--line); }
svg image { image-rendering: pixelated; }
.legend { flex-basis: 100%; } .legend span { display: inline-block; margin-right: 18px; }
.legend i { display: inline-block; width: 22px; height: 3px; margin-right: 6px;
  vertical-align: middle; border-radius: 2px; }
"""


def _make_png(pixels: np.ndarray) -> str:
    """Returns a data URI of RGB pixels, (rows, columns, 3)."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    lines = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))
    data = (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _paint(values: np.ndarray, low: float, high: float, map_: np.ndarray) -> np.ndarray:
    """Returns the colors of numbers between `low` and `high`."""
    at = np.clip((values - low) / (high - low), 0, 1) * (len(map_) - 1)
    return np.stack([np.interp(at, np.arange(len(map_)), map_[:, channel])
                     for channel in range(3)], axis=-1).round()


def format_number(value: float) -> str:
    """Returns 1500 as `1.5K` and 131072 as `131K`."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value + 0:.3g}"  # without the sign of a zero


class _Scale:
    """Maps numbers to coordinates, by their logarithm if `log`."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool):
        self.low, self.high, self.log = low, high, log
        self._start, self._end = start, end

    def __call__(self, value):
        low, high = self.low, self.high
        if self.log:
            value, low, high = np.log(value), np.log(low), np.log(high)
        return self._start + (value - low) / (high - low) * (self._end - self._start)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = np.ceil(np.log10(self.low)), np.floor(np.log10(self.high))
            step = max(1, int(np.ceil((last - first + 1) / 8)))
            return [10.0 ** power for power in np.arange(first, last + 1, step)]
        span = self.high - self.low
        step = 10.0 ** np.floor(np.log10(span / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 6)
        return list(np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1)
                    * step)


def _draw_axes(x: _Scale, y: _Scale, x_title: str, y_title: str,
               has_grid: bool = True) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - 12
    parts = []
    for tick in x.ticks():
        at = f"{x(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" y1="{bottom}" x2="{at}" '
                     f'y2="{_TOP if has_grid else bottom + 4}"/>'
                     f'<text x="{at}" y="{bottom + 17}" text-anchor="middle">'
                     f"{format_number(tick)}</text>")
    for tick in y.ticks():
        at = f"{y(tick):.1f}"
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at}" '
                     f'x2="{right if has_grid else _LEFT - 4}" y2="{at}"/>'
                     f'<text x="{_LEFT - 7}" y="{float(at) + 4:.1f}" text-anchor="end">'
                     f"{format_number(tick)}</text>")
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 6}" '
                 f'text-anchor="middle">{x_title}</text>'
                 f'<text transform="translate(13 {(_TOP + bottom) / 2}) rotate(-90)" '
                 f'text-anchor="middle">{y_title}</text>'
                 f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" '
                 f'height="{bottom - _TOP}"/>')
    return "".join(parts)


def _figure(title: str, body: str) -> str:
    return (f"<figure><figcaption>{html.escape(title)}</figcaption>"
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'role="img">{body}</svg></figure>')


def _scales(x_range: tuple[float, float], y_range: tuple[float, float],
            x_log: bool = False, y_log: bool = False) -> tuple[_Scale, _Scale]:
    return (_Scale(*x_range, _LEFT, _WIDTH - 12, x_log),
            _Scale(*y_range, _HEIGHT - _BOTTOM, _TOP, y_log))


def _draw_map(title: str, pixels: np.ndarray, x_range, x_title: str,
              x_log: bool = False) -> str:
    x, _ = _scales(x_range, (0, 1), x_log)
    image = (f'<image href="{_make_png(pixels)}" x="{_LEFT}" y="{_TOP}" '
             f'width="{_WIDTH - 12 - _LEFT}" height="{_HEIGHT - _BOTTOM - _TOP}" '
             'preserveAspectRatio="none"/>')
    y = _Scale(0, pixels.shape[0], _TOP, _HEIGHT - _BOTTOM, False)
    return _figure(title, image + _draw_axes(x, y, x_title, "pair", has_grid=False))


def _draw_line(x, y, xs, ys, color: str, label: str) -> str:
    points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(xs, ys))
    return (f'<polyline points="{points}" fill="none" stroke="{color}" '
            f'stroke-width="1.8"><title>{html.escape(label)}</title></polyline>')


def _make_legend(rotations: Sequence) -> str:
    return '<div class="legend">' + "".join(
        f'<span><i style="background:{color}"></i>{html.escape(one.name)}</span>'
        for one, color in zip(rotations, _repeat_colors())) + "</div>"


def _repeat_colors():
    while True:
        yield from _COLORS


def _draw_spectrum(rotations: Sequence) -> str:
    turning = [one.wavelengths[np.isfinite(one.wavelengths)] for one in rotations]
    contexts = [one.context for one in rotations if one.context]
    most = max(len(one.wavelengths) for one in rotations)
    highest = max([part.max() for part in turning if len(part)] + contexts)
    x, y = _scales((0, most), (4, highest * 2), y_log=True)
    body = _draw_axes(x, y, "pair", "positions per turn")
    for one, color in zip(rotations, _repeat_colors()):
        for pair, wavelength in enumerate(one.wavelengths):
            if np.isfinite(wavelength):
                body += (f'<circle cx="{x(pair + .5):.1f}" cy="{y(wavelength):.1f}" '
                         f'r="2.6" fill="{color}"><title>pair {pair}: '
                         f"{wavelength:.6g} positions</title></circle>")
        if one.context:
            at = f"{y(one.context):.1f}"
            body += (f'<line x1="{_LEFT}" y1="{at}" x2="{_WIDTH - 12}" y2="{at}" '
                     f'stroke="{color}" stroke-dasharray="6 5"/>'
                     f'<text x="{_LEFT + 6}" y="{float(at) - 5:.1f}">context '
                     f"{one.context:,}</text>")
    return _figure("Wavelength of each pair", body)


def _draw_scores(rotations: Sequence) -> str:
    longest = max(one.distances[-1] for one in rotations)
    lowest = min(one.scores.min() for one in rotations)
    x, y = _scales((1, longest), (min(lowest, 0) - .05, 1.05), x_log=True)
    body = _draw_axes(x, y, "distance", "score")
    for one, color in zip(rotations, _repeat_colors()):
        body += _draw_line(x, y, one.distances[1:], one.scores[1:], color, one.name)
    return _figure("Score by distance", body)


def _draw_errors(one) -> str:
    positions = (1, one.error_positions[-1])

    def draw(title: str, errors: np.ndarray) -> str:
        colors = _paint(np.log10(np.maximum(errors[:, 1:], 1e-9)), -9, 0, _SEQUENTIAL)
        return _draw_map(f"{title}: largest error {errors.max():.2g}", colors,
                         positions, "position", x_log=True)
    result = draw(f"{one.name}, Posenc", one.errors)
    if one.usual_errors is not None:
        result += draw("the usual f32 recipe", one.usual_errors)
    return result


def _make_section(title: str, text: str, figures: str) -> str:
    return (f"<section><h2>{title}</h2><p>{text}</p>"
            f'<div class="row">{figures}</div></section>')


def _draw_cosines(one) -> str:
    def paint(values: np.ndarray) -> np.ndarray:
        return _paint(values, -1, 1, _DIVERGING)
    return (_draw_map(f"{one.name}: the first positions", paint(one.near),
                      (0, one.near.shape[1]), "position")
            + _draw_map("the whole context", paint(one.far),
                        (0, one.far_positions[-1] + 1), "position"))


def _draw_all(draw: Callable, rotations: Sequence) -> str:
    return "".join(map(draw, rotations))


def make_page(rotations: Sequence) -> str:
    """Returns the page of some rotations (posenc.viz.Rotation)."""
    title = "Rotary encoding of " + ", ".join(one.name for one in rotations)
    legend = _make_legend(rotations) if len(rotations) > 1 else ""
    sections = [
        _make_section(
            "Cosines by position and pair",
            "Blue is -1, white 0 and red 1. Pairs at the top turn once every few "
            "positions; those at the bottom tell only distant positions apart.",
            _draw_all(_draw_cosines, rotations)),
        _make_section(
            "Wavelengths and scores",
            "A pair above the dashed line turns less than once in the whole context. The "
            "score is the product of a rotated query and key, all of whose channels are "
            "equal, divided by that at the same position.",
            legend + _draw_spectrum(rotations) + _draw_scores(rotations)),
        _make_section(
            "Errors of cos and sin",
            "The color is the logarithm of the absolute error in f32, from black at "
            "1e-9 to yellow at 1, relative to the f64 kernel. Angles that are rounded to "
            "f32, as in most frameworks, lose a bit whenever the position doubles.",
            _draw_all(_draw_errors, rotations)),
    ]
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width">'
            f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
            f"<h1>{html.escape(title)}</h1>{''.join(sections)}</body></html>\n")
