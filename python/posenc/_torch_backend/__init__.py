# ===- __init__.py - a backend of torch.compile -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The backend "posenc" of torch.compile: rotations and attentions of a graph become calls
of kernels, and Inductor compiles the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import detect_fake_mode, tracing, TracingContext
from torch.fx import GraphModule

from .._errors import Error
from ._attentions import find_attention, replace_attention
from ._graph import NoMatch, aten
from ._report import Report, add_report, explain_backend
from ._rotations import find_rotation, replace_rotation

__all__ = ["Report", "backend", "explain_backend", "rewrite"]

_log = logging.getLogger("posenc")


def rewrite(module: GraphModule) -> Report:
    """Replaces the rotations and attentions of a graph of ATen's operators."""
    graph, report = module.graph, Report()
    if graph.find_nodes(op="call_function", target=aten.as_strided.default):
        report.add_left("graph", "all of it", "it has views by strides (as_strided)")
        return report
    # The results come first, so that operations which they alone use are gone when it
    # is their turn.
    for kind, replace in (("attention", _replace_attention), ("rope", _replace_rotation)):
        for node in list(graph.nodes):
            if not node.users:
                continue
            try:
                with graph.inserting_before(node):
                    text = replace(graph, node)
            except (NoMatch, Error) as error:
                report.add_left(kind, _name(node), str(error).split("\n")[0])
                continue
            if text is not None:
                report.add_replaced(kind, _name(node), text)
        graph.eliminate_dead_code()
    if report.replaced:
        # Results may have other strides, of which some views would be copies.
        for target in (aten.view.default, aten._unsafe_view.default):
            for node in graph.find_nodes(op="call_function", target=target):
                node.target = aten.reshape.default
    graph.lint()
    module.recompile()
    return report


def _name(node: torch.fx.Node) -> str:
    """Returns the name of a node and the line of the model that it is from."""
    lines = (node.meta.get("stack_trace") or "").strip().splitlines()
    place = next((one.strip().removeprefix("File ") for one in reversed(lines)
                  if one.strip().startswith("File ")), "")
    return f"{node.name} ({place})" if place else node.name


def _replace_rotation(graph: torch.fx.Graph, node: torch.fx.Node) -> str | None:
    match = find_rotation(graph, node)
    return None if match is None else replace_rotation(graph, node, match)


def _replace_attention(graph: torch.fx.Graph, node: torch.fx.Node) -> str | None:
    match = find_attention(graph, node)
    return None if match is None else replace_attention(graph, match)


def _compile_rest(module: GraphModule, inputs: Sequence[Any]) -> Callable:
    from torch._inductor.compile_fx import compile_fx

    mode = detect_fake_mode(inputs)
    # The graph is another one than that which is being compiled.
    with (torch.no_grad(), torch._C._DisableAutocast(),
          tracing(TracingContext(mode) if mode else None)):
        compiled: Any = compile_fx(module, list(inputs))
    return make_boxed_func(lambda *arguments: compiled(*arguments))


def _compile_inference(module: GraphModule, inputs: Sequence[Any]) -> Callable:
    report = rewrite(module)
    add_report(report)
    _log.info("%s", report)
    return _compile_rest(module, inputs)


def _refuse_training(module: GraphModule, inputs: Sequence[Any]) -> Callable:
    raise AssertionError("the graph has gradients")


_compile_graph = aot_autograd(
    fw_compiler=_refuse_training, inference_compiler=_compile_inference,
    decompositions={}, keep_inference_input_mutations=True)


def backend(module: GraphModule, inputs: Sequence[Any], **options) -> Callable:
    """The function that torch.compile calls for a graph."""
    from torch._inductor.compile_fx import compile_fx

    if torch.is_grad_enabled() and any(
            isinstance(one, torch.Tensor) and one.requires_grad for one in inputs):
        report = Report()
        report.add_left("graph", "all of it", "gradients are recorded, which kernels of a "
                        "graph do not have: call the model under torch.no_grad()")
        add_report(report)
        _log.info("%s", report)
        compiled: Any = compile_fx(module, list(inputs))
        return compiled
    return _compile_graph(module, inputs)
