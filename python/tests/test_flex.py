# ===- test_flex.py - flex_attention with PyTorch ------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`flex_attention` with functions of PyTorch, compared with dense attention in f64."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
from flex_variants import attend_dense, causal, make_variants  # noqa: E402
from posenc._flex import _plan  # noqa: E402

HEADS, DIM = 4, 16
window = 7


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Slower code with the same results, which is compiled in a third of the time."""
    monkeypatch.setitem(_plan.compile_options, "opt_level", 0)
    torch.manual_seed(0)


def make(tokens=70, heads=HEADS, batch=1, dtype=torch.float32, seed=0, dim=DIM):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, heads, tokens, dim, generator=generator).to(dtype)


def measure(actual, expected):
    """Returns the error relative to the norm of the expected tensor."""
    return ((actual.double() - expected).norm() / expected.norm()).item()


def check(query, key, value, score_mod=None, mask_mod=None, bound=2e-6, **keywords):
    output = posenc.flex_attention(query, key, value, score_mod, mask_mod=mask_mod,
                                   **keywords)
    expected, _ = attend_dense(query.double(), key.double(), value.double(), score_mod,
                               mask_mod)
    assert measure(output, expected) < bound
    return output


@pytest.fixture
def compilations(monkeypatch):
    """Counts the modules that are compiled."""
    texts = []
    original = _plan.compile_on_use

    def compile_on_use(text, **options):
        texts.append(text)
        return original(text, **options)

    monkeypatch.setattr(_plan, "compile_on_use", compile_on_use)
    return texts


TOKENS = 97


@pytest.mark.parametrize("name", make_variants(TOKENS, HEADS))
def test_variants(name):
    variant = make_variants(TOKENS, HEADS, 2)[name]
    q, k, v = (make(TOKENS, batch=2, seed=seed) for seed in range(3))
    check(q, k, v, *variant)
    # A checker that does not see a wrong function sees nothing.
    if variant.mask_mod is not None:
        expected, _ = attend_dense(q.double(), k.double(), v.double(), variant.score_mod)
        output = posenc.flex_attention(q, k, v, variant.score_mod,
                                       mask_mod=variant.mask_mod)
        assert measure(output, expected) > 1e-3


def test_lengths_compile_once(compilations):
    bias = torch.randn(HEADS, 600)

    def score_mod(score, b, h, q, k):
        return score + bias[h, (q - k).abs()]

    for tokens in (9, 16, 40, 64, 65, 100, 128, 130, 200, 257):
        x = make(tokens)
        document = torch.arange(tokens) // (tokens // 3)
        check(x, x, x, score_mod, lambda b, h, q, k: document[q] == document[k])
    assert len(compilations) == 1


def test_other_lengths_of_keys():
    x, y, few = make(40), make(64, seed=1), make(3, seed=2)
    for q, k in ((x, y), (y, x), (few, y), (make(1), y)):
        check(q, k, k, mask_mod=lambda b, h, q, k: q + 30 >= k)
        check(q, k, k, mask_mod=causal)


def make_mask(size):
    def inner(q, k):
        return q - k <= size

    return lambda b, h, q, k: inner(q, k) & (q - k >= -window)


def test_captured_values_change():
    """A number that a function captures, a global, and a function within it."""
    global window
    x = make()
    functions = [make_mask(3), make_mask(3), make_mask(20)]
    try:
        for size in (7, 2):
            window = size
            for function in functions:
                check(x, x, x, mask_mod=function)
    finally:
        window = 7
    outputs = [posenc.flex_attention(x, x, x, mask_mod=one) for one in functions]
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


def test_replaced_inner_function():
    x = make()
    sign = 1

    def first(difference):
        return difference * sign

    def mask_mod(b, h, q, k):
        return first(q - k) >= 0

    before = check(x, x, x, mask_mod=mask_mod)
    sign = -1
    assert not torch.equal(before, check(x, x, x, mask_mod=mask_mod))

    def first(difference):  # noqa: F811
        return difference * sign + 3

    assert not torch.equal(before, check(x, x, x, mask_mod=mask_mod))


class Module:
    """An object whose attributes may change."""

    def __init__(self, size):
        self.size, self.bias = size, torch.randn(100)

    def score_mod(self, score, b, h, q, k):
        return score + self.bias[k] * self.size


def test_attributes():
    x, module = make(), Module(1.0)
    check(x, x, x, module.score_mod)
    module.size, module.bias = 3.0, torch.randn(100)
    check(x, x, x, module.score_mod)


def test_two_tensors_that_were_one(compilations):
    x = make()

    def make_score(first, second):
        return lambda score, b, h, q, k: score + first[q] * second[k]

    one, other = torch.randn(70), torch.randn(70)
    for pair in ((one, one), (one, other), (other, one)):
        check(x, x, x, make_score(*pair))
    assert len(compilations) == 2


def test_types_of_captured_tensors():
    x = make()
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32,
                  torch.int64, torch.float16, torch.bfloat16, torch.float64):
        values = (torch.arange(70) % 3).to(dtype)
        check(x, x, x, lambda s, b, h, q, k: torch.where(values[q] != values[k], s,
                                                         s * 0.5))


def test_arithmetic():
    """Remainders and quotients of any sign, conversions, powers and bits."""
    x, five, zero = make(), torch.tensor(5), torch.tensor(0)

    def score_mod(s, b, h, q, k):
        d = q - k
        s = s + (d % 7) + (d % -7) * 0.5 + (d // 3) * 0.25 + d // -3
        s = s + torch.fmod(d, 5) + (d % five) - (d // five) + torch.remainder(s, 0.7)
        s = s + ((q ^ k) & 3) + (q >> 2) - (k << 1) + (~q).to(torch.float32) * 0.1
        s = s + (s.abs() + 1) ** -2 + s ** 3 * 1e-4 + (s.abs() + 0.1) ** 0.5
        s = s + torch.fmod(s, 3.0) + torch.floor(s) * 0.1 + torch.floor(s / 0.3) * 0.01
        s = s + s.to(torch.bfloat16) + (s * 3).to(torch.int32) + s.clamp(-1, 2)
        return s.to(torch.float64) * 1e-2

    check(x, x, x, score_mod, bound=1e-4)
    # An integer that is divided by 0 has no value, but does not end the process.
    posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s + q // zero + k % zero)


def test_sum_exp_and_scale():
    q, k, v = (make(seed=seed) for seed in range(3))
    output, lse = posenc.flex_attention(q, k, v, scale=0.7, return_lse=True)
    expected, sums = attend_dense(q.double(), k.double(), v.double(), scale=0.7)
    assert measure(output, expected) < 2e-6 and measure(lse, sums) < 2e-6
    assert lse.dtype == torch.float32
    from torch.nn.attention.flex_attention import AuxRequest

    request = AuxRequest(lse=True)
    again, auxiliary = posenc.flex_attention(q, k, v, scale=0.7, return_aux=request)
    assert torch.equal(again, output) and torch.equal(auxiliary.lse, lse)


def test_groups_and_batches():
    q, k, v = make(heads=4, batch=3), make(heads=2, seed=1), make(heads=2, seed=2)
    check(q, k.expand(3, -1, -1, -1), v.expand(3, -1, -1, -1), enable_gqa=True)
    output = posenc.flex_attention(q, k, v, enable_gqa=True)
    expected, _ = attend_dense(*(x.double() for x in (q, k, v)))
    assert measure(output, expected) < 2e-6


def test_no_visible_keys():
    x = make()
    output, lse = posenc.flex_attention(
        x, x, x, mask_mod=lambda b, h, q, k: q > k + 5, return_lse=True)
    assert torch.all(output[:, :, :6] == 0) and torch.all(lse[:, :, :6] == -torch.inf)


def test_empty():
    x = make()
    assert posenc.flex_attention(x[:, :, :0], x, x).shape == (1, HEADS, 0, DIM)
    assert torch.all(posenc.flex_attention(x, x[:, :, :0], x[:, :, :0]) == 0)


# ===----------------------------------------------------------------------===#
# Block masks
# ===----------------------------------------------------------------------===#


def test_block_masks():
    from torch.nn.attention.flex_attention import create_block_mask

    x, variants = make(200, batch=2), make_variants(200, HEADS, 2)
    for name in ("document", "padding"):
        mask_mod = variants[name].mask_mod
        blocks = create_block_mask(mask_mod, 2, None, 200, 200, device="cpu",
                                   BLOCK_SIZE=32)
        lazy = posenc.create_block_mask(mask_mod, 2, None, 200, 200, device="cpu",
                                        BLOCK_SIZE=32)
        expected = check(x, x, x, mask_mod=mask_mod)
        for mask in (blocks, lazy):
            output = posenc.flex_attention(x, x, x, block_mask=mask)
            assert torch.equal(output, expected)
        assert lazy._blocks is None  # They were not needed.
        assert torch.equal(lazy.kv_indices, blocks.kv_indices)
        assert lazy.sparsity() == blocks.sparsity()


def test_listed_blocks_decide():
    """A pair is visible if its block is full, or if it is partial and mask_mod holds."""
    from torch.nn.attention.flex_attention import BlockMask

    x = make(128)
    # Rows of blocks of 32: one partial, two full, none, all.
    counts = torch.tensor([[[1, 0, 0, 2]]], dtype=torch.int32)
    indices = torch.tensor([[[[2, 0, 1, 3], [0, 1, 2, 3], [0, 1, 2, 3], [1, 3, 0, 2]]]],
                           dtype=torch.int32)
    full_counts = torch.tensor([[[0, 2, 0, 2]]], dtype=torch.int32)
    full = torch.tensor([[[[0, 1, 2, 3], [3, 1, 0, 2], [0, 1, 2, 3], [0, 2, 1, 3]]]],
                        dtype=torch.int32)

    def mask_mod(b, h, q, k):
        return (q + k) % 3 != 0

    mask = BlockMask.from_kv_blocks(counts, indices, full_counts, full, BLOCK_SIZE=32,
                                    mask_mod=mask_mod)
    states = torch.tensor([[0, 0, 1, 0], [0, 2, 0, 2], [0, 0, 0, 0], [2, 1, 2, 1]])

    def dense(b, h, q, k):
        state = states[q // 32, k // 32]
        return (state == 2) | ((state == 1) & mask_mod(b, h, q, k))

    output = posenc.flex_attention(x, x, x, block_mask=mask)
    expected, _ = attend_dense(*3 * [x.double()], mask_mod=dense)
    assert measure(output, expected) < 2e-6
    mask.kv_num_blocks[0, 0, 2] = 1  # In place, so that the table is made again.
    states[2, 0] = 1
    expected, _ = attend_dense(*3 * [x.double()], mask_mod=dense)
    assert measure(posenc.flex_attention(x, x, x, block_mask=mask), expected) < 2e-6


def test_sliced_block_mask():
    whole = posenc.create_block_mask(causal, None, None, 128, 128, BLOCK_SIZE=32)
    x = make(128)
    part = whole[:, :, 2]
    with pytest.raises((posenc.Error, RuntimeError), match="sliced"):
        posenc.flex_attention(x[:, :, 64:96], x, x, block_mask=part)
    part.mask_mod = lambda b, h, q, k: q + 64 >= k
    output = posenc.flex_attention(x[:, :, 64:96], x, x, block_mask=part)
    expected = check(x, x, x, mask_mod=causal)[:, :, 64:96]
    assert measure(output, expected.double()) < 1e-6


def test_combined_masks():
    x = make()
    both = posenc.and_masks(causal, lambda b, h, q, k: q - k < 9, posenc.noop_mask)
    either = posenc.or_masks(both, lambda b, h, q, k: k < 2)
    check(x, x, x, mask_mod=either)
    mask = posenc.create_block_mask(either, None, None, 70, 70)
    check(x, x, x, mask_mod=posenc.and_masks(either, posenc.noop_mask))
    assert torch.equal(posenc.flex_attention(x, x, x, block_mask=mask),
                       posenc.flex_attention(x, x, x, mask_mod=either))


# ===----------------------------------------------------------------------===#
# Errors
# ===----------------------------------------------------------------------===#


def test_errors_name_the_line():
    x, bias = make(), torch.randn(10)

    def branch(score, b, h, q, k):
        if q > 3:
            return score
        return score * 2

    def call(score, b, h, q, k):
        return torch.special.digamma(score)

    def rows(score, b, h, q, k):
        return score + bias

    def short(score, b, h, q, k):
        return score + bias[q]

    for function, line, text in (
            (branch, "`if q > 3:`", "cannot decide an `if`"),
            (call, "`return torch.special.digamma(score)`", "has no expression"),
            (rows, "`def rows(score, b, h, q, k):`", "of the shape (10,)")):
        with pytest.raises(posenc.Error) as error:
            posenc.flex_attention(x, x, x, function)
        assert line in str(error.value) and text in str(error.value)
        assert "test_flex.py:" in str(error.value)
    with pytest.raises(posenc.Error, match="indexed by the query index.* up to 69"):
        posenc.flex_attention(x, x, x, short)


def test_errors():
    x = make()
    mask = posenc.create_block_mask(causal, None, None, 64, 64)
    for arguments, keywords, text in (
            ((x, x, x[:, :, :9]), {}, "expected the same but for the channels"),
            ((x, x[:, :2], x[:, :2]), {}, "enable_gqa=True"),
            ((x, x[:, :3], x[:, :3]), {"enable_gqa": True}, "expected a multiple"),
            ((x[0], x, x), {}, "has 3 dimensions"),
            ((x, x.double(), x), {}, "expected the same"),
            ((x, x, x), {"block_mask": mask}, "is for 64 queries and 64 keys"),
            ((x, x, x), {"block_mask": causal}, "functions are passed as mask_mod"),
            ((x, x, x), {"score_mod": 3}, "score_mod is a int"),
            ((x, x, x), {"scale": float("nan")}, "scale is nan"),
            ((x, x, x), {"positions": torch.arange(70)[None]}, "pass rotation"),
            ((x, x, x), {"rotation": {"base": 1}}, "no key 'base'")):
        with pytest.raises(posenc.Error, match=text):
            posenc.flex_attention(*arguments, **keywords)
    with pytest.raises(posenc.Error, match="torch.vmap"):
        torch.vmap(posenc.flex_attention)(x[None], x[None], x[None])


def test_kernel_options_are_ignored():
    x = make()
    with pytest.warns(UserWarning, match="kernel_options"):
        posenc.flex_attention(x, x, x, kernel_options={"BLOCK_M": 64})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posenc.flex_attention(x, x, x, kernel_options={"BLOCK_M": 64})


# ===----------------------------------------------------------------------===#
# Gradients
# ===----------------------------------------------------------------------===#


def test_gradients():
    """Of captured tensors, too, and of the log-sum-exp, in three types."""
    tokens = 150
    scalar = torch.tensor(0.7, requires_grad=True)
    document = torch.arange(tokens) // 60

    def score_mod(s, b, h, q, k):
        return 9 * torch.tanh(s * scalar / 9) + bias[h, q - k] * bias[h, k]

    def mask_mod(b, h, q, k):
        return (document[q] == document[k]) & (q >= k)

    # 8 key heads have tasks for heads, and 2 for tiles.
    for dtype, bound, counts in (
            (torch.float64, 1e-13, (4, 2)), (torch.float32, 1e-5, (16, 8)),
            (torch.float64, 1e-13, (8, 8)), (torch.bfloat16, 1.5e-2, (16, 8)),
            (torch.bfloat16, 1.5e-2, (4, 2))):
        bias = torch.randn(counts[0], 2 * tokens, requires_grad=True)
        inputs = [make(tokens, heads, 2, dtype, seed).requires_grad_()
                  for seed, heads in enumerate((counts[0], counts[1], counts[1]))]
        output, lse = posenc.flex_attention(
            *inputs, score_mod, mask_mod=mask_mod, enable_gqa=True, return_lse=True)
        factors = torch.randn_like(output), torch.randn_like(lse)
        actual = torch.autograd.grad((output, lse), [*inputs, bias, scalar], factors)
        wide = [x.detach().double().requires_grad_() for x in inputs]
        expected = torch.autograd.grad(
            attend_dense(*wide, score_mod, mask_mod), [*wide, bias, scalar],
            [x.double() for x in factors])
        for one, other in zip(actual, expected):
            assert measure(one, other.double()) < max(
                bound, 2 * torch.finfo(one.dtype).eps)


def test_gradients_of_functions():
    """Each rule of derivatives, by gradcheck of its kernels."""
    bias = torch.randn(20, dtype=torch.float64, requires_grad=True)

    def score_mod(s, b, h, q, k):
        x = s.abs() + 0.5
        y = torch.log(x) + torch.sqrt(x) - torch.rsqrt(x) + torch.exp(-x) + x ** 1.5
        y = y + torch.sin(s) * torch.cos(s) + torch.atan(s) + torch.erf(s) + s / x
        y = y + torch.maximum(s, bias[k]) + torch.minimum(s * 2, x) + torch.log1p(x)
        y = y + torch.where(q > k, s * s, -s) + torch.sigmoid(s) + torch.expm1(-x)
        return y + torch.exp2(-x) + torch.log2(x) + torch.floor(s) + s.clamp(-1, 1)

    inputs = [make(12, 1, dtype=torch.float64, seed=seed, dim=2).requires_grad_()
              for seed in range(3)]
    assert torch.autograd.gradcheck(
        lambda *x: posenc.flex_attention(*x, score_mod), inputs, fast_mode=True)
    actual = torch.autograd.grad(posenc.flex_attention(*inputs, score_mod).sum(), bias)
    expected = torch.autograd.grad(attend_dense(*inputs, score_mod)[0].sum(), bias)
    assert measure(actual[0], expected[0]) < 1e-13


def test_gradients_are_deterministic():
    x, bias = make(200).requires_grad_(), torch.randn(200, requires_grad=True)
    runs = []
    for _ in range(3):
        output = posenc.flex_attention(x, x, x, lambda s, b, h, q, k: s + bias[k],
                                       mask_mod=causal)
        runs.append(torch.autograd.grad(output.sum(), [x, bias]))
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run))


def rotate(x, positions, **options):
    x = x.transpose(1, 2)
    return posenc.torch.rope(x, x, positions, **options)[0].transpose(1, 2)


def normalize(x, weights, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weights


def test_rotation_and_norms():
    """In the kernel, and, where gradients are needed, before it."""
    import posenc.torch

    q, k, v = (make(batch=2, seed=seed, heads=heads, dtype=torch.float64)
               for seed, heads in enumerate((HEADS, 2, 2)))
    weights = [torch.rand(DIM, dtype=torch.float64) + 0.5 for _ in range(2)]
    positions = torch.arange(70).repeat(2, 1)
    for tokens, rotation in ((70, {"theta": 1e4}), (5, {"theta": 500.0,
                             "rotary_dim": 8, "pairing": "interleaved"}),
                             (70, {"scaling": {"rope_type": "linear", "factor": 4.0}})):
        of_query = positions[:, -tokens:] + 3
        some = q[:, :, -tokens:]
        keywords = dict(rotation=rotation, positions=of_query, enable_gqa=True,
                        mask_mod=lambda b, h, q, k: q + 70 - tokens >= k)
        for norms in (False, True):
            query, key = some, k
            if norms:
                query, key = (normalize(x, w, 1e-5) for x, w in zip((some, k), weights))
                keywords.update(query_norm=weights[0], key_norm=weights[1], norm_eps=1e-5)
            expected, _ = attend_dense(
                rotate(query, of_query, **rotation), rotate(key, positions, **rotation), v,
                mask_mod=keywords["mask_mod"])
            output = posenc.flex_attention(some, k, v, **keywords)
            assert measure(output, expected) < 1e-13
            wide = some.clone().requires_grad_()
            output = posenc.flex_attention(wide, k, v, **keywords)
            assert measure(output, expected) < 1e-13
    output.sum().backward()
    assert wide.grad.abs().max() > 0
    for keywords, text in ((dict(query_norm=weights[0]), "belong together"),
                           (dict(query_norm=weights[0][:3], key_norm=weights[1]),
                            r"shape \(3,\)"),
                           (dict(rotation={"theta": -1.0}), "theta")):
        with pytest.raises(posenc.Error, match=text):
            posenc.flex_attention(q, k, v, enable_gqa=True, **keywords)


def test_mlir(tmp_path):
    x = make()
    text = posenc.flex_attention.mlir(x, x, x, lambda s, b, h, q, k: s * 2)
    kernels = posenc.compile(text, kernels=["attention"])
    output, _ = kernels.attention(x, x, x)
    assert torch.equal(output, posenc.flex_attention(x, x, x,
                                                     lambda s, b, h, q, k: s * 2))
