# ===- test_readme.py - the programs of the README -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Each program of python/README.md runs, in a process of its own and an empty folder, and
so do those of the package's description and of the repository's README, one after the
other."""

import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ.get("POSENC_SOURCE",
                                     pathlib.Path(__file__).parents[2]))
PAGE = (SOURCE / "python" / "README.md").read_text(encoding="utf-8")
FRONT_PAGE = (SOURCE / "README.md").read_text(encoding="utf-8")
# The models that the programs of the repository's README have at hand.
MODEL = """\
import os, subprocess, sys
sys.path.insert(0, os.path.join(os.environ["POSENC_SOURCE"], "test", "Import", "Inputs"))
import functools, llama_model
from llama_model import Llama, write_llama
# The model builder's name of the graph, which is that of the function.
llama_model.write = functools.partial(llama_model.write, name="main_graph")
write_llama("model.onnx", Llama(hidden=512, inner=64, heads=8, vocabulary=32000))
subprocess.run([os.path.join(os.environ["POSENC_BIN"], "posenc-compile"), "model.onnx", "-o",
                "libmodel.so", "--opt-level=0"], check=True)
import transformers
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=2,
    num_attention_heads=8, num_key_value_heads=2)).eval()
"""
DESCRIPTION = (SOURCE / "python" / "DESCRIPTION.md").read_text(encoding="utf-8")


def find_programs(page):
    return re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)


PROGRAMS = [*find_programs(PAGE), "\n".join(find_programs(DESCRIPTION)),
            MODEL + "\n".join(find_programs(FRONT_PAGE))]


# What programs import, and the package that they need then.
NEEDS = {"posenc.torch": "torch", "posenc.transformers": "transformers",
         "import jax": "jax_tvm_ffi", "posenc.jax": "jax_tvm_ffi"}


def find_group():
    """Returns the variables by which torchrun tells a single process its group."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    return {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port)}


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program(number, tmp_path):
    program = PROGRAMS[number]
    if "libmodel.so" in program and "POSENC_BIN" not in os.environ:
        pytest.skip("POSENC_BIN does not name the folder of posenc-compile")
    for name, module in NEEDS.items():
        if name in program and not importlib.util.find_spec(module):
            pytest.skip(f"could not import '{module}'")
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, text=True,
                            capture_output=True, check=False,
                            env={**os.environ, "PAGER": "cat", **find_group()})
    assert result.returncode == 0, result.stderr
    # Inductor says so where PyTorch has CUDA and the machine has none.
    assert [line for line in result.stderr.splitlines()
            if "No CUDA runtime is found" not in line] == []


def test_there_are_programs():
    assert len(PROGRAMS) >= 3
    scripts = set(re.findall(r"python/benchmarks/\S+\.py", PAGE))
    assert len(scripts) >= 3 and all((SOURCE / script).exists() for script in scripts)


def test_description():
    """A package index has none of the pages that relative links lead to."""
    links = re.findall(r"\]\(([^)\s]+)\)", DESCRIPTION)
    assert [link for link in links if not link.startswith("https://")] == []
    assert len(find_programs(DESCRIPTION)) == 2
