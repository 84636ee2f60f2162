# ===- test_scripts.py - the programs behind the README's tables ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The programs that measure run, on small inputs, and print what the README shows."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(os.environ.get("POSENC_SOURCE",
                                     pathlib.Path(__file__).parents[2])
                      ) / "python" / "benchmarks"
NEEDS_TRANSFORMERS = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="could not import 'transformers'")


def run(script: str, *arguments: str, code: int = 0) -> str:
    result = subprocess.run([sys.executable, FOLDER / script, *arguments], text=True,
                            capture_output=True, check=False)
    assert result.returncode == code and "Traceback" not in result.stderr, result.stderr
    return result.stdout


def test_measure_calls():
    lines = run("measure-calls.py", "--calls", "20").splitlines()
    times = {line[:40].strip(): float(line[40:].split()[0]) for line in lines}
    assert {"NumPy, in place", "NumPy, new results",
            "ctypes, unchecked, pointers at hand"} <= set(times)
    assert all(time > 0 for time in times.values())


@NEEDS_TRANSFORMERS
def test_bench():
    text = run("bench.py", "--context", "40", "--tokens", "3", "--layers", "2", "--heads",
               "4", "--threads", "1", "--rounds", "1")
    rows = re.findall(r"^(eager|sdpa|posenc) +1((?: +[\d.]+){4})$", text, re.M)
    assert [name for name, _ in rows] == ["eager", "sdpa", "posenc"]
    for _, numbers in rows:
        prompt, prompt_share, token, token_share = map(float, numbers.split())
        assert prompt > 0 and token > 0
        # A share of a loaded machine may be less than the half of a hundredth.
        assert 0 <= prompt_share < 1 and 0 <= token_share < 1


@NEEDS_TRANSFORMERS
def test_compare_models():
    arguments = ["--tokens", "48", "--new-tokens", "4", "Qwen3"]
    difference = r"^\| Qwen3 \| \d\.\de-0[678] \| 4 of 4 \| [\d.]+ × sdpa \|$"
    assert re.search(difference, run("compare-models.py", *arguments), re.M)
    # A difference above the limit is a failure, with the same table.
    text = run("compare-models.py", "--limit", "1e-12", *arguments, code=1)
    assert re.search(difference, text, re.M)


def test_ring_bytes():
    """The bytes that are sent are those of the model in docs/scaling.md."""
    text = run("ring-bytes.py", "--processes", "2", "--tokens", "64", "--dim", "16")
    rows = re.findall(r"^\| 2 \| (\w+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.M)
    assert [name for name, *_ in rows] == ["forward", "backward"]
    assert all(predicted == counted for _, predicted, counted in rows)
    # The page shows the tables that the program prints.
    page = (FOLDER.parents[1] / "docs" / "scaling.md").read_text(encoding="utf-8")
    assert run("ring-bytes.py", "--tables").strip().splitlines()[2] in page


@pytest.mark.skipif("POSENC_BIN" not in os.environ,
                    reason="POSENC_BIN does not name the folder of posenc-compile")
def test_models(tmp_path):
    """Each way has rows with a speed, and the logits agree."""
    for package in ("onnxruntime", "torch"):
        pytest.importorskip(package)
    compiler = os.path.join(os.environ["POSENC_BIN"], "posenc-compile")
    sizes = ["--hidden=128", "--inner=256", "--heads=4", "--kv-heads=2", "--vocabulary=640",
             "--positions=128", "--layers=1"]
    arguments = [*sizes, "--prefill=16", "--decode=24", "--threads=1", "--rounds=1",
                 "--compiler", compiler]
    text = run("models.py", *arguments, "--precisions=f32,int4",
               "--ways=posenc,onnxruntime,inductor,backend,eager")
    number = r"[\d.e+]+"
    rows = re.findall(
        rf"^\| (\w+) \| (\w+) \d+ \| 1 \| (.+?) \| ({number}) \| {number}–{number} "
        rf"\| {number} \| {number} / {number} \| {number} \| (\S+) \|$", text, re.M)
    count = {precision: sum(row[0] == precision for row in rows) for precision in ("f32", "int4")}
    assert count == {"f32": 10, "int4": 4}, text
    assert all(float(row[3]) > 0 and float(row[4]) < 1e-5 for row in rows), text
    assert len(re.findall(rf"compile in {number} s of CPU time", text)) == 2

    # The last line of `make models-test`; a way that nothing is compared with is not right.
    for ways, limit, count in (("posenc,onnxruntime", "1e-5", "4 of 4"),
                               ("posenc,onnxruntime", "1e-12", "2 of 4"),
                               ("posenc", "1e-5", "0 of 2")):
        text = run("models.py", *arguments, "--precisions=int4", "--alone", f"--ways={ways}",
                   f"--max-difference={limit}", code=int(count != "4 of 4"))
        assert text.endswith(f"\n{count} are as expected\n"), text
    text = run("../model-tests/generate.py", compiler, str(tmp_path), *sizes)
    assert text.endswith("\n64 of 64 are as expected\n"), text


@NEEDS_TRANSFORMERS
def test_layer():
    text = run("layer.py", "--tokens", "16", "--rounds", "2", "--dtypes", "float32",
               "--ways", "eager,backend,posenc from ONNX")
    rows = re.findall(r"^\| float32 \| (.*?) \| ([\d.]+) \| ([\d.]+) \| (\S+) \|$", text, re.M)
    assert [row[0] for row in rows][:2] == ["torch eager", 'torch.compile (backend="posenc")']
    for _, median, low, difference in rows:
        assert float(median) >= float(low) > 0 and float(difference) < 1e-5
    # Without onnxscript, the row has the error.
    assert len(rows) == 3 or re.search(r"\| posenc from ONNX \| .*onnx.* \| \| +\|", text)
