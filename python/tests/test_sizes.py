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
from posenc._sizes import evaluate, translate


@pytest.mark.parametrize("text, value", [
    (7, 7), ("a", 11), ("a + b", 8), ("2 * a - 1", 21), ("a - 2 * (b + 1)", 15),
    ("(b / 2)", -2), ("(b % 2)", 1), ("min(a, b)", -3), ("max(a, 2 * b)", 11),
    ("(a < b ? 1 : a + 1)", 12), ("(a == 11 ? b : 0)", -3), ("-b * a", 33),
    ("(max(a, b) < 11 ? 1 : (b < 0 ? 2 : 3))", 2), ("(a == 11 ? b : a / 0)", -3),
])
def test_expressions(text, value):
    assert eval(translate(text, {"a": "x[0]", "b": "y"}), {"x": [11], "y": -3}) == value
    assert evaluate(text, {"a": 11, "b": -3}) == value


@pytest.mark.parametrize("text", ["", "c", "a +", "a ! b", "(a", "min(a)", "a b",
                                  "(a < b ? 1)", "__import__"])
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
