# ===- test_calls.py - calls on NumPy arrays -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Results, errors and documentation of calls, on arrays of NumPy."""

import dis
import inspect
import pydoc
import threading
import types

import numpy as np
import pytest

import posenc
from posenc import _frameworks
from posenc._sizes import evaluate
from posenc._workspaces import Workspaces
from conftest import (CONFIG, DIM, HEADS, KEY_HEADS, attend, is_close, make_inputs,
                      rotate)

ml_dtypes = pytest.importorskip("ml_dtypes")


def test_rope(kernels):
    q, k, _, positions = make_inputs()
    q_out, k_out = kernels.rope(q, k, positions)
    assert isinstance(q_out, np.ndarray) and q_out.dtype == np.float32
    assert is_close(q_out, rotate(q, positions)) and is_close(k_out, rotate(k, positions))
    # The check detects a position that is off by one.
    assert not is_close(q_out, rotate(q, positions + 1))


def test_sincos(kernels):
    cos, sin = kernels.sincos(np.arange(100))
    angles = np.arange(100)[:, None] * 10000.0 ** (-np.arange(DIM // 2) / (DIM // 2))
    assert is_close(cos, np.cos(angles), 1e-7) and is_close(sin, np.sin(angles), 1e-7)


def test_attention(kernels):
    q, k, v, positions = make_inputs(tokens=19)
    expected = attend(rotate(q, positions), rotate(k, positions), v)
    assert is_close(kernels.attention(q, k, v, positions), expected, 1e-5)


def test_decode(kernels):
    q, k, v, _ = make_inputs(tokens=19)
    tokens = np.arange(19)[None].repeat(2, 0)
    rotated = rotate(k, tokens).astype(np.float32)
    k_cache, v_cache = (np.ascontiguousarray(x.transpose(0, 2, 1, 3))
                        for x in (rotated, v))
    lengths = np.array([19, 11])
    o = kernels.decode(q[:, :1], k_cache, v_cache, lengths)
    for row, length in enumerate(lengths):
        query = rotate(q[row:row + 1, :1], [[length - 1]])
        expected = attend(query, rotated[row:row + 1, :length],
                          v[row:row + 1, :length], first=length - 1)
        assert is_close(o[row:row + 1], expected, 1e-5)


def test_out(kernels):
    q, k, v, positions = make_inputs()
    expected = rotate(q, positions)
    out = np.empty_like(q), np.empty_like(k)
    result = kernels.rope(q, k, positions, out=out)
    assert result[0] is out[0] and result[1] is out[1] and is_close(out[0], expected)
    kernels.rope(q, k, positions, out=(q, k))
    assert is_close(q, expected)
    o = np.empty_like(q)
    assert kernels.attention(q, k, v, positions, out=o) is o


def test_views_are_not_copied(kernels):
    q, k, v, positions = make_inputs()
    rows = np.concatenate([q, k, v], axis=2)
    views = rows[:, :, :HEADS], rows[:, :, HEADS:HEADS + KEY_HEADS]
    kernels.rope(*views, positions, out=views)
    assert is_close(rows[:, :, :HEADS], rotate(q, positions))
    assert np.all(rows[:, :, HEADS + KEY_HEADS:] == v)


def test_empty(kernels):
    q, k, _, positions = make_inputs(tokens=0)
    assert kernels.rope(q, k, positions)[0].shape == (2, 0, HEADS, DIM)


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_narrow_types(name):
    kernels = posenc.compile(CONFIG, dtype=name, kernels=["rope"])
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    q, k, _, positions = make_inputs()
    q, k = q.astype(dtype), k.astype(dtype)
    q_out, k_out = kernels.rope(q, k, positions)
    bound = 2.0 ** -8 if name == "bfloat16" else 2.0 ** -11
    assert q_out.dtype == dtype and is_close(q_out, rotate(q, positions), bound)
    result = kernels.rope(q, k, positions, out=(q, k))
    assert result[0] is q and np.all(q == q_out) and np.all(k == k_out)


def test_eight_bit_caches():
    kernels = posenc.compile(CONFIG, kernels=["append", "decode"], cache_dtype="f8e4m3",
                             opt_level=0)
    cache = np.zeros((2, KEY_HEADS, 8, DIM), ml_dtypes.float8_e4m3fn)
    caches = [cache, np.ones((2, KEY_HEADS, 8), np.float32),
              cache.copy(), np.ones((2, KEY_HEADS, 8), np.float32)]
    q, k, v, _ = make_inputs(tokens=5)
    lengths = np.full(2, 5)
    kernels.append(k, v, lengths, *caches, out=tuple(caches))
    stored = caches[2].astype(np.float64) * caches[3][..., None]
    assert is_close(stored[:, :, :5].transpose(0, 2, 1, 3), v, 2.0 ** -4)
    o = kernels.decode(np.ascontiguousarray(q[:, 4:]), *caches, lengths)
    positions = np.arange(5)[None].repeat(2, 0)
    expected = attend(rotate(q, positions), rotate(k, positions), v)[:, 4:]
    assert is_close(o, expected, 0.1)


def test_read_only_inputs(kernels):
    q, k, _, positions = make_inputs()
    for array in (q, k, positions):
        array.flags.writeable = False
    q_out, _ = kernels.rope(q, k, positions)
    assert is_close(q_out, rotate(q, positions))
    with pytest.raises(posenc.Error, match="output q_out is read-only"):
        kernels.rope(q, k, positions, out=(q, k))


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_read_only_outputs_of_narrow_types(name):
    kernels = posenc.compile(CONFIG, dtype=name, kernels=["rope"])
    q, k, _, positions = make_inputs()
    q, k = (x.astype(getattr(ml_dtypes, name, name)) for x in (q, k))
    for out in ((q.copy(), k.copy()), (q, k)):
        before = out[1].copy()
        out[1].flags.writeable = False
        with pytest.raises(posenc.Error, match="output k_out is read-only"):
            kernels.rope(q, k, positions, out=out)
        assert np.all(out[1] == before)


@pytest.mark.parametrize("dtype, message", [
    (">f4", "q has elements of type >f4 of another byte order, expected float32"),
    ("S3", "q has elements of type .*S3, expected float32"),
    (object, "q has elements of type object, expected float32"),
    ("M8[s]", r"q has elements of type datetime64\[s\], expected float32"),
])
@pytest.mark.parametrize("writeable", [True, False])
def test_types_that_are_not_passed(kernels, dtype, message, writeable):
    q, k, _, positions = make_inputs()
    q = q.astype(int).astype(dtype)
    q.flags.writeable = writeable
    with pytest.raises(posenc.Error, match=message):
        kernels.rope(q, k, positions)
    if writeable:
        with pytest.raises(posenc.Error, match=message.replace("q has", "q_out has")):
            kernels.rope(k.repeat(2, 2), k, positions, out=(q, k))


def test_workspace():
    kernels = posenc.compile(CONFIG, kernels=["attention"], stack_limit=16384)
    assert "workspace" in kernels.metadata["functions"][0]
    q, k, v, positions = make_inputs(tokens=19)
    expected = attend(rotate(q, positions), rotate(k, positions), v)
    assert is_close(kernels.attention(q, k, v, positions), expected, 1e-5)
    # The second call has the memory of the first one, with its contents.
    assert is_close(kernels.attention(q, k, v, positions), expected, 1e-5)
    q, k, v, positions = make_inputs(tokens=13)
    expected = attend(rotate(q, positions), rotate(k, positions), v)
    assert is_close(kernels.attention(q, k, v, positions), expected, 1e-5)


def test_workspaces():
    """Memory is kept for calls that need most of it, and calls at a time have their own."""
    workspaces = Workspaces()
    first, second = workspaces.take(1000), workspaces.take(1000)
    assert first.nbytes == second.nbytes == 1000 and not np.shares_memory(first, second)
    workspaces.give(first)
    assert workspaces.take(600) is first and workspaces.take(600) is not first
    workspaces.give(first)
    larger = workspaces.take(1001)
    assert larger is not first and larger.nbytes == 1001
    workspaces.give(larger)
    smaller = workspaces.take(100)
    assert smaller.nbytes == 100  # The larger memory was released.
    workspaces.give(smaller)
    assert workspaces.take(0).nbytes == 0


def change(index, value):
    """A call of rope with one argument replaced."""
    def call(kernels):
        arguments = [np.array(x) for x in make_inputs()]
        del arguments[2]
        arguments[index] = value(arguments[index])
        return kernels.rope(*arguments)

    return call


@pytest.mark.parametrize("call, message", [
    (change(0, lambda q: q[0]), "q has 3 dimensions, expected 4"),
    (change(1, lambda k: k[:, :5]), "dimension 1 of k is 5, but dimension 1 of q is 7"),
    (change(0, lambda q: q.astype("f8")), "q has elements of type float64, expected float32"),
    (change(2, lambda p: p.astype("i2")), "positions has elements of type int16"),
    (change(2, lambda p: p.tolist()), "positions is a list, expected an array"),
    (change(0, lambda q: None), "q is a NoneType, expected an array"),
    (change(2, lambda p: None), "positions is a NoneType, expected an array"),
    (change(0, lambda q: q[..., ::2]), "q"),
    (change(1, lambda k: k[..., ::-1]), "k"),
    (lambda k: k.rope(*make_inputs()[:2], make_inputs()[3], out=make_inputs()[0]),
     "out|output"),
    (lambda k: k.rope(*make_inputs()[:2], make_inputs()[3], out=(None, None)),
     "output q_out is a NoneType"),
    (lambda k: k["roop"], "no function 'roop': there are sincos, rope"),
])
def test_errors(kernels, call, message):
    with pytest.raises(posenc.Error, match=message):
        call(kernels)


def test_numbers():
    """Numbers of Python and NumPy; others are not converted."""
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    kernels = posenc.compile({**CONFIG, "rope_scaling": scaling}, kernels="rope",
                             dtype="f32", rope_length="input", opt_level=0)
    q, k, _, positions = make_inputs()
    expected, _ = kernels.rope(q, k, positions, 20000)
    assert np.array_equal(kernels.rope(q, k, positions, np.int64(20000))[0], expected)
    for value, message in (
            (20000.0, "a float, expected an integer"), (True, "a bool, expected"),
            ("20000", "a str, expected"), (None, "a NoneType, expected")):
        with pytest.raises(posenc.Error, match=f"rope: rope_length is {message}"):
            kernels.rope(q, k, positions, value)
    for value in (2**70, 10**5000):
        with pytest.raises(posenc.Error, match="rope_length exceeds the integers of 64"):
            kernels.rope(q, k, positions, value)


def test_wrong_lengths(kernels):
    q, k, v, _ = make_inputs(tokens=8)
    caches = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in (k, v)]
    with pytest.raises(posenc.Error, match=r"lengths\[1\] is 9, expected 0 to 8"):
        kernels.decode(q[:, :1], *caches, np.array([1, 9]))


def test_overlap(kernels):
    q, k, _, positions = make_inputs()
    buffer = np.empty((3, 7, HEADS, DIM), np.float32)
    with pytest.raises(posenc.Error, match="overlap"):
        kernels.rope(buffer[:2], k, positions, out=(buffer[1:], k))


def test_signature_and_help(kernels):
    signature = inspect.signature(kernels.rope)
    assert list(signature.parameters) == ["q", "k", "positions", "out"]
    text = pydoc.render_doc(kernels, renderer=pydoc.plaintext)
    assert "rope(self, q: posenc.Array, k: posenc.Array, positions: posenc.Array" in text
    assert f"k_cache: f32[batch, {KEY_HEADS}, " in text
    assert "Rotates" in text
    assert "decode" in repr(kernels)


def make_forms(array):
    """Integers of 32 bits in several layouts."""
    narrow = array.astype(np.int32)
    strided = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), np.int32)
    strided[..., ::2] = array
    return [narrow, strided[..., ::2], np.asfortranarray(narrow),
            np.ascontiguousarray(narrow[..., ::-1])[..., ::-1]]


def test_integers_of_32_bits():
    """Positions, lengths, cu_seqlens and slots, of any strides."""
    kernels = posenc.compile(CONFIG, kernels="serving", opt_level=0)
    random = np.random.default_rng(0)
    for function in kernels.metadata["functions"]:
        inputs, wide = [], []
        sizes = {size: 4 for argument in function["inputs"] for size in argument["shape"]
                 if isinstance(size, str) and size.isidentifier()}
        for i, argument in enumerate(function["inputs"]):
            shape = [evaluate(size, sizes) for size in argument["shape"]]
            if argument["name"] == "cu_seqlens":
                shape = [5]  # of 4 sequences
            if argument["dtype"] == "f32":
                inputs.append(random.standard_normal(shape).astype(np.float32))
            else:
                dtype = np.int64 if argument["dtype"] == "i64" else np.int32
                inputs.append(np.zeros(shape, dtype))
                wide += [i] * (dtype == np.int64)
        assert wide
        expected = kernels[function["name"]](*inputs)
        for forms in zip(*(make_forms(inputs[i]) for i in wide)):
            narrow = list(inputs)
            for i, form in zip(wide, forms):
                narrow[i] = form
            actual = kernels[function["name"]](*narrow)
            assert np.array_equal(actual, expected)


@pytest.mark.parametrize("change, message", [
    ({"theta": 0}, "rope: 'theta' must be greater than 0, not 0"),
    ({"theta": float("nan")}, "rope: 'theta' must be a finite number, not NaN"),
    ({"scaling": {"rope_type": "x"}}, "rope: unknown rope type 'x' in 'rope_type'"),
    ({"scaling": {"rope_type": "linear", "factor": -1}}, "rope: 'factor' must be greater"),
    ({"pairing": "x"}, "rope: unknown pairing 'x': expected half or interleaved"),
    ({"max_position_embeddings": -1}, "rope: 'max_position_embeddings' must lie between"),
    ({"rotary_dim": 3}, "rope: rotary_dim is 3, expected an even number"),
    ({"q": np.ones((1, 2, 2, 7), "f4")}, "rope: q has 7 channels, expected an even number"),
    ({"q": np.ones((1, 2, 2, 8), "i4")}, "rope: q has elements of type i32, expected f32"),
    ({"k": np.ones((1, 2, 2, 6), "f4")}, "rope: dimension 3 of k is 6, expected 8"),
])
def test_errors_without_a_config_name_the_arguments(change, message):
    x = np.ones((1, 2, 2, 8), np.float32)
    arguments = {"q": x, "k": change.get("q", x), "positions": np.zeros((1, 2), int)}
    with pytest.raises(posenc.Error) as caught:
        posenc.functional.rope(**{**arguments, **change})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("change, message", [
    ({"window_size": (2**70, 0)}, r"attention: window_size is \(1180591620717411303424, 0\)"),
    ({name: np.ones((1, 2, 2, 8), "i4") for name in "qkv"},
     "attention: k has elements of type i32, expected f32 or bf16"),
])
def test_errors_of_attention_have_no_ir(change, message):
    x = np.ones((1, 2, 2, 8), np.float32)
    with pytest.raises(posenc.Error, match=message):
        posenc.functional.attention(**{**dict.fromkeys("qkv", x), **change})


def test_positions_of_32_bits(kernels):
    q, k, _, positions = make_inputs()
    for form in make_forms(positions):
        assert is_close(kernels.rope(q, k, form)[0], rotate(q, positions))
        form.flags.writeable = False
        kernels.rope(q.copy(), k, form, out=(out := np.empty_like(q), k.copy()))
        assert is_close(out, rotate(q, positions))
        functional = posenc.functional.rope(q, k, form)[0]
        assert is_close(functional, rotate(q, positions))


def test_errors_have_no_backtrace(kernels):
    """TVM FFI would take seconds for the first."""
    q, k, _, positions = make_inputs()
    call = kernels.rope.__func__.__globals__["_call"]
    with pytest.raises(ValueError, match="dimension 1 of k is 5") as caught:
        call(q, k[:, :5], positions, q, k)
    assert caught.value.__tvm_ffi_error__.backtrace == ""


def test_threads_call_at_once(kernels):
    q, k, v, positions = make_inputs(tokens=65)
    expected = kernels.attention(q, k, v, positions)
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(kernels.attention(q, k, v, positions), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_gil_is_released(kernels):
    """Another thread runs Python code while a kernel runs."""
    q, k, v, positions = make_inputs(batch=1, tokens=4096)
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    out = np.empty_like(q)
    thread.start()
    before = ticks[0]
    kernels.attention(q, k, v, positions, out=out)
    during = ticks[0] - before
    done.set()
    thread.join()
    # With the GIL held there would be none, but for the moments before and after.
    assert during > 1000


def test_kernels_outlive_their_object():
    rope = posenc.compile(CONFIG, kernels="rope", opt_level=0).rope
    q, k, _, positions = make_inputs()
    assert is_close(rope(q, k, positions)[0], rotate(q, positions))


def compile_sine(name, arguments):
    """A function that ignores all arguments but the last."""
    listed = ", ".join(f'%a{i}: tensor<?xf32> {{posenc.name = "{argument}"}}'
                       for i, argument in enumerate(arguments))
    return posenc.compile(f"""
func.func @{name}({listed}) -> (tensor<?xf32> {{posenc.name = "sine_"}}) {{
  %r = math.sin %a{len(arguments) - 1} : tensor<?xf32>
  return %r : tensor<?xf32>
}}
""", no_warnings=True, opt_level=0)


def test_names_of_generated_code(kernels):
    """Arguments may have names that generated code uses."""
    used = {"self", "out", "lambda", "result", "self_", "_workspace", "workspace_"}
    for name in kernels:
        code = kernels[name].__code__
        used |= {instruction.argval for instruction in dis.get_instructions(code)
                 if instruction.opname == "LOAD_GLOBAL"} | {*code.co_varnames}
    assert {"_call", "type", "_failures", "backend"} <= used
    sine = compile_sine("_call", sorted(used))._call
    x = np.arange(3 * len(used), dtype=np.float32).reshape(-1, 3)
    expected = np.sin(x[-1].astype(np.float64))
    out = np.empty(3, np.float32)
    assert is_close(sine(*x), expected) and sine(*x, out=out) is out
    assert is_close(out, expected)
    with pytest.raises(posenc.Error, match="int64, expected float32"):
        sine(*x[:-1], np.arange(3))


@pytest.mark.parametrize("name, method", [
    ('"1x"', "a1x"), ("_functions", "_functions_"), ("class", "class_"),
    ("Array", "Array"), ("_call", "_call")])
def test_names_of_functions(name, method):
    kernels = compile_sine(name, ["x"])
    x = np.arange(3, dtype=np.float32)
    assert list(kernels) == [name.strip('"')]
    for function in (kernels[name.strip('"')], getattr(kernels, method)):
        assert is_close(function(x), np.sin(x.astype(np.float64)))


def test_numbers_of_numpy():
    q, k, _, positions = make_inputs()
    scaling = types.MappingProxyType({"rope_type": "linear", "factor": np.float32(4)})
    q_out, _ = posenc.functional.rope(q, k, positions, theta=np.float32(500),
                                      scaling=scaling)
    assert is_close(q_out, rotate(q, positions / 4, 500.0))
    kernels = posenc.compile({**CONFIG, "rope_theta": np.float64(500),
                              "head_dim": np.int64(DIM), "rope_scaling": scaling},
                             kernels="rope", opt_level=0)
    assert np.array_equal(kernels.rope(q, k, positions)[0], q_out)


@pytest.mark.parametrize("rotary_dim, channels", [(30, 44), (26, 46), (58, 98), (98, 98)])
def test_rotary_dim(rotary_dim, channels):
    """The quotient of some, times the channels, is less than the number."""
    x = np.arange(2 * 3 * channels, dtype=np.float32).reshape(1, 3, 2, channels)
    positions = np.arange(3)[None]
    out, _ = posenc.functional.rope(x, x, positions, rotary_dim=rotary_dim)
    assert is_close(out[..., :rotary_dim], rotate(x[..., :rotary_dim], positions))
    assert np.array_equal(out[..., rotary_dim:], x[..., rotary_dim:])


def test_another_layout_of_tensors(monkeypatch):
    """Arrays whose type would be written elsewhere are refused."""
    _frameworks._check_layout()
    monkeypatch.setattr(_frameworks, "_CODE_OFFSET", _frameworks._CODE_OFFSET - 8)
    monkeypatch.setattr(_frameworks, "_exotic_types", _frameworks._ExoticTypes())
    _frameworks._check_layout.cache_clear()
    kernels = posenc.compile(CONFIG, dtype="bf16", kernels=["rope"], opt_level=0)
    q, k, _, positions = make_inputs()
    for _ in range(2):
        with pytest.raises(posenc.Error, match="another version of apache-tvm-ffi"):
            kernels.rope(q.astype(ml_dtypes.bfloat16), k, positions)
    _frameworks._check_layout.cache_clear()


def test_functional():
    q, k, _, positions = make_inputs()
    q_out, _ = posenc.functional.rope(q, k, positions, theta=5e5)
    assert is_close(q_out, rotate(q, positions, 5e5))
    scaled, _ = posenc.functional.rope(
        q, k, positions, scaling={"rope_type": "linear", "factor": 4.0})
    assert is_close(scaled, rotate(q, positions / 4))
    part, _ = posenc.functional.rope(q, k, positions, rotary_dim=16)
    assert np.all(part[..., 16:] == q[..., 16:])
    assert is_close(part[..., :16], rotate(q[..., :16], positions))


@pytest.mark.parametrize("options, message", [
    ({"rotary_dim": 7}, "rotary_dim is 7, expected an even number"),
    ({"scaling": {"rope_type": "none"}}, "rope_type"),
    ({"scaling": "linear"}, "scaling is a str, expected a dict"),
    ({"scaling": {"rope_type": "linear", "factor": "4"}}, "factor"),
    ({"theta": 0.0}, "rope: 'theta'"),
    ({"theta": "1e4"}, "rope: 'theta'"),
])
def test_functional_errors(options, message):
    q, k, _, positions = make_inputs()
    with pytest.raises(posenc.Error, match=message):
        posenc.functional.rope(q, k, positions, **options)
    with pytest.raises(posenc.Error, match="expected q as an array"):
        posenc.functional.rope(q[0], k, positions)
