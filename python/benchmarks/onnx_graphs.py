# ===- onnx_graphs.py - random graphs of ONNX operators --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Graphs that operators are drawn for, and the judges of their results.

A function in GENERATORS draws the operands and attributes of an operator. It raises Skip
if the values of the graph do not fit."""

import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOATS = {"f32": np.float32, "f16": np.float16, "f64": np.float64}
INTEGERS = {"i64": np.int64, "i32": np.int32, "i8": np.int8}
TYPES = {**FLOATS, **INTEGERS, "bool": np.bool_, "u8": np.uint8}
NAMES = {np.dtype(dtype): name for name, dtype in TYPES.items()}
PROTOS = {name: helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
          for name, dtype in TYPES.items()}
SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 17]
MAX_ELEMENTS = 4000
DOMAIN = "com.microsoft"


# Operators of ONNX Runtime in the domain of ONNX.
OF_RUNTIME = ("SimplifiedLayerNormalization",)


class Skip(Exception):
    """The operator that was drawn does not fit the values that there are."""


class Value:
    """A value of the graph: its name and its numbers, or None and its tensor for codes.

    `is_exact`: no rounding has taken place, so that a floor, a comparison or a conversion
    to integers has one right result.
    """

    def __init__(self, name, array, is_exact):
        self.name, self.array, self.is_exact = name, array, is_exact

    @property
    def type(self):
        return NAMES[self.array.dtype]

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim


class Judges:
    """Evaluates a node, or some that are drawn together, by onnx.reference and by ONNX
    Runtime."""

    def __init__(self, opset):
        self.opset = opset

    def make_model(self, nodes, inputs, tensors, names):
        graph = helper.make_graph(
            nodes, "node",
            [helper.make_tensor_value_info(name, PROTOS[NAMES[x.dtype]], x.shape)
             for name, x in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in names], tensors)
        return make_model(graph, self.opset)

    def evaluate(self, nodes, inputs, tensors, names):
        """Returns the results with these names, or raises Skip. `tensors` are constants."""
        inferred = self.make_model(nodes, inputs, tensors, names)
        judges = [self.ask_reference, self.ask_runtime]
        # The reference gives these operators their meaning since opset 13 in any opset.
        if self.opset < 13 and nodes[0].op_type in ("Softmax", "LogSoftmax", "Hardmax"):
            judges = [self.ask_runtime]
        if any(node.op_type == "QLinearMatMul" for node in nodes):
            # The reference adds an odd zero point before it rounds to even numbers.
            judges = [self.ask_runtime]
        if any(node.domain or node.op_type in OF_RUNTIME for node in nodes):
            judges = [self.ask_runtime]
        else:
            try:
                inferred = onnx.shape_inference.infer_shapes(inferred, check_type=True,
                                                             strict_mode=True)
                onnx.checker.check_model(inferred)
            except Exception as error:
                raise Skip(f"invalid: {error}") from None
        results = [judge(inferred, inputs) for judge in judges]
        results = [result for result in results if result is not None]
        if not results:
            raise Skip("no judge knows the node")
        if len(results) == 2 and not all(
                agrees(a, b) and a.dtype == b.dtype for a, b in zip(*results)):
            raise Skip("the judges disagree")
        if any(x.dtype not in NAMES for x in results[-1]):
            raise Skip("a type that is not compiled")
        return results[-1]

    def ask_reference(self, model, inputs):
        try:
            return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, inputs)]
        except Exception:
            return None

    def ask_runtime(self, model, inputs):
        try:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            return session.run(None, inputs)
        except Exception:
            return None


def make_model(graph, opset):
    # The IR version that belongs to the opset: judges refuse newer ones.
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                   helper.make_opsetid(DOMAIN, 1)],
                             ir_version=min(10, helper.find_min_ir_version_for(
                                 [helper.make_opsetid("", opset)])))


def find_scale(array):
    """The largest finite number of an array."""
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    return float(np.abs(finite.astype(float)).max(initial=0))


def agrees(got, expected, inputs=()):
    """Whether results of a node are equal up to rounding, also of its inputs, which may
    cancel in it."""
    if got.shape != expected.shape:
        return False
    if expected.dtype.kind in "biu":
        return np.array_equal(got, expected)
    is_small = expected.dtype.itemsize <= 2
    scale = max([find_scale(expected), *(1e-2 * find_scale(x) for x in inputs)])
    return np.allclose(got.astype(float), expected.astype(float), equal_nan=True,
                       rtol=4e-2 if is_small else 1e-3,
                       atol=(1e-2 if is_small else 1e-5) * max(scale, 1e-3))


class Graph:
    """A graph that grows by random operators, each evaluated at once."""

    def __init__(self, rng):
        self.rng = rng
        self.opset = rng.choice(range(7, 25))
        self.judges = Judges(self.opset)
        self.nodes, self.values, self.inputs, self.initializers = [], [], [], []
        # The number of nodes that have been drawn, also of those that are not kept.
        self.drawn = 0

    # Values ---------------------------------------------------------------------------

    def name(self, prefix):
        return f"{prefix}{len(self.values) + len(self.initializers)}"

    def draw_shape(self, rank=None):
        rank = self.rng.choice([0, 1, 2, 2, 3, 3, 4]) if rank is None else rank
        shape = tuple(self.rng.choice(SIZES) for _ in range(rank))
        return shape if np.prod(shape) <= MAX_ELEMENTS else shape[:1] + (1,) * (rank - 1)

    def draw_numbers(self, kind, shape):
        rng = np.random.default_rng(self.rng.getrandbits(32))
        if kind == "bool":
            return np.asarray(rng.integers(0, 2, shape), np.bool_)
        if kind == "u8":
            return np.asarray(rng.integers(0, 256, shape), np.uint8)
        if kind in INTEGERS:
            info = np.iinfo(INTEGERS[kind])
            x = np.asarray(rng.integers(-9, 10, shape), INTEGERS[kind])
            if self.rng.random() < .25 and x.size:
                edges = rng.choice([info.min, info.max, info.min + 1, info.max // 2 + 1],
                                   x.shape)
                x = np.where(rng.random(x.shape) < .2, edges, x).astype(x.dtype)
            return x
        x = rng.integers(-24, 25, shape) / 8
        if self.rng.random() < .1 and x.size:
            edges = rng.choice([np.inf, -np.inf, np.nan, -0.0, 1e4], x.shape)
            x = np.where(rng.random(x.shape) < .1, edges, x)
        return np.asarray(x, FLOATS[kind])

    def add_input(self, kind, shape, dynamic=.5):
        """An input, of whose sizes the share `dynamic` is dynamic."""
        value = Value(self.name("x"), self.draw_numbers(kind, shape), True)
        declared = []
        for size in shape:
            is_dynamic = self.rng.random() < dynamic
            declared.append(f"s{size}" if is_dynamic else size)
        self.inputs.append(helper.make_tensor_value_info(value.name, PROTOS[kind], declared))
        self.values.append(value)
        return value

    def constant(self, array):
        """Adds an initializer, or a Constant node in its place."""
        array = np.asarray(array)
        name = self.name("c")
        tensor = numpy_helper.from_array(array, name)
        self.initializers.append(tensor)
        return Value(name, array, True)

    def pick(self, kinds, rank=None, exact=False, finite=False):
        """A value of one of the types: one that is there, or a new input."""
        fits = [v for v in self.values if v.type in kinds and
                (rank is None or v.rank == rank or callable(rank) and rank(v.rank)) and
                (v.is_exact or not exact) and
                (not finite or np.isfinite(v.array.astype(float)).all())]
        if fits and self.rng.random() < .75:
            return self.rng.choice(fits)
        if callable(rank):
            rank = self.rng.choice([r for r in range(5) if rank(r)])
        kind = self.rng.choice(sorted(kinds))
        value = self.add_input(kind, self.draw_shape(rank))
        if finite and not np.isfinite(value.array.astype(float)).all():
            raise Skip("infinite")
        return value

    def partner(self, value, kinds=None):
        """A value of the same type whose shape broadcasts with that of `value`."""
        shape = list(value.shape)
        choice = self.rng.random()
        if choice < .3 and shape:
            shape = shape[self.rng.randrange(len(shape)):]
        for i in range(len(shape)):
            if choice < .6 and self.rng.random() < .3:
                shape[i] = 1
        fits = [v for v in self.values if v.type == value.type and
                v.shape in (value.shape, tuple(shape))]
        if fits and self.rng.random() < .6:
            return self.rng.choice(fits)
        if self.rng.random() < .5:
            return self.constant(self.draw_numbers(value.type, tuple(shape)))
        return self.add_input(value.type, tuple(shape))

    # Operators ------------------------------------------------------------------------

    def node(self, op, inputs, results, hidden=(), **attributes):
        """A node that is not part of the graph yet. Inputs are values or names, and
        results with the numbers `hidden` have no names."""
        names = [v if isinstance(v, str) else v.name if v is not None else ""
                 for v in inputs]
        self.drawn += 1
        outputs = ["" if i in hidden else f"v{self.drawn}_{i}" for i in range(results)]
        domain, _, op = op.rpartition(".")
        attributes = {k: v for k, v in attributes.items() if v is not None}
        return helper.make_node(op, names, outputs, domain=domain, **attributes)

    def emit(self, op, inputs, exact=False, results=1, captured=(), hidden=(),
             **attributes):
        """Adds a node if the judges agree about it. Its branches read the values
        `captured`."""
        node = self.node(op, inputs, results, hidden, **attributes)
        return self.emit_nodes([node], [*inputs, *captured], exact)

    def emit_nodes(self, nodes, inputs, exact=False, names=None):
        """Adds nodes that read the values `inputs`, if the judges agree about the results
        `names`, those of the last node if it is None. Other results of the nodes are not
        values of the graph."""
        names = [name for name in nodes[-1].output if name] if names is None else names
        inputs = [v for v in inputs if v is not None]
        feeds = {v.name: v.array for v in inputs if v.array is not None}
        tensors = [v.tensor for v in inputs if v.array is None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays = self.judges.evaluate(nodes, feeds, tensors, names)
        if any(x.size > MAX_ELEMENTS for x in arrays):
            raise Skip("too large")
        is_exact = exact and all(v.is_exact for v in inputs)
        self.nodes.extend(nodes)
        created = [Value(name, x, is_exact or x.dtype.kind in "biu")
                   for name, x in zip(names, arrays)]
        self.values.extend(created)
        return created

    def tensor(self, proto, numbers):
        """Adds a constant of a type that is not among TYPES."""
        numbers = np.asarray(numbers)
        value = Value(self.name("c"), None, True)
        value.tensor = helper.make_tensor(value.name, proto, numbers.shape,
                                          [int(x) for x in numbers.ravel()])
        self.initializers.append(value.tensor)
        return value

    def indices(self, values, kind=np.int64):
        """Integers in one dimension that must be constant."""
        return self.constant(np.asarray(values, kind))

    def integers(self, values, kind=np.int64):
        """Integers in one dimension: a constant, or computed from shapes."""
        values = [int(x) for x in values]
        if kind is not np.int64 or not values or self.rng.random() < .6:
            return self.constant(np.asarray(values, kind))
        parts = [self.size(x) for x in values]
        if all(part is None for part in parts):
            return self.constant(np.asarray(values, kind))
        parts = [self.constant(np.asarray([x], kind)) if part is None else part
                 for x, part in zip(values, parts)]
        if len(parts) == 1:
            return parts[0]
        return self.emit("Concat", parts, exact=True, axis=0)[0]

    def size(self, number):
        """The number as a tensor of shape [1] that nodes compute from the shape of an
        input, or None."""
        inputs = {x.name: x for x in self.inputs}
        found = [(v, i, n) for v in self.values if v.name in inputs and v.type != "bool"
                 for i, n in enumerate(v.shape)
                 if inputs[v.name].type.tensor_type.shape.dim[i].dim_param and
                 abs(number) < 1000]
        if not found:
            return None
        value, dim, n = self.rng.choice(found)
        shape = self.emit("Shape", [value], exact=True)[0]
        index = self.constant(np.asarray([dim], np.int64))
        size = self.emit("Gather", [shape, index], exact=True)[0]
        # The number is n + (number - n), or a multiple of n.
        if n == number:
            return size
        if n and number % n == 0 and self.rng.random() < .5:
            factor = self.constant(np.asarray([number // n], np.int64))
            return self.emit("Mul", [size, factor], exact=True)[0]
        offset = self.constant(np.asarray([number - n], np.int64))
        return self.emit("Add", [size, offset], exact=True)[0]

    def axis(self, value, end=False):
        if value.rank == 0:
            raise Skip("rank 0")
        axis = self.rng.randrange(value.rank)
        # Negative axes are known since opset 11.
        return axis - value.rank if self.opset >= 11 and self.rng.random() < .4 else axis

    def some_axes(self, value):
        count = self.rng.randint(1, max(1, value.rank))
        axes = sorted(self.rng.sample(range(value.rank), min(count, value.rank)))
        if self.opset >= 11 and self.rng.random() < .4:
            axes = [a - value.rank for a in axes]
        return axes


GENERATORS = {}


def operator(*names, since=7):
    def register(function):
        for name in names:
            GENERATORS[name] = (since, function)
        return function
    return register
