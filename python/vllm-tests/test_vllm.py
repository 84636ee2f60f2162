# ===- test_vllm.py - the plug-in for vLLM ---------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Tokens and log-probabilities of models with Posenc's kernels against those with
vLLM's. The order of sums differs, so log-probabilities agree within a tolerance."""

import json
import os
import pathlib
import re
import subprocess
import sys
import types

import cases
import models
import pytest

FOLDER = pathlib.Path(__file__).parent
# Largest difference of log-probabilities, by the type. The weights of a case make those
# of single tokens differ by more than 1 where attention is wrong.
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.15, "float16": 2e-2}


def has_drafts(item):
    """vLLM 0.32 cannot load another model in a process after one with drafts."""
    return "speculative_config" in item[1]["options"]


def run_cases(folder, name, todo, **environment):
    """Runs cases in one process. Returns their results and the log."""
    given, written = folder / f"{name}.json", folder / f"{name}-results.json"
    given.write_text(json.dumps(
        {key: {**case, "folder": str(folder / case["model"])}
         for key, case in sorted(todo.items(), key=has_drafts)}), encoding="utf-8")
    environment = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "INFO",
        "HF_HUB_OFFLINE": "1", "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
        **os.environ, **environment}
    result = subprocess.run(
        [sys.executable, "-B", str(FOLDER / "worker.py"), str(given), str(written)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=environment, timeout=1500)
    (folder / f"{name}.log").write_text(result.stdout, encoding="utf-8")
    results = (json.loads(written.read_text(encoding="utf-8")) if written.exists()
               else {})
    for key in todo:
        results.setdefault(key, {"error": f"exit code {result.returncode}:\n"
                                 + result.stdout[-4000:]})
    return results, result.stdout


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    keep = os.environ.get("POSENC_VLLM_FOLDER")
    path = pathlib.Path(keep) if keep else tmp_path_factory.mktemp("vllm")
    path.mkdir(exist_ok=True)
    for name in models.MODELS:
        models.write_checkpoint(name, str(path / name))
    return path


@pytest.fixture(scope="session")
def reference(folder):
    todo = {**cases.CASES, **cases.FALLBACKS}
    del todo["llama-block-16"]  # vLLM's kernels need blocks of multiples of 32.
    todo |= {name: case for name, _, case in cases.list_controls()}
    return run_cases(folder, "reference", todo, POSENC_VLLM="0")


@pytest.fixture(scope="session")
def results(folder):
    quantized = {name: cases.quantize(name) for name in cases.QUANTIZED}
    return run_cases(folder, "posenc", {**cases.CASES, **cases.FALLBACKS, **quantized,
                                        **cases.CLAMPED, **cases.REFUSED})


def get(results, name):
    result = results[0][name]
    assert "error" not in result, result["error"]
    return result


def find_difference(one, other):
    """Returns the largest difference of log-probabilities, those after tokens that
    differ left out."""
    largest = 0.0
    for kind in ("prompt_logprobs", "logprobs"):
        for row, rows in enumerate(zip(one[kind], other[kind])):
            for at, (x, y) in enumerate(zip(*rows)):
                if kind == "logprobs" and (one["tokens"][row][:at + 1]
                                           != other["tokens"][row][:at + 1]):
                    break
                largest = max(largest, abs(x - y))
    return largest


def compare(expected, got, dtype):
    assert expected["layers"][0] == 0 and got["layers"][0] >= 2
    assert got["layers"][1] == 0
    difference = find_difference(expected, got)
    print(f"largest difference of log-probabilities: {difference:.1e}")
    assert difference < TOLERANCE[dtype]
    if dtype == "float32":
        assert got["tokens"] == expected["tokens"]


@pytest.mark.parametrize("name", cases.CASES)
def test_results_agree(reference, results, name):
    expected = get(reference, "llama" if name == "llama-block-16" else name)
    compare(expected, get(results, name),
            cases.CASES[name]["options"].get("dtype", "float32"))


@pytest.mark.parametrize("name", cases.QUANTIZED)
def test_quantized_caches(results, name):
    case, _, limit, _ = cases.QUANTIZED[name]
    expected, got = get(results, case), get(results, name)
    assert got["layers"][0] >= 2 and got["layers"][1] == 0
    difference = find_difference(expected, got)
    print(f"largest difference of log-probabilities: {difference:.1e}")
    assert 1e-3 < difference < limit
    if case == "llama-prefixes":
        assert max(got["cached"]) >= 128


def test_scales_of_caches_are_used(results):
    for name in cases.CLAMPED:
        assert find_difference(get(results, "llama"), get(results, name)) > 0.5


def test_caches_that_no_kernels_have(results):
    [result] = [results[0][name] for name in cases.REFUSED]
    assert ("vLLM's kernels for CPUs have no caches 'int8_per_token_head', and Posenc's "
            "cannot run: a test refuses it") in result["error"]


@pytest.mark.parametrize("name", cases.FALLBACKS)
def test_layers_fall_back(reference, results, name):
    got = get(results, name)
    assert got["layers"] == [1, 1]
    assert find_difference(get(reference, name), got) < TOLERANCE["float32"]
    assert got["tokens"] == get(reference, name)["tokens"]


@pytest.mark.parametrize("control, name", [one[:2] for one in cases.list_controls()])
def test_cases_depend_on_what_they_test(reference, control, name):
    difference = find_difference(get(reference, name), get(reference, control))
    print(f"difference of log-probabilities: {difference:.1e}")
    # Embeddings of encoders are normalized.
    assert difference > (0.001 if "bert" in name else 0.01)


def test_prefixes_are_cached(reference, results):
    for one in (reference, results):
        assert max(get(one, "llama-prefixes")["cached"]) >= 128


def test_log_says_what_is_active(reference, results):
    assert "Posenc" not in reference[1]
    assert "Attention runs kernels of Posenc; rotations: table." in results[1]
    assert set(re.findall("Attention keeps vLLM's kernels: (.*)", results[1])) == {
        "a test refuses it."}


@pytest.mark.parametrize("rotation", ["exact", "off"])
def test_rotations(folder, reference, rotation):
    todo = {"exact": cases.EXACT, "off": cases.OFF}[rotation]
    got = run_cases(folder, rotation, todo, POSENC_VLLM_ROPE=rotation)
    assert f"rotations: {rotation}." in got[1]
    for name in todo:
        compare(get(reference, name), get(got, name), "float32")


@pytest.mark.parametrize("rotation", ["exact", "table"])
def test_compiled_graphs(folder, reference, rotation):
    """As `vllm serve` runs: compiled by Inductor, in a process of its own, with threads
    bound to cores. Each rotation has graphs of its own in vLLM's cache."""
    case = cases.CASES["llama"]
    todo = {"llama": {**case, "options": {**case["options"], "enforce_eager": False}}}
    results, log = run_cases(
        folder, f"compiled-{rotation}", todo, POSENC_VLLM_ROPE=rotation,
        VLLM_ENABLE_V1_MULTIPROCESSING="1", VLLM_CPU_OMP_THREADS_BIND="auto",
        VLLM_CACHE_ROOT=str(folder / "cache"))
    compare(get(reference, "llama"), get((results, log), "llama"), "float32")
    operator = {"exact": b"rotate_exactly", "table": b"rotate_by_table"}[rotation]
    graphs = [path.read_bytes() for path in (folder / "cache").rglob("rank_0_0/model")]
    assert any(operator in graph for graph in graphs)


def test_two_processes(folder, reference):
    got = run_cases(folder, "parallel", cases.PARALLEL)
    for name in cases.PARALLEL:
        compare(get(reference, name), get(got, name), "float32")


def test_unknown_version_leaves_vllm():
    program = ("import vllm, posenc.vllm; vllm.__version__ = '0.99.1'; "
               "posenc.vllm.register(); "
               "from vllm.v1.attention.backends.registry import AttentionBackendEnum as e;"
               "print(e.CPU_ATTN.get_path())")
    result = subprocess.run([sys.executable, "-c", program], text=True, check=True,
                            capture_output=True)
    assert result.stdout.splitlines()[-1].endswith("CPUAttentionBackend")
    assert ("Posenc's plug-in is not active: it is tested with vLLM 0.32, and this is "
            "vLLM 0.99.1.") in result.stdout + result.stderr


@pytest.mark.parametrize("change, reason", [
    ({"kv_cache_dtype": "nvfp4"}, "quantized caches"),
    ({"kv_cache_dtype": "nvfp4", "attn_type": "encoder_only"}, None),
    ({"kv_cache_dtype": "fp8", "attn_type": "encoder_decoder"}, None),
    ({"kv_cache_dtype": "fp8", "amx": True}, "AMX"),
    ({"kv_cache_dtype": "int4_per_token_head"}, "quantized caches"),
    ({"kv_cache_dtype": "int8_per_token_head", "amx": True}, None),
    ({"dtype": "float64"}, "float64"), ({"connector": object()}, "KV connectors"),
    ({"amx": True}, "AMX"), ({"is_diffusion": True}, "diffusion"), ({}, None)])
def test_layers_that_keep_the_kernels_of_vllm(monkeypatch, change, reason):
    import torch
    from posenc.vllm._support import find_obstacle

    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported",
                        lambda: change.get("amx", False))
    config = types.SimpleNamespace(
        kv_transfer_config=change.get("connector"),
        model_config=types.SimpleNamespace(
            dtype=getattr(torch, change.get("dtype", "bfloat16")),
            is_diffusion=change.get("is_diffusion", False)))
    found = find_obstacle(config, change.get("attn_type", "decoder"),
                          change.get("kv_cache_dtype", "auto"))
    assert (found is None) if reason is None else reason in found
