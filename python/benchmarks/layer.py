# ===- layer.py - a layer of Llama, by several compilers --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Times one layer of Llama with random weights on one thread, each way once in each of
many rounds, and prints a table of medians.

    taskset -c 0 python python/benchmarks/layer.py

The layer has the hidden size 1,024, 16 query heads and 4 key heads of 64 channels, an MLP
of 2,816, and 512 tokens; `--tokens` and `--layers` change it. The ways are torch eager,
Inductor, the backend "posenc" of torch.compile, ONNX Runtime, and Posenc from the same
ONNX file. A way that fails has its error in the table.

The difference is the largest one from torch eager in f32 with the same weights, relative
to the largest result. The table in docs/graphs.md was made with torch 2.15, transformers
5.24, onnx 1.23.2, onnxscript 0.7.2 and onnxruntime 1.32. `posenc` must be importable.
"""

import argparse
import logging
import os
import pathlib
import statistics
import tempfile
import time
import warnings

# Before libraries are loaded, which read it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"

import torch

OPSET = 23


def make_layer(layers, dtype):
    import transformers

    torch.manual_seed(0)
    model = transformers.LlamaModel(transformers.LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=layers,
        num_attention_heads=16, num_key_value_heads=4, head_dim=64, vocab_size=8,
        attn_implementation="sdpa"))

    class Layer(torch.nn.Module):
        """Hidden states to hidden states."""

        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(inputs_embeds=x, use_cache=False).last_hidden_state

    # Weights of bf16 are the same numbers in the reference.
    return Layer().eval().to(dtype)


def export(layer, x, folder):
    """Exports the layer when it is first needed; returns the path."""
    path = folder / f"layer-{str(x.dtype).rpartition('.')[2]}.onnx"
    if not path.exists():
        torch.onnx.export(layer, (x,), path, dynamo=True, opset_version=OPSET,
                          external_data=False, input_names=["x"], output_names=["y"],
                          verbose=False)
    return path


def make_eager(layer, x, folder):
    return lambda: layer(x)


def make_inductor(layer, x, folder):
    compiled = torch.compile(layer)
    return lambda: compiled(x)


def make_backend(layer, x, folder):
    import posenc.torch

    torch._dynamo.reset()
    posenc.torch.explain_backend(clear=True)
    compiled = torch.compile(layer, backend="posenc")
    compiled(x)
    report, = posenc.torch.explain_backend()
    layers = layer.model.config.num_hidden_layers
    if report.count("attention") != layers or report.count("rope") != 2 * layers:
        raise RuntimeError(f"not all was replaced: {report}")
    return lambda: compiled(x)


def make_onnxruntime(layer, x, folder):
    import onnxruntime

    path = export(layer, x, folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"])
    feeds = {"x": x.numpy()}
    return lambda: session.run(None, feeds)[0]


def make_posenc(layer, x, folder):
    import posenc

    kernels = posenc.compile(export(layer, x, folder), no_warnings=True)
    function = getattr(kernels, next(iter(kernels)))
    return lambda: function(x)


WAYS = {
    "ONNX Runtime": make_onnxruntime,
    "torch eager": make_eager,
    "torch.compile (Inductor)": make_inductor,
    'torch.compile (backend="posenc")': make_backend,
    "posenc from ONNX": make_posenc,
}


def describe_cpu():
    fields = {}
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                fields.setdefault(name.strip(), value.strip())
    except OSError:
        return "unknown CPU"
    avx = "AVX-512" if "avx512f" in fields.get("flags", "") else "no AVX-512"
    return (f"{fields.get('vendor_id', 'unknown CPU')}, family {fields.get('cpu family')}, "
            f"model {fields.get('model')}, {avx}")


def measure(dtype, tokens, layers, rounds, ways, folder):
    """Returns the median, the smallest milliseconds and the difference of each way, or its
    error."""
    layer = make_layer(layers, dtype)
    x = torch.randn(1, tokens, 1024).to(dtype)
    expected = make_layer(layers, dtype).float()(x.float())
    results, calls = {}, {}
    for name in ways:
        try:
            call = WAYS[name](layer, x, folder)
            got = torch.as_tensor(call()).float()
            difference = float((got - expected).abs().max() / expected.abs().max())
            call()
        except Exception as error:
            text = " ".join((str(error).strip() or type(error).__name__).split())
            results[name] = text[:100].replace("|", "/")
            continue
        calls[name], results[name] = call, ([], difference)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            results[name][0].append(1e3 * (time.perf_counter() - start))
    return {name: one if isinstance(one, str) else
            (statistics.median(one[0]), min(one[0]), one[1])
            for name, one in results.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--ways", default=",".join(WAYS),
                        help="parts of the names of ways to time, separated by commas")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    ways = [name for name in WAYS
            if any(part in name for part in options.ways.split(","))]
    print(f"{describe_cpu()}; {options.tokens} tokens, {options.layers} layers, medians "
          f"of {options.rounds} rounds\n")
    print("| type | way | ms, median | ms, min | difference |\n|---|---|---|---|---|")
    with torch.no_grad(), tempfile.TemporaryDirectory(prefix="posenc-") as folder:
        for name in options.dtypes.split(","):
            results = measure(getattr(torch, name), options.tokens, options.layers,
                              options.rounds, ways, pathlib.Path(folder))
            for way, one in results.items():
                cells = (f"{one} | | " if isinstance(one, str) else
                         f"{one[0]:.1f} | {one[1]:.1f} | {one[2]:.1e}")
                print(f"| {name} | {way} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
