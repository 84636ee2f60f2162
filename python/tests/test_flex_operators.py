# ===- test_flex_operators.py - operators of PyTorch in functions of scores ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Operators of PyTorch in functions of scores, and their derivatives, compared with
PyTorch's own of single numbers."""

import importlib.util
import math  # noqa: F401 - the expressions of cases use it

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from posenc._flex import _plan  # noqa: E402
from test_flex import make  # noqa: E402

F = torch.nn.functional
TOKENS, HEADS = 9, 2


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)
    torch.manual_seed(0)


generator = torch.Generator().manual_seed(3)
table, rows = (torch.randn(shape, generator=generator) for shape in (40, (40, 3)))
cube = torch.randn(2, 40, 40, generator=generator)
ids, few, half = torch.arange(40) % 5, torch.tensor([1, 3, 5]), torch.tensor(0.5)

# Each name: expressions of s, h, q and k.
GROUPS = {
    "activations": """F.logsigmoid(s) | F.elu(s, 0.7) | F.celu(s, 1.3) | F.selu(s)
        F.leaky_relu(s, 0.1) | F.hardtanh(s) | F.relu6(s * 9) | F.relu(s) | F.softplus(s)
        F.softplus(s, 2.0, 1) | F.gelu(s) | F.gelu(s, approximate="tanh") | F.silu(s)
        F.mish(s) | F.hardsigmoid(s * 3) | F.hardswish(s * 3) | F.softsign(s)
        F.tanhshrink(s) | F.softshrink(s, 0.3) | F.hardshrink(s) | F.threshold(s, 0.1, 2.0)
        torch.sigmoid(s * 200) * s | F.elu(s * 1e3) * 1e-3 | F.softplus(s * 1e3) * 1e-3""",
    "functions": """torch.sinh(s) | torch.cosh(s) | torch.asinh(s) | torch.erfc(s)
        torch.acosh(s.abs() + 1.5) | torch.atanh(s.clamp(-0.9, 0.9)) | torch.sinc(s)
        torch.asin(s.clamp(-0.9, 0.9)) | torch.acos(s.clamp(-0.9, 0.9))
        torch.atan2(s, q - 4.5) | torch.logaddexp(s, k * 0.5) | torch.hypot(s, k + 1.0)
        torch.logaddexp2(s, k * 0.5) | torch.xlogy(s, k) | torch.logit(torch.sigmoid(s))
        torch.addcmul(s, s, s, value=0.5) | torch.addcdiv(s, s, q + 1.0, value=0.5)
        torch.lerp(s, s * s, 0.3) | torch.frac(s * 3) | torch.trunc(s * 3)
        torch.round(s * 3, decimals=1) | torch.fmod(s, 0.7) | torch.remainder(s, 0.7)
        torch.div(s, 0.3, rounding_mode="trunc") | torch.copysign(s, q - k)
        torch.fmax(s, s * s) | torch.fmin(s, s * s) | torch.signbit(s).double()
        torch.nan_to_num(torch.where(q > k, s, -math.inf), neginf=-3.0)
        torch.deg2rad(s) | torch.special.entr(s.abs()) | s.clamp(min=half.double())
        torch.logsumexp(torch.stack([s, s * s]), 0) | 0.9 ** (q - k).abs() * s
        torch.ldexp(s, q % 3)""",
    "integers": """2 ** (q % 5) | (1 << (k % 8)) | (q << k % 4) | (q >> k % 4)
        torch.floor_divide(q - 5, 3) | torch.div(q - 5, 3, rounding_mode="trunc")
        torch.isin(k, few).int() | torch.isin(k, 3).int() | torch.isin(k, few, invert=True)
        torch.bucketize(k, few) | torch.searchsorted(few, k, right=True)
        (q ^ k) & 3 | (~q) | torch.any(q > k).int() | (q > k).all().int()
        torch.count_nonzero(q > k) | (k == few).any().int() | (k >= few).sum()
        torch.stack([q, k, q * 0 + 3]).amax() | torch.stack([q > k, k > 2]).all(dim=0).int()
        torch.stack([q, k]).argmax() | torch.tensor([3, 1, 4])[k % 3]
        torch.stack([q, k, k * 2])[h] | few.gather(0, (k % 3).long()) | few.take(k.long() % 3)
        torch.index_select(few, 0, k % 3)[0] | divide(q, 3) | (q % 256).to(torch.uint8)""",
    "parts": """(rows[q] * rows[k]).sum() | torch.dot(rows[q], rows[k]) | rows[q] @ rows[k]
        (rows[q] == rows[k]).all().float() | rows[q].max() | rows[q].mean()
        torch.linalg.norm(rows[q] - rows[k]) | torch.softmax(rows[q], 0)[k % 3]
        cube[h, None][0, q, k] | cube[h, 1:][q, k] | cube[h, ::2, k][q // 2]
        cube[h, -5:][q % 5, k] | cube[h].T[q, k] | cube[h].transpose(0, 1)[q, k]
        cube.select(0, h)[q, k] | cube[..., k][h, q] | cube[h, q, -1] | cube[h, ..., 0][q]
        F.embedding(k, rows)[h] | table[k, None][0] | table[k].squeeze() | s[None][0]
        s.view(1).sum() | torch.cat([s.view(1), s.view(1) * 2]).prod()
        torch.cumsum(torch.stack([s, s * s]), 0)[1] | torch.einsum("i,i->", rows[q], rows[k])""",
}


def divide(x, y):
    return torch.floor_divide(x, y)


def make_function(text):
    expressions = [one.strip() for line in text.splitlines()
                   for one in split(line) if one.strip()]
    terms = [eval(f"lambda s, h, q, k: {one}", globals()) for one in expressions]

    def score_mod(s, b, h, q, k):
        total = s
        for number, term in enumerate(terms):
            total = total + term(s, h, q, k) * (0.3 + 0.1 * number)
        return total

    return score_mod


def split(line):
    """Splits a line at " | " outside of parentheses."""
    parts, depth = [""], 0
    for letter in line:
        depth += (letter in "([") - (letter in ")]")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@pytest.mark.parametrize("name", GROUPS)
def test_operators(name):
    """With one visible key, the log-sum-exp is its score."""
    score_mod, column = make_function(GROUPS[name]), torch.tensor(0)
    query, key = (make(TOKENS, HEADS, dtype=torch.float64, seed=seed).requires_grad_()
                  for seed in range(2))
    scores = query @ key.mT / 4
    indices = [torch.arange(size, dtype=torch.int32) for size in scores.shape]
    for column_index in (2, 7):
        column.fill_(column_index)
        _, actual = posenc.flex_attention(query, key, key, score_mod, return_lse=True,
                                          mask_mod=lambda b, h, q, k: k == column)
        expected = torch.stack([
            score_mod(scores[0, h, q, column_index].clone(), indices[0][0], indices[1][h],
                      indices[2][q], indices[3][column_index])
            for h in range(HEADS) for q in range(TOKENS)]).reshape(actual.shape)
        assert ((actual - expected).abs() / (1 + expected.abs())).max() < 1e-6
        gradients = (torch.autograd.grad(one.sum(), [query, key], retain_graph=True)
                     for one in (actual, expected))
        for one, other in zip(*gradients):
            assert (one - other).abs().max() < 1e-7 * (1 + other.abs().max())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_narrow_integers(dtype):
    """Arithmetic wraps and promotes as that of PyTorch."""
    info, x, column = torch.iinfo(dtype), make(12, HEADS, dtype=torch.float64), (
        torch.tensor(0))
    v = torch.tensor([info.min, info.max, info.max - 1, 1, 0, 77, 100, 9, 12, 3, 41, 5],
                     dtype=dtype)

    def score_mod(s, b, h, q, k):
        x, y = v[q], v[k]
        terms = (x * 100, x + y, x - y, x * y * 37, -x, ~x, x // 3, x % 7, x << 3, x >> 1,
                 x << (y % 9), x ^ y, x + 1000, x + k, x * 1.5, x / 3, x > y, x - y > 0,
                 x.int() * 100, x.to(torch.int8) + y.to(torch.int8),
                 x.to(torch.uint8) * 3, (x * 50).to(torch.int16) * 500, x ** 2, -x // 2,
                 torch.maximum(x, y * 9), table[(x % 5).int()],
                 torch.where(q > k, x, y) * 100, torch.where(x > 3, x * s, s))
        return sum(one.to(torch.float64) * (0.3 + 0.1 * number)
                   for number, one in enumerate(terms))

    for index in (0, 1, 5):
        column.fill_(index)
        _, actual = posenc.flex_attention(x, x, x, score_mod, return_lse=True,
                                          mask_mod=lambda b, h, q, k: k == column)
        expected = torch.stack([
            score_mod((x @ x.mT / 4)[0, h, q, index], *(torch.tensor(
                one, dtype=torch.int32) for one in (0, h, q, index)))
            for h in range(HEADS) for q in range(12)]).reshape(actual.shape)
        assert (actual - expected).abs().max() < 1e-9 * expected.abs().max()


class Largest:
    lse, max_scores = False, True


NAMES = """xp.sinh(s) | xp.cosh(s) | xp.arcsinh(s) | xp.arccosh(abs(s) + 1.5) | xp.arctan(s)
    xp.arcsin(xp.clip(s, -0.9, 0.9)) | xp.arctan2(s, i + 1.0) | xp.logaddexp(s, j * 0.5)
    xp.hypot(s, j * 1.0) | xp.heaviside(s, 0.5) | xp.fmax(s, 0.1) | xp.isfinite(s) * 1.0
    xp.deg2rad(s) | xp.cbrt(s) | divmod(i, 3)[0] | xp.trunc(s * 3) | xp.sinc(s) | i << (j % 3)
    xp.nan_to_num(s) | xp.round(s * 3) | xp.ones_like(s) | xp.any(i > j) * 1.0
    small[i] * 100 | (small[i] - small[j]) | wide[i] * 500 | cube[h, :, j][i]"""
OF_NUMPY = """xp.copysign(s, i - j) | xp.signbit(s) * 1.0 | xp.ldexp(s, i % 3) | 2 ** (i % 5)
    xp.isin(j, few) * 1.0 | (rows[i] * rows[j]).sum() | xp.dot(rows[i], rows[j])
    rows[i] @ rows[j] | xp.take(rows[:, 0], j) | xp.stack([s, s * 2]).sum()"""
OF_JAX = """nn.relu6(s) | nn.gelu(s) | nn.silu(s) | nn.elu(s) | nn.leaky_relu(s)
    nn.softplus(s) | nn.log_sigmoid(s) | nn.mish(s)"""


@pytest.mark.parametrize("framework", ["numpy", "jax.numpy"])
def test_names_of_other_frameworks(framework):
    xp = pytest.importorskip(framework)
    names = {"xp": xp, "cube": xp.asarray(cube.numpy()), "rows": xp.asarray(rows.numpy()),
             "few": xp.asarray(few.numpy()),
             "small": xp.asarray((np.arange(40) * 7 % 256).astype(np.uint8)),
             "wide": xp.asarray((np.arange(40) * 700 - 9000).astype(np.int16))}
    if framework == "numpy":
        text, integer, stage = NAMES + "\n" + OF_NUMPY, np.int64, lambda function: function
    else:
        import jax

        names["nn"] = jax.nn
        text, integer, stage = NAMES + "\n" + OF_JAX, xp.int32, jax.jit
    terms = [eval(f"lambda s, b, h, i, j: {one.strip()}", names)
             for line in text.splitlines() for one in split(line)]

    def score_mod(s, b, h, i, j):
        total = s
        for number, term in enumerate(terms):
            total = total + term(s, b, h, i, j) * (0.3 + 0.1 * number)
        return total

    staged = stage(score_mod)
    query, key = (make(TOKENS, HEADS, seed=seed) for seed in range(2))
    scores = (query @ key.mT / 4)[0].numpy()
    inputs = [xp.asarray(one.numpy()) for one in (query, key, key)]
    for index in (2, 7) if framework == "numpy" else (7,):
        column = xp.asarray(index)
        _, auxiliary = posenc.flex_attention(
            *inputs, score_mod, mask_mod=lambda b, h, i, j: j == column, return_aux=Largest)
        expected = np.array([[staged(xp.float32(scores[h, i, index]), integer(0),
                                     integer(h), integer(i), integer(index))
                              for i in range(TOKENS)] for h in range(HEADS)], np.float64)
        difference = np.asarray(auxiliary.max_scores)[0] - expected
        assert (abs(difference) < 1e-5 * (1 + abs(expected))).all()


def test_functions_that_cannot_be_traced():
    x = make(TOKENS, HEADS)

    def loop(s, b, h, q, k):
        for _ in range(k):
            s = s + 1
        return s

    def rounded(s, b, h, q, k):
        return round(s)

    def integer(s, b, h, q, k):
        return int(s) + s

    def of_numpy(s, b, h, q, k):
        return np.exp(s)

    def both(s, b, h, q, k):
        return s if q > 3 and k > 3 else -s

    def whole(s, b, h, q, k):
        return s + cube[h].reshape(-1)[q * 40 + k]

    def view(s, b, h, q, k):
        s.view(1).add_(1)
        return s

    def vector(s, b, h, q, k):
        return torch.stack([s, s])

    def random(s, b, h, q, k):
        return torch.bernoulli(torch.sigmoid(s))

    for function, line, text in (
            (loop, "for _ in range(k):", "cannot decide"), (rounded, "round(s)", "round"),
            (integer, "return int(s) + s", "cannot decide"),
            (of_numpy, "return np.exp(s)", "numpy"), (both, "if q > 3 and", "cannot decide"),
            (whole, "reshape(-1)", "at most 256"), (view, "add_(1)", "changes a view"),
            (vector, "def vector", "a tensor of the shape (2,)"),
            (random, "bernoulli", "gives random numbers")):
        with pytest.raises(posenc.Error) as error:
            posenc.flex_attention(x, x, x, function)
        assert line in str(error.value) and text in str(error.value)
        assert "test_flex_operators.py:" in str(error.value)


@pytest.mark.parametrize("function", [F.gelu, F.silu, F.softplus, F.mish])
def test_activations_have_no_results_of_integers(function):
    x = make(TOKENS, HEADS)
    with pytest.raises(posenc.Error, match="has no results of int32: convert its argument"):
        posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s + function(q))


def test_operations_of_frameworks_are_known():
    """A name of a framework means an operation that all frameworks share."""
    from posenc._flex import _functions, _numpy_scalars, _rules, _torch_rules

    tables = [_numpy_scalars._OPERATIONS.values(),
              [op for op, _ in _torch_rules._OPERATIONS.values()]]
    if importlib.util.find_spec("jax"):
        from posenc._flex import _trace_jax

        tables.append(_trace_jax._OPERATIONS.values())
    known = _rules.OPERATIONS.keys() | _functions.NAMED.keys()
    assert [op for table in tables for op in table if op not in known] == []
