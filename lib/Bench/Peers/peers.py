# ===- peers.py - other implementations of rope, for posenc-bench ----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# posenc-bench runs this beside itself, asks for a number of calls at a time and
# measures its own limit in between. One line of JSON in, one out:
#
#   {"command": "list", "shapes": [...]}
#       {"peers": {name: numbers of shapes}, "skipped": {name: reason}}
#   {"command": "open", "peer": name, "shape": shape}      {}
#   {"command": "run", "calls": n}                         {"seconds": of all}
#
# or {"error": text}. A shape has pairing, dtype, tokens, heads (of queries and
# of keys), dim and threads. Every peer rotates queries and keys [1, tokens, heads, dim] from tables of cos
# and sin that are made beforehand: what a framework does on each layer.

import importlib.util
import json
import sys
import time

BASE = 500000.0


def is_installed(*packages):
    return all(importlib.util.find_spec(name) for name in packages)


def make_angles(shape):
    """Position times frequency, [tokens, dim / 2]."""
    import numpy
    half = shape["dim"] // 2
    frequencies = BASE ** (-numpy.arange(half) / half)
    return numpy.outer(numpy.arange(shape["tokens"]), frequencies)


def make_tensors(shape):
    """Queries and keys in f32."""
    import numpy
    generator = numpy.random.default_rng(1)
    return [generator.standard_normal(
        (1, shape["tokens"], heads, shape["dim"]), dtype=numpy.float32)
        for heads in shape["heads"]]


# Each opens a shape: a function without arguments that rotates all tensors once
# and returns them, or has `get` to return them.


def open_numpy(shape):
    import numpy
    angles = make_angles(shape)[None, :, None, :]
    cos = numpy.cos(angles).astype(numpy.float32)
    sin = numpy.sin(angles).astype(numpy.float32)
    tensors = make_tensors(shape)
    half = shape["dim"] // 2
    if shape["pairing"] == "half":
        first, second = slice(0, half), slice(half, None)
    else:
        first, second = slice(0, None, 2), slice(1, None, 2)

    def rotate(x):
        y = numpy.empty_like(x)
        a, b = x[..., first], x[..., second]
        y[..., first] = a * cos - b * sin
        y[..., second] = b * cos + a * sin
        return y

    return lambda: [rotate(x) for x in tensors]


def make_torch(shape, convert):
    import numpy
    import torch
    torch.set_num_threads(shape["threads"])
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16,
             "f16": torch.float16}[shape["dtype"]]
    angles = make_angles(shape)
    if shape["pairing"] == "half":
        angles = numpy.concatenate([angles, angles], axis=-1)
    else:
        angles = numpy.repeat(angles, 2, axis=-1)
    cos, sin = (torch.tensor(table(angles)[None, :, None, :], dtype=dtype)
                for table in (numpy.cos, numpy.sin))
    tensors = [torch.from_numpy(x).to(dtype) for x in make_tensors(shape)]

    # As transformers writes it, for each pairing.
    def turn_half(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    def turn_interleaved(x):
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)

    turn = turn_half if shape["pairing"] == "half" else turn_interleaved

    def rotate(tensors, cos, sin):
        return [x * cos + turn(x) * sin for x in tensors]

    rotate = convert(rotate)

    def call():
        with torch.no_grad():
            return rotate(tensors, cos, sin)

    return call


def open_torch(shape):
    return make_torch(shape, lambda rotate: rotate)


def open_torch_compile(shape):
    import torch
    return make_torch(shape, lambda rotate: torch.compile(rotate,
                                                          dynamic=False))


def open_onnxruntime(shape):
    import numpy
    import onnx
    import onnxruntime
    kind = numpy.float32 if shape["dtype"] == "f32" else numpy.float16
    element = onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(kind))
    angles = make_angles(shape)
    nodes, inputs, outputs, feeds = [], [], [], {}
    for number, x in enumerate(make_tensors(shape)):
        heads = x.shape[2]
        # Batch, sequence, all lanes of all heads.
        x = x.astype(kind).reshape(1, shape["tokens"], heads * shape["dim"])
        nodes.append(onnx.helper.make_node(
            "RotaryEmbedding", [f"x{number}", "positions", "cos", "sin"],
            [f"y{number}"], domain="com.microsoft", num_heads=heads,
            interleaved=int(shape["pairing"] == "interleaved")))
        for name, values in ((f"x{number}", inputs), (f"y{number}", outputs)):
            values.append(onnx.helper.make_tensor_value_info(
                name, element, x.shape))
        feeds[f"x{number}"] = x
    positions = numpy.arange(shape["tokens"], dtype=numpy.int64)[None, :]
    constants = [
        onnx.numpy_helper.from_array(values, name) for name, values in (
            ("positions", positions), ("cos", numpy.cos(angles).astype(kind)),
            ("sin", numpy.sin(angles).astype(kind)))]
    graph = onnx.helper.make_graph(nodes, "rope", inputs, outputs, constants)
    model = onnx.helper.make_model(graph, opset_imports=[
        onnx.helper.make_opsetid("", 17),
        onnx.helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = shape["threads"]
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options,
        providers=["CPUExecutionProvider"])
    # Memory that is there beforehand, not new for each call.
    binding = session.io_binding()
    results = []
    for number, x in enumerate(feeds.values()):
        result = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.empty_like(x))
        binding.bind_ortvalue_input(
            f"x{number}", onnxruntime.OrtValue.ortvalue_from_numpy(x))
        binding.bind_ortvalue_output(f"y{number}", result)
        results.append((result, x.shape[2] // shape["dim"]))

    def call():
        session.run_with_iobinding(binding)
        return results

    call.get = lambda: [
        result.numpy().reshape(1, shape["tokens"], heads, shape["dim"])
        for result, heads in results]
    return call


def open_openvino(shape):
    import numpy
    import openvino
    from openvino import opset13 as ops
    kind = openvino.Type.f32 if shape["dtype"] == "f32" else openvino.Type.bf16
    half = shape["dim"] // 2
    angles = make_angles(shape)
    angles = numpy.concatenate([angles, angles], axis=-1)[None, None]
    cos, sin = (ops.convert(ops.constant(table(angles).astype(numpy.float32)),
                            kind) for table in (numpy.cos, numpy.sin))
    # The form that its CPU plugin replaces by an operation of its own, which
    # has heads before tokens.
    parameters, results, feeds = [], [], []
    for x in make_tensors(shape):
        x = numpy.ascontiguousarray(x.transpose(0, 2, 1, 3))
        parameter = ops.parameter(list(x.shape), kind)
        first, second = ops.variadic_split(
            parameter, ops.constant(3), ops.constant([half, half])).outputs()
        minus = ops.convert(ops.constant(numpy.float32(-1)), kind)
        turned = ops.concat([ops.multiply(second, minus), first], 3)
        results.append(ops.add(ops.multiply(parameter, cos),
                               ops.multiply(turned, sin)))
        parameters.append(parameter)
        feeds.append(x)
    core = openvino.Core()
    compiled = core.compile_model(
        openvino.Model(results, parameters), "CPU",
        {"INFERENCE_NUM_THREADS": shape["threads"],
         "INFERENCE_PRECISION_HINT": shape["dtype"],
         "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    for number, x in enumerate(feeds):
        tensor = openvino.Tensor(kind, list(x.shape))
        if shape["dtype"] == "f32":
            tensor.data[:] = x
        else:
            tensor.data[:] = (x.view(numpy.uint32) >> 16).astype(
                numpy.uint16).view(tensor.data.dtype)
        request.set_input_tensor(number, tensor)

    def call():
        request.infer()

    call.get = lambda: [
        request.get_output_tensor(number).data.transpose(0, 2, 1, 3)
        for number in range(len(feeds))]
    return call


def on_one_thread(shape):
    return shape["dtype"] == "f32" and shape["threads"] == 1


def any_shape(shape):
    return True


def with_kernel(shape):
    # RotaryEmbedding has no bf16 on CPUs.
    return shape["dtype"] != "bf16"


def with_fusion(shape):
    return shape["pairing"] == "half" and shape["dtype"] != "f16"


PEERS = {
    "numpy": (open_numpy, on_one_thread, ["numpy"]),
    "torch": (open_torch, any_shape, ["torch", "numpy"]),
    "torch-compile": (open_torch_compile, any_shape, ["torch", "numpy"]),
    "onnxruntime": (open_onnxruntime, with_kernel,
                    ["onnxruntime", "onnx", "numpy"]),
    "openvino": (open_openvino, with_fusion, ["openvino", "numpy"]),
}


def find_missing(name):
    packages = PEERS[name][2]
    missing = [package for package in packages if not is_installed(package)]
    if missing:
        return f"no Python package {' or '.join(missing)}"
    if name == "torch-compile":
        import torch
        if not hasattr(torch, "compile"):
            return f"torch {torch.__version__} has no torch.compile"
    return None


def check(shape, call):
    """A peer that computes something else is not compared with."""
    import numpy
    if shape["dtype"] != "f32":
        return
    results = call()
    results = call.get() if hasattr(call, "get") else results
    plain = open_numpy({**shape, "threads": 1})()
    for result, expected in zip(results, plain):
        error = numpy.abs(numpy.asarray(result) - expected).max()
        if not error < 1e-2:
            raise ValueError(f"its results are off by {error}")


class Server:
    def __init__(self):
        self.call = None

    def handle(self, request):
        if request["command"] == "list":
            skipped = {name: find_missing(name) for name in PEERS}
            skipped = {name: why for name, why in skipped.items() if why}
            peers = {name: [number for number, shape
                            in enumerate(request["shapes"]) if supports(shape)]
                     for name, (_, supports, _) in PEERS.items()
                     if name not in skipped}
            return {"peers": peers, "skipped": skipped}
        if request["command"] == "open":
            self.call = None
            shape = request["shape"]
            self.call = PEERS[request["peer"]][0](shape)
            check(shape, self.call)
            self.call()
            return {}
        start = time.perf_counter()
        for _ in range(request["calls"]):
            self.call()
        return {"seconds": time.perf_counter() - start}


def main():
    # Packages print what they like; the answers have a way of their own.
    answers = sys.stdout
    sys.stdout = sys.stderr
    server = Server()
    for line in sys.stdin:
        try:
            answer = server.handle(json.loads(line))
        except Exception as error:  # whatever a package throws
            text = " ".join(str(error).split()) or type(error).__name__
            answer = {"error": text[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
