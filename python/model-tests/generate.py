# ===- generate.py - tokens of a whole model -----------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""generate.py POSENC-COMPILE FOLDER [--layers=N …]: generates tokens with a decoder of the
shapes of Llama 3.2 1B by examples/generate and by ONNX Runtime, and compares them. The last
line counts the tokens that are equal."""

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "test" / "Import" / "Inputs"))
import llama_model
from llama_model import Llama, write_llama

TOKENS = 64


def generate_in_posenc(compiler, folder, prompt):
    subprocess.run([compiler, "model.onnx", "-o", "libmodel.so", "--weights=file",
                    "--no-warnings"], cwd=folder, check=True)
    done = subprocess.run([compiler.with_name("posenc-generate"), "./libmodel.so",
                           f"--tokens={TOKENS}", f"--ids={','.join(map(str, prompt))}"],
                          cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return [int(token) for token in done.stdout.split(",")]


def generate_in_onnxruntime(config, folder, prompt):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options,
                                           providers=["CPUExecutionProvider"])
    return llama_model.generate(session, config, prompt, TOKENS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("compiler", type=pathlib.Path)
    parser.add_argument("folder")
    for field in dataclasses.fields(Llama):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type,
                            default=field.default)
    arguments = vars(parser.parse_args())
    compiler, parent = (arguments.pop(name) for name in ("compiler", "folder"))
    config = Llama(**arguments)
    prompt = np.random.default_rng(5).integers(0, config.vocabulary, 40).tolist()
    with tempfile.TemporaryDirectory(prefix="posenc-", dir=parent) as name:
        folder = pathlib.Path(name)
        write_llama(str(folder / "model.onnx"), config, seed=7)
        found = generate_in_posenc(compiler.resolve(), folder, prompt)
        expected = generate_in_onnxruntime(config, folder, prompt)
    print(f"Posenc:       {found}\nONNX Runtime: {expected}")
    equal = sum(one == other for one, other in zip(found, expected))
    print(f"{equal} of {TOKENS} are as expected")
    # A model that repeats one token would hide errors.
    return 0 if found == expected and len(set(expected)) > TOKENS // 8 else 1


if __name__ == "__main__":
    sys.exit(main())
