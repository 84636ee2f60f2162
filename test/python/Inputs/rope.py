# ===- rope.py - compares kernels with NumPy -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""rope.py LIBRARY f32|bf16: the library is that of Mistral 7B, prefix `x`."""

import sys

import numpy as np

from dlpack import Library, exported_tensor, make_tensor, to_bf16, to_f64

HEADS, KEY_HEADS, DIM, BASE = 32, 8, 128, 10000.0
BATCH, TOKENS = 2, 7
EPS32 = 2.0**-24
worst = 0.0


def rotate(x, positions):
    """The rotation of [batch, token, head, lane] in f64, and the length of each
    lane's pair."""
    inverse = BASE ** (-2.0 * np.arange(DIM // 2) / DIM)
    angles = positions[..., None, None] * inverse
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., : DIM // 2], x[..., DIM // 2 :]
    result = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return result, np.concatenate(2 * [np.hypot(a, b)], axis=-1)


def check(actual, x, positions):
    """In units in the last place of the length, from which a rotation can
    cancel."""
    global worst
    expected, length = rotate(to_f64(x), positions)
    digits = 8 if actual.dtype == np.uint16 else 24
    unit = np.ldexp(1.0, np.frexp(np.maximum(length, abs(expected)))[1] - digits)
    error = (abs(to_f64(actual) - expected) / unit).max()
    worst = max(worst, error)
    assert error <= (0.51 if digits == 8 else 2), error


def main():
    library = Library(sys.argv[1], "x")
    random = np.random.default_rng(7)

    def make(*shape):
        values = random.standard_normal(shape).astype(np.float32)
        return to_bf16(values) if sys.argv[2] == "bf16" else values

    positions = random.integers(0, 32768, (BATCH, TOKENS))
    q, k = make(BATCH, TOKENS, HEADS, DIM), make(BATCH, TOKENS, KEY_HEADS, DIM)

    # Contiguous arrays.
    q_out, k_out = np.empty_like(q), np.empty_like(k)
    library.call("rope", q, k, positions, q_out, k_out)
    check(q_out, q, positions)
    check(k_out, k, positions)

    # A view of batch x head x token as batch x token x head, in place.
    def transposed(x):
        return x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
    q_heads, k_heads = transposed(q), transposed(k)
    assert not q_heads.flags.c_contiguous
    library.call("rope", q_heads, k_heads, positions, q_heads, k_heads)
    assert (q_heads == q_out).all() and (k_heads == k_out).all()

    # Rows of [q | k | v], in place; v is not changed.
    fused = make(BATCH, TOKENS, HEADS + 2 * KEY_HEADS, DIM)
    fused[:, :, :HEADS] = q
    fused[:, :, HEADS : HEADS + KEY_HEADS] = k
    v = fused[:, :, HEADS + KEY_HEADS :].copy()
    views = [fused[:, :, :HEADS], fused[:, :, HEADS : HEADS + KEY_HEADS]]
    library.call("rope", *views, positions, *views)
    assert (fused[:, :, :HEADS] == q_out).all()
    assert (fused[:, :, HEADS : HEADS + KEY_HEADS] == k_out).all()
    assert (fused[:, :, HEADS + KEY_HEADS :] == v).all()

    # Reversed, every other token, and one token of a longer cache.
    library.call("rope", q[::-1, ::2], k[::-1, ::2],
                 np.ascontiguousarray(positions[::-1, ::2]),
                 q_heads[::-1, ::2], k_heads[::-1, ::2])
    assert (q_heads[:, ::2] == q_out[:, ::2]).all()
    cache = make(BATCH, KEY_HEADS, 3 * TOKENS, DIM).transpose(0, 2, 1, 3)
    slot = cache[:, TOKENS : 2 * TOKENS]
    library.call("rope", q, k, positions, q_heads, slot)
    assert (slot == k_out).all()

    # DLPack tensors that NumPy exports.
    if q.dtype == np.float32:
        q_out[:] = 0
        capsules = [a.__dlpack__() for a in (q, k, positions, q_out, k_out)]
        tensors = [exported_tensor(capsule) for capsule in capsules]
        assert library.call_tensors("rope", tensors) == (0, "")
        check(q_out, q, positions)

    # A table for each position.
    cos, sin = (np.empty((TOKENS, DIM // 2), np.float32) for _ in range(2))
    library.call("sincos", np.ascontiguousarray(positions[0]), cos, sin)
    angles = positions[0][:, None] * BASE ** (-2.0 * np.arange(64) / DIM)
    assert abs(cos - np.cos(angles)).max() <= 2 * EPS32
    assert abs(sin - np.sin(angles)).max() <= 2 * EPS32

    # Errors have a message.
    def refuse(*arrays):
        return library.call_tensors("rope", [make_tensor(a) for a in arrays])
    before = fused.copy()
    print(refuse(q, k[:, 1:], positions, q_out, k_out))
    print(refuse(q.astype(np.float16), k, positions, q_out, k_out))
    print(refuse(q[..., ::-1], k, positions, q_out, k_out))
    print(refuse(views[0], views[1], positions, fused[:, :, 1 : HEADS + 1],
                 k_out))
    assert (fused == before).all()

    print(f"worst error {worst:.2f} ulp")
    print("ok")


main()
