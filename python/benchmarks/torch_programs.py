# ===- torch_programs.py - random programs of PyTorch ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Programs of PyTorch that are drawn statement by statement, each evaluated at once.

A function in STATEMENTS draws one statement. It raises Skip if the values of the program
do not fit."""

import random

import torch

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]
SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 17]
MAX_ELEMENTS = 4000


class Skip(Exception):
    """The statement that was drawn does not fit the values that there are."""


class Value:
    """A value of the program: its name, its tensor, and whether no rounding has taken
    place, so that a floor, a comparison or a conversion to integers has one right
    result."""

    def __init__(self, name, tensor, is_exact):
        self.name, self.tensor, self.is_exact = name, tensor, is_exact

    @property
    def dtype(self):
        return self.tensor.dtype

    @property
    def shape(self):
        return tuple(self.tensor.shape)

    @property
    def rank(self):
        return self.tensor.dim()

    @property
    def is_float(self):
        return self.tensor.is_floating_point()


class Program:
    """Statements over inputs x0, x1, …, whose values v0, v1, … are all results.

    Inputs have sizes with names, such as `n`, which are dynamic, and others. `resize`
    draws inputs for other values of the names.
    """

    def __init__(self, seed, may_write_inputs=False, types=None):
        self.rng = random.Random(seed)
        self.may_write_inputs = may_write_inputs
        self.types = types or FLOATS + INTEGERS + [torch.bool]
        self.statements, self.values, self.inputs = [], [], []
        # Dynamic sizes, and which dimension of which input has which of them.
        self.is_dynamic = self.rng.random() < .4
        self.sizes = {name: self.rng.choice([2, 3, 5, 7]) for name in "mn"}
        self.named = []
        for _ in range(self.rng.randint(1, 3)):
            self.add_input()

    # Inputs ---------------------------------------------------------------------------

    def numbers(self, dtype, shape, rng=None):
        generator = torch.Generator().manual_seed((rng or self.rng).getrandbits(32))
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=generator).to(dtype)
        if not dtype.is_floating_point:
            info = torch.iinfo(dtype)
            x = torch.randint(0 if info.min == 0 else -9, 10, shape, generator=generator)
            if (rng or self.rng).random() < .25:
                edges = torch.tensor([info.min, info.max, info.min + 1, info.max // 2 + 1])
                other = edges[torch.randint(0, 4, shape, generator=generator)]
                x = torch.where(torch.rand(shape, generator=generator) < .2, other, x)
            return x.to(dtype)
        x = torch.randint(-24, 25, shape, generator=generator) / 8
        # A power of two keeps results that are exact.
        x *= (rng or self.rng).choice([1, 1, 1, 2.0 ** -10, 2.0 ** -3, 2.0 ** 4])
        if (rng or self.rng).random() < .1:
            edges = torch.tensor([torch.inf, -torch.inf, torch.nan, -0.0, 1e4])
            other = edges[torch.randint(0, 5, shape, generator=generator)]
            x = torch.where(torch.rand(shape, generator=generator) < .1, other, x)
        return x.to(dtype)

    def draw_shape(self, rank=None):
        rank = self.rng.choice([0, 1, 2, 2, 3, 3, 4]) if rank is None else rank
        shape = [self.rng.choice(SIZES) for _ in range(rank)]
        while torch.Size(shape).numel() > MAX_ELEMENTS:
            shape[self.rng.randrange(rank)] = 1
        return shape

    def add_input(self, dtype=None, shape=None):
        """An input, some of whose sizes have names if the program is dynamic."""
        if dtype is None:
            dtype = self.rng.choice([torch.float32, *self.types])
        shape = self.draw_shape() if shape is None else list(shape)
        names = {}
        if self.is_dynamic:
            for dim, size in enumerate(shape):
                fits = [name for name, value in self.sizes.items() if value == size]
                if fits or self.rng.random() < .3:
                    name = self.rng.choice(fits or sorted(self.sizes))
                    names[dim], shape[dim] = name, self.sizes[name]
        value = Value(f"x{len(self.inputs)}", self.numbers(dtype, shape), True)
        self.inputs.append(value)
        self.values.append(value)
        self.named.append(names)
        return value

    def resize(self, seed):
        """Other inputs, whose named sizes have other values."""
        rng = random.Random(seed)
        sizes = {name: rng.choice([2, 3, 4, 6, 9]) for name in self.sizes}
        tensors = []
        for value, names in zip(self.inputs, self.named):
            shape = [sizes[names[dim]] if dim in names else size
                     for dim, size in enumerate(value.shape)]
            tensors.append(self.numbers(value.dtype, shape, rng))
        return tensors

    # Values ---------------------------------------------------------------------------

    def pick(self, types=None, rank=None, exact=False, least_rank=0):
        fits = [v for v in self.values if (types is None or v.dtype in types) and
                (rank is None or v.rank == rank) and v.rank >= least_rank and
                (v.is_exact or not exact)]
        if fits and self.rng.random() < .85:
            # The last ones are more likely, so that programs are deep.
            return self.rng.choice(fits[-4:] if self.rng.random() < .6 else fits)
        if self.statements and self.rng.random() < .5:
            raise Skip
        dtype = self.rng.choice([t for t in self.types if types is None or t in types] or
                                list(types))
        if rank is None:
            rank = self.rng.choice([r for r in (0, 1, 2, 2, 3, 3, 4) if r >= least_rank])
        return self.add_input(dtype, self.draw_shape(rank))

    def partner(self, value, types=None):
        """A value whose shape broadcasts with that of another."""
        fits = []
        for other in self.values:
            try:
                torch.broadcast_shapes(value.shape, other.shape)
            except RuntimeError:
                continue
            if types is None or other.dtype in types:
                fits.append(other)
        if fits and self.rng.random() < .7:
            return self.rng.choice(fits)
        shape = list(value.shape)[self.rng.randint(0, value.rank) * (
            self.rng.random() < .3):]
        shape = [1 if self.rng.random() < .2 else size for size in shape]
        return self.add_input(self.rng.choice(types or [value.dtype, *self.types]), shape)

    def axis(self, value, end=0):
        if value.rank + end == 0:
            raise Skip
        axis = self.rng.randrange(value.rank + end)
        return axis - value.rank - end if self.rng.random() < .4 else axis

    def size(self, value, dim):
        """The text of a size, which is a number in programs without dynamic sizes."""
        return f"{value.name}.shape[{dim}]" if self.is_dynamic else str(value.shape[dim])

    # Statements -----------------------------------------------------------------------

    def source(self, statements=None, results=None):
        """The text of a function that returns all values, or those with some names."""
        statements = self.statements if statements is None else statements
        if results is None:
            results = [name for names, _, _ in statements for name in names]
        arguments = ", ".join(v.name for v in self.inputs)
        lines = [line for _, lines, _ in statements for line in lines]
        body = "".join(f"    {line}\n" for line in lines)
        return (f"def forward(self, {arguments}):\n{body}"
                f"    return ({''.join(f'{name}, ' for name in results)})\n")

    def try_add(self, draw):
        """Draws a statement, and adds it if PyTorch can evaluate it."""
        kept = [list(self.inputs), list(self.values), list(self.named)]
        try:
            drawn = draw(self)
            names = [f"v{len(self.statements)}"]
            lines = [line.replace("RESULT", names[0]) for line in drawn["lines"]]
            statement = names, lines, drawn["exact"]
            before = self.statements
            self.statements = [*before, statement]
            try:
                tensors = evaluate(self, [v.tensor for v in self.inputs])
            except Exception:
                self.statements = before
                raise Skip from None
            if any(t.numel() > MAX_ELEMENTS or t.dtype.is_complex or
                   t.dtype not in FLOATS + INTEGERS + [torch.bool]
                   for t in tensors.values()):
                self.statements = before
                raise Skip
        except Skip:
            self.inputs, self.values, self.named = kept
            return False
        created = Value(names[0], tensors[names[0]], drawn["exact"])
        self.values.append(created)
        # A write in place changes other values, too.
        for value in self.values:
            if value.name in tensors and not value.name.startswith("x"):
                value.tensor = tensors[value.name]
                value.is_exact &= drawn["exact"] or not drawn["writes"]
        return True


def make_module(source):
    names = {}
    exec(compile(source, "<program>", "exec"), {"torch": torch, "F": torch.nn.functional},
         names)
    return type("Module", (torch.nn.Module,), names)()


def evaluate(program, tensors, statements=None):
    """The values by name, computed by PyTorch without compilation."""
    names = [name for names, _, _ in (statements or program.statements) for name in names]
    copies = [tensor.clone() for tensor in tensors]
    with torch.no_grad():
        results = make_module(program.source(statements))(*copies)
    return dict(zip(names, results))


STATEMENTS = {}


def statement(*names, weight=1):
    def register(function):
        for name in names:
            STATEMENTS[name] = (weight, function)
        return function
    return register


def one(text, values, exact=False, writes=False, lines=()):
    """A statement that computes a value. It is exact if the operation is, and its
    operands are."""
    return {"lines": [*lines, f"RESULT = {text}"],
            "exact": exact and all(v.is_exact for v in values), "writes": writes}


def some(program, *choices):
    return program.rng.choice(choices)


# Elementwise --------------------------------------------------------------------------


@statement("unary", weight=4)
def unary(p):
    x = p.pick()
    if x.is_float:
        text, exact = some(
            p, ("-{x}", 1), ("{x}.abs()", 1), ("torch.exp({x})", 0), ("torch.log({x})", 0),
            ("torch.sqrt({x})", 0), ("torch.rsqrt({x})", 0), ("torch.sin({x})", 0),
            ("torch.cos({x})", 0), ("torch.tanh({x})", 0), ("torch.sigmoid({x})", 0),
            ("F.relu({x})", 1), ("F.gelu({x})", 0), ("F.gelu({x}, approximate='tanh')", 0),
            ("F.silu({x})", 0), ("torch.erf({x})", 0), ("torch.reciprocal({x})", 0),
            ("torch.expm1({x})", 0), ("torch.log1p({x})", 0), ("torch.square({x})", 0),
            ("F.softplus({x})", 0), ("F.leaky_relu({x}, 0.25)", 0), ("F.elu({x})", 0),
            ("F.hardswish({x})", 0), ("F.hardtanh({x})", 1), ("F.hardsigmoid({x})", 0),
            ("F.mish({x})", 0), ("F.logsigmoid({x})", 0), ("F.selu({x})", 0),
            ("torch.log2({x})", 0), ("torch.exp2({x})", 0), ("torch.isnan({x})", 1),
            ("torch.isinf({x})", 1), ("torch.isfinite({x})", 1), ("F.relu6({x})", 1),
            ("torch.nan_to_num({x})", 1), ("torch.atan({x})", 0), ("torch.tan({x})", 0))
        return one(text.format(x=x.name), [x], bool(exact))
    if x.dtype == torch.bool:
        text = some(p, "~{x}", "torch.logical_not({x})", "{x}.float()", "{x} * 2")
    else:
        text = some(p, "-{x}", "{x}.abs()", "~{x}", "F.relu({x})", "torch.sign({x})",
                    "torch.logical_not({x})", "torch.square({x})")
    return one(text.format(x=x.name), [x], True)


@statement("rounding")
def rounding(p):
    x = p.pick(FLOATS, exact=True)
    text = some(p, "torch.floor({x})", "torch.ceil({x})", "torch.round({x})",
                "torch.trunc({x})", "torch.sign({x})", "torch.frac({x})",
                "torch.round({x}, decimals=1)")
    return one(text.format(x=x.name), [x], "decimals" not in text)


@statement("binary", weight=4)
def binary(p):
    x = p.pick()
    y = p.partner(x)
    text, exact = some(
        p, ("{x} + {y}", 0), ("{x} - {y}", 0), ("{x} * {y}", 0), ("{x} / {y}", 0),
        ("torch.maximum({x}, {y})", 1), ("torch.minimum({x}, {y})", 1),
        ("torch.add({x}, {y}, alpha=2)", 0), ("torch.sub({x}, {y}, alpha=3)", 0),
        ("torch.rsub({x}, {y})", 0), ("torch.atan2({x}, {y})", 0))
    if not x.is_float and not y.is_float and "/" not in text and "atan" not in text:
        exact = 1
    return one(text.format(x=x.name, y=y.name), [x, y], bool(exact))


@statement("division", weight=2)
def division(p):
    x = p.pick(INTEGERS + FLOATS, exact=True)
    y = p.partner(x, [x.dtype])
    if not y.is_exact:
        raise Skip
    text = some(p, "torch.div({x}, {y}, rounding_mode='floor')", "{x} // {y}", "{x} % {y}",
                "torch.div({x}, {y}, rounding_mode='trunc')", "torch.fmod({x}, {y})")
    if not x.is_float:
        # A division by zero is undefined.
        return one(text.format(x=x.name, y="d"), [x, y], True,
                   lines=[f"d = torch.where({y.name} == 0, 3, {y.name})"])
    if torch.isinf(x.tensor).any() or torch.isinf(y.tensor).any():
        raise Skip
    return one(text.format(x=x.name, y=y.name), [x, y])


@statement("scalar", weight=3)
def scalar(p):
    x = p.pick([t for t in p.types if t != torch.bool])
    number = some(p, "2", "-3", "1", "0", "1.5", "-0.25", "0.1")
    text = some(p, "{x} + {n}", "{n} - {x}", "{x} * {n}", "{x} / {n}", "{n} / {x}",
                "{x}.clamp(min={n})", "{x}.clamp(max={n})", "torch.clamp({x}, -1, {n})",
                "torch.add({x}, {n}, alpha=2)", "{x}.clamp(-2, 3)")
    exact = "/" not in text and number != "0.1" and (
        not x.is_float or "clamp" in text) and "." not in number
    return one(text.format(x=x.name, n=number), [x], exact)


@statement("scalar-division")
def scalar_division(p):
    x = p.pick(INTEGERS + [torch.float32], exact=True)
    number = some(p, "2", "3", "5") if x.dtype == torch.uint8 else some(p, "2", "-3", "5")
    text = some(p, "{x} // {n}", "{x} % {n}", "torch.fmod({x}, {n})",
                "torch.div({x}, {n}, rounding_mode='trunc')")
    if x.is_float and torch.isinf(x.tensor).any():
        raise Skip
    return one(text.format(x=x.name, n=number), [x], not x.is_float)


@statement("power")
def power(p):
    x = p.pick(FLOATS + [torch.int64, torch.int32])
    if x.is_float:
        return one(some(p, "{x} ** 2", "{x} ** 3", "{x} ** 0.5", "{x} ** -1", "2.0 ** {x}",
                        "{x}.abs() ** 1.7", "{x} ** 0", "{x} ** -2.0").format(x=x.name), [x])
    return one(some(p, "{x} ** 2", "{x} ** 3", "{x} ** 0").format(x=x.name), [x], True)


@statement("comparison", weight=2)
def comparison(p):
    x = p.pick(exact=True)
    text = some(p, "==", "!=", "<", "<=", ">", ">=")
    if p.rng.random() < .4:
        return one(f"{x.name} {text} {some(p, 0, 1, -2, 0.5)}", [x], True)
    y = p.partner(x)
    if not y.is_exact:
        raise Skip
    return one(f"{x.name} {text} {y.name}", [x, y], True)


@statement("logical")
def logical(p):
    x = p.pick([t for t in p.types if not t.is_floating_point])
    y = p.partner(x, INTEGERS + [torch.bool])
    text = some(p, "{x} & {y}", "{x} | {y}", "{x} ^ {y}", "torch.logical_and({x}, {y})",
                "torch.logical_or({x}, {y})", "torch.logical_xor({x}, {y})")
    return one(text.format(x=x.name, y=y.name), [x, y], True)


@statement("shift")
def shift(p):
    x = p.pick(INTEGERS)
    return one(f"{x.name} {some(p, '<<', '>>')} {some(p, 0, 1, 3)}", [x], True)


@statement("conversion", weight=3)
def conversion(p):
    x = p.pick()
    to = p.rng.choice(p.types)
    if x.is_float and not to.is_floating_point and to != torch.bool:
        # Numbers out of range are undefined.
        info = torch.iinfo(to)
        if not x.is_exact or not torch.isfinite(x.tensor).all() or (
                x.tensor.double() < info.min).any() or (
                x.tensor.double() > min(info.max, 1e6)).any():
            raise Skip
    if x.is_float and to == torch.bool and not x.is_exact:
        raise Skip
    wide = x.dtype if x.dtype in (torch.int64, torch.int32) else None
    exact = not to.is_floating_point or wide is None and to != torch.bfloat16
    return one(f"{x.name}.to({to})", [x], exact)


@statement("where", weight=2)
def where(p):
    c = p.pick([torch.bool])
    x = p.partner(c)
    text = some(p, "torch.where({c}, {x}, {y})", "torch.where({c}, {x}, 1)",
                "torch.where({c}, 0.5, {x})", "{x}.masked_fill({c}, -1)")
    y = p.partner(x)
    return one(text.format(c=c.name, x=x.name, y=y.name),
               [c, x, y] if "{y}" in text else [c, x], True)


# Shapes -------------------------------------------------------------------------------


@statement("view", weight=3)
def view(p):
    x = p.pick(least_rank=1)
    dim = p.rng.randrange(x.rank)
    parts = [p.size(x, d) for d in range(x.rank)]
    choice = p.rng.random()
    if choice < .3 and x.rank >= 2:
        first = p.rng.randrange(x.rank - 1)
        parts[first:first + 2] = ["-1"] if p.rng.random() < .5 and x.tensor.numel() else [
            f"{parts[first]} * {parts[first + 1]}"]
    elif choice < .6:
        n = x.shape[dim]
        divisors = [d for d in range(1, n + 1) if n % d == 0] or [1]
        d = p.rng.choice(divisors)
        rest = "-1" if x.tensor.numel() and p.rng.random() < .5 else f"{parts[dim]} // {d}"
        parts[dim:dim + 1] = some(p, [str(d), rest], [rest, str(d)])
    elif choice < .75:
        parts.insert(p.rng.randint(0, x.rank), "1")
    elif choice < .9 and x.tensor.numel():
        parts = ["-1"]
    else:
        return one(some(p, f"{x.name}.flatten()", f"{x.name}.flatten({dim})",
                        f"{x.name}.flatten(0, {dim})"), [x], True)
    call = some(p, "reshape", "reshape", "view")
    return one(f"{x.name}.{call}({', '.join(parts)})", [x], True)


@statement("move", weight=4)
def move(p):
    x = p.pick(least_rank=1)
    a, b = p.axis(x), p.axis(x)
    order = list(range(x.rank))
    p.rng.shuffle(order)
    n = x.shape[a]
    start, end = sorted((p.rng.randint(-n, n), p.rng.randint(-n, n)))
    text = some(
        p, f"{x.name}.transpose({a}, {b})", f"{x.name}.permute({order})",
        f"{x.name}.unsqueeze({p.axis(x, 1)})", f"{x.name}.squeeze()",
        f"{x.name}.squeeze({a})", f"torch.flip({x.name}, [{a}])",
        f"torch.roll({x.name}, {p.rng.randint(-4, 4)}, {a})",
        f"torch.movedim({x.name}, {a}, {b})", f"{x.name}.contiguous()",
        f"{x.name}.clone()", f"torch.narrow({x.name}, {a}, {min(1, n)}, {max(n - 1, 0)})",
        f"torch.flip({x.name}, [{a}]).contiguous()",
        f"torch.select({x.name}, {a}, {p.rng.randint(-n, max(n - 1, -n))})",
        f"torch.ops.aten.slice({x.name}, {a}, {start}, {end})",
        f"torch.ops.aten.slice({x.name}, {a}, {p.rng.randint(-n, n)}, None, "
        f"{p.rng.randint(1, 3)})",
        f"torch.diagonal({x.name}, {p.rng.randint(-2, 2)}, {a}, {b})",
        f"torch.chunk({x.name}, 2, {a})[{p.rng.randint(-1, 0)}]",
        f"torch.split({x.name}, {max(n // 2, 1)}, {a})[0]",
        f"torch.unbind({x.name}, {a})[-1]", f"{x.name}.tril({p.rng.randint(-2, 2)})",
        f"{x.name}.triu({p.rng.randint(-2, 2)})", f"{x.name}[..., ::2]",
        f"{x.name}[..., None, :]", f"{x.name}[None]", f"{x.name}[-1:]", f"{x.name}[1:]")
    return one(text, [x], True)


@statement("growth", weight=2)
def growth(p):
    x = p.pick()
    parts = [p.size(x, d) for d in range(x.rank)]
    ones = [some(p, "3", "1", "2") if x.shape[d] == 1 and p.rng.random() < .7 else parts[d]
            for d in range(x.rank)]
    counts = [p.rng.choice([1, 1, 2, 3, 0]) for _ in range(x.rank)]
    texts = [f"{x.name}.expand({', '.join(['2', *ones])})",
             f"{x.name}.repeat({', '.join(map(str, [2, *counts]))})",
             f"{x.name}[None].expand({', '.join(['2', *parts])})"]
    if x.rank:
        axis = p.axis(x)
        texts += [f"{x.name}.repeat_interleave({p.rng.randint(1, 3)}, {axis})",
                  f"{x.name}.tile({tuple(counts)})",
                  f"F.pad({x.name}, ({p.rng.randint(-1, 2)}, {p.rng.randint(-1, 2)}))",
                  f"F.pad({x.name}, (1, 0{', 0, 2' if x.rank > 1 else ''}), value=1)"]
    return one(p.rng.choice(texts), [x], True)


@statement("join", weight=2)
def join(p):
    x = p.pick(least_rank=1)
    fits = [v for v in p.values if v.rank == x.rank]
    y = p.rng.choice(fits)
    axis = p.axis(x)
    z = p.rng.choice(fits)
    text = some(p, f"torch.cat(({x.name}, {y.name}), {axis})",
                f"torch.cat(({x.name}, {y.name}, {z.name}), {axis})",
                f"torch.stack(({x.name}, {y.name}), {p.axis(x, 1)})",
                f"torch.cat((-{x.name}, {x.name}), {axis})")
    return one(text, [x, y, z], True)


# Sums ---------------------------------------------------------------------------------


@statement("reduction", weight=3)
def reduction(p):
    x = p.pick()
    keep = some(p, "", ", keepdim=True")
    axes = sorted(p.rng.sample(range(x.rank), p.rng.randint(1, max(1, x.rank)))) \
        if x.rank else []
    where = f", {axes if len(axes) != 1 else p.axis(x)}{keep}" if x.rank and \
        p.rng.random() < .8 else ""
    if x.dtype == torch.bool:
        text = some(p, "torch.any({x}{w})", "torch.all({x}{w})", "torch.sum({x}{w})")
        return one(text.format(x=x.name, w=where), [x], True)
    if not x.is_float:
        text = some(p, "torch.sum({x}{w})", "torch.amax({x}{w})", "torch.amin({x}{w})",
                    "torch.prod({x})", "torch.any({x}{w})", "torch.all({x}{w})")
        return one(text.format(x=x.name, w=where), [x], True)
    text, exact = some(
        p, ("torch.sum({x}{w})", 0), ("torch.mean({x}{w})", 0), ("torch.amax({x}{w})", 1),
        ("torch.amin({x}{w})", 1), ("torch.logsumexp({x}{w})", 0),
        ("torch.var({x}{w})", 0), ("torch.linalg.vector_norm({x}, 2{w})", 0),
        ("torch.std({x}{w})", 0), ("torch.var({x}{w}, correction=0)", 0),
        ("torch.prod({x})", 0), ("torch.linalg.vector_norm({x}, 1{w})", 0),
        ("torch.linalg.vector_norm({x}, float('inf'){w})", 0))
    return one(text.format(x=x.name, w=where), [x], bool(exact))


@statement("along", weight=2)
def along(p):
    x = p.pick(least_rank=1)
    axis = p.axis(x)
    if x.is_float:
        text = some(p, f"torch.softmax({x.name}, {axis})",
                    f"torch.log_softmax({x.name}, {axis})",
                    f"torch.cumsum({x.name}, {axis})",
                    f"torch.softmax({x.name}, {axis}, dtype=torch.float32)",
                    f"F.normalize({x.name}, dim={axis})",
                    f"F.layer_norm({x.name}, ({x.shape[-1]},))",
                    f"F.rms_norm({x.name}, ({x.shape[-1]},))")
        return one(text, [x])
    return one(f"torch.cumsum({x.name}, {axis}{some(p, '', ', dtype=torch.int32')})", [x],
               True)


@statement("position", weight=2)
def position(p):
    """The index of an extremum, whose ties have no order in PyTorch."""
    x = p.pick(FLOATS + INTEGERS, least_rank=1, exact=True)
    axis, keep = p.axis(x), some(p, "", ", keepdim=True")
    text = some(p, f"torch.max({x.name}, {axis}{keep}).values",
                f"torch.min({x.name}, {axis}{keep}).values",
                f"torch.argmax({x.name}, {axis}{keep})",
                f"torch.argmin({x.name}, {axis}{keep})")
    return one(text, [x], True)


# Products -----------------------------------------------------------------------------


@statement("product", weight=3)
def product(p):
    x = p.pick([torch.float32, torch.float16, torch.bfloat16, torch.float64], least_rank=1)
    n = x.shape[-1]
    m = p.rng.choice([1, 2, 3, 8, 17])
    fits = [v for v in p.values if v.rank >= 1 and v.dtype == x.dtype and
            v.shape[-2:][0] == n]
    text = some(p, "{x} @ {y}", "torch.matmul({x}, {y})", "F.linear({x}, {w})",
                "F.linear({x}, {w}, {b})")
    if "{y}" in text:
        y = p.rng.choice(fits) if fits and p.rng.random() < .5 else p.add_input(
            x.dtype, some(p, (n,), (n, m), (*x.shape[:-2], n, m)))
        return one(text.format(x=x.name, y=y.name), [x, y])
    w, b = p.add_input(x.dtype, (m, n)), p.add_input(x.dtype, (m,))
    return one(text.format(x=x.name, w=w.name, b=b.name), [x, w, b])


@statement("einsum")
def einsum(p):
    x = p.pick([torch.float32, torch.float64], rank=3)
    b, i, j = x.shape
    text, shape = some(
        p, ("bij,bkj->bik", (b, 3, j)), ("bij,jk->bik", (j, 4)), ("bij,bij->bi", (b, i, j)),
        ("bij,kj->kib", (2, j)), ("bij,j->bij", (j,)), ("bij,i->bj", (i,)))
    y = p.add_input(x.dtype, shape)
    return one(f"torch.einsum('{text}', {x.name}, {y.name})", [x, y])


@statement("convolution")
def convolution(p):
    channels, size = p.rng.choice([1, 2, 4]), p.rng.choice([4, 5, 9])
    x = p.add_input(torch.float32, (p.rng.choice([1, 2]), channels, size, size))
    groups = p.rng.choice([1, channels])
    w = p.add_input(torch.float32, (4, channels // groups, p.rng.choice([1, 3]), 3))
    return one(f"F.conv2d({x.name}, {w.name}, stride={p.rng.randint(1, 2)}, "
               f"padding={p.rng.randint(0, 2)}, groups={groups})", [x, w])


# Indices ------------------------------------------------------------------------------


@statement("indices", weight=3)
def indices(p):
    x = p.pick(least_rank=1)
    axis = p.rng.randrange(x.rank)
    n = x.shape[axis]
    if n == 0:
        raise Skip
    kind = p.rng.choice([torch.int64, torch.int64, torch.int32])
    where = f"({p.add_input(kind, p.draw_shape(p.rng.choice([0, 1, 2]))).name} % {n})"
    if p.rng.random() < .3:
        where = f"({where} - {n})"
        texts = [f"{x.name}[{where}]"]
    else:
        texts = [f"{x.name}[{where}]", f"torch.index_select({x.name}, {axis}, {where})"]
        if x.rank == 2 and axis == 0:
            texts.append(f"F.embedding({where}, {x.name})")
        shape = [min(s, p.rng.choice([1, 2, 3, 5])) if d != axis else
                 p.rng.choice([1, 2, 4]) for d, s in enumerate(x.shape)]
        places = p.add_input(torch.int64, shape)
        texts += [f"torch.gather({x.name}, {axis}, {places.name} % {n})"] * 2
        if x.is_float:
            texts.append(f"{x.name}.clone().scatter_add({axis}, {places.name} % {n}, "
                         f"torch.ones_like({places.name}, dtype={x.dtype}))")
    text = p.rng.choice(texts)
    if where not in text or "gather" in text or "scatter" in text:
        return one(text, [x], "scatter" not in text)
    if axis and text == f"{x.name}[{where}]":
        text = f"{x.name}[{':, ' * axis}{where}]"
    return one(text, [x], True)


@statement("creation", weight=2)
def creation(p):
    x = p.pick(least_rank=1)
    dim = p.rng.randrange(x.rank)
    n = p.size(x, dim)
    text = some(p, f"torch.arange({n})", f"torch.arange({n}, dtype=torch.float32)",
                f"torch.zeros({n}, 3)", f"torch.full(({n},), 1.5)",
                f"torch.arange({n})[:, None] >= torch.arange({n})", f"{x.name} * {n}",
                f"torch.zeros_like({x.name})", f"{x.name}.new_full((2, {n}), 1)",
                f"torch.arange(0, {n}, 2)", f"torch.ones({n}, {n}, dtype=torch.bool).tril()")
    return one(text, [x] if text.startswith(x.name) else [], not x.is_float or
               not text.startswith(f"{x.name} *"))


@statement("constant")
def constant(p):
    text = some(p, "torch.tensor([1.5, -2.0, 0.25])", "torch.tensor(3)",
                "torch.tensor([[1, 2], [3, 4]])", "torch.tensor([True, False])",
                "torch.tensor(0.5, dtype=torch.float16)")
    return one(text, [], True)


# Writes in place ----------------------------------------------------------------------


@statement("write", weight=3)
def write(p):
    fits = [v for v in p.values if not v.name.startswith("x") or p.may_write_inputs]
    if not fits:
        raise Skip
    x = p.rng.choice(fits)
    y = p.rng.choice(p.values)
    target = x.name if p.rng.random() < .6 else f"{x.name}.clone()"
    if x.rank:
        axis = p.rng.randrange(x.rank)
        before = ":, " * axis
        part = some(p, "", f"[{before}1:]", f"[{before}::2]", f"[{before}0]", "[..., -1]",
                    f"[{before}:-1]", f".transpose(0, {axis})", f".narrow({axis}, 0, 1)")
    else:
        part = ""
    call = some(p, ".add_(1)", ".mul_(2)", ".zero_()", ".fill_(3)", f".copy_({y.name})",
                f".add_({y.name})", ".neg_()", f".masked_fill_({y.name}, 1)",
                f".mul_({y.name})", ".clamp_(-1, 1)")
    exact = call in (".add_(1)", ".zero_()", ".fill_(3)", ".neg_()", ".clamp_(-1, 1)",
                     f".copy_({y.name})", f".masked_fill_({y.name}, 1)") and (
        not x.is_float or "add" not in call)
    result = some(p, "w", "w", x.name if target == x.name else "w")
    return one(result, [x, y], exact and (not y.is_float or not x.is_float or
                                          y.dtype == x.dtype or "copy" not in call),
               writes=True, lines=[f"w = {target}", f"w{part}{call}"])


def generate(seed, length, names=None, **options):
    """A program of up to `length` statements."""
    program = Program(seed, **options)
    chosen = names or list(STATEMENTS)
    weights = [STATEMENTS[name][0] for name in chosen]
    for _ in range(8 * length):
        if len(program.statements) >= length:
            break
        name, = program.rng.choices(chosen, weights)
        program.try_add(STATEMENTS[name][1])
    return program
