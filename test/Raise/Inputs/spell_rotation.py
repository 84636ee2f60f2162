# ===- spell_rotation.py - rotary embeddings in random spellings ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Rotates the last dimension of a tensor in one of many spellings."""

# The pairs of lanes, and whether the tables have an element for each lane.
SPELLINGS = {
    "rotate_half": ("half", True),
    "half_parts": ("half", False),
    "half_pairs": ("half", False),
    "half_signs": ("half", True),
    "rotate_pairs": ("pairs", True),
    "pair_reshape": ("pairs", False),
    "pair_strides": ("pairs", False),
    "pair_complex": ("pairs", False),
    "pair_matrix": ("pairs", False),
    "pairs_to_halves": ("moved", False),
}
# Faults, and the spellings that can have them. None of these is a rotation.
MISSES = {
    "sign": tuple(SPELLINGS)[:3] + ("rotate_pairs", "pair_reshape", "pair_strides"),
    "square": ("rotate_half", "half_parts", "pair_reshape", "pair_strides"),
    "other_tensor": ("rotate_half", "half_parts", "pair_reshape"),
    "other_token": ("rotate_half", "half_parts"),
    "partner": ("rotate_half", "rotate_pairs"),
    "three_lanes": ("rotate_half", "half_parts"),
    "added": ("half_parts", "pair_strides"),
}


class Tables:
    """Cosines and sines by token: (S, D / 2) or (S, D), or with a batch."""

    def __init__(self, g, kind, batch, tokens, lanes, element):
        self.g, self.kind, self.lanes = g, kind, lanes
        shape = (tokens, lanes // 2)
        self.has_batch = kind == "batch_positions"
        if kind in ("arguments", "full_arguments"):
            shape = (tokens, lanes if kind == "full_arguments" else lanes // 2)
            self.cos, self.sin = g.argument(shape, element), g.argument(shape, element)
            return
        if self.has_batch:
            shape = (batch, *shape)
        positions = g.argument(shape[:-1], "i32", "iota") if "positions" in kind else \
            g.iota(shape[:-1], 0)
        frequencies = g.list([10000.0 ** (-2 * pair / lanes) for pair in range(lanes // 2)],
                             "f32")
        angles = g.binary(
            "multiply",
            g.broadcast(g.convert(positions, "f32"), shape, range(len(shape) - 1)),
            g.broadcast(frequencies, shape, [len(shape) - 1]))
        self.angles = angles
        self.cos = g.convert(g.unary("cosine", angles), element)
        self.sin = g.convert(g.unary("sine", angles), element)

    def get(self, is_full, pairs):
        """Returns the tables with one element for each pair, or for each lane."""
        g = self.g
        if self.kind == "full_arguments":
            assert is_full
            return self.cos, self.sin

        def widen(table):
            last = len(table.shape) - 1
            if pairs == "half":
                return g.concatenate([table, table], last)
            wide = g.stack([table, table], last + 1)
            return g.reshape(wide, (*table.shape[:-1], self.lanes))

        if not is_full:
            return self.cos, self.sin
        if self.kind != "arguments" and g.random.random() < 0.5:
            angles = widen(self.angles)
            return (g.convert(g.unary("cosine", angles), self.cos.element),
                    g.convert(g.unary("sine", angles), self.cos.element))
        return widen(self.cos), widen(self.sin)


def rotate(g, x, labels, spelling, tables, offset=0, size=None, inverse=False,
           is_wide=False, miss=None):
    """Rotates the lanes from `offset` to `offset + size` of x. With `is_wide`, it is
    converted to f32 before, and back behind. `labels` has b and s for the dimensions
    of sequences and tokens."""
    element = x.element
    if is_wide:
        x = g.convert(x, "f32")
    last, lanes = len(x.shape) - 1, x.shape[-1]
    size = size or lanes
    part = x if size == lanes else g.slice(x, last, offset, offset + size)
    done = Rotation(g, part, labels, tables, inverse, miss).run(spelling)
    parts = []
    if offset:
        parts.append(g.slice(x, last, 0, offset))
    parts.append(done)
    if offset + size < lanes:
        parts.append(g.slice(x, last, offset + size, lanes))
    return g.convert(g.concatenate(parts, last) if len(parts) > 1 else done, element)


class Rotation:
    def __init__(self, g, x, labels, tables, inverse, miss):
        self.g, self.x, self.labels, self.miss = g, x, labels, miss
        self.tables, self.inverse = tables, inverse
        self.lanes, self.last = x.shape[-1], len(x.shape) - 1
        self.half = self.lanes // 2

    def run(self, spelling):
        pairs, is_full = SPELLINGS[spelling]
        if is_full:
            self.cos, self.sin = map(self.align, self.tables.get(True, pairs))
        else:
            self.cos, self.sin = map(self.align, self.tables.get(False, pairs))
        if self.inverse:
            self.sin = self.g.unary("negate", self.sin)
        return getattr(self, spelling)()

    def align(self, table):
        """Returns the table in the shape of x."""
        shape = (*self.x.shape[:-1], table.shape[-1])
        dims = [self.labels.index("s"), self.last]
        if self.tables.has_batch:
            dims.insert(0, self.labels.index("b"))
        g = self.g
        if dims != sorted(dims):
            order = sorted(range(len(dims)), key=dims.__getitem__)
            table, dims = g.transpose(table, order), sorted(dims)
        if g.random.random() < 0.5:
            kept = [size if dim in dims else 1 for dim, size in enumerate(shape)]
            table = g.reshape(table, kept)
            dims = range(len(shape))
        return g.convert(g.broadcast(table, shape, dims), self.x.element)

    # Faults.

    def source(self, x):
        """The lanes that are added to the lane itself."""
        g = self.g
        if self.miss == "other_tensor":
            return g.binary("add", x, g.argument(x.shape, x.element))
        if self.miss == "other_token":
            dim = self.labels.index("s")
            count = x.shape[dim]
            return g.concatenate([g.slice(x, dim, count - 1, count),
                                  g.slice(x, dim, 0, count - 1)], dim)
        if self.miss == "square":
            return g.binary("multiply", x, x)
        if self.miss == "three_lanes":
            return g.binary("add", x, g.concatenate(
                [g.slice(x, self.last, 1, x.shape[-1]), g.slice(x, self.last, 0, 1)],
                self.last))
        return x

    def finish(self, x):
        if self.miss != "added":
            return x
        return self.g.binary("add", x, self.g.argument(x.shape, x.element))

    def negate(self, x):
        return x if self.miss == "sign" else self.g.unary("negate", x)

    def turn(self, a, b):
        """Returns both lanes of the pairs."""
        g, c, s = self.g, self.cos, self.sin
        other_a, other_b = self.source(a), self.source(b)
        name = "add" if self.miss == "sign" else "subtract"
        first = g.binary(name, g.binary("multiply", a, c), g.binary("multiply", other_b, s))
        products = [g.binary("multiply", b, c), g.binary("multiply", s, other_a)]
        if g.random.random() < 0.5:
            products.reverse()
        return self.finish(first), g.binary("add", *products)

    def halves(self, x):
        return (self.g.slice(x, self.last, 0, self.half),
                self.g.slice(x, self.last, self.half, self.lanes))

    def add_other(self, other):
        g = self.g
        return self.finish(g.binary("add", g.binary("multiply", self.x, self.cos),
                                    g.binary("multiply", other, self.sin)))

    # Spellings.

    def rotate_half(self):
        a, b = self.halves(self.source(self.x))
        parts = [self.negate(b), a]
        if self.miss == "partner":
            a1, a2 = (self.g.slice(a, self.last, 0, 1),
                      self.g.slice(a, self.last, 1, self.half))
            parts = [self.negate(b), a2, a1]
        return self.add_other(self.g.concatenate(parts, self.last))

    def half_parts(self):
        return self.g.concatenate(self.turn(*self.halves(self.x)), self.last)

    def half_pairs(self):
        """Halves as a dimension of their own."""
        g = self.g
        pairs = g.reshape(self.x, (*self.x.shape[:-1], 2, self.half))
        a, b = (g.reshape(g.slice(pairs, self.last, at, at + 1), self.cos.shape)
                for at in (0, 1))
        return g.reshape(g.stack(self.turn(a, b), self.last), self.x.shape)

    def half_signs(self):
        """Lanes are rolled, and the sines have the signs."""
        g = self.g
        a, b = self.halves(self.x)
        signs = g.list([-1.0] * self.half + [1.0] * self.half, self.x.element)
        self.sin = g.binary("multiply", self.sin,
                            g.broadcast(signs, self.x.shape, [self.last]))
        return self.add_other(g.concatenate([b, a], self.last))

    def pairs_of(self, x):
        return self.g.reshape(x, (*x.shape[:-1], self.half, 2))

    def rotate_pairs(self):
        g = self.g
        pairs = self.pairs_of(self.x)
        a, b = (g.slice(pairs, self.last + 1, at, at + 1) for at in (0, 1))
        parts = [self.negate(b), a]
        if self.miss == "partner":
            parts[1] = g.concatenate([g.slice(a, self.last, 1, self.half),
                                      g.slice(a, self.last, 0, 1)], self.last)
        return self.add_other(g.reshape(g.concatenate(parts, self.last + 1), self.x.shape))

    def pair_reshape(self):
        g = self.g
        pairs = self.pairs_of(self.x)
        a, b = (g.reshape(g.slice(pairs, self.last + 1, at, at + 1), self.cos.shape)
                for at in (0, 1))
        return g.reshape(g.stack(self.turn(a, b), self.last + 1), self.x.shape)

    def pair_strides(self):
        g = self.g
        a, b = (g.slice(self.x, self.last, at, self.lanes, 2) for at in (0, 1))
        return g.reshape(g.stack(self.turn(a, b), self.last + 1), self.x.shape)

    def pairs_to_halves(self):
        """Neighbours are rotated, and stay in two halves."""
        g = self.g
        a, b = (g.slice(self.x, self.last, at, self.lanes, 2) for at in (0, 1))
        return g.concatenate(self.turn(a, b), self.last)

    def pair_complex(self):
        g = self.g
        pairs = self.pairs_of(self.x)
        kind = f"complex<{self.x.element}>"
        a, b = (g.reshape(g.slice(pairs, self.last + 1, at, at + 1), self.cos.shape)
                for at in (0, 1))
        x = g.op("complex", [a, b], a.shape, kind)
        turned = g.op("multiply", [x, g.op("complex", [self.cos, self.sin], a.shape, kind)],
                      a.shape, kind)
        parts = [g.op(name, [turned], a.shape, self.x.element) for name in ("real", "imag")]
        return g.reshape(g.stack(parts, self.last + 1), self.x.shape)

    def pair_matrix(self):
        """A product with a matrix of 2 by 2."""
        g = self.g
        pairs = self.pairs_of(self.x)
        rows = [g.stack([self.cos, g.unary("negate", self.sin)], self.last + 1),
                g.stack([self.sin, self.cos], self.last + 1)]
        matrix = g.stack(rows, self.last + 1)
        shape = matrix.shape
        wide = g.broadcast(pairs, shape, [*range(self.last + 1), self.last + 2])
        products = g.binary("multiply", matrix, wide)
        return g.reshape(g.reduce("add", products, self.last + 2, "0.0"), self.x.shape)
