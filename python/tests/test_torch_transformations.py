# ===- test_torch_transformations.py - operators under torch.func ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Operators of posenc.torch under torch.func, autocast and torch.compile of any sizes, and
with tensors on several devices."""

import warnings

import numpy as np
import pytest

import posenc
from posenc._sizes import evaluate
from conftest import CONFIG, is_close, make_inputs, rotate

torch = pytest.importorskip("torch")
import posenc.torch  # noqa: E402

DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}


def tensors(*arrays):
    return [torch.from_numpy(array) for array in arrays]


@pytest.fixture(scope="module")
def operators(kernels):
    return posenc.torch.operators(kernels)


@pytest.fixture(params=["config", "options", "raw"])
def rope(request, operators, kernels):
    """The ways to call the operator."""
    spec = posenc.torch.register(kernels)
    return {"config": operators.rope, "options": posenc.torch.rope,
            "raw": lambda *inputs: torch.ops.posenc.rope(*inputs, spec, "rope")
            }[request.param]


def rotate_by_formula(q, positions):
    """The same in operators of PyTorch."""
    half = q.shape[-1] // 2
    angles = positions[..., None, None] * 10000.0 ** (-torch.arange(half) / half)
    a, b = q[..., :half], q[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(),
                      b * angles.cos() + a * angles.sin()], -1)


# ===----------------------------------------------------------------------===#
# torch.func
# ===----------------------------------------------------------------------===#


def test_derivatives(rope):
    q, k, _, positions = tensors(*make_inputs(batch=1, tokens=3))

    def loss(q, rotated=rope):
        if rotated is rope:
            return (rope(q.sin(), k, positions)[0] ** 3).sum()
        return (rotate_by_formula(q.sin(), positions) ** 3).sum()

    for transform in (torch.func.grad, torch.func.jacfwd,
                      lambda f: lambda q: torch.func.jvp(f, (q,), (q.cos(),))[1],
                      lambda f: lambda q: torch.func.grad(
                          lambda q: (torch.func.grad(f)(q) ** 2).sum())(q),
                      lambda f: lambda q: torch.func.jvp(
                          torch.func.grad(f), (q,), (q.cos(),))[1]):
        actual = transform(loss)(q)
        expected = transform(lambda q: loss(q, None))(q)
        assert is_close(actual, expected.numpy(), 1e-5) and expected.abs().max() > 1e-2


def test_forward_mode(rope):
    q, k, _, positions = tensors(*make_inputs())
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(q, q.cos())
        value, tangent = forward.unpack_dual(rope(dual, k, positions)[0])
        assert is_close(value, rotate(q, positions))
        assert is_close(tangent, rotate(q.cos(), positions))


def test_checks_of_derivatives():
    kernels = posenc.compile(CONFIG, kernels="rope", dtype="f64", opt_level=0)
    rope = posenc.torch.operators(kernels).rope
    q, k, _, positions = tensors(*make_inputs(batch=1, tokens=2, dtype=np.float64))
    inputs = q.requires_grad_(), k.requires_grad_()
    assert torch.autograd.gradcheck(lambda q, k: rope(q, k, positions), inputs,
                                    check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda q, k: rope(q, k, positions), inputs,
                                        check_fwd_over_rev=True)


def test_attention_has_none(operators):
    q, k, v, positions = tensors(*make_inputs())
    attention = operators.attention
    with pytest.raises(posenc.Error, match="attention: has no gradient"):
        torch.func.grad(lambda q: attention(q, k, v, positions).sum())(q)
    with pytest.raises(posenc.Error, match="attention: an input has a tangent"):
        torch.func.jvp(lambda q: attention(q, k, v, positions), (q,), (q,))


@pytest.mark.parametrize("axes", [(0, None, None), (1, 0, None), (None, None, 0),
                                  (2, 1, 1), (-1, 2, 0)])
def test_vmap(rope, axes):
    q, k, _, positions = tensors(*make_inputs())
    stacked = [torch.stack([x + i for i in range(3)], axis) if axis is not None else x
               for x, axis in zip((q, k, positions), axes)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PyTorch warns if there is no rule.
        actual = torch.vmap(rope, axes)(*stacked)
    for i in range(3):
        one = [x + i if axis is not None else x
               for x, axis in zip((q, k, positions), axes)]
        for result, expected in zip(actual, rope(*one)):
            assert torch.equal(result[i], expected)


def test_vmap_of_attention(operators):
    q, k, v, positions = tensors(*make_inputs())
    actual = torch.vmap(operators.attention, (0, None, 0, None), 1)(
        torch.stack([q, 2 * q]), k, torch.stack([v, 3 * v]), positions)
    assert torch.equal(actual[:, 1], operators.attention(2 * q, k, 3 * v, positions))


def test_vmap_where_results_depend_on_the_batch():
    """Each call has frequencies of its own."""
    kernels = posenc.compile({**CONFIG, "rope_scaling": DYNAMIC}, kernels="rope",
                             opt_level=0)
    q, k, _, positions = tensors(*make_inputs())
    for rope in (posenc.torch.operators(kernels).rope,
                 lambda *inputs: posenc.torch.rope(
                     *inputs, scaling=DYNAMIC, max_position_embeddings=4096)):
        both = torch.stack([positions, positions + 9000])
        actual = torch.vmap(rope, (None, None, 0))(q, k, both)[0]
        for i in range(2):
            assert torch.equal(actual[i], rope(q, k, both[i])[0])


def test_gradients_of_samples(rope):
    """vmap of grad, and grad of vmap."""
    q, k, _, positions = tensors(*make_inputs())
    many = torch.stack([q, 2 * q, q.cos()])

    def gradient(q):
        return torch.func.grad(lambda q: (rope(q, k, positions)[0] ** 2).sum())(q)

    mapped = torch.vmap(gradient)(many)
    for actual, one in zip(mapped, many):
        assert is_close(actual, gradient(one).numpy(), 1e-6)
    whole = torch.func.grad(lambda many: (torch.vmap(
        lambda q: rope(q, k, positions)[0])(many) ** 2).sum())(many)
    assert is_close(whole, mapped.numpy(), 1e-6)


def test_transformations_under_compile(rope):
    q, k, _, positions = tensors(*make_inputs())
    for function in (
            lambda q: torch.func.grad(lambda q: (rope(q, k, positions)[0] ** 3).sum())(q),
            lambda q: torch.vmap(lambda q: rope(q, k, positions)[0])(q[None])):
        torch.compiler.reset()
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        assert is_close(compiled(q), function(q).numpy(), 1e-6)


# ===----------------------------------------------------------------------===#
# Devices and sizes
# ===----------------------------------------------------------------------===#


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_devices(rope, moved):
    inputs = tensors(*make_inputs())
    del inputs[2]
    inputs[moved] = inputs[moved].to("meta")
    name = ("k", "k", "positions")[moved]
    message = rf"rope: {name} is on the device '\w+', but q is on '\w+'"
    with pytest.raises(posenc.Error, match=message):
        rope(*inputs)
    with pytest.raises(Exception, match=message):
        torch.compile(rope, backend="aot_eager", fullgraph=True)(*inputs)
    fake = torch._subclasses.FakeTensorMode()
    fakes = [fake.from_tensor(x) for x in inputs]
    with fake, pytest.raises(posenc.Error, match=message):
        rope(*fakes)
    meta = rope(*(x.to("meta") for x in inputs))[0]
    assert meta.is_meta and meta.shape == inputs[0].shape


def test_devices_of_all_functions():
    kernels = posenc.compile(CONFIG, kernels="serving", opt_level=0)
    operators = posenc.torch.operators(kernels)
    for function in kernels.metadata["functions"]:
        sizes = {size: 4 for argument in function["inputs"] for size in argument["shape"]
                 if isinstance(size, str) and size.isidentifier()}
        inputs = [torch.zeros([evaluate(size, sizes) for size in argument["shape"]],
                              dtype=torch.int32 if argument["dtype"] == "i32"
                              else torch.int64 if argument["dtype"] == "i64"
                              else torch.float32) for argument in function["inputs"]]
        for i in range(1, len(inputs)):
            mixed = [x.to("meta") if j == i else x for j, x in enumerate(inputs)]
            with pytest.raises(posenc.Error, match="is on the device 'meta'"):
                getattr(operators, function["name"])(*mixed)


def test_ranks_while_tracing(operators):
    q, k, v, positions = tensors(*make_inputs())
    compiled = torch.compile(lambda q: operators.attention(q, k, v, positions),
                             backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match="attention: q has 3 dimensions, expected 4"):
        compiled(q[0])


def test_any_sizes_are_compiled_once(operators):
    """One graph serves all lengths and batches. None is equal to another size of the first
    call, which PyTorch would take for the same one."""
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def function(q, k, v, positions):
        q, k = operators.rope(q + 1, k, positions)
        return operators.attention(q, k, v, positions) * 2

    torch.compiler.reset()
    compiled = torch.compile(function, backend=count, fullgraph=True, dynamic=True)
    for batch, tokens in ((3, 7), (5, 9), (6, 19)):
        inputs = tensors(*make_inputs(batch=batch, tokens=tokens))
        assert torch.equal(compiled(*inputs), function(*inputs))
    assert len(graphs) == 1


# ===----------------------------------------------------------------------===#
# Autocast
# ===----------------------------------------------------------------------===#


def test_autocast(operators, kernels):
    """Inputs are converted to the types of the kernels, and gradients back."""
    q, k, v, positions = tensors(*make_inputs())
    narrow = q.bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        product = torch.nn.functional.linear(q, torch.eye(q.shape[-1]))
        assert product.dtype == torch.bfloat16
        rotated, _ = operators.rope(narrow, k, positions)
        o = operators.attention(product, k.bfloat16(), v, positions)
        both = posenc.torch.rope(narrow, k, positions)
        same = posenc.torch.rope(narrow, k.bfloat16(), positions)
    assert rotated.dtype == o.dtype == torch.float32
    assert is_close(rotated.detach(), rotate(narrow.detach().float(), positions))
    assert [x.dtype for x in both] == [torch.float32] * 2
    assert [x.dtype for x in same] == [torch.bfloat16] * 2
    rotated.sum().backward()
    assert narrow.grad.dtype == torch.bfloat16
    expected = rotate(np.ones(q.shape), positions, sign=-1)
    assert is_close(narrow.grad.float(), expected, 2.0 ** -7)
    with pytest.raises(posenc.Error, match="q has elements of type bfloat16"):
        operators.rope(narrow.detach(), k, positions)
