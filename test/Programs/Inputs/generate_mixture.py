# ===- generate_mixture.py - random functions of posenc and linalg ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Ropes and tables among elementwise ops, matrix products, transposes, slices and
reshapes. The error bound of each op is propagated to the next one."""

import numpy as np

import generate_rope
import model
from builder import Dynamic, sizes, type_text
from formats import BF16, F16, F32, F64, I64, Real, sums_of
from model import Value, rounded

UNIT = {F64: Real(2) ** -52, F32: Real(2) ** -23}


def once(kind, ref, err, exact):
    """Returns the result of an op that rounds once."""
    return rounded(kind, ref, err + kind.ulp(abs(ref) + err) * model.ONCE, exact)


def binary_value(op, x, y):
    kind = x.kind
    if op == "addf":
        ref, err = x.ref + y.ref, x.err + y.err
    elif op == "subf":
        ref, err = x.ref - y.ref, x.err + y.err
    elif op == "maximumf":
        # The result is one of the operands.
        return Value(kind, np.maximum(x.ref, y.ref), np.maximum(x.err, y.err))
    else:
        ref = x.ref * y.ref
        err = abs(x.ref) * y.err + abs(y.ref) * x.err + x.err * y.err
    exact = (err == 0) & (kind is not F64)
    # Real cannot represent the sum of numbers of very different magnitude.
    if op in ("addf", "subf"):
        small, large = np.minimum(abs(x.ref), abs(y.ref)), np.maximum(
            abs(x.ref), abs(y.ref))
        exact = exact & ((small == 0) | (small > large * Real(2) ** -30))
    return once(kind, ref, err, exact)


def generic(f, inputs, maps, kind, shape, body, iterators=None, init=None):
    """Emits a linalg.generic and returns the name of its result."""
    rank = len(iterators) if iterators else len(shape)
    dims = ", ".join(f"d{n}" for n in range(rank))
    iterators = iterators or ["parallel"] * rank
    init = init or f.empty(kind, shape)
    texts = ", ".join(f"affine_map<({dims}) -> ({', '.join(m)})>" for m in maps)
    kinds = ", ".join(f"%i{n}: {t.kind.name}" for n, t in enumerate(inputs))
    quoted = ", ".join('"' + it + '"' for it in iterators)
    name = f.new_name()
    f.emit(f"{name} = linalg.generic {{indexing_maps = [{texts}], "
           f"iterator_types = [{quoted}]}} ins({generate_rope.list_of(inputs)}) "
           f"outs({generate_rope.list_of([init])}) {{")
    f.emit(f"^bb0({kinds}, %o: {kind.name}):")
    for line in body:
        f.emit("  " + line)
    f.emit(f"}} -> {type_text(kind, shape)}")
    return name


def identity(shape):
    return [f"d{n}" for n in range(len(shape))]


def binary(f, x, row=None):
    """Combines x with a tensor of its shape, or with a row that is broadcast."""
    op = f.pick("addf", "subf", "mulf", "maximumf")
    row = f.chance(0.4) if row is None else row
    y = f.floats(x.kind, x.shape[-1:] if row else x.shape)
    maps = [identity(x.shape), identity(x.shape)[-1:] if row else identity(x.shape),
            identity(x.shape)]
    name = generic(f, [x, y], maps, x.kind, x.shape, [
        f"%r = arith.{op} %i0, %i1 : {x.kind.name}",
        f"linalg.yield %r : {x.kind.name}"])
    other = Value(x.kind, np.broadcast_to(y.value.ref, x.value.ref.shape))
    return f.result(x.kind, x.shape, binary_value(op, x.value, other), name)


def convert(f, x, kind):
    """Truncates or extends x to another floating-point type."""
    op = "truncf" if kind.bits < x.kind.bits else "extf"
    name = generic(f, [x], [identity(x.shape)] * 2, kind, x.shape, [
        f"%r = arith.{op} %i0 : {x.kind.name} to {kind.name}",
        f"linalg.yield %r : {kind.name}"])
    if op == "extf":
        value = Value(kind, x.value.ref, x.value.err)
    else:
        value = once(kind, x.value.ref, x.value.err, x.value.err == 0)
    return f.result(kind, x.shape, value, name)


def change_type(f, x):
    if x.kind is F32:
        return convert(f, x, f.pick(BF16, BF16, F16, F64))
    if x.kind is F64:
        return convert(f, x, f.pick(F32, BF16, F16))
    return convert(f, x, F32)


# Functions whose derivative is at most 1, so that they do not amplify errors.
FUNCTIONS = {"sin": np.sin, "cos": np.cos, "tanh": np.tanh, "atan": np.arctan}


def function(f, x):
    """A math function, accurate to 4 units of f32 or f64; 16-bit types round once
    more."""
    op = f.pick(*FUNCTIONS)
    name = generic(f, [x], [identity(x.shape)] * 2, x.kind, x.shape, [
        f"%r = math.{op} %i0 : {x.kind.name}", f"linalg.yield %r : {x.kind.name}"])
    ref = FUNCTIONS[op](x.value.ref)
    wide = sums_of(x.kind)
    err = x.value.err + 4 * wide.ulp(abs(ref))
    if x.kind is not wide:
        err += model.ONCE * x.kind.ulp(abs(ref) + err)
    return f.result(x.kind, x.shape, Value(x.kind, ref, err), name)


def product(f, x):
    """Multiplies the rows of x by a matrix."""
    if x.kind is F64 or not 2 <= len(x.shape) <= 3:
        return x
    batched = len(x.shape) == 3
    columns = int(f.pick(8, 24, 64))
    lead = x.shape[:1] if batched else []
    mode = f.pick("dyadic", "normal")
    w = f.floats(x.kind, lead + [x.shape[-1], columns], mode)
    shape = x.shape[:-1] + [columns]
    zero, init = f.new_name(), f.empty(F32, shape)
    f.emit(f"{zero} = arith.constant 0.0 : f32")
    filled = f.new_name()
    f.emit(f"{filled} = linalg.fill ins({zero} : f32) "
           f"outs({generate_rope.list_of([init])}) -> {init.type()}")
    name = f.new_name()
    f.emit(f"{name} = linalg.{'batch_matmul' if batched else 'matmul'} "
           f"ins({generate_rope.list_of([x, w])}) "
           f"outs({filled} : {init.type()}) -> {init.type()}")
    a, b = x.value, w.value
    with np.errstate(invalid="ignore"):
        ref = (a.ref @ b.ref).astype(Real)
        size = abs(a.ref) @ abs(b.ref)
        carried = a.err @ abs(b.ref)
    depth = int(x.shape[-1])
    # Sums of numbers with few digits are exact in f32.
    units = [Real(2) ** -n for n in (7, 11)]
    exact = (carried == 0) & all((t.ref / units[0] == np.rint(t.ref / units[0])).all()
                                 for t in (a, b)) & (size < 2.0**9)
    bound = (8 + 2 * Real(depth) ** 0.5) * UNIT[F32] * size + F32.ulp(abs(ref))
    return f.result(F32, shape, rounded(F32, ref, carried + bound, exact), name)


def transpose(f, x):
    order = [int(n) for n in f.random.permutation(len(x.shape))]
    shape = [x.shape[n] for n in order]
    init, name = f.empty(x.kind, shape), f.new_name()
    f.emit(f"{name} = linalg.transpose ins({generate_rope.list_of([x])}) "
           f"outs({generate_rope.list_of([init])}) permutation = {order}")
    return f.result(x.kind, shape, x.value.map(lambda v: np.transpose(v, order)), name)


def cut(f, x):
    """Extracts a slice, with strides, of the static dimensions."""
    offsets, counts, steps, used = [], [], [], []
    for n, d in enumerate(x.shape):
        if isinstance(d, Dynamic) or d < 3 or f.chance(0.5):
            offsets.append(0), counts.append(d), steps.append(1)
        else:
            step = f.pick(1, 1, 2)
            first = int(f.random.integers(0, d // 2))
            count = int(f.random.integers(1, (d - first - 1) // step + 2))
            if n == len(x.shape) - 1:
                # Keeps at least two elements per row for a rope.
                step, count = (step, count - count % 2) if count > 1 else (1, 2)
                first = min(first, d - count * step + step - 1)
            offsets.append(first), counts.append(count), steps.append(step)
        used.append(slice(offsets[-1], offsets[-1] + (int(counts[-1]) - 1) * steps[-1] + 1
                          if counts[-1] else offsets[-1], steps[-1]))
    texts = [f.dim(d) for d in counts]
    name = f.new_name()
    f.emit(f"{name} = tensor.extract_slice {x.name}{offsets} "
           f"[{', '.join(texts)}] {steps} : {x.type()} to {type_text(x.kind, counts)}")
    return f.result(x.kind, counts, x.value.map(lambda v: v[tuple(used)]), name)


def put(f, x):
    """Inserts x into a larger tensor."""
    more = [0 if isinstance(d, Dynamic) else int(f.random.integers(0, 3)) for d in x.shape]
    shape = [d if m == 0 else d + m for d, m in zip(x.shape, more)]
    y = f.floats(x.kind, shape, "normal")
    offsets = [int(f.random.integers(0, m + 1)) for m in more]
    texts = [f.dim(d) for d in x.shape]
    name = f.new_name()
    f.emit(f"{name} = tensor.insert_slice {x.name} into {y.name}{offsets} "
           f"[{', '.join(texts)}] {[1] * len(shape)} : {x.type()} into {y.type()}")
    used = tuple(slice(o, o + int(d)) for o, d in zip(offsets, x.shape))

    def into(v, base):
        base = np.array(base)
        base[used] = v
        return base
    value = Value(x.kind, into(x.value.ref, y.value.ref), into(x.value.err, y.value.err))
    return f.result(x.kind, shape, value, name)


def split(f, x):
    """Expands the last dimension into heads and elements."""
    n = len(x.shape) - 1
    d = x.shape[n]
    if isinstance(d, Dynamic) or len(x.shape) > 4:
        return x
    factors = [k for k in (1, 2, 3, 4, 5) if d % (2 * k) == 0]
    if not factors:
        return x
    heads = int(f.pick(*factors))
    shape = x.shape[:-1] + [heads, d // heads]
    groups = [[k] for k in range(n)] + [[n, n + 1]]
    texts = [f.dim(e) for e in shape]
    name = f.new_name()
    f.emit(f"{name} = tensor.expand_shape {x.name} {groups} "
           f"output_shape [{', '.join(texts)}] : {x.type()} into "
           f"{type_text(x.kind, shape)}")
    return reshaped(f, x, shape, name)


def reshaped(f, x, shape, name):
    """Adds the result of a reshape. A dynamic size of a function's result must be a size
    of an argument, so a result with dynamic sizes is combined with an argument."""
    x = f.result(x.kind, shape, x.value.map(lambda v: v.reshape(sizes(shape))), name)
    is_dynamic = any(isinstance(d, Dynamic) for d in shape)
    return binary(f, x, row=False) if is_dynamic else x


def join(f, x):
    """Collapses two dimensions into one."""
    if len(x.shape) < 3:
        return x
    n = int(f.random.integers(0, len(x.shape) - 1))
    both = x.shape[n], x.shape[n + 1]
    size = int(both[0]) * int(both[1])
    size = Dynamic(size) if any(isinstance(d, Dynamic) for d in both) else size
    shape = x.shape[:n] + [size] + x.shape[n + 2:]
    groups = [[k] for k in range(n)] + [[n, n + 1]] + [
        [k + 2] for k in range(n, len(x.shape) - 2)]
    name = f.new_name()
    f.emit(f"{name} = tensor.collapse_shape {x.name} {groups} : {x.type()} into "
           f"{type_text(x.kind, shape)}")
    return reshaped(f, x, shape, name)


def total(f, x):
    """Sums over the last dimension."""
    if len(x.shape) < 2 or x.kind is F64:
        return x
    shape = x.shape[:-1]
    zero, init = f.new_name(), f.empty(F32, shape)
    f.emit(f"{zero} = arith.constant 0.0 : f32")
    filled = f.new_name()
    f.emit(f"{filled} = linalg.fill ins({zero} : f32) "
           f"outs({generate_rope.list_of([init])}) -> {init.type()}")
    init.name = filled
    iterators = ["parallel"] * len(shape) + ["reduction"]
    extend = ["%w = arith.extf %i0 : " + x.kind.name + " to f32"] if x.kind is not F32 else []
    name = generic(f, [x], [identity(x.shape), identity(shape)], F32, shape, extend + [
        f"%r = arith.addf %o, {'%w' if extend else '%i0'} : f32", "linalg.yield %r : f32"],
        iterators, init)
    ref, size = x.value.ref.sum(axis=-1), abs(x.value.ref).sum(axis=-1)
    err = x.value.err.sum(axis=-1) + (8 + 2 * Real(int(x.shape[-1])) ** 0.5) * UNIT[
        F32] * size + F32.ulp(abs(ref))
    return f.result(F32, shape, Value(F32, ref, err), name)


def rope(f, x):
    """Applies a rope to whole rows or to a window of them."""
    if len(x.shape) < 2 or isinstance(x.shape[-1], Dynamic):
        return x
    size = int(x.shape[-1])
    if size < 2:
        return x
    dim = 2 * int(f.random.integers(1, size // 2 + 1)) if f.chance(0.5) else size // 2 * 2
    freqs = generate_rope.frequencies(f, dim)
    rank = len(x.shape)
    dims = sorted(int(d) for d in f.random.permutation(rank - 1)[
        :int(f.random.integers(1, rank))])
    grid = [x.shape[d] for d in dims]
    positions = generate_rope.positions_argument(f, grid, None)
    offset = f.pick(0, size - dim)
    return generate_rope.emit_rope(f, [x], freqs, positions, dims,
                                   f.pick("half", "interleaved"), offset,
                                   f.chance(0.2))[0]


def add_table(f, x):
    """Adds a sinusoidal table with the shape of the last two dimensions."""
    if len(x.shape) < 2 or isinstance(x.shape[-1], Dynamic) or x.shape[-1] % 2:
        return x
    freqs = generate_rope.frequencies(f, int(x.shape[-1]))
    shape = x.shape[-2:]
    positions = generate_rope.positions_argument(f, shape[:1], None, I64)
    order = f.pick("interleaved", "sin_cos", "cos_sin")
    init, name = f.empty(x.kind, shape), f.new_name()
    f.emit(f"{name} = posenc.sinusoidal {order} {freqs.text()} "
           f"positions({positions.name} : {positions.type()}) "
           f"outs({generate_rope.list_of([init])})")
    table = f.result(x.kind, shape, model.sinusoidal(
        x.kind, freqs, positions.value, order), name)
    maps = [identity(x.shape), identity(x.shape)[-2:], identity(x.shape)]
    name = generic(f, [x, table], maps, x.kind, x.shape, [
        f"%r = arith.addf %i0, %i1 : {x.kind.name}",
        f"linalg.yield %r : {x.kind.name}"])
    other = table.value.map(lambda v: np.broadcast_to(v, x.value.ref.shape))
    return f.result(x.kind, x.shape, binary_value("addf", x.value, other), name)


STEPS = (binary, binary, function, change_type, change_type, product, transpose, cut, put,
         split, join, total, rope, rope, rope, add_table)


def mixture(f):
    """A chain of steps, at least one of which is a rope. Intermediate steps are
    sometimes results, too."""
    kind = f.pick(F32, F32, F32, BF16, F16, F64)
    grid = generate_rope.grid_sizes(f, int(f.random.integers(1, 4)), 40)
    shape = [f.size(d) for d in grid] + [int(f.pick(4, 8, 24, 32, 64, 96))]
    x = f.floats(kind, shape, f.pick("normal", "dyadic", "ties"))
    steps = [STEPS[n] for n in f.random.integers(0, len(STEPS), int(
        f.random.integers(1, 6)))]
    steps.insert(int(f.random.integers(0, len(steps) + 1)), rope)
    before = None
    for step in steps:
        with np.errstate(over="ignore", invalid="ignore"):
            next_ = step(f, x)
        # Values beyond the range of f16 cannot be compared.
        if next_.kind is F16 and not (abs(next_.value.ref) < 6e4).all():
            next_ = convert(f, x, F32) if x.kind is F16 else x
        x, before = next_, x
        if f.chance(0.1) and before is not x and before.value is not None and (
                not before.name.startswith("%a")):
            f.give(before)
    if x.name.startswith("%a"):
        x = rope(f, f.floats(F32, [3, 8]))
    f.give(x)
