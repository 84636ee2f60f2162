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
import socket
import subprocess
import sys
import time
import types
import urllib.request

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


# The line about a model, from the number of its layers on.
LINE = re.compile(r"Posenc \S+, vLLM 0\.32\S*, PyTorch \S+: Posenc's kernels run "
                  r"(.*); kernels are cached in: \S+")


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


def find_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask_server(folder, mode):
    """Starts a server, and returns its answer to a prompt and its log."""
    port, log = find_port(), folder / f"server-{mode}.log"
    with open(log, "w", encoding="utf-8") as file:
        server = subprocess.Popen(
            # `vllm serve` of vllm-cpu 0.32 asks for the version of a package "vllm".
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model",
             str(folder / "llama"), "--port", str(port), "--served-model-name", "tiny",
             "--dtype", "float32", "--max-model-len", "512", "--enforce-eager"],
            stdout=file, stderr=subprocess.STDOUT,
            env={**os.environ, "POSENC_VLLM": mode, "VLLM_CPU_KVCACHE_SPACE": "1",
                 "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1",
                 "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "INFO"})
    try:
        return ask(server, f"http://127.0.0.1:{port}"), log.read_text(encoding="utf-8")
    except (OSError, AssertionError) as error:
        raise AssertionError(
            f"{error}:\n{log.read_text(encoding='utf-8')[-4000:]}") from None
    finally:
        server.terminate()
        server.wait(60)


def ask(server, address):
    end = time.monotonic() + 600
    while True:
        try:
            urllib.request.urlopen(f"{address}/health", timeout=10).close()
            break
        except OSError:
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(1)
    request = urllib.request.Request(
        f"{address}/v1/completions", headers={"Content-Type": "application/json"},
        data=json.dumps({"model": "tiny", "prompt": list(range(3, 70)), "max_tokens": 12,
                         "temperature": 0, "ignore_eos": True}).encode())
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)["choices"][0]["text"]


def test_server(folder):
    """A server of HTTP gives the same tokens with both kernels."""
    (expected, log), (got, ours) = ask_server(folder, "off"), ask_server(folder, "require")
    assert got == expected and len(set(got.split())) > 3
    assert "Posenc" not in log
    assert [line.split(";")[0] for line in LINE.findall(ours)] == [
        "2 of 2 attention layers"]


def run_module(folder, *options, prelude="", **environment):
    """Runs `python -m posenc.vllm`, after a prelude. Returns its exit code and output."""
    program = f"{prelude}\nimport runpy\nrunpy.run_module('posenc.vllm', run_name='__main__')"
    result = subprocess.run(
        [sys.executable, "-c", program, *map(str, options)], text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **environment})
    return result.returncode, result.stdout.splitlines()


def test_report_without_a_server(folder):
    config = folder / "gemma2" / "config.json"
    code, lines = run_module(folder, config)
    assert code == 0
    assert lines[-3:-1] == [f"model.layers.{layer}.self_attn.attn: Posenc"
                            for layer in range(2)]
    assert LINE.match(lines[-1])[1] == "2 of 2 attention layers; rotations: table"
    # On a CPU with AMX, by a table of its own.
    pretend = ("import torch, posenc.vllm._speed as speed\n"
               "torch.cpu._is_amx_tile_supported = lambda: True\n"
               "speed.MEASURED = (speed.Measured('', 256, True, None, (.3, .6)),)")
    # A layer that is faster so is no fault.
    code, lines = run_module(folder, config, "--dtype", "bfloat16", prelude=pretend,
                             POSENC_VLLM="require")
    assert code == 0
    assert lines[-3:-1] == [
        "model.layers.0.self_attn.attn: vLLM: vLLM's kernels for AMX are faster for windows",
        "model.layers.1.self_attn.attn: Posenc"]
    code, lines = run_module(folder, config, "--dtype", "bfloat16", prelude=pretend,
                             POSENC_VLLM="force")
    assert LINE.match(lines[-1])[1] == "2 of 2 attention layers; rotations: table"
    code, lines = run_module(folder, config, POSENC_VLLM="Off")
    assert (code, lines[-1]) == (0, "vLLM's kernels run all layers: the plug-in is not "
                                    "active: POSENC_VLLM=off")
    code, lines = run_module(folder, "none.json")
    assert (code, lines[-1]) == (1, "error: cannot read 'none.json': there is no such file")


def test_required_plugin():
    """Inactivity is an error, and MLA, which has a backend of its own."""
    program = """if True:
        import types, vllm, posenc.vllm
        from vllm.platforms import current_platform as platform
        def fail(function, *arguments, **keywords):
            try:
                function(*arguments, **keywords)
            except posenc.Error as error:
                print(error)
        posenc.vllm.register()
        fail(platform.get_attn_backend_cls, None,
             attn_selector_config=types.SimpleNamespace(use_mla=True))
        vllm.__version__ = '0.99.1'
        fail(posenc.vllm.register)"""
    result = subprocess.run([sys.executable, "-c", program], text=True, check=True,
                            capture_output=True, env={**os.environ,
                                                      "POSENC_VLLM": "require"})
    assert result.stdout.splitlines()[-2:] == [
        "POSENC_VLLM=require: Posenc has no kernels for MLA",
        "POSENC_VLLM=require: the plug-in is not active: it is tested with vLLM 0.32, and "
        "this is vLLM 0.99.1"]


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
    ({"kv_cache_dtype": "int4_per_token_head"}, "quantized caches"),
    ({"dtype": "float64"}, "float64"), ({"connector": object()}, "KV connectors"),
    ({"is_diffusion": True}, "diffusion"), ({}, None)])
def test_layers_that_keep_the_kernels_of_vllm(change, reason):
    import torch
    from posenc.vllm._support import find_obstacle

    config = types.SimpleNamespace(
        kv_transfer_config=change.get("connector"),
        model_config=types.SimpleNamespace(
            dtype=getattr(torch, change.get("dtype", "bfloat16")),
            is_diffusion=change.get("is_diffusion", False)))
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
