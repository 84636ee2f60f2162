# ===- test_exported.py - programs of torch.export ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""posenc.torch.compile_exported, and assertions of its graphs."""

import os
import struct
import sys

import numpy as np
import pytest

import posenc

torch = pytest.importorskip("torch")
import posenc.torch  # noqa: E402

GATHER = """
#row = affine_map<(d0, d1) -> (d0)>
#element = affine_map<(d0, d1) -> (d0, d1)>
func.func @gather(%t: tensor<8x4xf32>, %x: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c8 = arith.constant 8 : index
  %n = tensor.dim %x, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [#row, #element],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?xi64>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%in: i64, %out: f32):
    %s = arith.addi %in, %one : i64
    %k = arith.index_cast %s : i64 to index
    %j = linalg.index 1 : index
    %a = arith.cmpi slt, %k, %c8 : index
    cf.assert %a, "index must be smaller than dim size"
    %b = arith.cmpi sge, %s, %zero : i64
    cf.assert %b, "index must be at least 0"
    %v = tensor.extract %t[%k, %j] : tensor<8x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
"""


@pytest.mark.parametrize("size", [1, 100_000])
def test_assertions_are_errors(size):
    kernels = posenc.compile(GATHER, opt_level=0)
    table = np.arange(32, dtype=np.float32).reshape(8, 4)
    indices = np.resize(np.arange(-1, 7), size)
    np.testing.assert_array_equal(kernels.gather(table, indices), table[indices + 1])
    for bad, message in ((7, "smaller than dim size"), (-2, "at least 0")):
        indices[-1] = bad
        with pytest.raises(posenc.Error, match=f"assertion failed: index must be {message}"):
            kernels.gather(table, indices)
    # The next call is not affected.
    indices[-1] = 6
    np.testing.assert_array_equal(kernels.gather(table, indices), table[indices + 1])


class Attention(torch.nn.Module):
    """Two heads with rotary embeddings, whose frequencies are not persistent."""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(32, 96)
        self.register_buffer("frequencies", 1e4 ** (-torch.arange(8) / 8),
                             persistent=False)

    def forward(self, x):
        batch, tokens, _ = x.shape
        angles = torch.arange(tokens)[:, None] * self.frequencies
        cos, sin = (f(torch.cat((angles, angles), -1)) for f in (torch.cos, torch.sin))
        q, k, v = (part.view(batch, tokens, 2, 16).transpose(1, 2)
                   for part in self.project(x).chunk(3, -1))

        def rotate(x):
            first, second = x.chunk(2, -1)
            return x * cos + torch.cat((-second, first), -1) * sin

        o = torch.nn.functional.scaled_dot_product_attention(
            rotate(q), rotate(k), v, is_causal=True)
        return {"result": o.transpose(1, 2).reshape(batch, tokens, 32), "none": None}


def export(is_dynamic):
    torch.manual_seed(3)
    model = Attention().eval()
    dim = torch.export.Dim.DYNAMIC
    return model, torch.export.export(
        model, (torch.randn(2, 9, 32),),
        dynamic_shapes={"x": {0: dim, 1: dim}} if is_dynamic else None)


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("limit", [0, 1 << 24])
def test_a_program(is_dynamic, limit):
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    model, program = export(is_dynamic)
    state = list(program.state_dict)
    function = posenc.torch.compile_exported(program, constant_limit=limit, opt_level=0)
    assert list(program.state_dict) == state
    assert bool(function.parameters) == (limit == 0)
    x = torch.randn(*((1, 7, 32) if is_dynamic else (2, 9, 32)))
    results = function(x)
    assert results["none"] is None
    torch.testing.assert_close(results["result"], model(x)["result"], rtol=1e-5, atol=2e-6)
    with pytest.raises(posenc.Error, match="structure"):
        function(x, x)


@pytest.mark.skipif("POSENC_BIN" not in os.environ,
                    reason="POSENC_BIN does not name the folder of posenc-compile")
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_a_frozen_program(is_dynamic, tmp_path):
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    torch.manual_seed(5)

    class Tied(torch.nn.Module):
        """A table that is a matrix, too, and a projection."""

        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(90, 40)
            self.project = torch.nn.Linear(40, 40)
            self.head = torch.nn.Linear(40, 90, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(torch.nn.functional.silu(self.project(self.table(ids))))

    model, ids = Tied().eval(), torch.randint(0, 90, (2, 9))
    dim = torch.export.Dim.DYNAMIC
    program = torch.export.export(model, (ids,), dynamic_shapes={
        "ids": {0: dim, 1: dim}} if is_dynamic else None)
    path = tmp_path / "libtied.so"
    function = posenc.torch.compile_exported(program, freeze=path, opt_level=0)
    assert function.parameters == []
    torch.testing.assert_close(function(ids), model(ids), rtol=1e-5, atol=2e-6)
    # The weights are in a file, and those of the model may change.
    size, = struct.unpack("<Q", (tmp_path / "tied.safetensors").read_bytes()[:8])
    assert len((tmp_path / "tied.safetensors").read_bytes()) - size >= 4 * 40 * (90 + 40)
    before = function(ids)
    with torch.no_grad():
        model.project.weight.zero_()
    torch.testing.assert_close(function(ids), before, rtol=0, atol=0)
    torch.testing.assert_close(posenc.load(path).main(ids), before, rtol=0, atol=0)
    # Without a path, there are no files left.
    function = posenc.torch.compile_exported(program, freeze=True, opt_level=0)
    torch.testing.assert_close(function(ids), model(ids), rtol=1e-5, atol=2e-6)
    with pytest.raises(posenc.CompileError, match="unknown pairing|applies only"):
        posenc.torch.compile_exported(program, freeze=True, pairing="half")
    with pytest.raises(posenc.Error, match="got an empty path"):
        posenc.torch.compile_exported(program, freeze="")
    # A flag of posenc-compile that is no option of compile.
    with pytest.raises(TypeError, match="unexpected keyword argument 'emit'"):
        posenc.torch.compile_exported(program, freeze=True, emit="obj")
    with torch.no_grad():
        model.project.weight = torch.nn.Parameter(torch._neg_view(torch.randn(40, 40)))
    function = posenc.torch.compile_exported(
        torch.export.export(model, (ids,)), freeze=True, opt_level=0)
    torch.testing.assert_close(function(ids), model(ids), rtol=1e-5, atol=2e-6)


def test_a_frozen_program_needs_the_compiler(monkeypatch):
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")
    for name in ("PATH", "POSENC_BIN"):
        monkeypatch.setenv(name, "")
    if not os.path.exists(os.path.join(os.path.dirname(posenc.__file__), "bin")):
        with pytest.raises(posenc.Error, match="expected the tool posenc-compile on PATH"):
            posenc.torch.compile_exported(export(False)[1], freeze=True)


def test_unsigned_bytes():
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")

    class Bytes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(0, 256, 5, dtype=torch.uint8))

        def forward(self, x, ids):
            return x + 100, x.to(torch.float32), self.table[ids], x.to(torch.int8)

    arguments = (torch.tensor([0, 1, 127, 128, 200, 255], dtype=torch.uint8),
                 torch.tensor([0, 30, 51]))
    model = Bytes()
    function = posenc.torch.compile_exported(torch.export.export(model, arguments),
                                             opt_level=0)
    for result, expected in zip(function(*arguments), model(*arguments)):
        torch.testing.assert_close(result, expected, rtol=0, atol=0)


def test_sizes_of_the_export():
    """torch-mlir makes a size dynamic that unbind needs to be constant."""
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")

    class Last(torch.nn.Module):
        def forward(self, x, y):
            return torch.unbind(x)[-1] + y

    program = torch.export.export(
        Last(), (torch.arange(3.0), torch.ones(6)),
        dynamic_shapes=({0: torch.export.Dim.AUTO}, {0: torch.export.Dim("n", max=9)}))
    function = posenc.torch.compile_exported(program, opt_level=0)
    assert function(torch.arange(3.0), torch.ones(4)).tolist() == [3.0] * 4
    with pytest.raises(posenc.Error, match="dimension 0 of 'x' is 5, expected 3"):
        function(torch.arange(5.0), torch.ones(4))
    with pytest.raises(posenc.Error, match="dimension 0 of 'y' is 10, expected from"):
        function(torch.arange(3.0), torch.ones(10))


def test_a_program_that_writes():
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed")

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count += 1
            return x + self.count

    with pytest.raises(posenc.Error, match="writes to 'count'"):
        posenc.torch.compile_exported(torch.export.export(Counter(), (torch.ones(1),)))


class Constants(torch.nn.Module):
    """Results that depend on buffers and new tensors alone, all elements of which are equal."""

    def __init__(self, value):
        super().__init__()
        self.value = value
        self.register_buffer("weight", torch.full((2,), value))

    def forward(self, x):
        t, i = torch.full((3, 2), self.value), torch.full((3, 2), 3 * int(self.value) - 3)
        one = torch.ones(3, 2)
        return (t > 0, t >= 0, t < 0, t <= 0, t == 0, t != 0, t > 1, t >= 1, t < 1, t == 1,
                t > one, t <= one, self.weight > 0, t.sign(), t.trunc(), t.remainder(0.5),
                torch.where(t > 0, t, x), i // 2, i % 2, i > 0, i.sign(), t.bool() > 0,
                torch.full((3,), float("nan")) != 0, torch.full((2,), -0.0).abs().sign(),
                x + self.weight)


# torch-mlir (20261001) computes a third of these otherwise.
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.0, 0.5])
def test_constants(value):
    module, x = Constants(value), torch.arange(6.0).reshape(3, 2) - 2
    function = posenc.torch.compile_exported(torch.export.export(module, (x,)))
    for number, (got, expected) in enumerate(zip(function(x), module(x))):
        assert got.dtype == expected.dtype and torch.equal(got, expected), number


class Selected(torch.nn.Module):
    def forward(self, x):
        return torch.masked_select(x, x > 0)


def test_errors_name_the_operator(capfd):
    program = torch.export.export(Selected(), (torch.ones(3),))
    with pytest.raises(posenc.Error, match="cannot lower the program: .*masked_select"):
        posenc.torch.compile_exported(program)
    assert "masked_select" not in capfd.readouterr().err


def test_errors_of_the_decomposition(monkeypatch):
    def fail(self, table):
        raise KeyError("u0")

    program = export(False)[1]
    monkeypatch.setattr(type(program), "run_decompositions", fail)
    with pytest.raises(posenc.Error, match="PyTorch cannot decompose the program: 'u0'"):
        posenc.torch.compile_exported(program)


def test_without_torch_mlir(monkeypatch):
    with pytest.raises(TypeError, match="expected a torch.export.ExportedProgram"):
        posenc.torch.compile_exported(torch.sin)
    monkeypatch.setitem(sys.modules, "torch_mlir", None)
    with pytest.raises(posenc.Error, match="pip install torch-mlir"):
        posenc.torch.compile_exported(export(False)[1])
