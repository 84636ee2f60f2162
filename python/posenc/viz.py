# ===- viz.py - a page that shows a model's rotary encoding -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Figures of positional encodings, by matplotlib.

    python -m posenc.viz config.json [other.json ...] -o out.html

writes one self-contained page, or a picture (.svg, .png, .pdf), of the rotary encoding of
models. In notebooks, functions return figures of matplotlib:

    posenc.viz.rotations("config.json")
    posenc.viz.mask(lambda b, h, q, k: q >= k, 128, 128)

All numbers are results of compiled kernels.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Sequence

from . import _page
from ._errors import Error
from ._pictures import (
    alibi, frequencies, mask, rotations, score_mod, similarity, sinusoidal, t5_buckets)
from ._rotations import Rotation, measure

__all__ = ["Rotation", "alibi", "frequencies", "main", "mask", "measure", "rotations",
           "score_mod", "similarity", "sinusoidal", "t5_buckets"]

for _function in (alibi, frequencies, mask, measure, rotations, score_mod, similarity,
                  sinusoidal, t5_buckets):
    _function.__module__ = __name__  # It is printed by help().


def _write(path: str, data: bytes) -> None:
    """Writes a file whole: after an error, there is what there was before."""
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # such as a pipe
            with open(path, "wb") as file:
                file.write(data)
            return
        with open(temporary, "wb") as file:
            file.write(data)
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise Error(f"cannot write '{path}': {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns its exit status; errors are printed.

    arguments: those of the command line (default: those of the process)
    """
    parser = argparse.ArgumentParser(
        prog="python -m posenc.viz", description="Shows the rotary encoding of models "
        "on one self-contained page, with numbers of compiled kernels.")
    parser.add_argument("configs", nargs="+", metavar="config.json")
    parser.add_argument("-o", "--output", default="posenc.html", metavar="OUT.html",
                        help="a page, or a picture (.svg, .png, .pdf)")
    options = parser.parse_args(arguments)
    suffix = os.path.splitext(options.output)[1].lower()
    kind = "html" if suffix in ("", ".htm") else suffix[1:]
    if kind not in ("html", "svg", "png", "pdf"):
        parser.error(f"expected '{options.output}' to end in .html, .svg, .png or .pdf")
    try:
        found = [one for path in options.configs for one in measure(path)]
        _write(options.output, _page.make_picture(found, kind))
    except Error as error:
        print(f"posenc.viz: error: {error}", file=sys.stderr)
        return 1
    plural = "" if len(found) == 1 else "s"
    print(f"{options.output}: {len(found)} rotation{plural}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
