# ===- onnx-search.py - random ONNX graphs against two judges --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compiles random ONNX graphs and compares their results with two judges.

    python python/benchmarks/onnx-search.py --seed=1 --count=1000

needs onnx and onnxruntime. Graph n of a seed depends on the seed and n alone; --only=n
repeats it. A graph has up to --nodes operators of an opset from 7 to 24, with sizes that
are constant or dynamic, 0 and 1 among them, and integers at the ends of their types.
With --flags="--opt-level=0 --raise=no", the compiler leaves graphs as they are.

The judges are onnx.reference and ONNX Runtime, which evaluate each node on the numbers
that the generator has already computed. A node whose judges disagree, or that none of
them can evaluate, is not drawn. All values of the graph are results. If one of them is
wrong, nodes that it does not need are removed, the remaining graph is written to
--save, and the search ends with 1. A graph that is refused, while compiling or by an
error of the call, counts as refused: --verbose prints the reasons.

--fault=NAME changes each graph before it is compiled, where it has an operator that the
fault is about. Each such graph whose results depend on the change must be reported.
"""

import argparse
import collections
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import posenc
from onnx import TensorProto, helper, numpy_helper

from onnx_graphs import GENERATORS, NAMES, PROTOS, Graph, Skip, agrees, make_model
import onnx_attention  # noqa: F401 (adds to GENERATORS)
import onnx_fused  # noqa: F401
import onnx_operators  # noqa: F401
import onnx_quantized  # noqa: F401
import search_limits


def generate(rng, num_nodes, operators):
    graph = Graph(rng)
    names = [name for name in operators if GENERATORS[name][0] <= graph.opset]
    if not names:
        return graph
    for _ in range(8 * num_nodes):
        if len(graph.nodes) >= num_nodes:
            break
        op = rng.choice(names)
        kept = [list(part) for part in
                (graph.nodes, graph.values, graph.inputs, graph.initializers)]
        try:
            GENERATORS[op][1](graph, op)
        except (Skip, ValueError):
            # A generator may have added inputs before it gave up.
            graph.nodes, graph.values, graph.inputs, graph.initializers = kept
    return graph


def names_read(nodes):
    """The names that nodes and their branches read."""
    names = {name for node in nodes for name in node.input}
    for node in nodes:
        for attribute in node.attribute:
            names |= names_read(attribute.g.node)
    return names


def to_model(graph, nodes=None):
    """The model whose results are those of `nodes`; inputs nobody reads are left out."""
    nodes = graph.nodes if nodes is None else nodes
    read = names_read(nodes)
    arrays = {v.name: v.array for v in graph.values}
    made = [name for node in nodes for name in node.output if name in arrays]
    outputs = [helper.make_tensor_value_info(name, PROTOS[NAMES[arrays[name].dtype]], None)
               for name in made]
    proto = helper.make_graph(nodes, "search",
                              [x for x in graph.inputs if x.name in read], outputs,
                              [x for x in graph.initializers if x.name in read])
    return make_model(proto, graph.opset)


def compile_and_run(model, arrays, compiler, folder):
    """Returns the results by name, or the message of a refusal."""
    path, library = folder / "model.onnx", folder / "libmodel.so"
    library.unlink(missing_ok=True)
    path.write_bytes(model.SerializeToString())
    try:
        done = subprocess.run([*compiler, path, "-o", library, "--no-warnings"],
                              capture_output=True, text=True,
                              timeout=search_limits.COMPILER_SECONDS)
    except subprocess.TimeoutExpired:
        raise Wrong("the compiler does not end") from None
    if done.returncode != 0:
        message = done.stderr.removeprefix(f"{path}: ").strip()
        if done.returncode != 1:
            raise Wrong(f"exit code {done.returncode}: {message}")
        if re.search("internal error|LLVM|failed to legalize|operand #|unrealized|' op ", message):
            raise Wrong(message)
        return message
    kernels = posenc.load(library)
    inputs = [arrays[value.name] for value in model.graph.input]
    try:
        results = getattr(kernels, next(iter(kernels)))(*inputs)
    except posenc.Error as error:
        return f"call: {error}"
    results = results if isinstance(results, (tuple, list)) else [results]
    return {value.name: np.asarray(x) for value, x in zip(model.graph.output, results)}


class Wrong(Exception):
    """A result that is not that of the judges."""


def check(graph, nodes, compiler, folder, fault=None):
    """Raises Wrong, or returns a message if the graph is refused."""
    model = to_model(graph, nodes)
    arrays = {v.name: v.array for v in graph.values}
    if fault:
        FAULTS[fault](model)
    results = compile_and_run(model, arrays, compiler, folder)
    if isinstance(results, str):
        return results
    read = {name: [arrays[one] for one in node.input if arrays.get(one) is not None]
            for node in model.graph.node for name in node.output}
    for name, got in results.items():
        expected = arrays[name]
        if got.dtype != expected.dtype or not agrees(got, expected, read.get(name, ())):
            raise Wrong(f"{name}: got {got.dtype} {got.shape} {got.ravel()[:8]}, expected "
                        f"{expected.dtype} {expected.shape} {expected.ravel()[:8]}")
    return None


def shrink(graph, compiler, folder, fault):
    """Leaves out nodes as long as the graph is wrong."""
    nodes = list(graph.nodes)
    for node in reversed(graph.nodes):
        fewer = [n for n in nodes if n is not node]
        if not fewer or names_read(fewer).intersection(node.output) - {""} or \
                not to_model(graph, fewer).graph.output:
            continue
        try:
            check(graph, fewer, compiler, folder, fault)
        except Wrong:
            nodes = fewer
    return nodes


# Faults -------------------------------------------------------------------------------

FAULTS = {}


def fault(function):
    FAULTS[function.__name__.replace("_", "-")] = function
    return function


def attribute_of(node, name):
    return next((a for a in node.attribute if a.name == name), None)


@fault
def other_opset(model):
    """Operators have the meaning of another opset."""
    opset = model.opset_import[0]
    opset.version = 13 if opset.version < 13 else 12


@fault
def no_attributes(model):
    """Attributes are overlooked, as if they had their defaults."""
    for node in model.graph.node:
        if node.op_type not in ("Cast", "Constant", "If", "Split"):
            del node.attribute[:]


@fault
def swapped_operands(model):
    for node in model.graph.node:
        if node.op_type in ("Sub", "Div", "Less", "Greater", "Pow", "PRelu"):
            first = node.input[0]
            node.input[0] = node.input[1]
            node.input[1] = first


@fault
def swapped_branches(model):
    names = {"then_branch": "else_branch", "else_branch": "then_branch"}
    for node in model.graph.node:
        for attribute in node.attribute:
            attribute.name = names.get(attribute.name, attribute.name)


@fault
def other_sign_of_integers(model):
    """A constant integer has the other sign: an axis, a shape, a bound."""
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind == "i" and array.size:
            tensor.CopyFrom(numpy_helper.from_array(-array, tensor.name))


@fault
def next_operator(model):
    table = {"ReduceMax": "ReduceMin", "ReduceSum": "ReduceMean", "Floor": "Ceil",
             "Max": "Min", "Add": "Sub", "Sin": "Cos", "And": "Or", "Less": "LessOrEqual",
             "ArgMax": "ArgMin", "ReduceL1": "ReduceL2", "Softmax": "LogSoftmax"}
    for node in model.graph.node:
        node.op_type = table.get(node.op_type, node.op_type)


ZEROS = {"QuantizeLinear": [2], "DequantizeLinear": [2], "MatMulInteger": [2, 3],
         "MatMulNBits": [3], "GatherBlockQuantized": [3]}


@fault
def no_zero_points(model):
    """Zero points are overlooked."""
    for node in model.graph.node:
        for place in ZEROS.get(node.op_type, []):
            if place < len(node.input):
                node.input[place] = ""


@fault
def swapped_halves(model):
    """The halves of the bytes of a constant are swapped."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.UINT8:
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(array << 4 | array >> 4, tensor.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int, help="the number of one graph")
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--operators", default=",".join(GENERATORS), help="default: all")
    parser.add_argument("--compiler", default="posenc-compile")
    parser.add_argument("--flags", default="--opt-level=0", help="of the compiler")
    parser.add_argument("--save", type=pathlib.Path, help="folder for graphs that are wrong")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    compiler = [options.compiler, *options.flags.split()]
    warnings.filterwarnings("ignore")
    np.seterr(all="ignore")
    counts, operators = collections.Counter(), collections.Counter()
    numbers = range(options.count) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in numbers:
            rng = random.Random(f"{options.seed} {number}")
            graph = generate(rng, options.nodes, options.operators.split(","))
            if not graph.nodes:
                continue
            try:
                with search_limits.end_search():
                    message = check(graph, None, compiler, folder, options.fault)
            except Wrong as error:
                counts["wrong"] += 1
                print(f"graph {number}, opset {graph.opset}: {error}", flush=True)
                nodes = shrink(graph, compiler, folder, options.fault)
                print("".join(f"  {helper.printable_node(n)}\n" for n in nodes), end="",
                      flush=True)
                if options.save:
                    options.save.mkdir(parents=True, exist_ok=True)
                    path = options.save / f"search-{options.seed}-{number}.onnx"
                    path.write_bytes(to_model(graph, nodes).SerializeToString())
                continue
            counts["refused" if message else "right"] += 1
            if message and options.verbose:
                print(f"graph {number}: refused: {message.splitlines()[0]}", flush=True)
            if not message:
                operators.update(".".join(filter(None, (node.domain, node.op_type)))
                                 for node in graph.nodes)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) +
          f"; {len(operators)} of {len(GENERATORS)} operators, "
          f"{sum(operators.values())} nodes")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
