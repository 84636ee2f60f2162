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
import subprocess
import sys
import types

import cases
import pytest
from conftest import LINE

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
    lines = LINE.findall(results[1])
    # A line for each model that is loaded.
    loaded = [result for result in results[0].values() if "error" not in result]
    assert len(lines) == len(loaded)
    assert lines.count("1 of 2 attention layers; vLLM's run 1: a test refuses it; "
                       "rotations: table") == len(cases.FALLBACKS)
    assert "2 of 2 attention layers; rotations: table" in lines


def test_no_kernels(folder, reference):
    """Without a compiler, models run with vLLM's kernels, after one warning."""
    name = "llama-chunks"
    got = run_cases(folder, "no-kernels", {name: cases.CASES[name]},
                    POSENC_LIBRARY_PATH="/nowhere")
    assert get(got, name)["layers"] == [0, 2]
    assert get(got, name)["tokens"] == get(reference, name)["tokens"]
    reason = "there are no kernels: cannot open /nowhere/libPosenc.so"
    assert got[1].count(f"vLLM's kernels run where Posenc's should: {reason}") == 1
    [line] = LINE.findall(got[1])
    assert line.startswith(f"0 of 2 attention layers; vLLM's run 2: {reason}")
    assert f"rotations: table (vLLM's: {reason}" in line
    got = run_cases(folder, "required", {name: cases.CASES[name]},
                    POSENC_LIBRARY_PATH="/nowhere", POSENC_VLLM="require")
    assert "POSENC_VLLM=require: " in got[0][name]["error"]
    assert reason in got[0][name]["error"]


@pytest.mark.parametrize("rotation", ["exact", "off"])
def test_rotations(folder, reference, rotation):
    todo = {"exact": cases.EXACT, "off": cases.OFF}[rotation]
    got = run_cases(folder, rotation, todo, POSENC_VLLM_ROPE=rotation)
    assert all(f"rotations: {rotation}" in line for line in LINE.findall(got[1]))
    assert len(LINE.findall(got[1])) == len(todo)
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
               "print('POSENC' in e.__members__)")
    result = subprocess.run([sys.executable, "-c", program], text=True, check=True,
                            capture_output=True)
    assert result.stdout.splitlines()[-1] == "False"
    assert ("Posenc's plug-in is not active: it is tested with vLLM 0.32, and this is "
            "vLLM 0.99.1.") in result.stdout + result.stderr


@pytest.mark.parametrize("change, reason", [
    ({"kv_cache_dtype": "nvfp4"}, "quantized caches"),
    ({"kv_cache_dtype": "nvfp4", "attn_type": "encoder_only"}, None),
    ({"kv_cache_dtype": "fp8", "attn_type": "encoder_decoder"}, None),
    ({"kv_cache_dtype": "int4_per_token_head"}, "quantized caches"),
    ({"dtype": "float64"}, "float64"), ({"connector": object()}, "KV connectors"),
    ({}, None)])
def test_layers_that_keep_the_kernels_of_vllm(change, reason):
    import torch
    from posenc.vllm._support import find_obstacle

    config = types.SimpleNamespace(
        kv_transfer_config=change.get("connector"),
        model_config=types.SimpleNamespace(
            dtype=getattr(torch, change.get("dtype", "bfloat16"))))
    found = find_obstacle(config, change.get("attn_type", "decoder"),
                          change.get("kv_cache_dtype", "auto"))
    assert (found is None) if reason is None else reason in found


@pytest.mark.parametrize("change, reason", [
    ({}, None), ({"dim": 256}, "heads of 256 channels"), ({"dim": 192}, "heads of 192"),
    ({"dim": 112}, None), ({"window": 40}, "windows"), ({"dim": 256, "amx": False}, None),
    # vLLM has no kernels with AMX for these.
    ({"window": 40, "block": 16}, None), ({"window": 40, "dtype": "float32"}, None),
    ({"window": 40, "dim": 80}, None), ({"window": 40, "cache": "fp8"}, "windows"),
    ({"window": 40, "cache": "int8_per_token_head"}, None),
    ({"window": 40, "cache": "fp8", "dim": 80}, None)])
def test_layers_that_are_faster_with_amx(monkeypatch, change, reason):
    import torch
    from posenc.vllm import _speed
    from posenc.vllm._kernels import Layer
    from posenc.vllm._support import find_faster

    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported",
                        lambda: change.get("amx", True))
    monkeypatch.setattr(_speed, "MEASURED", (
        _speed.Measured("", 128, False, (0.9, 1.3), None),
        _speed.Measured("", 256, False, (0.5, 0.7), None),
        _speed.Measured("", 256, True, (0.9, 1.3), (0.3, 0.6))))
    config = types.SimpleNamespace(
        model_config=types.SimpleNamespace(
            dtype=getattr(torch, change.get("dtype", "bfloat16"))),
        cache_config=types.SimpleNamespace(block_size=change.get("block", 128)))
    layer = Layer(4, 2, change.get("dim", 64), 0.1, change.get("window"), None, False, False)
    found = find_faster(config, "decoder", change.get("cache", "auto"), layer)
    assert (found is None) if reason is None else reason in found


@pytest.mark.parametrize("window", [None, 20])
def test_causal_and_other_sequences_in_one_batch(window):
    """As batches of diffusion models have them, against vLLM's kernels."""
    import torch
    from posenc.vllm._cache import Cache, split
    from posenc.vllm._kernels import Layer
    from posenc.vllm._layer import LayerKernels
    from vllm import _custom_ops as ops
    from vllm.platforms import current_platform
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionMetadata, _get_attn_isa

    current_platform.import_kernels()
    torch.manual_seed(0)
    heads, key_heads, dim, block = 4, 2, 64, 32
    new, lengths = [7, 1, 30, 4], [70, 33, 30, 100]
    causal = torch.tensor([0, 1, 0, 1]).int()
    starts = torch.tensor([0, *new]).cumsum(0).int()
    seq_lens = torch.tensor(lengths).int()
    table = torch.arange(16).view(4, 4).int()
    caches = [torch.zeros(16, key_heads, block, 2 * dim) for _ in range(2)]
    theirs = caches[0].view(16, key_heads, 2 * block, dim).chunk(2, dim=2)
    views = split(caches[1], dim, Cache("f32"))
    kernels = LayerKernels(
        Layer(heads, key_heads, dim, 0.125, window, None, False, False), Cache("f32"), False)
    isa = _get_attn_isa(torch.float32, block, dim, "auto")
    for row, length in zip(table, lengths):
        at = torch.arange(length)
        slots = row[at // block].long() * block + at % block
        key, value = torch.randn(2, length, key_heads, dim)
        ops.cpu_attn_reshape_and_cache(key, value, *theirs, slots, isa)
        kernels.append(None, key, value, views, slots)
    query = torch.randn(sum(new), heads, dim)
    plan = ops.cpu_attn_get_scheduler_metadata(
        4, heads, key_heads, dim, seq_lens, torch.float32, starts, False, window or -1, isa,
        True, causal)
    expected, got, other = (torch.empty_like(query) for _ in range(3))
    ops.cpu_attention_with_kv_cache(
        query, *theirs, expected, starts, seq_lens, 0.125, False, None, window or -1, table,
        0.0, plan, None, causal)
    metadata = CPUAttentionMetadata(
        num_actual_tokens=sum(new), max_query_len=30, query_start_loc=starts,
        max_seq_len=100, seq_lens=seq_lens, block_table=table, slot_mapping=None,
        scheduler_metadata=None, causal=False, dynamic_causal=causal)
    kernels.attend(None, query, None, None, views, [], metadata, got)
    torch.testing.assert_close(got, expected, atol=2e-6, rtol=0)
    metadata.dynamic_causal = 1 - causal
    kernels.attend(None, query, None, None, views, [], metadata, other)
    assert (other - expected).abs().max() > 0.1
