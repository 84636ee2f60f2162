# ===- test_pages.py - the programs of the documentation --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Each Python program of docs/, docs/python and python/README.md runs, in a process of its
own and an empty folder. Those of the package's description run one after the other, and so
do those of the repository's README."""

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
DESCRIPTION = (SOURCE / "python" / "DESCRIPTION.md").read_text(encoding="utf-8")

IMPORTS = """\
import os, subprocess, sys
SOURCE = os.environ["POSENC_SOURCE"]
def compile(*arguments):
    path = os.path.join(os.environ["POSENC_BIN"], "posenc-compile")
    subprocess.run([path, *arguments, "--opt-level=0"], check=True)
def write_model(path, **sizes):
    sys.path.insert(0, os.path.join(SOURCE, "test", "Import", "Inputs"))
    import functools, llama_model
    # The model builder's name of the graph, which is that of the function.
    llama_model.write = functools.partial(llama_model.write, name="main_graph")
    llama_model.write_llama(path, llama_model.Llama(**sizes))
"""
# What a page's programs have at hand, by the number of the program.
SETUP = {
    ("README.md", 0): IMPORTS + """\
write_model("model.onnx", hidden=512, inner=64, heads=8, vocabulary=32000)
compile("model.onnx", "-o", "libmodel.so")
import transformers
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=2,
    num_attention_heads=8, num_key_value_heads=2)).eval()
""",
    ("docs/abi.md", 0): IMPORTS + """\
compile(os.path.join(SOURCE, "examples", "configs", "llama-3.1-8b.json"), "--dtype=f32",
        "--kernels=rope", "-o", "libllama.so")
""",
    ("docs/abi.md", 1): IMPORTS + """\
write_model("X.onnx", layers=1, hidden=128, inner=64, heads=8, vocabulary=100)
compile("X.onnx", "-o", "X.so", "--weights=file")
""",
    ("docs/graphs.md", 0): """\
import numpy as np, jax, jax.numpy as jnp, posenc
def function(x):
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), x @ x.swapaxes(1, 2), -jnp.inf)
    return jax.nn.softmax(scores, -1) @ x
array = np.ones((2, 9, 64), "float32")
""",
}
# What programs import, and the package that they need then.
NEEDS = {"posenc.torch": "torch", "import posenc, torch": "torch",
         "posenc.transformers": "transformers", "import jax": "jax_tvm_ffi",
         "posenc.jax": "jax_tvm_ffi", "jax.export": "jax_tvm_ffi",
         "from safetensors": "safetensors", "posenc.viz": "matplotlib"}


def find_programs(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def read_pages():
    """Returns the programs of the pages, {(page, number): program}."""
    found = {}
    for path in (*sorted(SOURCE.glob("docs/**/*.md")), SOURCE / "python" / "README.md"):
        page = path.relative_to(SOURCE).as_posix()
        for number, program in enumerate(find_programs(path.read_text(encoding="utf-8"))):
            found[page, number] = program
    front_page = (SOURCE / "README.md").read_text(encoding="utf-8")
    found["README.md", 0] = "\n".join(find_programs(front_page))
    found["python/DESCRIPTION.md", 0] = "\n".join(find_programs(DESCRIPTION))
    return found


PROGRAMS = read_pages()


def find_group():
    """Returns the variables by which torchrun tells a single process its group."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    return {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port)}


@pytest.mark.parametrize("key", PROGRAMS, ids=lambda key: f"{key[0]}:{key[1]}")
def test_program(key, tmp_path):
    program = SETUP.get(key, "") + PROGRAMS[key]
    if "POSENC_BIN" in program and "POSENC_BIN" not in os.environ:
        pytest.skip("POSENC_BIN does not name the folder of posenc-compile")
    for name, module in NEEDS.items():
        if name in program and not importlib.util.find_spec(module):
            pytest.skip(f"could not import '{module}'")
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, text=True,
                            capture_output=True, check=False,
                            env={"POSENC_SOURCE": str(SOURCE), **os.environ,
                                 "PAGER": "cat", **find_group()})
    assert result.returncode == 0, result.stderr
    # Inductor says so where PyTorch has CUDA and the machine has none.
    assert [line for line in result.stderr.splitlines()
            if "No CUDA runtime is found" not in line] == []


def test_there_are_programs():
    pages = {page for page, _ in PROGRAMS}
    expected = {f"docs/python/{name}.md" for name in (
        "functional", "flex_attention", "pytorch", "jax", "many-devices", "transformers",
        "pictures")}
    assert expected | {"python/README.md", "README.md", "docs/tutorial.md"} <= pages
    assert SETUP.keys() <= PROGRAMS.keys()
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCE.glob("docs/**/*.md"))
    scripts = set(re.findall(r"python/benchmarks/\S+\.py", text))
    assert len(scripts) >= 3 and all((SOURCE / script).exists() for script in scripts)


def test_description():
    """A package index has none of the pages that relative links lead to."""
    links = re.findall(r"\]\(([^)\s]+)\)", DESCRIPTION)
    assert [link for link in links if not link.startswith("https://")] == []
    assert len(find_programs(DESCRIPTION)) == 2
