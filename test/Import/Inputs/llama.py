# ===- llama.py - weights of a model with the shapes of Llama ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""llama.py POSENC-COMPILE POSENC-RUN [--layers=N] [--FIELD=N…]: compiles a model with random
weights in the current folder, says how much memory and time that takes, runs it, and
compares the result with ONNX Runtime, if that is installed. Exit status 1 if compiling
takes more anonymous memory than 300 MiB and 1.2 times the largest tensor, or the results
differ.
"""

import argparse
import dataclasses
import os
import sys

import numpy as np
from llama_model import Llama, write_llama
from measured import MIB, run


def run_onnxruntime(inputs):
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession("model.onnx", options,
                                           providers=["CPUExecutionProvider"])
    return session.run(["logits"], inputs)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("compiler")
    parser.add_argument("runner")
    for field in dataclasses.fields(Llama):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type,
                            default=field.default)
    parser.add_argument("--target", default="host")
    arguments = vars(parser.parse_args())
    compiler, runner, target = (arguments.pop(key) for key in ("compiler", "runner", "target"))
    config = Llama(**arguments)
    write_llama("model.onnx", config, seed=3)
    print(f"weights: {os.path.getsize('model.onnx.data') / MIB:.0f} MiB")
    peak, user, system, elapsed = run([compiler, "model.onnx", "-o", "libmodel.so",
                                       f"--target={target}", "--weights=file"])
    largest = 4 * config.vocabulary * config.hidden
    limit = 300 * MIB + 1.2 * largest
    print(f"compiling: {peak / MIB:.0f} MiB of anonymous memory (limit {limit / MIB:.0f}), "
          f"{user:.1f} s of user time, {system:.1f} s of system time, {elapsed:.1f} s")
    stored = os.path.getsize("model.safetensors")
    print(f"file of weights: {stored / MIB:.0f} MiB, library: "
          f"{os.path.getsize('libmodel.so') / MIB:.1f} MiB")
    # The last panel of a matrix has columns of zeros.
    failed = peak > limit or stored > 1.01 * os.path.getsize("model.onnx.data") + 8 * MIB

    ids = np.random.default_rng(4).integers(0, config.vocabulary, (1, 6))
    inputs = config.get_inputs(ids, np.ones((1, 6), np.int64), config.create_caches(16))
    command = [runner, "./libmodel.so", "--output=@logits.npy"]
    for number, array in enumerate(inputs.values()):
        np.save(f"in{number}.npy", array)
        command.append(f"--input=@in{number}.npy")
    peak, user, system, elapsed = run(command)
    print(f"a call: {peak / MIB:.0f} MiB of anonymous memory, {user:.1f} s of user time, "
          f"{elapsed:.1f} s")
    logits = np.load("logits.npy")
    reference = run_onnxruntime(inputs)
    if reference is None:
        print("ONNX Runtime is not installed")
        failed |= not np.isfinite(logits).all() or logits.std() < 1e-3
    else:
        error = np.abs(logits - reference).max() / np.abs(reference).max()
        same = (logits.argmax(-1) == reference.argmax(-1)).all()
        print(f"error relative to the largest logit: {error:.1e}, tokens "
              f"{'are equal' if same else 'differ'}")
        failed |= not error < 1e-4 or not same
    print("failed" if failed else "passed")
    sys.exit(bool(failed))


main()
