# ===- test_options.py - keywords of posenc.compile ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The values of keywords, and their errors."""

import numpy as np
import pytest

import posenc
from conftest import CONFIG


def find_cache_dtype(dtype) -> str:
    """Returns the type of the keys in a cache that is asked for."""
    kernels = posenc.compile(CONFIG, kernels="decode", cache_dtype=dtype, opt_level=0)
    [function] = kernels.metadata["functions"]
    [keys] = [a for a in function["inputs"] if a["name"].startswith("k_cache")]
    return keys["dtype"]


@pytest.mark.parametrize("name, dtype", [
    ("f16", "f16"), ("float16", "f16"), (np.float16, "f16"),
    ("bfloat16", "bf16"), ("int8", "i8"), (np.int8, "i8"), (np.dtype("int8"), "i8"),
    ("f8e4m3", "f8E4M3FN"), ("float8_e4m3fn", "f8E4M3FN"), ("f8e5m2", "f8E5M2"),
])
def test_cache_dtype(name, dtype):
    assert find_cache_dtype(name) == dtype


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert find_cache_dtype(ml_dtypes.float8_e4m3fn) == "f8E4M3FN"
    assert find_cache_dtype(np.dtype(ml_dtypes.float8_e5m2)) == "f8E5M2"
    kernels = posenc.compile(CONFIG, kernels="rope", dtype=ml_dtypes.bfloat16,
                             opt_level=0)
    assert kernels.metadata["functions"][0]["inputs"][0]["dtype"] == "bf16"


def test_types_of_torch():
    torch = pytest.importorskip("torch")
    assert find_cache_dtype(torch.float8_e4m3fn) == "f8E4M3FN"
    assert find_cache_dtype(torch.int8) == "i8"


@pytest.mark.parametrize("keyword", ["dtype", "cache_dtype"])
@pytest.mark.parametrize("dtype", [
    np.dtype(">f4"), np.complex64, np.dtype([("a", "f4")]), float, [], {}, 32, "f4",
    "float8_e4m3"])
def test_other_types(keyword, dtype):
    with pytest.raises(posenc.Error, match="type"):
        posenc.compile(CONFIG, **{keyword: dtype})
