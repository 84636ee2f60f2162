# ===- test_jax_cuda.py - calls under jax.jit for CUDA devices -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Lowering for CUDA, which needs no device. test_cuda.py calls the targets, on a fake
one."""

import re

import numpy as np
import pytest

import posenc
from conftest import CONFIG, attend, is_close, make_inputs, rotate

jax = pytest.importorskip("jax")
pytest.importorskip("jax_tvm_ffi")
xla_calls = pytest.importorskip("xla_calls")

Q, K, V, POSITIONS = make_inputs()


@pytest.fixture(scope="module")
def both():
    """Kernels for this CPU and a GPU."""
    return posenc.compile(CONFIG, kernels=["rope", "attention"],
                          target=["host", "cuda:sm_90a"])


def export(function, *inputs, platforms):
    names = re.findall(r"@(posenc_\w+)", xla_calls.lower(function, *inputs))
    checks = [jax.export.DisabledSafetyCheck.custom_call(name) for name in names]
    return jax.export.export(jax.jit(function), platforms=platforms,
                             disabled_checks=checks)(*inputs)


def test_custom_call(both):
    """Operands are row-major and have the kernel's types. The workspace is a result."""
    [(name, operands, results)] = xla_calls.read_calls(
        text := xla_calls.lower(both.attention, Q, K, V, POSITIONS))
    assert name.startswith("posenc_attention_")
    assert operands == [((2, 7, 4, 32), "float32"), *[((2, 7, 2, 32), "float32")] * 2,
                        ((2, 7), "int64")]
    (output, (workspace, dtype)) = results
    assert output == operands[0] and dtype == "uint8" and workspace[0] > 1
    assert re.findall(r"dense<(\[[\d, ]+\]|\d)>", text) == [
        *["[3, 2, 1, 0]"] * 3, "[1, 0]", "[3, 2, 1, 0]", "0"]
    # Rotations have none, and the CPU's attention has another one or none.
    [(_, _, results)] = xla_calls.read_calls(
        xla_calls.lower(both.rope, Q, K, POSITIONS))
    assert results == operands[:2]
    text = jax.jit(both.attention).lower(Q, K, V, POSITIONS).as_text()
    assert xla_calls.read_calls(text)[0][2] == [output]


def test_program_for_both_platforms(both):
    pytest.importorskip("flatbuffers")
    program = export(both.attention, Q, K, V, POSITIONS, platforms=["cpu", "cuda"])
    assert program.platforms == ("cpu", "cuda")
    text = program.mlir_module()
    assert len(xla_calls.read_calls(text)) == 2 and "stablehlo.case" in text
    expected = attend(rotate(Q, POSITIONS), rotate(K, POSITIONS), V)
    assert is_close(program.call(Q, K, V, POSITIONS), expected, 1e-5)


def test_transformations(both):
    """Merged batches and gradients are calls of the same target."""
    def loss(q, k, positions):
        return (both.rope(q, k, positions)[0] * 2).sum()

    mapped = [np.stack([x] * 3) for x in (Q, K, POSITIONS)]
    [(name, operands, _)] = xla_calls.read_calls(
        xla_calls.lower(jax.vmap(both.rope), *mapped))
    assert operands[0] == ((6, 7, 4, 32), "float32")
    calls = xla_calls.read_calls(xla_calls.lower(jax.grad(loss), Q, K, POSITIONS))
    assert {one for one, *_ in calls} == {name}


def test_symbolic_sizes(both):
    pytest.importorskip("flatbuffers")
    sizes = jax.export.symbolic_shape("batch, tokens")
    q, k, v, positions = (jax.ShapeDtypeStruct((*sizes, *x.shape[2:]), dtype)
                          for x, dtype in ((Q, "f4"), (K, "f4"), (V, "f4"),
                                           (POSITIONS, "i4")))
    text = export(both.rope, q, k, positions, platforms=["cuda"]).mlir_module()
    assert "tensor<?x?x4x32xf32>" in text
    with pytest.raises(posenc.Error, match="attention: the size of its workspace depends "
                                           "on symbolic sizes"):
        export(both.attention, q, k, v, positions, platforms=["cuda"])


def test_errors(kernels):
    lower = xla_calls.lower
    with pytest.raises(posenc.Error, match=re.escape(
            "rope: cannot be lowered for CUDA, as JAX has no CUDA device here whose "
            "architecture it would be compiled for: name it, such as "
            'posenc.compile(..., target=["host", "cuda:sm_90a"])')):
        lower(kernels.rope, Q, K, POSITIONS)
    traced = jax.jit(kernels.rope).trace(Q, K, POSITIONS)
    for platform in ("tpu", "rocm"):
        with pytest.raises(posenc.Error, match=f"rope: there is no code for the platform "
                                               f"'{platform}' of JAX"):
            traced.lower(lowering_platforms=(platform,))


def test_calls_of_arrays_on_a_device(kernels, monkeypatch):
    """Arrays of JAX on a device are passed by XLA, without jit, too. Here they are on
    the CPU, and only said to be on a device."""
    from posenc import _cuda, _devices

    function = vars(type(kernels))["rope"].__globals__["_function"]
    q, k, positions = map(jax.numpy.asarray, (Q, K, POSITIONS))
    places = {id(q): 0, id(k): 0}
    for module in (_cuda, _devices):
        monkeypatch.setattr(module, "locate", lambda one: (
            (2, places[id(one)]) if id(one) in places else None))
    assert positions.dtype == np.int32
    for third in (positions, POSITIONS):
        result, _ = function.call_other((q, k, third), None)
        assert isinstance(result, jax.Array) and is_close(result, rotate(Q, POSITIONS))
    with pytest.raises(posenc.Error, match="rope: results are arrays of JAX, which are "
                                           "immutable: leave out `out`"):
        function.call_other((q, k, positions), (q, k))
    places[id(k)] = 1
    with pytest.raises(posenc.Error, match="rope: k is on the CUDA device 1, but q is on "
                                           "the CUDA device 0: move them to one device"):
        function.call_other((q, k, positions), None)


def test_integers_of_32_bits():
    """Without the bridge, they are widened before arrays are passed by DLPack."""
    from posenc._frameworks import widen

    wide = widen(jax.numpy.arange(3))
    assert wide.dtype == np.int64 and np.array_equal(wide, range(3))


def test_on_a_device():
    """On hardware, the results of XLA for CUDA."""
    try:
        device = jax.local_devices(backend="cuda")[0]
    except RuntimeError:
        pytest.skip("JAX has no CUDA device")
    kernels = posenc.compile(CONFIG)
    inputs = [jax.device_put(x, device) for x in (Q, K, V, POSITIONS)]
    expected = attend(rotate(Q, POSITIONS), rotate(K, POSITIONS), V)
    for call in (jax.jit(kernels.attention), kernels.attention):
        result = call(*inputs)
        assert result.devices() == {device}
        assert is_close(result, expected, 1e-3)
    gradient = jax.jit(jax.grad(lambda q: kernels.rope(q, *inputs[1::2])[0].sum()))(
        inputs[0])
    assert is_close(gradient, rotate(np.ones_like(Q), POSITIONS, sign=-1), 1e-5)
