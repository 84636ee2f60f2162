# ===- test_options.py - keywords of posenc.compile ------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The values of keywords, and their errors."""

import json
import pickle
import re
import shutil

import numpy as np
import pytest

import posenc
from conftest import CONFIG, is_close, make_inputs, rotate
from posenc._kernels import compile_spec
from posenc._spec import is_length_dependent, is_length_dependent_scaling


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
    option = keyword.replace("_", "-")
    with pytest.raises(posenc.Error, match=f"^{keyword}: |unknown {option} '"):
        posenc.compile(CONFIG, **{keyword: dtype})


@pytest.mark.parametrize("keyword", [
    "dtype", "kernels", "target", "pairing", "precision", "k_cache", "cache_dtype",
    "cache_scales", "decode_tokens", "rope_length", "index_type", "rotation", "threads",
    "stack_limit", "opt_level", "tuning", "schedule", "assert_"])
@pytest.mark.parametrize("value", [True, False, 1.5, [], {}, object(), [1], "exact\0x",
                                   "\udc80", b"exact"])
def test_values_of_other_kinds(keyword, value):
    with pytest.raises(posenc.Error, match=f"^{keyword}: |cannot read"):
        posenc.compile(CONFIG, **{keyword: value})


@pytest.mark.parametrize("keyword", ["qk_norm", "lse", "no_warnings"])
@pytest.mark.parametrize("value", [1, 0, "yes", [], "", np.True_])
def test_flags_of_other_kinds(keyword, value):
    with pytest.raises(posenc.Error, match=f"{keyword}: expected True or False, got "):
        posenc.compile(CONFIG, **{keyword: value})


@pytest.mark.parametrize("options, message", [
    ({"kernels": ["rope", 7]}, "kernels: expected a string, got 7"),
    ({"kernels": {7, "rope"}}, "kernels: expected a string, got 7"),
    ({"kernels": 7}, "kernels: expected a name or a list of names, got 7"),
    ({"target": 86}, "target: expected a string, got 86"),
    ({"target": "x" * 20 + "\0"}, "target: expected a string without null characters"),
    ({"opt_level": 10 ** 5000}, "expected an integer, got a value of type int"),
    ({"decode_tokens": 2.0}, r"decode_tokens: expected an integer, got 2\.0"),
    ({"schedule": 3}, "schedule: expected a path, got 3"),
    ({"dtype": "f\0"}, r"dtype: .* null character"),
    ({"causal": True}, 'causal: expected "model", "no" or False, got True'),
    ({"causal": 0}, 'causal: expected "model", "no" or False, got 0'),
    ({"causal": "yes"}, "unknown causal 'yes': expected model or no"),
    ({"cache_scales": "tensor"}, "cache_scales needs cache_dtype=i8, f8e4m3 or f8e5m2"),
    ({"index_type": "i8"}, "unknown index-type 'i8': expected i64 or i32"),
    ({"rotation": "none", "kernels": "rope"}, "rotation=none leaves out the functions"),
])
def test_messages(options, message):
    with pytest.raises(posenc.Error, match=message):
        posenc.compile(CONFIG, **options)


def test_kinds_of_values():
    for names in (["sincos", "rope"], ("rope", "sincos"), {"rope", "sincos"},
                  frozenset({"sincos", "rope"}), "rope,sincos"):
        assert list(posenc.compile(CONFIG, kernels=names, opt_level=0)) == [
            "sincos", "rope"]
    for tokens in (3, np.int64(3), "3"):
        kernels = posenc.compile(CONFIG, kernels="decode", decode_tokens=tokens,
                                 opt_level=np.int8(0), qk_norm=None, no_warnings=None)
        assert 3 in kernels.metadata["functions"][0]["inputs"][0]["shape"]


@pytest.mark.parametrize("causal", [False, "no"])
def test_cross_attention(causal):
    kernels = posenc.compile(CONFIG, kernels=["attention", "decode"], opt_level=0,
                             index_type="i32", lse=True, rotation="none", causal=causal)
    random = np.random.default_rng(1)
    heads, key_heads = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"]
    dim = CONFIG["head_dim"]
    q = random.standard_normal((2, 1, heads, dim), np.float32)
    k, v = (random.standard_normal((2, 5, key_heads, dim), np.float32) for _ in "kv")
    scores = np.einsum("bqhd,bkhd->bqhk", q, k.repeat(heads // key_heads, 2)) / dim**0.5
    expected = np.log(np.exp(scores.astype(np.float64)).sum(-1))
    weights = np.exp(scores - expected[..., None])
    expected_o = np.einsum("bqhk,bkhd->bqhd", weights, v.repeat(heads // key_heads, 2))
    caches = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in (k, v)]
    for o, lse in (kernels.attention(q, k, v),
                   kernels.decode(q, *caches, np.full(2, 5, np.int32))):
        assert is_close(o, expected_o, 1e-5)
        assert is_close(lse, expected, 1e-5)


def test_paths_of_other_kinds():
    with pytest.raises(posenc.Error, match="7 is not a path: expected str"):
        posenc.load(7)


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}
LONGROPE = {"rope_type": "longrope", "factor": 4.0, "short_factor": [1.0] * 16,
            "long_factor": [2.0] * 16, "original_max_position_embeddings": 1024}
NAMES = ["sincos", "rope", "attention", "decode"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes, options, expected", [
    ({}, {}, False),
    ({"rope_scaling": DYNAMIC}, {}, True),
    ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, {}, True),
    ({"rope_parameters": LONGROPE}, {}, True),
    ({"rope_scaling": DYNAMIC}, {"rope_length": 8192}, False),
    ({"rope_scaling": DYNAMIC}, {"rope_length": "input"}, False),
    ({"rope_scaling": {**DYNAMIC, "alpha": 2.0}}, {}, False),
    ({"quantization_config": {"type": "dynamic", "rope_type": "su"}}, {}, False),
])
def test_dependence_on_the_length(name, changes, options, expected):
    for config in ({**CONFIG, **changes}, {"text_config": {**CONFIG, **changes}}):
        kernels = posenc.compile(config, kernels=name, opt_level=0, no_warnings=True,
                                 **options)
        assert is_length_dependent(kernels._spec, name) == expected


def test_dependence_on_the_length_of_other_sources():
    text = json.dumps({**CONFIG, "rope_scaling": DYNAMIC}).replace("dyn", "d\\u0079n")
    kernels = posenc.compile(text, kernels="rope", opt_level=0)
    assert is_length_dependent(kernels._spec, "rope")
    module = posenc.compile('''// "dynamic" frequencies depend on the length
func.func @copy(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { return %x : tensor<?x8xf32> }
''', opt_level=0)
    assert not is_length_dependent(module._spec, "copy")


@pytest.mark.parametrize("scaling, expected", [
    (None, False), ({"rope_type": "linear", "factor": 2.0, "note": "dynamic"}, False),
    (DYNAMIC, True), ({"type": "su"}, True), (LONGROPE, True),
    ({**DYNAMIC, "alpha": 2.0}, False),
])
def test_dependence_on_the_length_without_a_config(scaling, expected):
    assert is_length_dependent_scaling(scaling) == expected


@pytest.mark.parametrize("name", NAMES)
def test_dependence_on_the_length_of_one_layer_type(name):
    kernels = posenc.compile({
        **CONFIG, "model_type": "gemma3_text", "rope_theta": None,
        "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64,
        "num_hidden_layers": 2, "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {**DYNAMIC, "rope_theta": 1e6}}},
        kernels=name, opt_level=0, no_warnings=True)
    assert is_length_dependent(kernels._spec, f"{name}_full_attention")
    assert not is_length_dependent(kernels._spec, f"{name}_sliding_attention")


SCHEDULE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op
                                             {transform.readonly}) {
    transform.yield
  }
}
"""


def test_kernels_do_not_depend_on_paths(tmp_path):
    """The same files elsewhere are the same kernels, which need no files later."""
    specs = set()
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        (folder / "model.json").write_text(json.dumps(CONFIG))
        (folder / "tiles.mlir").write_text(SCHEDULE)
        kernels = posenc.compile(folder / "model.json", kernels={"rope", "sincos"},
                                 schedule=folder / "tiles.mlir", opt_level=0)
        specs.add(kernels._spec)
    [spec] = specs
    assert str(tmp_path) not in spec
    assert posenc.compile(CONFIG, kernels="sincos,rope", opt_level=0)._spec != spec
    pickled = pickle.dumps(kernels)
    shutil.rmtree(tmp_path)
    again = pickle.loads(pickled)
    q, k, _, positions = make_inputs()
    assert is_close(again.rope(q, k, positions)[0], rotate(q, positions))
    # The schedule is used: a damaged one is an error.
    damaged = json.loads(spec)
    damaged["files"]["--schedule"] = ""
    with pytest.raises(posenc.CompileError, match="__transform_main"):
        compile_spec(json.dumps(damaged))


def test_messages_have_the_path(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{")
    with pytest.raises(posenc.CompileError, match=re.escape(f"{path}:1:2: error")):
        posenc.compile(path)
    tuning = tmp_path / "tuning.json"
    tuning.write_text("[")
    with pytest.raises(posenc.CompileError, match=re.escape(f"{tuning}:1:2: error")):
        posenc.compile(CONFIG, tuning=tuning)
    for option in ("tuning", "schedule"):
        with pytest.raises(posenc.Error, match=f"{option}: '.*' is not a regular file"):
            posenc.compile(CONFIG, **{option: tmp_path})
        with pytest.raises(posenc.Error, match="cannot read '': No such file"):
            posenc.compile(CONFIG, **{option: ""})


def make_heads(heads, key_heads, dtype=np.float32, batch=2, tokens=5):
    """Returns q, k and positions."""
    random = np.random.default_rng(heads)
    q, k = (random.standard_normal((batch, tokens, n, 6)).astype(dtype)
            for n in (heads, key_heads))
    return q, k, np.arange(batch * tokens).reshape(batch, tokens) + 3


@pytest.mark.parametrize("heads, key_heads", [(3, 2), (2, 3), (1, 3), (7, 5), (4, 2)])
def test_numbers_of_heads(heads, key_heads):
    q, k, positions = make_heads(heads, key_heads)
    expected = [rotate(x, positions) for x in (q, k)]
    for results in (posenc.functional.rope(q, k, positions),
                    posenc.functional.rope(q, k, positions,
                                           out=(np.empty_like(q), np.empty_like(k))),
                    posenc.functional.rope(q, k, positions, out=(q, k))):
        assert all(map(is_close, results, expected))
    assert results[0] is q and results[1] is k


def test_numbers_of_heads_in_f64():
    q, k, positions = make_heads(3, 2, np.float64)
    results = posenc.functional.rope(q, k, positions, theta=500.0)
    for result, x in zip(results, (q, k)):
        assert is_close(result, rotate(x, positions, 500.0), 1e-14)


def test_numbers_of_heads_in_torch():
    torch = pytest.importorskip("torch")
    import posenc.torch

    arrays = make_heads(3, 2)
    q, k, positions = map(torch.from_numpy, arrays)
    for leaf in (q, k):
        leaf.requires_grad_()
    results = posenc.torch.rope(q, k, positions)
    weights = [torch.arange(x.numel()).reshape(x.shape) / x.numel() for x in (q, k)]
    sum((x * w).sum() for x, w in zip(results, weights)).backward()
    for leaf, result, weight in zip((q, k), results, weights):
        assert is_close(result.detach(), rotate(leaf.detach(), arrays[2]))
        assert is_close(leaf.grad, rotate(weight, arrays[2], sign=-1))
    mixed = "expected arrays of one framework for 3 and 2 heads, got arrays of NumPy, PyT"
    with torch.no_grad():
        for inputs, out in (((q, arrays[1]), None), (arrays[:2], (q, k))):
            before = q.clone()
            with pytest.raises(posenc.Error, match=mixed):
                posenc.functional.rope(*inputs, positions, out=out)
            assert torch.equal(q, before)
        posenc.functional.rope(q, k, positions, out=(q, k))
    assert torch.equal(k, results[1])
    with pytest.raises(posenc.Error, match="requires a gradient"):
        posenc.functional.rope(q, k, positions)


def test_numbers_of_heads_in_jax():
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax_tvm_ffi")
    arrays = make_heads(3, 2)
    q, k, positions = map(jax.numpy.asarray, arrays)
    for call in (posenc.functional.rope, jax.jit(posenc.functional.rope)):
        assert all(is_close(result, rotate(x, arrays[2]))
                   for result, x in zip(call(q, k, positions), arrays))
    gradient = jax.grad(
        lambda k: (k * posenc.functional.rope(q, k, positions)[1]).sum())(k)
    expected = rotate(k, arrays[2]) + rotate(k, arrays[2], sign=-1)
    assert is_close(gradient, expected)
    with pytest.raises(posenc.Error, match="immutable"):
        posenc.functional.rope(q, k, positions, out=(q, k))


@pytest.mark.parametrize("shapes, out, message", [
    (((2, 5, 3, 6), (2, 4, 2, 6)), None, "dimension 1 of k is 4, but"),
    (((2, 5, 0, 6), (2, 5, 2, 6)), None, r"q has the shape \(2, 5, 0, 6\)"),
    (((2, 5, 3, 6), (2, 5, 0, 6)), None, "k has the shape .* at least one head"),
    (((2, 5, 3, 6), (2, 5, 2, 6)), 7, "expected a tuple of 2 arrays"),
    (((2, 5, 3, 6), (2, 5, 2, 6)), (1, 2), "expected k_out as an array of the shape"),
    (((2, 5, 3, 6), (2, 5, 2, 6)), (1, np.ones((2, 5, 2, 6), "f4")), "q_out is a int"),
])
def test_errors_of_heads(shapes, out, message):
    q, k = (np.ones(shape, np.float32) for shape in shapes)
    with pytest.raises(posenc.Error, match=message):
        posenc.functional.rope(q, k, np.ones((2, 5), np.int64), out=out)


@pytest.mark.parametrize("has_out", [False, True])
def test_errors_of_heads_name_the_array(has_out):
    q, k, positions = make_heads(3, 2)
    for keys, message in ((k.astype("f8"), "k has elements of type float64"),
                          (k[:, :-1], "dimension 1 of k is")):
        out = (q.copy(), np.empty_like(keys)) if has_out else None
        with pytest.raises(posenc.Error, match=message):
            posenc.functional.rope(q, keys, positions, out=out)


# ===----------------------------------------------------------------------===#
# Modules
# ===----------------------------------------------------------------------===#

ROTATION = """
func.func @f(%x: tensor<8x8xf32>, %cos: tensor<8x4xf32>, %sin: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %a = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %b = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %ac = arith.mulf %a, %cos : tensor<8x4xf32>
  %bs = arith.mulf %b, %sin : tensor<8x4xf32>
  %bc = arith.mulf %b, %cos : tensor<8x4xf32>
  %as = arith.mulf %a, %sin : tensor<8x4xf32>
  %p = arith.subf %ac, %bs : tensor<8x4xf32>
  %q = arith.addf %bc, %as : tensor<8x4xf32>
  %y = tensor.concat dim(1) %p, %q : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize("value, is_raised", [
    (None, True), (True, True), ("yes", True), (False, False), ("no", False)])
def test_raise(value, is_raised):
    kernels = posenc.compile(ROTATION, raise_=value, opt_level=0, no_warnings=True)
    [function] = kernels.metadata["functions"]
    assert ("posenc rotate" in function["doc"]) == is_raised
    x, cos, sin = (np.random.default_rng(0).random((8, n), np.float32) for n in (8, 4, 4))
    a, b = x[:, :4], x[:, 4:]
    expected = np.concatenate([a * cos - b * sin, b * cos + a * sin], 1)
    assert np.allclose(kernels.f(x, cos, sin), expected, atol=1e-6)
    # A copy is compiled in the same way.
    copy = pickle.loads(pickle.dumps(kernels))
    assert copy.metadata["functions"][0]["doc"] == function["doc"]


@pytest.mark.parametrize("value", [1, 0.0, [], np.True_, object(), "no\0"])
def test_raise_of_other_kinds(value):
    with pytest.raises(posenc.Error, match="raise_: expected "):
        posenc.compile(ROTATION, raise_=value)


@pytest.mark.parametrize("options, message", [
    ({"raise_": "maybe"}, "unknown raise 'maybe'"),
    ({"assert_": "maybe"}, "unknown assert 'maybe'")])
def test_unknown_values(options, message):
    with pytest.raises(posenc.CompileError, match=message):
        posenc.compile(ROTATION, **options)


def test_assert():
    text = """
func.func @f(%x: tensor<?xf32>, %n: tensor<i1>) -> tensor<?xf32> {
  %c = tensor.extract %n[] : tensor<i1>
  cf.assert %c, "of data"
  return %x : tensor<?xf32>
}
"""
    kernels = posenc.compile(text, opt_level=0)
    assert kernels.f(np.ones(3, np.float32), np.array(True)).sum() == 3
    with pytest.raises(posenc.Error, match="of data"):
        kernels.f(np.ones(3, np.float32), np.array(False))
    kernels = posenc.compile(text, assert_="drop", opt_level=0)
    assert kernels.f(np.ones(3, np.float32), np.array(False)).sum() == 3


def test_report(tmp_path):
    """A report is written, also of a failure, and not again by a copy of the kernels."""
    path = tmp_path / "report <b>.html"
    kernels = posenc.compile(ROTATION, report=path, opt_level=0)
    text = path.read_text()
    assert "found a rotation of 8 lanes" in text and "Compiled." in text
    assert "<td>kernels in memory</td>" in text and "&lt;b&gt;.html" in text
    assert "<b>" not in text
    path.unlink()
    pickle.loads(pickle.dumps(kernels))
    assert not path.exists()
    posenc.compile(CONFIG, report=path, kernels="rope", opt_level=0)
    assert "config.json of a model" in path.read_text()
    with pytest.raises(posenc.CompileError, match="error"):
        posenc.compile("func.func @f() { return 1 }", report=path)
    assert "Not compiled" in path.read_text()
    with pytest.raises(posenc.CompileError, match="nowhere"):
        posenc.compile(ROTATION, report=tmp_path / "nowhere" / "a.html")
    with pytest.raises(posenc.Error, match="report: "):
        posenc.compile(ROTATION, report=1)
