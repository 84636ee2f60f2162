# ===- test_attend.py - attention without a config -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.functional.attention`, `decode` and `append` against loops in f64."""

import functools

import numpy as np
import pytest

import posenc
from conftest import is_close, rotate
from posenc import _attend

attention, decode, append = (posenc.functional.attention, posenc.functional.decode,
                             posenc.functional.append)


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Code that is compiled faster has the same results."""
    monkeypatch.setattr(_attend, "compile", functools.partial(posenc.compile, opt_level=0))


def make(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def attend_one(q, k, v, *, causal=False, window_size=(-1, -1), softcap=0.0,
               softmax_scale=None, slopes=None, sinks=None):
    """Attention of one sequence [tokens, heads, channels], query by query. Returns the
    output and the log-sum-exp."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    scale = q.shape[2] ** -0.5 if softmax_scale is None else softmax_scale
    left, right = window_size
    group = q.shape[1] // k.shape[1]
    o = np.zeros((*q.shape[:2], v.shape[2]))
    lse = np.full(q.shape[:2], -np.inf)
    for token, head in np.ndindex(q.shape[:2]):
        i, scores, seen = token + len(k) - len(q), [], []
        for j in range(len(k)):
            if ((causal and j > i) or (left >= 0 and j < i - left)
                    or (right >= 0 and j > i + right)):
                continue
            score = scale * q[token, head] @ k[j, head // group]
            if softcap:
                score = softcap * np.tanh(score / softcap)
            if slopes is not None:
                score -= slopes[head] * abs(i - j)
            scores.append(score)
            seen.append(j)
        logits = scores + ([] if sinks is None else [sinks[head]])
        if logits:
            lse[token, head] = np.logaddexp.reduce(logits)
        for j, score in zip(seen, scores):
            o[token, head] += np.exp(score - lse[token, head]) * v[j, head // group]
    return o, lse


def attend(q, k, v, slopes=None, **options):
    """`attend_one` of each sequence of a batch."""
    rows = [attend_one(*row, **options, slopes=(
        None if slopes is None else np.broadcast_to(slopes, (len(q), q.shape[2]))[b]))
            for b, row in enumerate(zip(q, k, v))]
    if not rows:
        return np.zeros((*q.shape[:3], v.shape[3])), np.zeros(q.shape[:3])
    return tuple(np.stack(results) for results in zip(*rows))


def check(actual, expected, bound=2e-6):
    """Compares the output and the log-sum-exp."""
    (o, lse), (expected_o, expected_lse) = actual, expected
    assert o.shape == expected_o.shape and lse.shape == expected_lse.shape
    if expected_o.size:
        assert is_close(o, expected_o, bound)
        lse = np.asarray(lse, np.float64)
        seen = ~np.isneginf(expected_lse)
        assert np.array_equal(~np.isneginf(lse), seen)
        assert np.all(np.abs(lse[seen] - expected_lse[seen]) <= 10 * bound)


SLOPES = np.array([0.5, 0.25, 0.125, 1.0], np.float32)
SINKS = np.array([0.5, -1.0, 2.0, 0.0], np.float32)

# The options of the kernel, and those of the loops, if they have other names.
OPTIONS = [
    (dict(causal=True), {}),
    (dict(causal=True, window_size=(3, -1)), {}),
    (dict(window_size=(4, 2)), {}),
    (dict(window_size=(-1, 5), softcap=1.5, softmax_scale=0.7), {}),
    (dict(sinks=SINKS, causal=True, window_size=(2, 9)),
     dict(sinks=SINKS, causal=True, window_size=(2, -1))),
    (dict(alibi_slopes=SLOPES, sinks=SINKS), dict(slopes=SLOPES, sinks=SINKS)),
    (dict(alibi_slopes=np.stack([SLOPES, 2 * SLOPES]), softcap=2.0, causal=True),
     dict(slopes=np.stack([SLOPES, 2 * SLOPES]), softcap=2.0, causal=True)),
]


@pytest.mark.parametrize("options, others", OPTIONS)
def test_attention(options, others):
    sizes = (2, 23, 23), (2, 5, 19), (2, 1, 7), (2, 0, 3), (1, 70, 150)
    for batch, queries, keys in sizes:
        if batch == 1 and np.ndim(options.get("alibi_slopes")) == 2:
            continue
        q, k, v = make(batch, queries, 4, 24), make(batch, keys, 2, 24), make(
            batch, keys, 2, 16, seed=1)
        expected = attend(q, k, v, **(others or options))
        check(attention(q, k, v, return_lse=True, **options), expected)


def test_wrong_results_are_detected():
    """Each option changes the result by more than the check allows."""
    q, k, v = make(2, 9, 4, 24), make(2, 9, 2, 24), make(2, 9, 2, 24, seed=1)
    options = dict(causal=True, window_size=(4, -1), softcap=2.0, softmax_scale=0.3,
                   sinks=SINKS)
    actual = attention(q, k, v, return_lse=True, alibi_slopes=SLOPES, **options)
    right = dict(options, slopes=SLOPES)
    check(actual, attend(q, k, v, **right))
    for fault in (dict(causal=False), dict(window_size=(3, -1)), dict(window_size=(5, -1)),
                  dict(softcap=2.1), dict(softmax_scale=0.31), dict(sinks=SINKS[::-1]),
                  dict(sinks=None), dict(slopes=SLOPES[::-1])):
        with pytest.raises(AssertionError):
            check(actual, attend(q, k, v, **{**right, **fault}))
    for arrays in ((q, k, v[:, ::-1]), (q, k[:, :, ::-1], v), (q[:, :, ::-1], k, v)):
        with pytest.raises(AssertionError):
            check(actual, attend(*arrays, **right))


def test_queries_without_keys():
    """More queries than keys, and no keys at all."""
    q, k = make(1, 7, 2, 8), make(1, 3, 1, 8)
    check(attention(q, k, k, causal=True, return_lse=True),
          attend(q, k, k, causal=True))
    sinks = SINKS[:2]
    check(attention(q, k[:, :0], k[:, :0], sinks=sinks, return_lse=True),
          attend(q, k[:, :0], k[:, :0], sinks=sinks))
    empty = attention(q[:0], k[:0], k[:0], causal=True)
    assert empty.shape == (0, 7, 2, 8)


def split(array, lists):
    return [array[begin:end] for begin, end in zip(lists, lists[1:])]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_ragged(dtype):
    """Sequences of 7, 0, 1 and 12 tokens."""
    lists = np.array([0, 7, 7, 8, 20], dtype)
    q, k, v = make(20, 4, 16), make(20, 2, 16), make(20, 2, 16, seed=1)
    options = dict(causal=True, window_size=(5, -1), softcap=3.0)
    actual = attention(q, k, v, cu_seqlens=lists, return_lse=True, sinks=SINKS, **options)
    rows = [attend_one(*row, sinks=SINKS, **options)
            for row in zip(*(split(x, lists) for x in (q, k, v)))]
    expected = tuple(np.concatenate(results) for results in zip(*rows))
    check(actual, expected)
    with pytest.raises(AssertionError):
        check(actual, (expected[0], np.roll(expected[1], 1, 0)))


def test_ragged_keys_of_other_tokens():
    q_list, k_list = np.array([0, 3, 3, 8]), np.array([0, 9, 11, 16])
    q, k, v = make(8, 4, 16), make(16, 2, 16), make(16, 2, 8, seed=1)
    slopes = np.stack([SLOPES, 2 * SLOPES, 3 * SLOPES])
    actual = attention(q, k, v, cu_seqlens_q=q_list, cu_seqlens_k=k_list, causal=True,
                       alibi_slopes=slopes, return_lse=True)
    rows = [attend_one(*row[:3], causal=True, slopes=row[3]) for row in zip(
        split(q, q_list), split(k, k_list), split(v, k_list), slopes)]
    check(actual, tuple(np.concatenate(results) for results in zip(*rows)))


def to_caches(k, v, capacity=16):
    """Returns caches with keys and values, and other numbers after them."""
    caches = []
    for x in (k, v):
        cache = np.full((x.shape[0], x.shape[2], capacity, x.shape[3]), np.nan, x.dtype)
        cache[:, :, :x.shape[1]] = x.transpose(0, 2, 1, 3)
        caches.append(cache)
    return caches


def to_pages(k, v, lengths, slots=4, seed=0):
    """Returns pages of sequences in a random order, and their table."""
    count = -(-max(k.shape[1], 1) // slots)
    pages = np.random.default_rng(seed).permutation(len(k) * count + 1)
    table = pages[:len(k) * count].reshape(len(k), count).astype(np.int32)
    results = []
    for x in (k, v):
        result = np.full((len(pages), x.shape[2], slots, x.shape[3]), np.nan, x.dtype)
        for b, length in enumerate(lengths):
            for j in range(length):
                result[table[b, j // slots], :, j % slots] = x[b, j]
        results.append(result)
    return (*results, table)


@pytest.mark.parametrize("tokens", [1, 3, 11])
def test_decode(tokens):
    lengths = np.array([13, 11, 12], np.int32)
    q, k, v = make(3, tokens, 4, 16), make(3, 13, 2, 16), make(3, 13, 2, 16, seed=1)
    options = dict(window_size=(6, -1), softcap=2.0)
    rows = [attend_one(q[b], k[b, :n], v[b, :n], causal=True, sinks=SINKS, **options)
            for b, n in enumerate(lengths)]
    expected = tuple(np.stack(results) for results in zip(*rows))
    options.update(sinks=SINKS, return_lse=True)
    check(decode(q, *to_caches(k, v), lengths, **options), expected)
    k_pages, v_pages, table = to_pages(k, v, lengths)
    check(decode(q, k_pages, v_pages, lengths, block_table=table, **options), expected)
    with pytest.raises(AssertionError):
        check(decode(q, k_pages, v_pages, lengths - 1, block_table=table, **options),
              expected)


def test_a_sequence_without_keys():
    q, k = make(2, 1, 2, 16), make(2, 5, 1, 16)
    o, lse = decode(q, *to_caches(k, k), np.array([0, 5]), return_lse=True)
    assert not o[0].any() and np.isneginf(lse[0]).all()
    check((o[1:], lse[1:]), attend(q[1:], k[1:], k[1:]))


def test_paged_queries_without_padding():
    """Chunked prefill and decode in one call."""
    lengths, q_list = np.array([9, 4, 12]), np.array([0, 5, 6, 8])
    q, k, v = make(8, 4, 16), make(3, 12, 2, 16), make(3, 12, 2, 16, seed=1)
    k_pages, v_pages, table = to_pages(k, v, lengths)
    actual = attention(q, k_pages, v_pages, cu_seqlens_q=q_list, cache_seqlens=lengths,
                       block_table=table, causal=True, return_lse=True)
    rows = [attend_one(row, k[b, :n], v[b, :n], causal=True)
            for b, (row, n) in enumerate(zip(split(q, q_list), lengths))]
    check(actual, tuple(np.concatenate(results) for results in zip(*rows)))


def test_rotations():
    """q and k are rotated at their positions, or by their indices."""
    q, k, v = make(2, 9, 4, 16), make(2, 9, 2, 16), make(2, 9, 2, 16, seed=1)
    positions = np.arange(9)[None].repeat(2, 0) * 3 + 7

    def expect(q, k, q_positions, k_positions):
        return attend(rotate(q, q_positions, 500.0), rotate(k, k_positions, 500.0), v,
                      causal=True)

    call = functools.partial(attention, causal=True, theta=500.0, return_lse=True)
    check(call(q, k, v, positions=positions), expect(q, k, positions, positions))
    tokens = np.arange(9)[None].repeat(2, 0)
    check(call(q, k, v), expect(q, k, tokens, tokens))
    check(call(q[:, 6:], k, v), expect(q[:, 6:], k, tokens[:, 6:], tokens))
    with pytest.raises(AssertionError):
        check(call(q, k, v, positions=positions), expect(q, k, positions + 1, positions))
    # The same sequences without padding.
    o, lse = call(*(x.reshape(18, *x.shape[2:]) for x in (q, k, v)),
                  cu_seqlens=np.array([0, 9, 18]), positions=positions.reshape(-1))
    check((o.reshape(2, 9, 4, 16), lse.reshape(2, 9, 4)),
          expect(q, k, positions, positions))


def test_append_and_decode():
    """Prefill of two sequences, and decoding of two tokens, with rotations."""
    k, v, q = make(2, 8, 2, 16), make(2, 8, 2, 16, seed=1), make(2, 2, 4, 16)
    caches = to_caches(k[:, :0], v[:, :0])
    ends = np.array([6, 6], np.int32)
    first = append(k[:, :6], v[:, :6], *caches, ends, theta=1e4)
    assert np.isnan(caches[0]).all()  # Without `out`, the results are copies.
    result = append(k[:, 6:], v[:, 6:], *first, ends + 2, theta=1e4, out=first)
    assert result[0] is first[0]
    tokens = np.arange(8)[None].repeat(2, 0)
    rotated = rotate(k, tokens)
    assert is_close(first[0][:, :, :8].transpose(0, 2, 1, 3), rotated)
    assert np.array_equal(first[1][:, :, :8].transpose(0, 2, 1, 3), v)
    assert np.isnan(first[0][:, :, 8:]).all()
    check(decode(q, *first, ends + 2, theta=1e4, return_lse=True),
          attend(rotate(q, tokens[:, 6:]), rotated, v, causal=True))


def test_append_to_pages():
    k, v = make(5, 2, 16), make(5, 2, 8, seed=1)
    pages = [np.zeros((3, 2, 4, x.shape[2]), np.float32) for x in (k, v)]
    slots, positions = np.array([9, 0, -1, 3, 6]), np.array([4, 2, 9, 0, 7])
    out = append(k, v, *pages, slots=slots, positions=positions, theta=1e4)
    expected = rotate(k[None], positions[None])[0], v
    for result, rows in zip(out, expected):
        flat = result.transpose(0, 2, 1, 3).reshape(12, 2, -1)
        assert is_close(flat[slots[slots >= 0]], rows[slots >= 0])
        assert np.count_nonzero(flat.any((1, 2))) == 4


@pytest.mark.parametrize("name, bound", [("bfloat16", 2e-2), ("float16", 2e-3),
                                         ("float64", 1e-14)])
def test_types(name, bound):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    q, k, v = (x.astype(dtype) for x in (
        make(1, 9, 4, 16, dtype=np.float64), make(1, 9, 2, 16, dtype=np.float64),
        make(1, 9, 2, 16, seed=1, dtype=np.float64)))
    o, lse = attention(q, k, v, causal=True, sinks=SINKS, alibi_slopes=SLOPES,
                       return_lse=True)
    assert o.dtype == dtype and lse.dtype == (np.float64 if name == "float64" else
                                              np.float32)
    check((o, lse), attend(q, k, v, causal=True, sinks=SINKS, slopes=SLOPES), bound)


def test_out():
    q, k = make(1, 5, 4, 16), make(1, 5, 2, 16)
    out = np.empty_like(q), np.empty((1, 5, 4), np.float32)
    result = attention(q, k, k, causal=True, return_lse=True, out=out)
    assert result[0] is out[0] and result[1] is out[1]
    check(out, attend(q, k, k, causal=True))


def test_torch():
    torch = pytest.importorskip("torch")
    q, k, v = make(2, 9, 4, 16), make(2, 9, 2, 16), make(2, 9, 2, 16, seed=1)
    expected = attend(rotate(q, np.arange(9)[None]), rotate(k, np.arange(9)[None]), v,
                      causal=True)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    o, lse = attention(*tensors, causal=True, theta=1e4, return_lse=True,
                       sinks=torch.full((4,), -torch.inf, dtype=torch.bfloat16))
    assert isinstance(o, torch.Tensor) and isinstance(lse, torch.Tensor)
    check((o.numpy(), lse.numpy()), expected)
    caches = [torch.from_numpy(x) for x in to_caches(k[:, :0], v[:, :0])]
    lengths = torch.tensor([9, 9], dtype=torch.int32)
    append(*tensors[1:], *caches, lengths, theta=1e4, out=tuple(caches))
    o = decode(tensors[0][:, 7:], *caches, lengths, theta=1e4)
    assert is_close(o, expected[0][:, 7:])
    tensors[1].requires_grad_()
    for call in (lambda: attention(*tensors), lambda: attention(*tensors, theta=1e4)):
        with pytest.raises(posenc.Error, match="attention: k requires a gradient, and "
                           "attention has none: call it under torch.no_grad()"):
            call()
        with torch.no_grad():
            call()
    with pytest.raises(posenc.Error, match="append: k requires a gradient"):
        append(*tensors[1:], *caches, lengths)


def test_jax():
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax_tvm_ffi")
    q, k, v = make(2, 9, 4, 16), make(2, 9, 2, 16), make(2, 9, 2, 16, seed=1)
    tokens = np.arange(9)[None]
    expected = attend(rotate(q, tokens), rotate(k, tokens), v, causal=True)
    arrays = [jax.numpy.asarray(x) for x in (q, k, v)]
    call = functools.partial(attention, causal=True, theta=1e4, return_lse=True)
    for function in (call, jax.jit(call)):
        o, lse = function(*arrays)
        assert isinstance(o, jax.Array)
        check((o, lse), expected)
    caches = [jax.numpy.asarray(x) for x in to_caches(k[:, :0], v[:, :0])]
    lengths = jax.numpy.asarray([9, 9])

    def append_and_decode(q, k, v, *caches):
        caches = append(k, v, *caches, lengths, theta=1e4)
        return decode(q[:, 7:], *caches, lengths, theta=1e4)

    for function in (append_and_decode, jax.jit(append_and_decode)):
        assert is_close(function(*arrays, *caches), expected[0][:, 7:])
    with pytest.raises(posenc.Error, match="attention: has no gradient"):
        jax.grad(lambda q: attention(q, *arrays[1:]).sum())(arrays[0])


Q, K, RAGGED = make(2, 5, 4, 16), make(2, 5, 2, 16), make(10, 4, 16)
LIST, LENGTHS, CACHE = np.array([0, 5, 10]), np.array([5, 5]), make(2, 2, 8, 16)


@pytest.mark.parametrize("call, message", [
    (lambda: attention(Q.tolist(), K, K), "q is a list, expected an array of NumPy"),
    (lambda: attention(Q[0], K, K), r"q has 3 dimensions, expected \[batch, tokens, heads"),
    (lambda: attention(Q, K, K, cu_seqlens=LIST), r"q has 4 dimensions, expected \[tokens"),
    (lambda: attention(Q, K[:, :, :0], K[:, :, :0]), r"k has the shape \(2, 5, 0, 16\)"),
    (lambda: attention(Q[:, :, :3], K, K), "q has 3 heads and k 2, expected a multiple"),
    (lambda: attention(Q, K[..., :8], K), "q has 16 channels and k 8, expected as many"),
    (lambda: attention(Q, K, K[:, 1:]), r"k has the shape \(2, 5, 2, 16\) and v \(2, 4,"),
    (lambda: attention(Q, K, K.astype("f8")), "k has elements of type f32 and v of f64"),
    (lambda: attention(Q, K[:1], K[:1]), "attention: dimension 0 of k is 1, but"),
    (lambda: attention(Q, K, K, window_size=3), "window_size is 3, expected the numbers"),
    (lambda: attention(Q, K, K, window_size=(-2, 0)), r"window_size is \(-2, 0\)"),
    (lambda: attention(Q, K, K, softmax_scale=np.nan), "softmax_scale is nan, expected"),
    (lambda: attention(Q, K, K, softcap=-1.0), "softcap is -1.0, expected"),
    (lambda: attention(Q, K, K, sinks=SINKS[:2]), r"sinks has the shape \(2,\), expected"),
    (lambda: attention(Q, K, K, alibi_slopes=SLOPES[None]),
     r"alibi_slopes has the shape \(1, 4\), expected \(4,\) or \(2, 4\)"),
    (lambda: attention(Q, K, K, cu_seqlens=LIST, cu_seqlens_q=LIST), "got both"),
    (lambda: attention(RAGGED, RAGGED, RAGGED, cu_seqlens_q=LIST), "pass it as cu_seqlens"),
    (lambda: attention(RAGGED, RAGGED, RAGGED, cu_seqlens_k=LIST), "needs cu_seqlens_q"),
    (lambda: attention(RAGGED, RAGGED, RAGGED, cu_seqlens=LIST.astype("f4")),
     "cu_seqlens has elements of type f32, expected i32 or i64"),
    (lambda: attention(RAGGED, RAGGED, RAGGED, cu_seqlens=LIST + 1),
     r"cu_seqlens\[2\] is 11, expected 6 to 10"),
    (lambda: attention(RAGGED, RAGGED, RAGGED, cu_seqlens=LIST, theta=1e4),
     r"rotations of tokens without padding need positions \[tokens\]"),
    (lambda: attention(Q, K, K, block_table=LIST[None]), "block_table needs cache_seqlens"),
    (lambda: attention(Q, K, K, positions=LIST[None]), "which needs theta"),
    (lambda: attention(Q, K[:, :3], K[:, :3], theta=1e4, positions=LIST[None]),
     "need key_positions"),
    (lambda: decode(Q[:, :1], CACHE, CACHE, LENGTHS + 12), r"cache_seqlens\[0\] is 17"),
    (lambda: decode(Q[:, :1], CACHE, CACHE, LENGTHS, block_table=LIST),
     "block_table has 1 dimensions, expected 2"),
    (lambda: append(K, K, CACHE, CACHE), "append: expected cache_seqlens, .* got none"),
    (lambda: append(K, K, CACHE, CACHE, LENGTHS, slots=LIST), "got both"),
    (lambda: append(K, K, Q, Q, LENGTHS), "k and v have 2 heads of 16 and 16 channels, and "
     "the caches 5 of"),
    (lambda: append(K, K, CACHE, CACHE, slots=LIST), "slots has 1 dimensions, expected 2"),
    (lambda: append(K[0], K[0], CACHE, CACHE, slots=LIST, theta=1e4),
     "a rotation with slots needs positions"),
])
def test_errors(call, message):
    with pytest.raises(posenc.Error, match=message):
        call()
