# ===- test_flex_captures.py - what functions of flex_attention capture ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Objects that functions capture, and that change between calls of `flex_attention`."""

import copy
import math
import pickle
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from flex_variants import attend_dense, causal  # noqa: E402
from posenc._flex import _plan  # noqa: E402
from test_flex import check, make, measure  # noqa: E402

# A number that a function finds by its name.
hidden_window = 3


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)
    torch.manual_seed(0)


@pytest.fixture
def traces(monkeypatch):
    """Counts the traces of functions."""
    plans = []
    original = _plan.make_traced_plan
    monkeypatch.setattr(_plan, "make_traced_plan", lambda *arguments: (
        plans.append(original(*arguments)), plans[-1])[1])
    return plans


def make_sized(bias):
    return lambda s, b, h, q, k: s + bias[(q - k) % bias.shape[0]] * len(bias)


def test_sizes(traces):
    """A size is a constant of the expression; other sizes are other expressions."""
    x, biases = make(30), [torch.randn(size) for size in (6, 8, 6)]
    for bias in (*biases, biases[0]):
        check(x, x, x, make_sized(bias))
    assert len(traces) == 2


def test_elements(traces):
    """Elements that become numbers of Python are constants of a single call."""
    x, offset = make(30), torch.tensor(3)

    def score_mod(s, b, h, q, k):
        return s * math.exp(offset / 9) + torch.full_like(s, offset) * k * offset.tolist()

    def mask_mod(b, h, q, k):
        return (q + int(offset) >= k) if offset > 2 else (q + offset.item() > k)

    for number in (3, 9, 1):
        offset.fill_(number)
        mean = offset.clone()
        output = posenc.flex_attention(x, x, x, score_mod, mask_mod=mask_mod)
        expected, _ = attend_dense(
            *3 * [x.double()], lambda s, b, h, q, k: s * math.exp(mean / 9)
            + mean * k * mean, mask_mod)
        assert measure(output, expected) < 2e-6
    assert len(traces) == 3


def test_numbers_of_where_are_constants(traces):
    x = make(30)
    for _ in range(2):
        check(x, x, x, lambda s, b, h, q, k: torch.where(
            q >= k, s + torch.where(q > 9, 1.0, k), -float("inf")))
    assert len(traces) == 1 and not traces[0].arrays


def masked(b, h, q, k):
    return q - k <= masked.window


def named(b, h, q, k):
    return q - k <= globals()["hidden_window"]


def imported(b, h, q, k):
    from flex_options import window

    return q - k <= window


def test_hidden_objects():
    """Attributes of functions, modules that a function imports, and methods of dicts."""
    x, options, table = make(30), types.ModuleType("flex_options"), {}
    get, offset, number = table.get, torch.tensor(0), np.array(0)
    item = offset.item
    sys.modules["flex_options"] = options
    try:
        for size in (3, 9):
            masked.window = options.window = table["window"] = size
            globals()["hidden_window"] = size
            offset.fill_(size)
            number.fill(size)
            expected = check(x, x, x, mask_mod=lambda b, h, q, k, size=size: q - k <= size)
            for function in (masked, named, imported,
                             lambda b, h, q, k: q - k <= get("window"),
                             lambda b, h, q, k: q - k <= item(),
                             lambda b, h, q, k: q - k <= int(number)):
                output = posenc.flex_attention(x, x, x, mask_mod=function)
                assert torch.equal(output, expected)
    finally:
        del sys.modules["flex_options"]


places = torch.arange(9)
# Functions of a table, and the smallest size that it may have with 9 keys, and 9 queries or
# one. With one query, that of "elements" follows from an index of -8.
INDICES = {
    "interval": (lambda t: lambda s, b, h, q, k: s + t[(q - k).clamp(0, 6) + h * 2], 13, 7),
    "unknown": (lambda t: lambda s, b, h, q, k: s + t[q - q % 3 + (q + 1) // 4], 9, 1),
    "elements": (lambda t: lambda s, b, h, q, k: s + t[places[q] - places[k] + b], 10, 8),
    "long": (lambda t: lambda s, b, h, q, k: s + t[2 * q.long() + k // 4], 19, 3),
    "choice": (lambda t: lambda s, b, h, q, k: s + t[torch.where(q > k, q - k, 0)], 9, 1)}


@pytest.mark.parametrize("name", INDICES)
def test_indices_that_leave_a_table(name):
    """They are errors, as in PyTorch, also of pairs that the mask hides."""
    make_function, *sizes = INDICES[name]
    key = make(9, batch=2)
    call = posenc.flex_attention
    for queries, size in zip((9, 1), sizes):
        query, table = key[:, :, :queries], torch.randn(size)
        output = call(query, key, key, make_function(table))
        expected, _ = attend_dense(*(x.double() for x in (query, key, key)),
                                   make_function(table))
        assert measure(output, expected) < 2e-6
        if size == 1:
            continue
        function = make_function(table[:-1].clone())
        with pytest.raises(posenc.Error, match="index of a captured array is out of its"):
            call(query, key, key, function, mask_mod=causal)
    with pytest.raises(posenc.Error, match="out of its bounds"):
        torch.compile(call, backend="eager")(key, key, key, make_function(table[:1]))


def test_indices_of_other_frameworks():
    """NumPy's are errors, too; JAX moves them into bounds."""
    x, table = make(9).numpy(), np.arange(30, dtype=np.float32).reshape(2, 15)

    def read(score, b, h, q, k):
        return score + table[q % 2, q - k + q]

    with pytest.raises(posenc.Error, match="index 1 of a captured array of 2 dimensions"):
        posenc.flex_attention(x, x, x, read)
    posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s + table[q % 2, k])
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax_tvm_ffi")
    y, given = jax.numpy.asarray(x), jax.numpy.asarray(table)
    for function in (posenc.flex_attention, jax.jit(posenc.flex_attention,
                                                    static_argnums=3)):
        output = function(y, y, y, lambda s, b, h, q, k: s + given[q % 2, q - k + q])
        assert np.isfinite(output).all()


def test_random_numbers():
    """A function is called once, so that its random numbers would be those of all pairs.
    PyTorch refuses them, too."""
    x, table = make(9), torch.zeros(9)
    functional = torch.nn.functional
    for function in (lambda s, b, h, q, k: s + torch.rand(()),
                     lambda s, b, h, q, k: s + torch.randn(1)[0],
                     lambda s, b, h, q, k: s + torch.rand_like(s),
                     lambda s, b, h, q, k: s + torch.randint(0, 5, ()),
                     lambda s, b, h, q, k: torch.normal(s, 1.0),
                     lambda s, b, h, q, k: torch.bernoulli(torch.sigmoid(s)),
                     lambda s, b, h, q, k: s + torch.empty(()).uniform_(),
                     lambda s, b, h, q, k: functional.dropout(s, 0.5),
                     lambda s, b, h, q, k: s + torch.multinomial(table + 1, 1)[0]):
        with pytest.raises(posenc.Error, match="gives random numbers, but the function"):
            posenc.flex_attention(x, x, x, function)
        with pytest.raises(Exception, match="random numbers"):
            torch.compile(posenc.flex_attention, backend="eager")(x, x, x, function)
    output = posenc.flex_attention(
        x, x, x, lambda s, b, h, q, k: functional.dropout(s, 0.5, training=False))
    assert torch.equal(output, posenc.flex_attention(x, x, x))
    # A number of Python is another one in each call.
    def add(score, b, h, q, k):
        return score + k * float(np.random.rand())

    assert not torch.equal(*(posenc.flex_attention(x, x, x, add) for _ in range(2)))


def test_default_type():
    x = make(30, dtype=torch.float64)
    outputs = []
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            outputs.append(posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s + k / 3))
            expected, _ = attend_dense(x, x, x, lambda s, b, h, q, k: s + k / 3)
            assert measure(outputs[-1], expected) < 1e-13
    finally:
        torch.set_default_dtype(torch.float32)
    assert not torch.equal(*outputs)


def test_gradients_of_arrays_that_functions_make():
    bias = torch.randn(2, 30, dtype=torch.float64, requires_grad=True)
    x = make(30, dtype=torch.float64)

    def score_mod(s, b, h, q, k):
        return s + bias[0][k] * torch.exp(bias)[1, q] + bias.sum() * k

    def stopped(s, b, h, q, k):
        return s + (s * bias[0, k]).detach() * bias[1, q]

    x.requires_grad_()
    for function in (score_mod, stopped):
        actual, expected = (torch.autograd.grad(attend(x, x, x, function).square().sum(),
                                                [x, bias])
                            for attend in (posenc.flex_attention,
                                           lambda *a: attend_dense(*a)[0]))
        assert all(measure(*pair) < 1e-12 for pair in zip(actual, expected))


def test_gradients_of_few_queries():
    bias = torch.randn(30, dtype=torch.float64, requires_grad=True)
    y = make(30, dtype=torch.float64, seed=1).requires_grad_()
    for tokens in (1, 3):
        x = make(tokens, dtype=torch.float64).requires_grad_()
        actual, expected = (torch.autograd.grad(attend(
            x, y, y, lambda s, b, h, q, k: s + bias[k] * bias[q]).square().sum(),
            [x, y, bias]) for attend in (posenc.flex_attention,
                                         lambda *a: attend_dense(*a)[0]))
        assert all(measure(*pair) < 1e-12 for pair in zip(actual, expected))


def test_operators():
    """In place, with arguments that change the result, and GELU."""
    x, gelu = make(30), torch.nn.functional.gelu

    def score_mod(s, b, h, q, k):
        same = s
        s += q
        s *= 0.5
        same.masked_fill_(q < k, -3.0).add_(k, alpha=0.1)
        return same

    def expected(s, b, h, q, k):
        return torch.where(q < k, -3.0, (s + q) * 0.5) + k * 0.1

    output = posenc.flex_attention(x, x, x, score_mod)
    wanted, _ = attend_dense(*3 * [x.double()], expected)
    assert measure(output, wanted) < 2e-6
    check(x, x, x, lambda s, b, h, q, k: gelu(s) + gelu(s * 2, approximate="tanh")
          + torch.rsub(s, 3, alpha=2) + torch.round(s * 7, decimals=-1), bound=1e-5)


def test_whole_dimensions():
    """Indices with `:` and `...`, which leave dimensions for later ones."""
    x, bias = make(30, batch=2), torch.randn(2, 4, 30, 30)
    output = posenc.flex_attention(x, x, x, lambda s, b, h, q, k: (
        s + bias[b, ..., k][h][q] + bias[:, h, :, k][b, q] + bias[b, h, :][-1, q]))
    expected, _ = attend_dense(*3 * [x.double()], lambda s, b, h, q, k: (
        s + 2 * bias[b, h, q, k] + bias[b, h, torch.tensor(-1), q]))
    assert measure(output, expected) < 2e-6
    for function, text in ((lambda s, b, h, q, k: s + bias[b, h, q:][0, k], "bound that"),
                           (lambda s, b, h, q, k: s + bias[b][h, q, k, q], "5 indices")):
        with pytest.raises(posenc.Error, match=text):
            posenc.flex_attention(x, x, x, function)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_mask_besides_block_mask(is_compiled):
    """A mask_mod hides keys of full blocks, too."""
    from torch.nn.attention.flex_attention import create_block_mask

    x, blocks = make(64), create_block_mask(causal, None, None, 64, 64, device="cpu",
                                            BLOCK_SIZE=16)

    def third(b, h, q, k):
        return k % 3 != 1

    function = posenc.flex_attention
    if is_compiled:
        function = torch.compile(function, backend="aot_eager", fullgraph=True)
    output = function(x, x, x, block_mask=blocks, mask_mod=third)
    expected, _ = attend_dense(*3 * [x.double()], mask_mod=posenc.and_masks(causal, third))
    assert measure(output, expected) < 2e-6


def test_block_mask_of_inference():
    from torch.nn.attention.flex_attention import create_block_mask

    x = make(64)
    with torch.inference_mode():
        mask = create_block_mask(causal, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
        posenc.flex_attention(x, x, x, block_mask=mask)
        mask.kv_num_blocks.fill_(0)
        output = posenc.flex_attention(x, x, x, block_mask=mask)
        expected, _ = attend_dense(*3 * [x.double()], mask_mod=lambda b, h, q, k: (
            q // 16 > k // 16))
    assert measure(output, expected) < 2e-6


def test_copies_of_block_masks():
    x, mask = make(30), posenc.create_block_mask(causal, None, None, 30, 30)
    for one in (copy.deepcopy(mask), pickle.loads(pickle.dumps(mask))):
        assert type(one) is type(mask) and one.mask_mod is causal
        assert torch.equal(posenc.flex_attention(x, x, x, block_mask=one),
                           posenc.flex_attention(x, x, x, block_mask=mask))


class Biased:
    def __init__(self, bias):
        self.bias = bias

    def get(self, index):
        return self.bias[index]

    def score_mod(self, s, b, h, q, k):
        return s + self.bias[k] + self.get(q)

    __call__ = score_mod


@pytest.mark.parametrize("framework", ["numpy", "jax.numpy"])
def test_other_frameworks(framework):
    """Sizes, elements, operations of captured arrays, and methods."""
    xp = pytest.importorskip(framework)
    x = make(30)
    y = xp.asarray(x.numpy())

    def compare(function, expected):
        actual = posenc.flex_attention(y, y, y, function)
        wanted, _ = attend_dense(*3 * [x.double()], expected)
        assert measure(torch.tensor(np.asarray(actual)), wanted) < 3e-6

    for size in (6, 8):
        wide = torch.randn(30 + size)
        number, bias = xp.asarray(size), xp.asarray(wide[:size].numpy())
        small = xp.asarray(np.arange(30, dtype=np.int16))
        compare(lambda s, b, h, q, k: s * bias[(q - k) % bias.shape[0]] + len(bias) * k,
                lambda s, b, h, q, k: s * wide[(q - k) % size] + size * k)
        compare(lambda s, b, h, q, k: s * number.item() + k * float(number) / 9,
                lambda s, b, h, q, k: s * size + k * size / 9)
        compare(lambda s, b, h, q, k: s * (number + 1) + small[k],
                lambda s, b, h, q, k: s * (size + 1) + k)
        for method in (Biased(xp.asarray(wide.numpy())),
                       Biased(xp.asarray(wide.numpy())).score_mod):
            compare(method, lambda s, b, h, q, k: s + wide[k] + wide[q])
    if framework == "numpy":
        compare(lambda s, b, h, q, k: s + np.exp(bias)[k % 8],
                lambda s, b, h, q, k: s + wide.exp()[k % 8])


# ===----------------------------------------------------------------------===#
# Transformations
# ===----------------------------------------------------------------------===#


def test_transformations():
    """torch.func has gradients of captured tensors; there is none in forward mode."""
    x, bias = make(30), torch.randn(30)

    def function(attend, bias, x):
        return attend(x, x, x, lambda s, b, h, q, k: s * bias[q] + bias[k])

    def own(bias, x):
        return function(posenc.flex_attention, bias, x).square().sum()

    def dense(bias, x):
        return function(attend_dense, bias, x)[0].square().sum()

    wide = bias.double(), x.double()
    for argument in range(2):
        assert measure(torch.func.grad(own, argument)(bias, x),
                       torch.func.grad(dense, argument)(*wide)) < 5e-6
    for one in (bias, x):
        with pytest.raises(posenc.Error, match="no derivative in forward mode"):
            torch.func.jvp(lambda y: own(*((y, x) if one is bias else (bias, y))),
                           (one,), (one,))


def test_operations_that_are_not_recorded():
    from torch.fx.experimental.proxy_tensor import make_fx

    x, bias = make(30), torch.randn(30)

    def function(x, bias):
        return posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s + bias.exp()[k])

    with pytest.raises(posenc.Error, match="compute it outside"):
        make_fx(function)(x, bias)
    with pytest.raises(posenc.Error, match="compute it outside"):
        torch.export.export(Exported(function, bias), (x,), strict=False)


class Exported(torch.nn.Module):
    def __init__(self, function, bias):
        super().__init__()
        self.function, self.bias = function, torch.nn.Parameter(bias)

    def forward(self, x):
        return self.function(x, self.bias)


def test_compiled_narrow_integers():
    x, document = make(30), torch.arange(30, dtype=torch.uint8) // 7

    def function(x):
        return posenc.flex_attention(x, x, x, mask_mod=lambda b, h, q, k: (
            document[q] == document[k]))

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), function(x))


# ===----------------------------------------------------------------------===#
# Kernels
# ===----------------------------------------------------------------------===#


def test_recent_kernels(monkeypatch):
    """Of kernels for numbers of Python, the last ones stay, and those in use."""
    import gc
    import weakref

    from posenc._flex._lru import recent

    made = []

    @recent(2)
    def compile_text(text):
        kernels = original(text)
        made.append(weakref.ref(kernels))
        return kernels

    original = _plan.compile_text.__wrapped__
    monkeypatch.setattr(_plan, "compile_text", compile_text)
    x = make(20).requires_grad_()

    def call(number):
        return posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s * number + 2.5)

    outputs = [call(number) for number in (1.5, 2.5)]
    call(1.5)  # It is more recent then.
    outputs += [call(number) for number in (3.5, 4.5)]
    assert len(made) == 4 and len(compile_text.results) == 2
    gc.collect()
    assert all(reference() is not None for reference in made)  # Gradients need them.
    expected = attend_dense(*3 * [x.double()], lambda s, b, h, q, k: s * 2.5 + 2.5)[0]
    gradients = [torch.autograd.grad(one.sum(), x)[0] for one in (outputs[1], expected)]
    assert measure(gradients[0], gradients[1].double()) < 1e-5
    del outputs
    gc.collect()
    assert [reference() is not None for reference in made] == [False, False, True, True]
    call(1.5)
    assert len(made) == 5
