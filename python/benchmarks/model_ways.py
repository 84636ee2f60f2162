# ===- model_ways.py - ways to run a decoder ----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The ways to run a decoder that models.py compares. Each system has a process of its
own, with its number of threads:

    system = System("onnxruntime", model, threads=2)
    logits = system.ask("prepare", "onnxruntime", case)
    seconds, cpu_seconds = system.ask("measure", "onnxruntime")

With TRACE=1 in the environment, the processes print where their errors were raised.
"""

import importlib.util
import multiprocessing
import os
import time
import warnings
from typing import NamedTuple


class Case(NamedTuple):
    """A call with `tokens` new tokens behind `past` older ones."""

    phase: str
    tokens: int
    past: int

    @property
    def total(self):
        return self.past + self.tokens


class Model(NamedTuple):
    """A model that llama_model.py wrote, and the library that it was compiled to."""

    config: object
    path: str
    # The offset in the file and the shape of each weight.
    places: dict
    library: str


def make_feeds(config, case):
    """Returns the inputs of a call by name; caches are random, and have no room left."""
    import numpy as np
    from llama_model import store

    random = np.random.default_rng(case.total)
    ids = random.integers(0, config.vocabulary, (1, case.tokens))
    shape = (1, config.kv_heads, case.total, config.head)
    caches = [store(random.standard_normal(shape, np.float32), config.dtype)
              for _ in range(2 * config.layers)]
    return config.get_inputs(ids, np.ones((1, case.total), np.int64), caches)


def to_torch(array, dtype):
    """Returns a tensor of the same memory; bf16 has the bits of integers."""
    import torch

    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if dtype == "bf16" and array.itemsize == 2 else tensor


class _PyTorch:
    """All ways have one copy of the weights."""

    def __init__(self, model, threads):
        import torch
        import torch_decoder

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        # All ways and cases have the same code.
        torch._dynamo.config.recompile_limit = 64
        self.config = model.config
        self.decoder = torch_decoder.load(model)

    def prepare(self, way, case):
        import torch
        import torch_decoder

        feeds = [to_torch(array, self.config.dtype) if array.ndim == 4 else
                 torch.from_numpy(array) for array in make_feeds(self.config, case).values()]
        inputs = feeds[0], torch.arange(case.past, case.total), feeds[2:]
        if way == "exported":
            return self._export(torch_decoder, inputs)
        if way == "eager":
            return lambda: self.decoder(*inputs)
        if way == "inductor":
            compiled = torch.compile(self.decoder, dynamic=False)
        else:
            import posenc.torch

            posenc.torch.explain_backend(clear=True)
            compiled = torch.compile(self.decoder, backend="posenc", dynamic=False)
            compiled(*inputs)
            report, = posenc.torch.explain_backend()
            found = [str(line) for line in report.replaced]
            if len(found) < 3 * self.config.layers:
                raise RuntimeError(f"not all was replaced: {report}")
        return lambda: compiled(*inputs)

    def _export(self, torch_decoder, inputs):
        import posenc.torch
        import torch

        if importlib.util.find_spec("torch_mlir") is None:
            raise RuntimeError("torch-mlir is not installed")
        ids, positions, caches = inputs
        # Exported programs do not write to their inputs, and get the older tokens only.
        pure = torch_decoder.Pure(self.decoder)
        caches = [cache[:, :, :-len(positions)].contiguous() for cache in caches]
        program = torch.export.export(pure, (ids, positions, caches))
        function = posenc.torch.compile_exported(program, freeze=True, no_warnings=True)
        return lambda: function(ids, positions, caches)


class _OnnxRuntime:
    def __init__(self, model, threads):
        import onnxruntime

        self.config = model.config
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(
            model.path, options, providers=["CPUExecutionProvider"])

    def prepare(self, way, case):
        import onnxruntime

        binding, inputs = self.session.io_binding(), []
        for name, array in make_feeds(self.config, case).items():
            inputs.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
            binding.bind_ortvalue_input(name, inputs[-1])
        binding.bind_output("logits")
        # Caches grow in place.
        for output, value in zip(self.session.get_outputs()[1:], inputs[2:]):
            binding.bind_ortvalue_output(output.name, value)

        def call():
            self.session.run_with_iobinding(binding)
            return binding.get_outputs()[0].numpy()

        return call


class _OpenVino:
    def __init__(self, model, threads):
        import openvino

        self.config = model.config
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": model.config.dtype}
        if model.config.bits and model.config.accuracy_level != 4:
            # It would round activations to 8 bits.
            settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
        self.compiled = core.compile_model(core.read_model(model.path), "CPU", settings)

    def prepare(self, way, case):
        import openvino

        kinds = {"bf16": openvino.Type.bf16}
        kind = kinds.get(self.config.dtype)
        request = self.compiled.create_infer_request()
        feeds = {name: openvino.Tensor(array, array.shape, kind)
                 if kind and array.ndim == 4 else openvino.Tensor(array, shared_memory=True)
                 for name, array in make_feeds(self.config, case).items()}
        logits = self.compiled.output("logits")
        return lambda: request.infer(feeds, share_inputs=True, share_outputs=True)[logits]


class _Posenc:
    def __init__(self, model, threads):
        import posenc

        self.config = model.config
        kernels = posenc.load(model.library)
        self.function = getattr(kernels, next(iter(kernels)))

    def prepare(self, way, case):
        inputs = list(make_feeds(self.config, case).values())
        shape = 1, 1, self.config.vocabulary
        if self.config.dtype == "bf16":
            import torch

            inputs = [to_torch(array, "bf16") for array in inputs]
            logits = torch.empty(shape, dtype=torch.bfloat16)
        else:
            import numpy as np

            logits = np.empty(shape, inputs[2].dtype)
        out = logits, *inputs[2:]  # Caches grow in place.

        def call():
            self.function(*inputs, out=out)
            return logits

        return call


SYSTEMS = {"posenc": _Posenc, "onnxruntime": _OnnxRuntime, "openvino": _OpenVino,
           "torch": _PyTorch}
# The name of each way, and its system.
WAYS = {"posenc": "posenc", "onnxruntime": "onnxruntime", "openvino": "openvino",
        "inductor": "torch", "backend": "torch", "eager": "torch", "exported": "torch"}
TITLES = {"posenc": "Posenc from ONNX", "onnxruntime": "ONNX Runtime",
          "openvino": "OpenVINO", "inductor": "torch.compile (Inductor)",
          "backend": 'torch.compile (backend="posenc")', "eager": "PyTorch eager",
          "exported": "compile_exported"}


def _serve(pipe, system, model, threads):
    """The process of a system: answers requests until the pipe is closed."""
    import numpy as np

    calls, process = {}, None
    while True:
        try:
            request, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            if request == "prepare":
                process = process or SYSTEMS[system](model, threads)
                way, case = arguments
                calls[way] = process.prepare(way, case)
                logits = calls[way]()
                if isinstance(logits, (tuple, list)):
                    logits = logits[0]
                if hasattr(logits, "detach"):
                    logits = logits.detach().float().numpy()
                pipe.send(np.array(logits, np.float32).reshape(-1))
            elif request == "release":
                pipe.send(calls.pop(arguments[0], None) is None)
            else:
                start, cpu = time.perf_counter(), time.process_time()
                calls[arguments[0]]()
                pipe.send((time.perf_counter() - start, time.process_time() - cpu))
        except Exception as error:  # Whatever the packages raise.
            if os.environ.get("TRACE"):
                import traceback
                traceback.print_exc()
            text = " ".join((str(error).strip() or type(error).__name__).split())
            pipe.send(RuntimeError(text[:160]))


class System:
    """A process that runs the model by one system."""

    def __init__(self, system, model, threads):
        # Libraries read it once, when they are loaded.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, daemon=True,
                                       args=(other, system, model, threads))
        self.process.start()
        other.close()

    def ask(self, *request):
        """Returns the answer, or raises RuntimeError with the message of the system."""
        try:
            self.pipe.send(request)
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            raise RuntimeError(f"its process ended with {self.process.exitcode}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.pipe.close()
        self.process.join()
