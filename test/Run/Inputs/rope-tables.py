# ===- rope-tables.py - NumPy oracle of rotations.mlir ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

"""rope-tables.py POSENC-RUN MODULE FOLDER: compares functions of the module with
formulas in f64, and each of them with wrong formulas, which must differ."""

import subprocess
import sys

import numpy as np

RUN, MODULE, FOLDER = sys.argv[1:]
DIM = 64
PAIRS = np.arange(DIM // 2)


def call(function, *arrays, results=1):
    command = [RUN, MODULE, f"--function={function}", "--opt-level=0"]
    for number, array in enumerate(arrays):
        np.save(f"{FOLDER}/{number}.npy", array)
        command.append(f"--input=@{FOLDER}/{number}.npy")
    outputs = [f"{FOLDER}/r{number}.npy" for number in range(results)]
    subprocess.run(command + [f"--output=@{path}" for path in outputs], check=True)
    return [np.load(path) for path in outputs]


def frequencies(base=10000.0):
    return base ** (-2 * PAIRS / DIM)


def yarn(factor=4.0, original=4096.0):
    def corrected(rotations):
        return DIM * np.log(original / (rotations * 2 * np.pi)) / (2 * np.log(10000.0))
    low = max(np.floor(corrected(32)), 0)
    high = min(np.ceil(corrected(1)), DIM - 1)
    ramp = np.clip((PAIRS - low) / (high - low), 0, 1)
    f = frequencies()
    return f / factor * ramp + f * (1 - ramp), 0.1 * np.log(factor) + 1


def rotate(x, angles, factors, interleaved):
    """Rotates (..., heads, DIM) by angles (..., pairs)."""
    lanes = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (
        slice(0, DIM // 2), slice(DIM // 2, None))
    a, b = [x[..., lane].astype(np.float64) for lane in lanes]
    c, s = [(factors * table(angles))[..., None, :] for table in (np.cos, np.sin)]
    result = np.empty(x.shape)
    result[..., lanes[0]], result[..., lanes[1]] = a * c - b * s, b * c + a * s
    return result


def xpos(x, p, base=512.0, gamma=0.4, origin=0, sign=1):
    zeta = (2 * PAIRS / DIM + gamma) / (1 + gamma)
    factors = zeta ** (sign * (p[..., None] - origin) / base)
    return rotate(x, p[..., None] * frequencies(), factors, True)


def rescaled(k, p, q, forward_factor=True):
    f, att = yarn()
    back = rotate(k, -p[..., None] * f, 1 / att if forward_factor else 1, False)
    return rotate(back, q[..., None] * (frequencies(5e5) / 2), 1, False)


def mixed(x, i, j, fi, fj):
    return rotate(x, i[..., None] * fi.astype(np.float64) +
                  j[..., None] * fj.astype(np.float64), 1, False)


def is_close(result, expected):
    scale = np.abs(expected).max(-1, keepdims=True)
    return np.abs(result - expected).max() <= 1e-6 * np.abs(scale).max() and (
        np.abs(result - expected) <= 2e-6 * np.maximum(scale, 1e-300)).all()


def main():
    rng = np.random.default_rng(1)

    def rows(*shape):
        return rng.standard_normal(shape).astype(np.float32)
    q, k, x = rows(2, 9, 4, DIM), rows(2, 9, 2, DIM), rows(18, 8, DIM)
    cache = rows(2, 9, 8, DIM)
    p, p2 = rng.integers(0, 3000, (2, 2, 9))
    fi, fj = rows(2, DIM // 2)
    i, j = p.reshape(-1), p2.reshape(-1)
    rq, rk = call("xpos", q, k, p, results=2)
    moved, = call("rescaled", cache, p, p2)
    result, = call("mixed", x, i, j, fi, fj)
    checks = [
        (rq, xpos(q, p)), (rk, xpos(k, p, sign=-1)), (moved, rescaled(cache, p, p2)),
        (result, mixed(x, i, j, fi, fj))]
    faults = [
        (rq, xpos(q, p, base=511.0)), (rq, xpos(q, p, gamma=0.401)),
        (rq, xpos(q, p, origin=1)), (rq, xpos(q, p, sign=-1)), (rk, xpos(k, p)),
        (moved, rescaled(cache, p2, p)), (moved, rescaled(cache, p, p2, False)),
        (result, mixed(x, j, i, fi, fj)), (result, mixed(x, i, j, fi, fi))]

    # Scores depend on the distance of two positions only, and decay with it.
    one = np.ones((1, 200, 1, DIM), np.float32)
    at = np.arange(200)[None]
    ones = [call("xpos", one.repeat(4, 2), one.repeat(2, 2), at + start, results=2)
            for start in (0, 1000)]
    scores = [np.einsum("qd,kd->qk", a[0, :, 0].astype(np.float64),
                        b[0, :, 0].astype(np.float64)) for a, b in ones]
    near = np.abs(scores[0] - scores[1]).max() < 1e-3
    zeta = (2 * PAIRS / DIM + 0.4) / 1.4
    distance = at[0][:, None] - at[0]
    expected = 2 * (zeta ** (distance[..., None] / 512.0) *
                    np.cos(distance[..., None] * frequencies())).sum(-1)
    near = near and np.abs(scores[0] - expected).max() < 1e-3
    wrong = sum(not is_close(*pair) for pair in checks) + (not near)
    found = sum(not is_close(*pair) for pair in faults)
    print(f"{len(checks) + 1} checks, {wrong} wrong; {found} of {len(faults)} faults")


main()
