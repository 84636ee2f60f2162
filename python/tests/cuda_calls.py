# ===- cuda_calls.py - calls on a fake CUDA device -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The checks of test_cuda.py, in a process whose CUDA driver interprets PTX. Arrays have
hand-made capsules of DLPack. Prints the error of each check, as JSON."""

import contextlib
import ctypes
import functools
import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
import types

import numpy as np
import tvm_ffi

import posenc
from posenc import _cuda, _methods, _source
from posenc._attention_mlir import Attention, write_attention
from posenc.vllm import _kernels
from conftest import CONFIG, attend, is_close, make_inputs, rotate

try:
    import jax
    import xla_calls
except ImportError:
    jax = None

driver = ctypes.CDLL("libcuda.so.1")
# Attributes of ctypes.pythonapi are shared, and JAX sets their types.
new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
    ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
get_pointer = ctypes.PYFUNCTYPE(
    ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))


def cuda(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, f"{name} returns {code}"


context = ctypes.c_void_p()
cuda("cuInit", 0)
cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
cuda("cuCtxSetCurrent", context)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def keep(_):
    """The deleter of tensors that are never deleted."""


class DeviceArray:
    """An array in the memory of the device."""

    def __init__(self, array, device=0):
        self.shape, self.dtype, self.device = array.shape, array.dtype, device
        self.streams = []  # those that were given to __dlpack__
        array = np.ascontiguousarray(array)
        self.address = ctypes.c_uint64()
        if array.nbytes:
            cuda("cuMemAlloc_v2", ctypes.byref(self.address),
                 ctypes.c_size_t(array.nbytes))
            cuda("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(array.ctypes.data),
                 ctypes.c_size_t(array.nbytes))
        self.sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        code = {"f": 2, "i": 0, "u": 1, "b": 6}[array.dtype.kind]
        self.managed = _cuda._ManagedTensor(
            _cuda._DLTensor(self.address.value, 2, device, array.ndim, code,
                            8 * array.dtype.itemsize, 1, self.sizes, None, 0),
            None, ctypes.cast(keep, ctypes.c_void_p))

    def __dlpack_device__(self):
        return 2, self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def read(array):
    """Returns the elements of an array on the device."""
    assert array.__dlpack_device__() == (2, 0)
    capsule = array.__dlpack__()
    tensor = _cuda._DLTensor.from_address(get_pointer(capsule, b"dltensor"))
    kind = {2: "f", 0: "i"}[tensor.code]
    result = np.empty(tensor.shape[:tensor.ndim], f"{kind}{tensor.bits // 8}")
    cuda("cuMemcpyDtoH_v2", ctypes.c_void_p(result.ctypes.data),
         ctypes.c_uint64(tensor.data + tensor.byte_offset),
         ctypes.c_size_t(result.nbytes))
    return result


def raises(call, *texts):
    try:
        call()
    except posenc.Error as error:
        assert all(text in str(error) for text in texts), str(error)
    else:
        raise AssertionError(f"expected the error {texts}")


def read_log():
    """Returns the lines of the driver's log since the last call."""
    path = os.environ["POSENC_FAKE_CUDA_LOG"]
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    os.remove(path)
    return lines


kernels = posenc.compile(CONFIG)
host = make_inputs()
q, k, v, positions = map(DeviceArray, host)


def check_rope():
    q_out, k_out = kernels.rope(q, k, positions)
    expected = kernels.rope(*host[:2], host[3])
    assert np.array_equal(read(q_out), expected[0])
    assert np.array_equal(read(k_out), expected[1])
    assert is_close(read(q_out), rotate(host[0], host[3]))
    # The arrays were made ready for the default stream.
    assert q.streams[-1] == 1
    # Results are inputs of other calls.
    again = kernels.rope(q_out, k_out, positions)[0]
    assert np.array_equal(read(again), kernels.rope(*expected, host[3])[0])


def check_attention():
    read_log()
    result = kernels.attention(q, k, v, positions)
    expected = attend(*(rotate(x, host[3]) for x in host[:2]), host[2])
    assert is_close(read(result), expected, 1e-5)
    del result
    # The workspace and the result were allocated and released.
    lines = read_log()
    assert sum(line.startswith("allocate") for line in lines) == 2, lines
    assert lines.count("release") == 2, lines


def check_capture():
    """The entry point in a graph: attention with its workspace, replayed with other
    queries."""
    code, function = _source.compile_for_cuda(kernels._spec, "attention", "cuda:sm_90a")
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    measure = ctypes.CFUNCTYPE(size, *[size] * len(function["sizes"]))(
        code.symbol(function["cuda_workspace"]))
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[pointer] * 8, ctypes.c_size_t)(
        code.symbol(function["cuda"]))
    query, output = DeviceArray(np.zeros_like(host[0])), DeviceArray(np.ones_like(host[0]))
    workspace = DeviceArray(np.zeros(measure(*host[0].shape[:2]), np.uint8))
    stream, graph, executable = pointer(), pointer(), pointer()
    message = ctypes.create_string_buffer(256)
    tensors = [ctypes.addressof(array.managed)
               for array in (query, k, v, positions, output)]
    cuda("cuStreamCreate", ctypes.byref(stream), 1)
    read_log()
    cuda("cuStreamBeginCapture_v2", stream, 0)
    assert entry(*tensors, workspace.address.value, stream, ctypes.addressof(message),
                 256) == 0, message.value
    cuda("cuStreamEndCapture", stream, ctypes.byref(graph))
    count = ctypes.c_size_t()
    cuda("cuGraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value > 1  # The keys are rotated first.
    cuda("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph,
         ctypes.c_uint64(0))
    for factor in (1, 2):
        given = factor * host[0]
        cuda("cuMemcpyHtoD_v2", query.address, pointer(given.ctypes.data),
             ctypes.c_size_t(given.nbytes))
        cuda("cuGraphLaunch", executable, stream)
        cuda("cuStreamSynchronize", stream)
        expected = attend(*(rotate(x, host[3]) for x in (given, host[1])), host[2])
        assert is_close(read(output), expected, 1e-5)
    assert not any(line.startswith(("allocate", "release")) for line in read_log())


def check_masked():
    """The functions of posenc.transformers, whose keys are as in its caches."""
    for name, tokens in (("masked", None), ("decode_masked", 1)):
        spec = Attention(4, 2, 32, 32, "f32", "f32", tokens=tokens, keys="cache",
                         has_mask=True)
        queries = host[0][:, :tokens]
        keys, values = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in host[1:3])
        mask = np.random.default_rng(5).random((2, 1, queries.shape[1], 7)) < 0.5
        mask[..., 0] = True
        inputs = queries, keys, values, mask
        function = posenc.compile(write_attention(spec, name), opt_level=0)[name]
        assert is_close(read(function(*map(DeviceArray, inputs))), function(*inputs), 1e-5)


def check_functional():
    result = posenc.functional.attention(q, k, v, causal=True)
    assert is_close(read(result), attend(*host[:3]), 1e-5)


def check_flex():
    arrays = [x.swapaxes(1, 2).copy() for x in host[:3]]
    functions = {"score_mod": lambda s, b, h, i, j: s * 0.5 - abs(i - j),
                 "mask_mod": lambda b, h, i, j: (i >= j) | (j < 2), "enable_gqa": True}
    expected = posenc.flex_attention(*arrays, **functions)
    result = posenc.flex_attention(*map(DeviceArray, arrays), **functions)
    assert is_close(read(result), expected, 1e-5)


def check_out():
    x, y = DeviceArray(host[0]), DeviceArray(host[1])
    result = kernels.rope(x, y, positions, out=(x, y))
    assert result[0] is x and result[1] is y
    assert np.array_equal(read(x), kernels.rope(*host[:2], host[3])[0])


def check_errors():
    raises(lambda: kernels.rope(q, host[1], positions),
           "rope: k is on the CPU, but q is on the CUDA device 0: move them to one device")
    raises(lambda: kernels.rope(q, k, DeviceArray(host[3], device=1)),
           "rope: positions is on the CUDA device 1, but q is on the CUDA device 0")
    raises(lambda: kernels.rope(host[0], k, host[3]), "rope: k ", "the CPU")
    raises(lambda: kernels.rope(q, q, positions), "dimension 2 of k is 4, expected 2")
    raises(lambda: kernels.rope(q, k, q), "positions has elements of type float32")
    raises(lambda: kernels.rope(q, k, positions, out=(host[0], host[1])),
           "is on the CPU, but q is on the CUDA device 0")
    raises(lambda: kernels.rope(DeviceArray(host[0], device=7), k, positions),
           "rope: q is on the CUDA device 7: there is no CUDA device 7")


def check_targets():
    both = posenc.compile(CONFIG, kernels="rope", target=["host", "cuda:sm_80"],
                          opt_level=0)
    assert both.metadata["targets"][1:] == ["cuda:sm_80"]
    before = _methods.compile_for_cuda
    _methods.compile_for_cuda = None  # The code is there.
    try:
        result = both.rope(q, k, positions)[0]
    finally:
        _methods.compile_for_cuda = before
    expected = both.rope(*host[:2], host[3])[0]
    assert np.array_equal(read(result), expected)
    alone = posenc.compile(CONFIG, kernels="rope", target="cuda:sm_90")
    assert np.array_equal(read(alone.rope(q, k, positions)[0]), expected)
    raises(lambda: alone.rope(*host[:2], host[3]), "rope: q ", "expected CUDA")
    on_cpu = posenc.compile(CONFIG, kernels="rope", target="host", opt_level=0)
    raises(lambda: on_cpu.rope(q, k, positions),
           "rope: there is no code for 'cuda:sm_90a', since `target` has none")
    newer = posenc.compile(CONFIG, kernels="rope", target="cuda:sm_120")
    raises(lambda: newer.rope(q, k, positions),
           "there are no kernels for this GPU, of compute capability 9.0")


def check_collection():
    """The garbage collector, which may run anywhere, deletes results while another one
    is allocated."""
    class Collecting(dict):
        def __setitem__(self, key, value):
            gc.collect()
            super().__setitem__(key, value)

    managed, _cuda._managed = _cuda._managed, Collecting(_cuda._managed)
    try:
        before = len(_cuda._managed)
        for _ in range(3):
            cycle = [_cuda._empty(0, (3,), "float32")]
            cycle.append(cycle)
        assert len(_cuda._managed) == before + 2
        del cycle
        gc.collect()
        assert len(_cuda._managed) == before
    finally:
        managed.clear()
        managed.update(_cuda._managed)
        _cuda._managed = managed


def check_fork():
    """A process that is forked from one that has used CUDA cannot use it."""
    out = DeviceArray(np.zeros_like(host[0])), DeviceArray(np.zeros_like(host[1]))
    kernels.rope(q, k, positions, out=out)
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        messages = []
        for given in (out, None):
            try:
                kernels.rope(q, k, positions, out=given)
            except Exception as error:
                messages.append(str(error))
        os.write(writer, json.dumps(messages).encode())
        os._exit(0)
    os.waitpid(process, 0)
    messages = json.loads(os.read(reader, 4096))
    assert len(messages) == 2 and all("forked from" in one for one in messages), messages


def check_library():
    with tempfile.TemporaryDirectory() as folder:
        def load(target):
            with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
                json.dump(CONFIG, file)
            compiler = os.path.join(os.environ["POSENC_BIN"], "posenc-compile")
            library = f"{folder}/libx.so"
            subprocess.run([compiler, f"{folder}/config.json", "-o", library,
                            "--kernels=rope", f"--target={target}"], check=True)
            return posenc.load(library)

        on_cpu, on_cuda = load("host"), load("cuda:sm_80")
    raises(lambda: on_cpu.rope(q, k, positions),
           "rope: the library has no code for CUDA: compile it with "
           "--target=cuda:sm_90a, too")
    expected = on_cpu.rope(*host[:2], host[3])[0]
    assert np.array_equal(read(on_cuda.rope(q, k, positions)[0]), expected)
    # Code of a library finds the stream, too.
    function = vars(type(on_cuda))["rope"].__globals__["_function"]
    out = DeviceArray(np.zeros_like(host[0])), DeviceArray(np.zeros_like(host[1]))
    tensors = [_cuda._export(array, 1) for array in (q, k, positions, *out)]
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    cuda("cuStreamCreate", ctypes.byref(stream), 1)
    cuda("cuStreamBeginCapture_v2", stream, 0)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), stream.value):
        function.call(*tensors)
    cuda("cuStreamEndCapture", stream, ctypes.byref(graph))
    count = ctypes.c_size_t()
    cuda("cuGraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value and not read(out[0]).any()


def check_unsupported():
    module = posenc.compile(
        "func.func @f(%x: tensor<?x4xf32>, %y: tensor<4x4xf32>, %o: tensor<?x4xf32>)\n"
        "    -> tensor<?x4xf32> {\n"
        "  %r = linalg.matmul ins(%x, %y : tensor<?x4xf32>, tensor<4x4xf32>)\n"
        "    outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>\n"
        "  return %r : tensor<?x4xf32>\n}\n",
        opt_level=0)
    x = DeviceArray(np.ones((4, 4), np.float32))
    raises(lambda: module.f(x, x, x), "f: has no code for CUDA devices: ",
           "linalg.matmul")


class CupyArray(DeviceArray):
    """As an array of CuPy."""

    def __getitem__(self, index):
        return CupyArray(read(self)[index])

    def __add__(self, other):
        return CupyArray(read(self) + read(other))

    def astype(self, dtype, order="K"):
        return CupyArray(read(self).astype(dtype, order))


CupyArray.__module__ = "cupy"


def check_cupy():
    """Calls are in CuPy's current stream, and arrays that they need besides are on the
    device."""
    stream = ctypes.c_void_p()
    cuda("cuStreamCreate", ctypes.byref(stream), 1)
    sys.modules["cupy"] = types.SimpleNamespace(
        empty=lambda shape, dtype: CupyArray(np.zeros(shape, dtype)), asarray=CupyArray,
        cuda=types.SimpleNamespace(
            Device=lambda index: contextlib.nullcontext(),
            get_current_stream=lambda: types.SimpleNamespace(ptr=stream.value)))
    try:
        x, y, z = (CupyArray(one) for one in host[:3])
        result = posenc.functional.attention(x, y, z, causal=True, theta=1e4)
        assert isinstance(result, CupyArray) and x.streams[-1] == stream.value
        at = np.arange(7)[None].repeat(2, 0)
        keys = rotate(host[1], at).astype(np.float32)
        expected = attend(rotate(host[0], at), keys, host[2])
        assert is_close(read(result), expected, 1e-5)
        # The caches have the tokens that the lengths say, here of 32 bits.
        lengths = CupyArray(np.array([7, 5], np.int32))
        caches = [CupyArray(one.transpose(0, 2, 1, 3)) for one in (keys, host[2])]
        query = np.stack([host[0][0, 6:7], host[0][1, 4:5]])
        result = read(posenc.functional.decode(
            CupyArray(query), *caches, lengths, theta=1e4))
        assert is_close(result, np.stack([expected[0, 6:7], expected[1, 4:5]]), 1e-5)
    finally:
        del sys.modules["cupy"]


class View:
    """A part of an array on the device, by sizes, strides and an offset in elements."""

    def __init__(self, array, sizes, strides, offset):
        self.shape, self.dtype, self.base = sizes, array.dtype, array
        self.sizes, self.strides = ((ctypes.c_int64 * len(sizes))(*one)
                                    for one in (sizes, strides))
        self.managed = _cuda._ManagedTensor(
            _cuda._DLTensor(
                array.address.value, 2, 0, len(sizes), array.managed.tensor.code,
                array.managed.tensor.bits, 1, self.sizes,
                ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)),
                offset * array.dtype.itemsize), None, ctypes.cast(keep, ctypes.c_void_p))

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        return new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


def check_vllm():
    """The kernels of the plug-in for vLLM, with keys and values side by side in one cache
    [blocks, slots, key heads, 2 * dim], as FLASH_ATTN has it."""
    heads, key_heads, dim, slots, blocks = 4, 2, 32, 16, 5
    cache = DeviceArray(np.full((blocks, slots, key_heads, 2 * dim), 9, np.float32))
    strides = slots * key_heads * 2 * dim, 2 * dim, key_heads * 2 * dim, 1
    views = [View(cache, (blocks, key_heads, slots, dim), strides, offset)
             for offset in (0, dim)]
    new, lengths = [7, 1], [7, 20]
    table = np.array([[3, 0], [1, 4]], np.int32)
    generator = np.random.default_rng(3)

    def make(*sizes):
        return generator.standard_normal(sizes).astype(np.float32)

    append = _kernels.compile_append(key_heads, dim, "f32", _kernels.Cache("f32"))
    layer = _kernels.Layer(heads, key_heads, dim, 0.2, 9, None, False, True)
    function = _kernels.compile_attention(layer, "f32", _kernels.Cache("f32"), True)
    rows = [make(2, length, key_heads, dim) for length in lengths]
    for pages, (k, v) in zip(table, rows):
        at = np.arange(len(k))
        # A token of padding is not written.
        places = np.append(pages[at // slots].astype(np.int64) * slots + at % slots, -1)
        padded = [DeviceArray(np.append(x, x[:1], 0)) for x in (k, v)]
        append(*padded, DeviceArray(places), *views, out=tuple(views))
    queries, sinks = make(sum(new), heads, dim), make(heads)
    out = DeviceArray(np.zeros_like(queries))
    function(DeviceArray(queries), *views, DeviceArray(sinks),
             DeviceArray(np.array(lengths, np.int32)), DeviceArray(table),
             DeviceArray(np.array([0, *np.cumsum(new)], np.int32)), out=out)
    first, results = 0, read(out)
    for count, (k, v) in zip(new, rows):
        for row in range(count):
            seen = slice(max(0, len(k) - count + row - 8), len(k) - count + row + 1)
            for head in range(heads):
                scores = 0.2 * k[seen, head // 2] @ queries[first + row, head]
                weights = np.exp(np.append(scores, sinks[head]))
                expected = (weights[:-1] / weights.sum()) @ v[seen, head // 2]
                assert np.abs(results[first + row, head] - expected).max() < 1e-5
        first += count
    stored = read(cache)
    assert np.array_equal(stored[4, :4, :, :dim], rows[1][0][16:])
    assert (stored[2] == 9).all() and (stored[4, 4:] == 9).all()


def prepare_jax(function, *inputs):
    """Lowers a call under jax.jit for the device. Returns its target, and arrays for its
    results and workspace."""
    with xla_calls.record_targets() as targets, xla_calls.pretend_devices(0):
        text = xla_calls.lower(function, *inputs)
    [(name, _, results)] = xla_calls.read_calls(text)
    assert "sm_90a" in name
    return targets[name], [DeviceArray(np.full(shape, 7, dtype))
                           for shape, dtype in results]


def check_jax():
    """Calls under jax.jit, with the stream of XLA, which may be captured."""
    own = posenc.compile(CONFIG, precision="hf_f32")  # Their targets were not made yet.
    target, results = prepare_jax(own.rope, *host[:2], host[3])
    assert target.get_traits() == 1  # It is compatible with command buffers.
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), 1):
        target([q, k, positions], results)
        assert _get_stream() == 1
    expected = own.rope(*host[:2], host[3])
    assert all(np.array_equal(read(x), y) for x, y in zip(results, expected))
    target, results = prepare_jax(own.attention, *host)
    output, workspace = results
    assert workspace.dtype == np.uint8 and workspace.shape[0] > 1
    stream, graph, executable = (ctypes.c_void_p() for _ in range(3))
    cuda("cuStreamCreate", ctypes.byref(stream), 1)
    read_log()
    cuda("cuStreamBeginCapture_v2", stream, 0)
    target([q, k, v, positions], results, stream)
    cuda("cuStreamEndCapture", stream, ctypes.byref(graph))
    assert (read(output) == 7).all()
    cuda("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph,
         ctypes.c_uint64(0))
    cuda("cuGraphLaunch", executable, stream)
    cuda("cuStreamSynchronize", stream)
    assert np.array_equal(read(output), read(own.attention(q, k, v, positions)))
    assert is_close(read(output), attend(*(rotate(x, host[3]) for x in host[:2]), host[2]),
                    1e-5)


def _get_stream():
    get = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi()).TVMFFIEnvGetStream
    get.restype = ctypes.c_void_p
    return get(2, 0)


def check_jax_flex():
    arrays = [x.swapaxes(1, 2).copy() for x in host[:3]]

    def call(*inputs):
        return posenc.flex_attention(*inputs, score_mod=lambda s, b, h, i, j: s - (i - j),
                                     mask_mod=lambda b, h, i, j: i >= j, enable_gqa=True)

    target, results = prepare_jax(call, *arrays)
    target(list(map(DeviceArray, arrays)), results)
    assert is_close(read(results[0]), call(*arrays), 1e-5)


def check_jax_gradient():
    """The gradient of a rotation, a call with the gradients and negative positions."""
    rope = posenc.compile(CONFIG, kernels="rope", rope_length=77).rope

    def differentiate(gradient):
        return jax.vjp(lambda q: rope(q, host[1], host[3])[0], host[0])[1](gradient)

    target, results = prepare_jax(differentiate, np.ones_like(host[0]))
    weights = make_inputs(seed=1)[0]
    target([DeviceArray(weights), DeviceArray(np.zeros_like(host[1])),
            DeviceArray(-host[3])], results)
    assert is_close(read(results[0]), rotate(weights, host[3], sign=-1))


def check_jax_errors():
    rope = posenc.compile(CONFIG, kernels=["rope"], rope_length=99).rope
    call = functools.partial(xla_calls.lower, rope, *host[:2], host[3])
    raises(call,
           "rope: cannot be lowered for CUDA, as JAX has no CUDA device here")
    with xla_calls.pretend_devices(7):
        raises(call,
               "rope: q is on the CUDA device 7: there is no CUDA device 7")
    query = _cuda._query
    _cuda._query = lambda index: _cuda._Facts(arch=(70, 80, 90)[index])
    try:
        with xla_calls.pretend_devices(0):
            raises(call,
                   "rope: q is on the CUDA device 0, which has compute capability 7.0")
        with xla_calls.pretend_devices(1, 2):
            raises(call, "rope: the CUDA devices have different "
                   "architectures, cuda:sm_80 and cuda:sm_90a: compile for all")
    finally:
        _cuda._query = query
    target, results = prepare_jax(kernels.rope, *host[:2], host[3])
    try:
        target([q, k, positions], results, device=99)
    except RuntimeError as error:
        assert "rope: there is no CUDA device 99" in str(error), error
    else:
        raise AssertionError("expected an error")


def check_architecture():
    query = _cuda._query
    assert query(0).arch == 90
    _cuda._query = lambda index: _cuda._Facts(arch=70)
    try:
        raises(lambda: posenc.compile(CONFIG).rope(q, k, positions),
               "rope: q is on the CUDA device 0, which has compute capability 7.0: there "
               "is code for 7.5 and newer only")
    finally:
        _cuda._query = query


def run(names):
    errors = {}
    for name in names:
        try:
            globals()[f"check_{name}"]()
            errors[name] = None
        except Exception:
            errors[name] = traceback.format_exc()
    print(json.dumps(errors))


if __name__ == "__main__":
    run(sys.argv[1:])
