# ===- test_sizes.py - expressions of sizes --------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The expressions that metadata has for the sizes of results."""

import numpy as np
import pytest

import posenc
from posenc._sizes import evaluate, find_elements, translate


@pytest.mark.parametrize("text, value", [
    (7, 7), ("a", 11), ("a + b", 8), ("2 * a - 1", 21), ("a - 2 * (b + 1)", 15),
    ("(b / 2)", -2), ("(b % 2)", 1), ("min(a, b)", -3), ("max(a, 2 * b)", 11),
    ("(a < b ? 1 : a + 1)", 12), ("(a == 11 ? b : 0)", -3), ("-b * a", 33),
    ("(max(a, b) < 11 ? 1 : (b < 0 ? 2 : 3))", 2), ("(a == 11 ? b : a / 0)", -3),
    ("t[0]", 5), ("max(a, 3 * t[0])", 15), ("((t[0] + b) % 4)", 2),
])
def test_expressions(text, value):
    names = {"a": "x[0]", "b": "y", "t[0]": "z"}
    assert eval(translate(text, names), {"x": [11], "y": -3, "z": 5}) == value
    assert evaluate(text, {"a": 11, "b": -3, "t[0]": 5}) == value


def test_elements_of_expressions():
    assert find_elements(["max(n, t[0])", 4, "u[0] * t[0]", "n"]) == ["t", "u"]


@pytest.mark.parametrize("text", ["", "c", "a +", "a ! b", "(a", "min(a)", "a b",
                                  "(a < b ? 1)", "__import__", "a[0]", "a[1]", "a[0][0]"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="unexpected size"):
        translate(text, {"a": "a", "b": "b"})


def test_results_with_derived_sizes():
    kernels = posenc.compile("""
func.func @join(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
""", opt_level=0)
    [shape] = [output["shape"] for output in kernels.metadata["functions"][0]["outputs"]]
    assert "+" in shape[0]
    x, y = np.ones((3, 4), np.float32), np.zeros((2, 4), np.float32)
    assert np.array_equal(kernels.join(x, y), np.concatenate([x, y]))


@pytest.fixture(name="kernels", scope="module")
def fixture_kernels():
    """A function whose result has the rows of x, or as many as the element of t."""
    return posenc.compile("""
func.func @grow(%x: tensor<?xf32>, %t: tensor<1xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %element = tensor.extract %t[%c0] : tensor<1xi64>
  %total = arith.index_cast %element : i64 to index
  %rows = arith.maxsi %n, %total : index
  %empty = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %r = tensor.insert_slice %x into %zeros[0] [%n] [1] : tensor<?xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}
""", opt_level=0)


def test_results_with_sizes_of_elements(kernels):
    x, grow = np.ones(3, np.float32), kernels.grow
    for total in (-2**63, -1, 0, 3, 7):
        result = grow(x, np.array([total]))
        assert np.array_equal(result, np.pad(x, (0, max(total - 3, 0))))
    out = np.empty(5, np.float32)
    assert grow(x, np.array([5]), out=out) is out and np.array_equal(out, [1, 1, 1, 0, 0])
    with pytest.raises(posenc.Error, match="dimension 0 of out0 is 5, expected 6"):
        grow(x, np.array([6]), out=out)
    for total in (2**61, 2**62, 2**63 - 1):
        with pytest.raises(posenc.Error, match="grow: "):
            grow(x, np.array([total]))
    for count in (0, 2):
        with pytest.raises(posenc.Error, match=f"dimension 0 of t is {count}, expected 1"):
            grow(x, np.zeros(count, np.int64))
    with pytest.raises(posenc.Error, match="t has elements of float64, expected int64"):
        grow(x, np.array([5.0]))


def test_negative_sizes_of_elements():
    function = posenc.compile("""
func.func @repeat(%t: tensor<1xi64>, %u: tensor<i32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %first = tensor.extract %t[%c0] : tensor<1xi64>
  %second = tensor.extract %u[] : tensor<i32>
  %wide = arith.extsi %second : i32 to i64
  %sum = arith.addi %first, %wide : i64
  %rows = arith.index_cast %sum : i64 to index
  %columns = arith.index_cast %wide : i64 to index
  %r = tensor.splat %one[%rows, %columns] : tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
""", opt_level=0).repeat

    def call(first, second):
        return function(np.array([first]), np.array(second, np.int32))

    for first, second in ((3, 2), (-2, 2), (-3, 5), (5, 0)):
        assert np.array_equal(call(first, second), np.ones((first + second, second)))
    for first, second, message in (
            (-5, 2, r"dimension 0 of out0, \(t\[0\] \+ u\[0\]\), is -3, expected at least 0"),
            (5, -2, r"dimension 1 of out0, u\[0\], is -2, expected at least 0"),
            (2**63 - 1, 2, "cannot allocate the results"),
            (2**62, 4, "cannot allocate the results")):
        with pytest.raises(posenc.Error, match=f"repeat: {message}"):
            call(first, second)
    # The library says the same of results that callers allocate.
    out = np.empty((2, 2), np.float32)
    with pytest.raises(posenc.Error, match="repeat: "):
        function(np.array([-5]), np.array(2, np.int32), out=out)
    with pytest.raises(posenc.Error, match="repeat: sizes .* beyond 63 bits"):
        function(np.array([2**63 - 1]), np.array(2, np.int32), out=out)


def test_graphs_of_torch_with_sizes_of_elements(kernels):
    torch = pytest.importorskip("torch")
    import posenc.torch

    x, expected = torch.ones(3), torch.tensor([1.0, 1, 1, 0, 0])
    assert torch.equal(kernels.grow(x, torch.tensor([5])), expected)
    grow = posenc.torch.operators(kernels).grow

    class Grow(torch.nn.Module):
        def forward(self, x, t):
            return grow(x, t) * 2

    # The size is a new symbol of the graph.
    program = torch.export.export(Grow(), (x, torch.tensor([4])))
    assert torch.equal(program.module()(x, torch.tensor([5])), 2 * expected)


def test_jax_does_not_trace_elements(kernels):
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones(3)
    for total in (np.array([5]), jax.numpy.array([5])):  # i64 and i32
        assert kernels.grow(x, total).shape == (5,)
    with pytest.raises(posenc.Error, match="whose element is unknown then"):
        jax.jit(kernels.grow)(x, jax.numpy.array([5]))
