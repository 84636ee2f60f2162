# ===- test_torch.py - operators of PyTorch --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Calls on tensors of PyTorch, and the operators of posenc.torch."""

import copy
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import posenc
from conftest import CONFIG, attend, is_close, make_inputs, rotate

torch = pytest.importorskip("torch")
import posenc.torch  # noqa: E402
from posenc import _frameworks  # noqa: E402


def tensors(*arrays):
    return [torch.from_numpy(array) for array in arrays]


@pytest.fixture(scope="module")
def operators(kernels):
    return posenc.torch.operators(kernels)


def test_call(kernels):
    q, k, _, positions = make_inputs()
    q_out, k_out = kernels.rope(*tensors(q, k, positions))
    assert isinstance(q_out, torch.Tensor)
    assert is_close(q_out, rotate(q, positions)) and is_close(k_out, rotate(k, positions))
    inputs = tensors(q.copy(), k.copy(), positions)
    assert kernels.rope(*inputs, out=(inputs[0], inputs[1]))[0] is inputs[0]
    assert torch.equal(inputs[0], q_out)


def test_bf16():
    kernels = posenc.compile(CONFIG, kernels="rope", dtype=torch.bfloat16, opt_level=0)
    q, k, _, positions = tensors(*make_inputs())
    q, k = q.bfloat16(), k.bfloat16()
    q_out, _ = kernels.rope(q, k, positions)
    assert q_out.dtype == torch.bfloat16
    assert is_close(q_out.double(), rotate(q.double(), positions), 2.0 ** -8)


def test_gradients_are_not_dropped(kernels):
    q, k, _, positions = tensors(*make_inputs())
    q.requires_grad_()
    with pytest.raises(posenc.Error, match="requires a gradient.*posenc.torch"):
        kernels.rope(q.detach().numpy(), torch.ones_like(k, requires_grad=True), positions)
    with pytest.raises(posenc.Error, match="requires a gradient.*posenc.torch"):
        kernels.rope(q, k, positions)
    with torch.no_grad():
        kernels.rope(q, k, positions)


def test_autograd_notices_outputs(kernels):
    """A gradient that needs the old values is an error."""
    q, k, _, positions = tensors(*make_inputs())
    weight = torch.ones(q.shape, requires_grad=True)
    for first, out in ((q, (q, k)), (q.clone(), (q, k)), (q.numpy().copy(), (q, k))):
        loss = (q * weight).sum()
        with torch.no_grad():
            kernels.rope(first, k.clone() if first is not q else k, positions, out=out)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    with torch.inference_mode():
        _frameworks.make_torch_backend()  # The first call may be such a one.
        q, k = q.clone(), k.clone()
        expected = rotate(q, positions)
        assert is_close(kernels.rope(q, k, positions, out=(q, k))[0], expected)


def _increment_one(tensor):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError("expected a tensor")


def test_versions_in_other_versions_of_pytorch(monkeypatch):
    for other in (None, _increment_one):
        monkeypatch.setattr(torch._C, "_increment_version", other)
        increment = _frameworks._find_increment_versions(torch)
        monkeypatch.undo()
        x, y = torch.ones(2), torch.ones(3)
        increment((x, y))
        assert x._version == y._version == 1


def test_outputs_that_require_a_gradient(kernels):
    q, k, _, positions = tensors(*make_inputs())
    leaf = q.clone().requires_grad_()
    for first in (q, q.numpy()):
        for out in ((leaf, k.clone()), (leaf * 1, k.clone())):
            with pytest.raises(posenc.Error, match="of `out` requires a gradient"):
                kernels.rope(first, k, positions, out=out)
    assert torch.equal(leaf, q)
    with torch.no_grad():
        kernels.rope(q, k, positions, out=(leaf, k.clone()))
    assert is_close(leaf.detach(), rotate(q, positions))


def test_tangents_are_not_dropped(kernels, operators):
    q, k, v, positions = tensors(*make_inputs())
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(q.clone(), torch.ones_like(q))
        for call in (lambda: kernels.rope(dual, k, positions),
                     lambda: kernels.rope(q, k, positions, out=(dual, k.clone()))):
            with pytest.raises(posenc.Error, match="rope: an array has a tangent"):
                call()
        assert is_close(kernels.rope(q, k, positions)[0], rotate(q, positions))
        spec = posenc.torch.register(kernels)
        for call in (lambda: operators.attention(dual, k, v, positions),
                     lambda: torch.ops.posenc.call([dual, k, v, positions], spec,
                                                   "attention")):
            with pytest.raises(posenc.Error, match="attention: an input has a tangent"):
                call()
    with pytest.raises(posenc.Error, match="tangent"):
        torch.func.jvp(lambda q: kernels.rope(q, k, positions)[0], (q,), (q,))
    with pytest.raises(posenc.Error, match="a tensor of torch.func"):
        torch.vmap(kernels.rope)(*(x[None] for x in (q, k, positions)))


def trace(function, x):
    return torch.jit.trace(function, x, check_trace=False)


def make_graph(function, x):
    return torch.fx.experimental.proxy_tensor.make_fx(function)(x)


@pytest.mark.parametrize("record", [trace, make_graph], ids=["trace", "make_fx"])
def test_calls_are_not_lost_in_a_trace(kernels, operators, record):
    """Operators are recorded, also for methods."""
    q, k, _, positions = tensors(*make_inputs())
    for call in (lambda q: kernels.rope(q, k, positions)[0],
                 lambda q: posenc.functional.rope(q, k, positions)[0],
                 lambda q: kernels.rope(q, k, positions, out=(q.clone(), k.clone()))[0],
                 lambda q: operators.rope(q, k, positions)[0],
                 lambda q: posenc.torch.rope(q, k, positions)[0]):
        assert is_close(record(call, q)(2 * q), rotate(2 * q, positions))


@pytest.mark.parametrize("is_new", [False, True])
def test_methods_under_compile(kernels, is_new):
    """They are operators in the graph, also if torch.compile is their first user."""
    if is_new:
        kernels = posenc.compile({**CONFIG, "max_position_embeddings": 512}, opt_level=0)
    inputs = tensors(*make_inputs())

    def function(q, k, v, positions):
        q, k = kernels.rope(2 * q, k, positions=positions)
        return kernels["attention"](q, k, v, positions, out=torch.empty_like(q)) + 1

    torch.compiler.reset()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    first = compiled(*inputs)
    assert torch.equal(first, function(*inputs))
    assert torch.equal(first, compiled(*inputs))


def test_positions_of_32_bits(kernels, operators):
    q, k, _, positions = tensors(*make_inputs())
    narrow = positions.int()
    for form in (narrow, narrow.t().contiguous().t(), narrow.repeat(1, 2)[:, ::1][:, :7],
                 narrow.repeat_interleave(2, 1)[:, ::2]):
        for rope in (kernels.rope, operators.rope, posenc.torch.rope,
                     posenc.functional.rope):
            assert is_close(rope(q, k, form)[0], rotate(q, positions))
    x = q.clone().requires_grad_()
    operators.rope(x, k, narrow)[0].sum().backward()
    assert is_close(x.grad, rotate(np.ones(q.shape), positions, sign=-1))
    with pytest.raises(posenc.Error, match="positions has elements of type int16"):
        kernels.rope(q, k, positions.short())


def test_the_negative_bit(kernels, operators):
    magnitudes = posenc.compile("""
func.func @magnitudes(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
  %r = math.absf %x : tensor<?x1xf32>
  return %r : tensor<?x1xf32>
}
""", no_warnings=True)
    x = torch.complex(torch.zeros(5, 1), torch.arange(5.0)[:, None]).conj().imag
    assert x.is_neg()
    with pytest.raises(posenc.Error, match="resolve_neg"):
        magnitudes.magnitudes(x)
    assert torch.equal(magnitudes.magnitudes(x.resolve_neg()), -x)
    q, k, _, positions = tensors(*make_inputs())
    negative = torch._neg_view(-q)
    for call in (lambda: kernels.rope(negative, k, positions),
                 lambda: kernels.rope(q, k, positions, out=(negative, k.clone()))):
        with pytest.raises(posenc.Error, match="resolve_neg"):
            call()
    imaginary = torch.complex(q, q).conj().imag
    assert imaginary.is_neg()
    assert is_close(operators.rope(imaginary, k, positions)[0], -rotate(q, positions))


@pytest.mark.parametrize("change, message", [
    (lambda q: q.to("meta"), "q is on the device 'meta', expected the CPU"),
    (lambda q: q.to_sparse(), "q has the layout torch.sparse_coo"),
])
def test_tensors_without_memory(kernels, change, message):
    q, k, _, positions = tensors(*make_inputs())
    for call in (lambda: kernels.rope(change(q), k, positions),
                 lambda: kernels.rope(q.numpy(), change(k), positions),
                 lambda: kernels.rope(q, k, positions, out=(change(q), k.clone()))):
        with pytest.raises(posenc.Error) as caught:
            call()
        assert re.search(message.replace("q ", "[a-z_]+ "), str(caught.value))
        assert "c10" not in str(caught.value)


def test_meta_tensors_are_refused_first(monkeypatch):
    """Before anything is compiled, under the name of the called function."""
    def compile(*_):
        raise AssertionError("something is compiled")

    monkeypatch.setattr("posenc._compiler.CompiledCode.__init__", compile)
    q = torch.empty(1, 7, 3, 48, device="meta")
    positions = torch.zeros(1, 7, dtype=torch.int64)
    caches = torch.empty(1, 3, 8, 48), torch.empty(1, 3, 8, 48)
    functional = posenc.functional
    for name, call in {
            "rope: q": lambda: functional.rope(q, q, positions),
            "attention: q": lambda: functional.attention(q, q, q),
            "decode: q": lambda: functional.decode(q, *caches, positions[0, :1]),
            "append: k": lambda: functional.append(q, q, *caches, positions[0, :1]),
            "flex_attention: query": lambda: posenc.flex_attention(q, q, q)}.items():
        with pytest.raises(posenc.Error, match=f"^{name} is on the device 'meta'"):
            call()


def test_operators(operators):
    q, k, v, positions = make_inputs()
    o = operators.attention(*tensors(q, k, v, positions))
    assert is_close(o, attend(rotate(q, positions), rotate(k, positions), v), 1e-5)
    assert "rope" in dir(operators) and "Rotates" in operators.rope.__doc__
    with pytest.raises(AttributeError, match="no function 'roop': there are sincos, rope"):
        operators.roop
    assert list(inspect.signature(operators.rope).parameters) == ["q", "k", "positions"]
    q, k, v, positions = tensors(q, k, v, positions)
    named = operators.attention(q, v=v, positions=positions, k=k)
    assert torch.equal(named, o)
    strided = positions.t().contiguous().t()
    assert is_close(operators.rope(q, k, strided)[0], rotate(q, positions))
    with pytest.raises(TypeError, match=r"rope: expected the arguments \(q, k, positions\)"):
        operators.rope(q, k, position=positions)
    with pytest.raises(posenc.Error, match="attention: positions is a NoneType"):
        operators.attention(q, k, v, None)


def test_operators_are_copied_and_pickled(operators):
    layer = Layer(operators)
    inputs = tensors(*make_inputs())
    expected = layer(*inputs)
    for other in (copy.copy(operators), copy.deepcopy(layer).operators,
                  pickle.loads(pickle.dumps(operators))):
        assert torch.equal(Layer(other)(*inputs), expected)


def test_operators_of_numbers():
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    dynamic = posenc.compile({**CONFIG, "rope_scaling": scaling}, kernels="rope",
                             dtype="f32", rope_length="input", opt_level=0)
    operators = posenc.torch.operators(dynamic)
    assert hasattr(operators, "rope")
    q, k, _, positions = tensors(*make_inputs())
    with pytest.raises(posenc.Error, match="call it on the kernels"):
        operators.rope(q, k, positions, 5)


def test_gradient():
    config = {**CONFIG, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}}
    kernels = posenc.compile(config, kernels="rope", dtype="f64", opt_level=0)
    operators = posenc.torch.operators(kernels)
    q, k, _, positions = tensors(*make_inputs(batch=1, tokens=3, dtype=np.float64))
    q.requires_grad_()
    k.requires_grad_()
    assert torch.autograd.gradcheck(lambda q, k: operators.rope(q, k, positions), (q, k))
    assert torch.autograd.gradgradcheck(lambda q, k: operators.rope(q, k, positions),
                                        (q, k))


def test_gradient_of_one_input(operators):
    q, k, _, positions = tensors(*make_inputs())
    q.requires_grad_()
    q_out, _ = operators.rope(q, k, positions)
    q_out.sum().backward()
    expected = rotate(np.ones(q.shape), positions, sign=-1)
    assert is_close(q.grad, expected)


def test_gradients_that_are_refused(operators):
    q, k, v, positions = tensors(*make_inputs())
    q.requires_grad_()
    with pytest.raises(posenc.Error, match="attention: has no gradient"):
        operators.attention(q, k, v, positions).sum().backward()
    dynamic = posenc.compile(
        {**CONFIG, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
        kernels="rope", opt_level=0)
    with pytest.raises(posenc.Error, match="compile with rope_length=N"):
        posenc.torch.operators(dynamic).rope(q, k, positions)[0].sum().backward()


def test_a_function_of_a_module_that_is_called_rope():
    """It may be anything, so there is no gradient."""
    kernels = posenc.compile("""
func.func @rope(%q: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x4xf32>
  %o = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%q : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %a : f32
    linalg.yield %y : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
""")
    x = torch.ones(3, 4, requires_grad=True)
    y = posenc.torch.operators(kernels).rope(x)
    assert torch.equal(y.detach(), 2 * torch.ones(3, 4))
    with pytest.raises(posenc.Error, match="rope: has no gradient"):
        y.sum().backward()


def test_opcheck(kernels):
    q, k, v, positions = tensors(*make_inputs())
    spec = posenc.torch.register(kernels)
    for gradient in (False, True):
        inputs = (q.clone().requires_grad_(gradient), k.clone().requires_grad_(gradient),
                  positions, spec, "rope")
        torch.library.opcheck(torch.ops.posenc.rope.default, inputs)
    torch.library.opcheck(torch.ops.posenc.call.default,
                          ([q, k, v, positions], spec, "attention"))


class Layer(torch.nn.Module):
    def __init__(self, operators):
        super().__init__()
        self.operators = operators

    def forward(self, q, k, v, positions):
        q, k = self.operators.rope(2 * q, k, positions)
        return self.operators.attention(q, k, v, positions) + 1


def test_compile(operators):
    layer = Layer(operators)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for tokens in (7, 9, 12):
        inputs = tensors(*make_inputs(tokens=tokens))
        assert torch.equal(compiled(*inputs), layer(*inputs))


def test_compile_with_gradient(operators):
    q, k, _, positions = tensors(*make_inputs())

    def loss(q):
        return (operators.rope(q.sin(), k, positions)[0] ** 2).sum()

    gradients = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        x = q.clone().requires_grad_()
        function(x).backward()
        gradients.append(x.grad)
    assert torch.allclose(*gradients, rtol=1e-6)


def test_functional_under_compile():
    q, k, _, positions = tensors(*make_inputs())

    def function(q, k):
        return posenc.torch.rope(q, k, positions, theta=5e5,
                                 scaling={"rope_type": "linear", "factor": 2.0})

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    expected = rotate(q, positions / 2, 5e5)
    assert is_close(function(q, k)[0], expected)
    assert is_close(compiled(q, k)[0], expected)


@pytest.mark.skipif(shutil.which("g++") is None and "CXX" not in os.environ,
                    reason="Inductor needs a C++ compiler")
@pytest.mark.parametrize("dynamic", [None, True])
def test_inductor(dynamic):
    """Other numbers of tokens and of heads; with tensors that are not contiguous, and
    with gradients."""
    torch.compiler.reset()

    def function(q, k, positions):
        q, k = posenc.torch.rope(2 * q, k.sin(), positions, theta=5e5)
        return q + 1, k.cos()

    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
    shapes = [(7, 4), (9, 4)] if dynamic is None else [(7, 4), (9, 6)]
    for tokens, heads in shapes:
        q, k, _, positions = tensors(*make_inputs(tokens=tokens))
        q = torch.cat((q, q), 2)[:, :, :heads]
        q = q.transpose(1, 2).contiguous().transpose(1, 2)
        for actual, expected in zip(compiled(q, k, positions), function(q, k, positions)):
            assert is_close(actual, expected.numpy())
        assert is_close(compiled(q, k, positions)[0], rotate(2 * q, positions, 5e5) + 1)
    if dynamic is None:
        q.requires_grad_()
        compiled(q, k, positions)[0].sum().backward()
        assert is_close(q.grad, 2 * rotate(np.ones(q.shape), positions, 5e5, sign=-1))


def test_rope_without_a_config(tmp_path):
    """Bad options are errors; an exported program has the options."""
    q, k, _, positions = tensors(*make_inputs())
    with pytest.raises(posenc.Error, match="rotary_dim is 3"):
        posenc.torch.rope(q, k, positions, rotary_dim=3)
    with pytest.raises(posenc.Error, match="expected q as an array"):
        posenc.torch.rope(q[0], k, positions)
    with pytest.raises(posenc.Error, match="compile with rope_length=N"):
        posenc.torch.rope(q.clone().requires_grad_(), k, positions, scaling={
            "rope_type": "dynamic", "factor": 2.0})[0].sum().backward()

    class Rope(torch.nn.Module):
        def forward(self, q, k, positions):
            return posenc.torch.rope(q, k, positions, theta=700.0, pairing="interleaved")

    program = torch.export.export(Rope(), (q, k, positions))
    torch.export.save(program, tmp_path / "rope.pt2")
    loaded = torch.export.load(tmp_path / "rope.pt2").module()
    for actual, expected in zip(loaded(q, k, positions), Rope()(q, k, positions)):
        assert torch.equal(actual, expected)


def test_export(operators, tmp_path):
    layer = Layer(operators)
    inputs = tuple(tensors(*make_inputs()))
    tokens = torch.export.Dim("tokens", min=2, max=4096)
    shapes = ({1: tokens},) * 4
    program = torch.export.export(layer, inputs, dynamic_shapes=shapes)
    longer = tensors(*make_inputs(tokens=11))
    expected = layer(*longer)
    assert torch.equal(program.module()(*longer), expected)
    # Another process runs the saved program: it has all that the kernels need.
    torch.export.save(program, tmp_path / "layer.pt2")
    torch.save([longer, expected], tmp_path / "data.pt")
    code = ("import sys, torch, posenc.torch\n"
            "layer = torch.export.load(sys.argv[1]).module()\n"
            "inputs, expected = torch.load(sys.argv[2])\n"
            "assert torch.equal(layer(*inputs), expected)\n")
    subprocess.run([sys.executable, "-c", code, tmp_path / "layer.pt2",
                    tmp_path / "data.pt"], check=True)


def test_fake_tensors_on_cuda(operators):
    """Shapes and devices of results, without a GPU."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def make(*shape, device="cuda", dtype=torch.float32):
        return torch.empty(shape, device=device, dtype=dtype)

    with FakeTensorMode():
        q, k = make(2, 7, 4, 32), make(2, 7, 2, 32)
        positions = make(2, 7, dtype=torch.int64)
        for results in (operators.rope(q, k, positions),
                        posenc.torch.rope(q, k, positions)):
            assert [one.shape for one in results] == [q.shape, k.shape]
            assert all(one.device == q.device for one in results)
        o = operators.attention(q, k, k, positions)
        assert o.shape == q.shape and o.device == q.device
        with pytest.raises(posenc.Error, match="k is on the device 'cpu', but q is on "
                                               "'cuda:0': move them to one device"):
            operators.rope(q, make(2, 7, 2, 32, device="cpu"), positions)
        graph = make_fx(operators.rope)(q, k, positions).graph
        assert [node.target for node in graph.nodes if "posenc" in str(node.target)] == [
            torch.ops.posenc.rope.default]
