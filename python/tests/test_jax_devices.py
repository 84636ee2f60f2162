# ===- test_jax_devices.py - calls on several devices of JAX ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The calls of jax_devices.py: which of them XLA divides, and their results."""

import functools
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest


pytest.importorskip("jax_tvm_ffi")

# Calls of which each device computes its part, with the bits of one device.
ON_2_AND_4 = ["rope batch", "rope tokens", "rope heads", "rope gradient", "rope vmap",
              "sincos", "attention batch", "attention heads", "decode batch",
              "decode heads", "dynamic heads", "explicit rope",
              "explicit gradient"]
ON_4 = ["functional.attention batch", "functional.attention heads",
        "functional.decode batch", "functional.decode heads", "functional.append heads",
        "flex batch", "flex heads"]
LOCAL = [(name, count) for name in ON_2_AND_4 for count in (2, 4)] + [
    (name, 4) for name in ON_4]
# Those that are local, with roundings that depend on the number of heads.
ROUNDED = [("one key head", 4), ("flex gradient", 4), ("explicit flex gradient", 4)]
# Those whose arrays are gathered. Heads are divided by a number that divides those of the
# keys, and together with captured arrays that have as many elements.
GATHERED = [("attention tokens", 2), ("attention tokens", 4), ("dynamic batch", 2),
            ("flex heads by number", 4), ("flex long array", 4), ("too few key heads", 4)]


@pytest.fixture(scope="module")
def reports(cache):
    result = subprocess.run(
        [sys.executable, pathlib.Path(__file__).parent / "jax_devices.py"], text=True,
        capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = map(json.loads, result.stdout.splitlines())
    return {(line["name"], line["devices"]): line for line in lines}


@pytest.mark.parametrize("case", LOCAL + ROUNDED, ids=str)
def test_local(reports, case):
    report = reports[case]
    assert report["collectives"] == []
    assert "'x'" in report["specs"][0]
    assert report["difference"] <= (2e-6 if case in ROUNDED else 0)


@pytest.mark.parametrize("case", GATHERED, ids=str)
def test_gathered(reports, case):
    """What a device cannot compute of its part is not divided, and right."""
    assert "all-gather" in reports[case]["collectives"]
    assert reports[case]["difference"] == 0


@pytest.mark.parametrize("case", [("ring zigzag float32", 2), ("ring zigzag float32", 4),
                                  ("ring shards float32", 4)], ids=str)
def test_ring(reports, case):
    """Only keys and values travel, and results are those of the whole sequence."""
    report = reports[case]
    assert report["collectives"] == ["collective-permute"]
    assert "'x'" in report["specs"][0]
    assert report["difference"] < 2e-6 and report["lse"] < 2e-6
    assert max(report["gradients"]) < 1e-5


def test_ring_rounds_once(reports):
    report = reports["ring zigzag bfloat16", 4]
    assert report["difference"] < 1.02 * report["rounding"]
    assert max(report["gradients"]) < 1.5e-2


def test_ring_errors():
    import jax

    import posenc.jax

    attend = functools.partial(posenc.jax.ring_attention, axis_name="x")
    q = jax.numpy.ones((1, 2, 8, 16))
    with pytest.raises(posenc.Error, match="no axis 'x': call it under jax.shard_map"):
        attend(q, q, q)
    with pytest.raises(posenc.Error, match="expected query as an array of JAX"):
        attend(np.ones((1, 2, 8, 16)), q, q)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    spec = jax.sharding.PartitionSpec()
    for further, match in (({"positions": jax.numpy.arange(5)}, "positions have the shape"),
                           ({"positions": jax.numpy.ones(8)}, "expected integers")):
        with pytest.raises(posenc.Error, match=match):
            jax.shard_map(functools.partial(attend, **further), mesh=mesh,
                          in_specs=spec, out_specs=spec)(q, q, q)
    first = jax.sharding.PartitionSpec("x")
    alone = jax.jit(jax.shard_map(attend, mesh=mesh, in_specs=first, out_specs=first))
    expected = posenc.flex_attention(q, q, q, mask_mod=lambda b, h, i, j: i >= j)
    assert np.allclose(alone(q, q, q), expected, atol=1e-6)


def test_ring_of_no_tokens():
    import jax

    import posenc.jax

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    tokens = jax.sharding.PartitionSpec(None, None, "x")
    attend = jax.shard_map(functools.partial(posenc.jax.ring_attention, axis_name="x"),
                           mesh=mesh, in_specs=tokens, out_specs=tokens)
    q = jax.numpy.ones((1, 2, 0, 16))
    gradient = jax.grad(lambda one: attend(one, one, one).sum())(q)
    assert attend(q, q, q).shape == gradient.shape == q.shape
