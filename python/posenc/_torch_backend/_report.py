# ===- _report.py - what the backend did ------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What was replaced in the graphs of `torch.compile(…, backend="posenc")`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """A rotation ("rope") or an attention, the node that it ends at, and what it is, or
    why it was left."""

    kind: str
    node: str
    text: str


@dataclass
class Report:
    """What was replaced in a graph and what was left to Inductor.

    part: "inference", or "forward" or "backward" of a graph that records gradients
    """

    part: str = "inference"
    replaced: list[Finding] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)

    def add_replaced(self, kind: str, node: str, text: str) -> None:
        self.replaced.append(Finding(kind, node, text))

    def add_left(self, kind: str, node: str, reason: str) -> None:
        self.left.append(Finding(kind, node, reason))

    def count(self, kind: str) -> int:
        """Returns the number of those that were replaced."""
        return sum(one.kind == kind for one in self.replaced)

    def __str__(self) -> str:
        lines = [f"replaced {one.kind} {one.node}: {one.text}" for one in self.replaced]
        lines += [f"left {one.kind} {one.node}: {one.text}" for one in self.left]
        return "\n".join(lines) or "found neither rotations nor attentions"


_KEPT = 256  # reports
_reports: list[Report] = []


def add_report(report: Report) -> None:
    _reports.append(report)
    del _reports[:-_KEPT]


def explain_backend(clear: bool = False) -> list[Report]:
    """Returns a report for each graph that the backend "posenc" compiled, the newest
    last; its text says what was replaced, what was left, and why. A graph that records
    gradients has one for its forward part, and one for its backward part if something
    was found there, such as an attention of a checkpoint that is computed again.

    clear: forget the reports

    There are no errors.
    """
    reports = list(_reports)
    if clear:
        _reports.clear()
    return reports
