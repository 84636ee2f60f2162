# ===- spell_attention.py - attention in random spellings -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Attention in random spellings, with rotations of its queries and keys."""

import spell_rotation
from hlo import INFINITY, LOWEST_BITS

# Near misses, and how many attentions they are, or None if some may be written as one.
MISSES = {"softmax_over_queries": 0, "values_by_query": 0, "other_sum": 0, "partial_sum": 0,
          "scaled_weights": 0, "squared_weights": 0, "wrong_empty_rows": 0,
          "max_over_queries": None, "exp2": None, "epsilon": None, "weights_moved": None,
          "two_products": None}
LARGEST = {"f16": -65504.0, "bf16": -3e38, "f32": -3e38}


class Choices:
    """The spelling of one function, drawn from a generator of random numbers."""

    def __init__(self, random, miss=None):
        pick = random.choice
        self.miss = miss
        self.element = pick(["f32"] * 5 + ["f16", "f16", "bf16"])
        # Types of the products and of the softmax.
        self.product = pick([self.element, "f32"])
        self.softmax = pick([self.product, "f32"])
        self.sum = pick([self.softmax, "f32"])
        self.batch = pick([1, 1, 2, 3])
        self.key_heads, self.group = pick([1, 2, 2, 3]), pick([1, 1, 2, 3])
        self.queries = pick([1, 5, 6, 6, 7])
        self.keys = self.queries + pick([0, 0, 3]) if self.queries > 1 else pick([2, 7])
        if miss in ("values_by_query", "softmax_over_queries", "max_over_queries"):
            self.queries = self.keys = pick([5, 6])
        self.sink = pick(["none"] * 8 + ["first", "last"]) if not miss else "none"
        self.channels = pick([4, 8, 16])
        self.value_channels = pick([self.channels, self.channels, 6])
        self.layout = pick(["bhsd", "bshd", "bs(hd)", "(bh)sd"])
        self.value_layout = pick([self.layout, "bhsd"])
        self.order = pick(["bhsd", "bshd"])
        self.logits = pick(["bhst", "bhst", "bhts", "bsht", "hbst"])
        self.result = pick(["bhsd", "bshd", "bs(hd)"])
        self.joins_batch = random.random() < 0.2
        self.scale = pick(["none", "after", "divided", "queries", "keys", "both", "roots"])
        self.cap = pick([0, 0, 0, 3.0])
        self.masks = random.sample(
            ["causal", "window", "bool", "padding", "lengths", "bias", "head_bias", "alibi",
             "later"], pick([0, 1, 1, 1, 2]))
        self.hidden = pick(["inf", "inf", "finite", "small"])
        self.masks_by = pick(["select", "select", "add", "where"])
        self.grouping = pick(["broadcast", "concat", "grouped", "tile"])
        self.maximum = pick(["max", "max", "bounded", "none", "negated", "half"])
        self.division = pick(["divide", "divide", "reciprocal"])
        self.empty_rows = pick(["none", "none", "where_any", "where_all", "nan"])
        # Exponentials of scores that are not scaled exceed f16.
        if self.maximum == "none" and "f16" in (self.softmax, self.sum):
            self.maximum = "max"
        if self.sink != "none":
            self.empty_rows = "none"
        if miss == "max_over_queries":
            self.maximum, self.masks = "max", []
        # Two finite numbers may become an infinite one.
        if self.hidden == "finite" and len(set(self.masks) & {"bool", "padding", "lengths"}) > 1:
            self.hidden = "inf"
        self.returns_weights = random.random() < 0.1 and not miss
        self.rotation = None
        if random.random() < 0.4:
            self.rotation = RotationChoices(random, self.channels, self.element)

    def __str__(self):
        return ", ".join(f"{key}={value}" for key, value in vars(self).items())


class RotationChoices:
    """The spelling of a rotation."""

    def __init__(self, random, lanes, element, miss=None):
        pick = random.choice
        self.miss = miss
        self.is_wide = element != "f32" and pick([True, True, False])
        self.offset, self.size = 0, lanes
        if random.random() < 0.2 and lanes >= 8:
            self.offset, self.size = pick([0, lanes // 2, 2]), lanes // 2
        self.inverse = random.random() < 0.15
        self.spelling = pick(spell_rotation.MISSES[miss] if miss else
                             list(spell_rotation.SPELLINGS))
        if self.spelling == "pair_complex" and element != "f32":
            self.is_wide = True
        kinds = ["arguments", "positions", "batch_positions", "iota"]
        if spell_rotation.SPELLINGS[self.spelling][1]:
            kinds.append("full_arguments")
        self.tables = pick(kinds)
        self.element = element

    def __str__(self):
        return "(" + ", ".join(f"{key}={value}" for key, value in vars(self).items()) + ")"

    def make_tables(self, g, batch, tokens):
        element = g.random.choice(["f32", self.element])
        return spell_rotation.Tables(g, self.tables, batch, tokens, self.size, element)

    def apply(self, g, x, labels, tables):
        return spell_rotation.rotate(g, x, labels, self.spelling, tables, self.offset,
                                     self.size, self.inverse, self.is_wide, self.miss)


class Attention:
    def __init__(self, g, choices):
        self.g, self.c = g, choices
        c = choices
        self.sizes = {"b": c.batch, "h": c.key_heads * c.group, "k": c.key_heads,
                      "r": c.group, "s": c.queries, "t": c.keys, "d": c.channels,
                      "e": c.value_channels}

    def shape(self, labels):
        return tuple(self.sizes[label] for label in labels)

    def load(self, layout, head, token, channel):
        """An argument, in the order of the working layout."""
        g, order = self.g, self.c.order
        rename = str.maketrans({"h": head, "s": token, "d": channel})
        labels = layout.replace("(", "").replace(")", "")
        wide = labels.translate(rename)
        shape = self.shape(wide)
        if layout == "bs(hd)":
            shape = (*shape[:2], shape[2] * shape[3])
        elif layout == "(bh)sd":
            shape = (shape[0] * shape[1], *shape[2:])
        x = g.reshape(g.argument(shape, self.c.element), self.shape(wide))
        return g.order(x, wide, order.translate(rename)), order.translate(rename)

    def build(self):
        g, c = self.g, self.c
        q, q_labels = self.load(c.layout, "h", "s", "d")
        k, k_labels = self.load(c.layout, "k", "t", "d")
        v, v_labels = self.load(c.value_layout, "k", "t", "e")
        if c.rotation:
            tables = c.rotation.make_tables(g, c.batch, c.queries)
            q = c.rotation.apply(g, q, q_labels, tables)
            if c.keys != c.queries:
                tables = c.rotation.make_tables(g, c.batch, c.keys)
            k = c.rotation.apply(g, k, k_labels.replace("t", "s"), tables)
        q, k, v = (g.convert(x, c.product) for x in (q, k, v))
        q, k = self.scale_operands(q, k)
        grouped = c.grouping == "grouped" and c.group > 1
        if grouped:
            at = q_labels.index("h")
            q_labels = q_labels.replace("h", "kr")
            q = g.reshape(q, (*q.shape[:at], c.key_heads, c.group, *q.shape[at + 1:]))
            # A head of keys has a dimension for the group's heads.
            logits = c.logits.replace("h", "kr")
        else:
            k, v = self.repeat(k, k_labels), self.repeat(v, v_labels)
            k_labels, v_labels = k_labels.replace("k", "h"), v_labels.replace("k", "h")
            logits = c.logits
        if c.joins_batch and not grouped:
            return self.build_joined(q, q_labels, k, k_labels, v, v_labels)
        return self.build_from(q, q_labels, k, k_labels, v, v_labels, logits)

    def build_joined(self, q, q_labels, k, k_labels, v, v_labels):
        """Batch and heads become one dimension, n."""
        g = self.g
        self.sizes["n"] = self.sizes["b"] * self.sizes["h"]
        joined = []
        for x, labels in ((q, q_labels), (k, k_labels), (v, v_labels)):
            rest = [label for label in labels if label not in "bh"]
            x = g.order(x, labels, "bh" + "".join(rest))
            joined += [g.reshape(x, (self.sizes["n"], *x.shape[2:])), "n" + "".join(rest)]
        return self.build_from(*joined, "nst" if self.c.logits != "bhts" else "nts")

    def build_from(self, q, q_labels, k, k_labels, v, v_labels, labels):
        g, c = self.g, self.c
        s = g.contract(q, q_labels, k, k_labels, labels)
        if c.miss == "two_products":
            s = g.binary("add", s, g.contract(g.argument(q.shape, q.element), q_labels,
                                              k, k_labels, labels))
        s = self.scale_logits(s)
        if c.cap:
            s = g.scaled(g.unary("tanh", g.scaled(s, c.cap, "divide")), c.cap)
        self.labels = labels
        s = g.convert(s, c.softmax)
        for mask in c.masks:
            s = self.mask(s, mask)
        weights = self.add_sink(s) if c.sink != "none" else self.softmax(s)
        if c.miss == "values_by_query":
            labels = labels.replace("s", "*").replace("t", "s").replace("*", "t")
        weights = g.convert(weights, c.product)
        if c.miss == "weights_moved":
            dim = labels.index("t")
            weights = g.concatenate(
                [g.slice(weights, dim, 1, c.keys), g.slice(weights, dim, 0, 1)], dim)
        result = "".join(label for label in labels if label != "t") + "e"
        if self.c.result != "bhsd":
            heads = [label for label in result if label in "hkr"]
            result = "bs" + "".join(heads) + "e" if "b" in result else result
        o = g.contract(weights, labels, v, v_labels, result)
        o = g.convert(o, c.element)
        if c.result == "bs(hd)" and result.startswith("bs"):
            o = g.reshape(o, (c.batch, c.queries, self.sizes["h"] * c.value_channels))
        elif result == "nse" and c.result != "bhsd":
            o = g.order(g.reshape(o, self.shape("bhse")), "bhse", "bshe")
        if g.random.random() < 0.3:
            o = g.scaled(o, 0.75)
        g.results = [o, weights] if c.returns_weights else [o]

    # Scales.

    def scale_operands(self, q, k):
        g, scale = self.g, self.c.channels ** -0.5
        if self.c.scale in ("queries", "both"):
            q = g.scaled(q, scale)
        if self.c.scale == "keys":
            k = g.scaled(k, 1 / scale, "divide")
        if self.c.scale == "roots":
            q, k = g.scaled(q, scale ** 0.5), g.scaled(k, scale ** 0.5)
        return q, k

    def scale_logits(self, s):
        g, scale = self.g, self.c.channels ** -0.5
        if self.c.scale in ("after", "both"):
            return g.scaled(s, scale)
        return g.scaled(s, 1 / scale, "divide") if self.c.scale == "divided" else s

    # Heads.

    def repeat(self, x, labels):
        """Repeats the heads of keys for the queries of a group."""
        g, c = self.g, self.c
        if c.group == 1:
            return x
        at = labels.index("k")
        shape = (*x.shape[:at], c.key_heads * c.group, *x.shape[at + 1:])
        if c.grouping == "tile":
            return g.concatenate([x] * c.group, at)
        if c.grouping == "concat":
            return g.concatenate([g.slice(x, at, head // c.group, head // c.group + 1)
                                  for head in range(c.key_heads * c.group)], at)
        wide = (*x.shape[:at + 1], c.group, *x.shape[at + 1:])
        dims = [dim for dim in range(len(wide)) if dim != at + 1]
        return g.reshape(g.broadcast(x, wide, dims), shape)

    # Masks.

    def spread(self, x, labels):
        """Broadcasts a tensor with some of the logits' dimensions."""
        g = self.g
        shape = self.shape(self.labels)
        if "n" in self.labels and ("b" in labels or "h" in labels):
            wide = "bh" + "".join(label for label in labels if label in "st")
            x = g.broadcast(x, self.shape(wide), [wide.index(label) for label in labels])
            x = g.reshape(x, (self.sizes["n"], *x.shape[2:]))
            labels = "n" + wide[2:]
        if "r" in self.labels and "h" in labels:
            at = labels.index("h")
            x = g.reshape(x, (*x.shape[:at], self.c.key_heads, self.c.group, *x.shape[at + 1:]))
            labels = labels.replace("h", "kr")
        wanted = "".join(label for label in self.labels if label in labels)
        x = g.order(x, labels, wanted)
        if g.random.random() < 0.3:
            x = g.reshape(x, [self.sizes[label] if label in labels else 1
                              for label in self.labels])
            return g.broadcast(x, shape, range(len(shape)))
        return g.broadcast(x, shape, [self.labels.index(label) for label in wanted])

    def indices(self, labels="st"):
        """The positions of queries, aligned with those of the keys, and of keys."""
        g, shape = self.g, self.shape(labels)
        i = g.iota(shape, labels.index("s"))
        if self.c.keys > self.c.queries:
            i = g.binary("add", i, g.constant(self.c.keys - self.c.queries, shape, "i32"))
        return i, g.iota(shape, labels.index("t"))

    def mask(self, s, kind):
        g, c = self.g, self.c
        if kind in ("bias", "head_bias"):
            labels = "st" if kind == "bias" else g.random.choice(["hst", "bhst", "ht"])
            bias = g.argument(self.shape(labels), g.random.choice([s.element, "f32"]))
            return g.binary("add", s, self.spread(g.convert(bias, s.element), labels))
        if kind == "alibi":
            i, j = self.indices()
            distance = g.convert(g.binary("subtract", j, i), s.element)
            slopes = g.argument((self.sizes["h"],), s.element)
            return g.binary("add", s, g.binary("multiply", self.spread(slopes, "h"),
                                               self.spread(distance, "st")))
        visible, labels = self.visible(kind)
        if g.random.random() < 0.3:
            visible, is_hidden = g.op("not", [visible], visible.shape, "i1"), True
        else:
            is_hidden = False
        number = {"inf": -INFINITY, "finite": LARGEST[s.element], "small": -5.0}[c.hidden]
        if c.masks_by == "select":
            wide = self.spread(visible, labels)
            hidden = g.constant(number, s.shape, s.element)
            return g.select(wide, hidden, s) if is_hidden else g.select(wide, s, hidden)
        zero = g.constant(0.0, visible.shape, s.element)
        hidden = g.constant(number, visible.shape, s.element)
        bias = g.select(visible, hidden, zero) if is_hidden else \
            g.select(visible, zero, hidden)
        return g.binary("add", s, self.spread(bias, labels))

    def visible(self, kind):
        """Returns which keys are visible, and the letters of its dimensions. Each query
        sees a key, unless rows without keys are zeros or are not possible."""
        g, c = self.g, self.c
        if kind in ("causal", "window", "later"):
            i, j = self.indices()
            if kind == "later":
                return g.compare("GE", j, i), "st"
            visible = g.compare("LE", j, i)
            if kind == "window":
                near = g.compare("LT", g.binary("subtract", i, j),
                                 g.constant(3, i.shape, "i32"))
                visible = g.op("and", [visible, near], visible.shape, "i1")
            return visible, "st"
        if kind == "lengths":
            lengths = g.argument((c.batch,), "i32", "2")
            shape = self.shape("bt")
            visible, labels = g.compare("LT", g.iota(shape, 1),
                                        g.broadcast(lengths, shape, (0,))), "bt"
        else:
            labels = "bt" if kind == "padding" else g.random.choice(["st", "bst"])
            visible = g.argument(self.shape(labels), "i1", "iota")
        # In f16, a bias of -65504 absorbs the logits, which it does not in f32. Without
        # the maximum, all exponentials of a row may be 0.
        if c.sink != "none" or (c.hidden == "inf" and self.allows_empty_rows()) or (
                c.hidden != "inf" and c.softmax != "f16" and
                c.maximum not in ("none", "half")):
            return visible, labels
        wide = "b" * ("b" in labels) + "st"
        i, j = self.indices()
        diagonal = g.compare("EQ", i, j)
        shape = self.shape(wide)
        visible = g.broadcast(visible, shape, [wide.index(label) for label in labels])
        diagonal = g.broadcast(diagonal, shape, [wide.index("s"), wide.index("t")])
        return g.op("or", [visible, diagonal], shape, "i1"), wide

    def allows_empty_rows(self):
        return self.c.empty_rows != "none" and self.c.miss != "wrong_empty_rows"

    # Softmax.

    def add_sink(self, s):
        """The softmax has a column of a number for each head, which is dropped."""
        g, dim = self.g, self.labels.index("t")
        keys = self.sizes["t"]
        self.sizes["t"] = 1
        column = self.spread(g.argument((self.sizes["h"],), s.element), "h")
        self.sizes["t"] = keys + 1
        is_last = self.c.sink == "last"
        p = self.softmax(g.concatenate([s, column] if is_last else [column, s], dim))
        self.sizes["t"] = keys
        start = 0 if is_last else 1
        return g.slice(p, dim, start, start + keys)

    def widen_row(self, row, dim, shape):
        g = self.g
        kept = [axis for axis in range(len(shape)) if axis != dim]
        if g.random.random() < 0.3:
            row = g.reshape(row, [1 if axis == dim else size
                                  for axis, size in enumerate(shape)])
            kept = range(len(shape))
        return g.broadcast(row, shape, kept)

    def softmax(self, s):
        g, c = self.g, self.c
        dim = self.labels.index("s" if c.miss == "softmax_over_queries" else "t")
        lowest = LOWEST_BITS[s.element]
        logits = s
        if c.maximum != "none":
            over = self.labels.index("s") if c.miss == "max_over_queries" else dim
            row = g.reduce("maximum", s, over, lowest)
            if c.maximum == "bounded":
                row = g.binary("maximum", g.constant(-INFINITY, row.shape, row.element), row)
            if c.maximum == "half":
                row = g.scaled(row, 0.5)
            if c.maximum == "negated":
                s = g.binary("add", s,
                             self.widen_row(g.unary("negate", row), over, s.shape))
            else:
                s = g.binary("subtract", s, self.widen_row(row, over, s.shape))
        if c.miss == "shifted_logits":
            s = g.binary("subtract", s, g.argument(s.shape, s.element))
        if c.miss == "exp2":
            e = g.binary("power", g.constant(2.0, s.shape, s.element), s)
        else:
            e = g.unary("exponential", s)
        terms = e
        if c.miss == "other_sum":
            terms = g.unary("exponential", g.scaled(s, 0.5))
        if c.miss == "partial_sum":
            terms = g.slice(terms, dim, 0, terms.shape[dim] - 1)
        total = g.reduce("add", g.convert(terms, c.sum), dim, "0.0")
        if c.miss == "epsilon":
            total = g.binary("add", total, g.constant(0.25, total.shape, total.element))
        total = g.convert(total, e.element)
        if c.division == "divide":
            p = g.binary("divide", e, self.widen_row(total, dim, e.shape))
        else:
            one = g.constant(1.0, total.shape, total.element)
            p = g.binary("multiply", e,
                         self.widen_row(g.binary("divide", one, total), dim, e.shape))
        p = self.clear_empty_rows(logits, p, dim)
        if c.miss == "scaled_weights":
            p = g.binary("multiply", p, g.argument(p.shape, p.element))
        if c.miss == "squared_weights":
            p = g.binary("multiply", p, p)
        return p

    def clear_empty_rows(self, s, p, dim):
        g, c = self.g, self.c
        if c.miss == "wrong_empty_rows":
            row = g.reduce("maximum", s, dim, LOWEST_BITS[s.element])
            is_empty = g.compare("LT", row, g.constant(0.0, row.shape, row.element))
        elif c.empty_rows == "none":
            return p
        elif c.empty_rows == "nan":
            zero = g.constant(0.0, p.shape, p.element)
            return g.select(g.compare("NE", p, p), zero, p)
        else:
            lowest = g.constant(-INFINITY, s.shape, s.element)
            if c.empty_rows == "where_any":
                row = g.reduce("or", g.compare("NE", s, lowest), dim, "false")
                is_empty = g.op("not", [row], row.shape, "i1")
            else:
                is_empty = g.reduce("and", g.compare("EQ", s, lowest), dim, "true")
        wide = self.widen_row(is_empty, dim, p.shape)
        return g.select(wide, g.constant(0.0, p.shape, p.element), p)
