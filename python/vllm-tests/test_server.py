# ===- test_server.py - servers of vLLM with the plug-in ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What an operator sees: servers, their metrics, and the command that fills caches."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import LINE
from servers import complete, read_metrics, run_server

OPTIONS = ["--dtype", "float32", "--max-model-len", "512", "--enforce-eager"]
LABELS = 'engine="0",rank="0"'
LAYERS = 'posenc_attention_layers{{engine="0",kernels="{}",rank="0"}}'


def ask_server(folder, mode, *options, **environment):
    """Starts a server, and returns its answer to a prompt, its metrics and its log."""
    log = folder / f"server-{mode}.log"
    with run_server(folder / "llama", log, [*OPTIONS, *options], POSENC_VLLM=mode,
                    **environment) as address:
        answer = complete(address, list(range(3, 70)), 12), read_metrics(address)
    return *answer, log.read_text(encoding="utf-8")


def test_server(folder, tmp_path):
    """A server of HTTP gives the same tokens with both kernels, and says what runs."""
    expected, metrics, log = ask_server(folder, "off")
    assert metrics == {} and "osenc" not in log
    kernels = {"POSENC_CACHE": str(tmp_path)}
    got, metrics, log = ask_server(folder, "require", **kernels)
    assert got == expected and len(set(got.split())) > 3
    assert [line.split(";")[0] for line in LINE.findall(log)] == [
        "2 of 2 attention layers"]
    assert log.count("Using POSENC backend.") == 1
    assert metrics.pop(f"posenc_compile_seconds_total{{{LABELS}}}") > 0
    assert metrics == {LAYERS.format("posenc"): 2, LAYERS.format("vllm"): 0,
                       f"posenc_compiled_functions_total{{{LABELS}}}": 3}
    # All that the server compiled is in the cache.
    before = sorted(path.name for path in tmp_path.iterdir())
    assert len(before) == 3
    code, lines = run_module(folder, folder / "llama", "--warm", *OPTIONS, **kernels)
    assert code == 0, lines
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_metrics_of_several_servers(tmp_path):
    """Servers that share a port make a registry for each request."""
    program = """if True:
        import posenc.vllm
        posenc.vllm.register()
        from vllm.v1.metrics.prometheus import get_prometheus_registry
        from posenc.vllm import _metrics
        class Layer: pass
        layer = Layer()
        _metrics.record_layers([(layer, None)])
        registries = [get_prometheus_registry() for _ in range(2)]
        assert registries[0] is not registries[1]
        print([one.get_sample_value("posenc_attention_layers", {
            "engine": "0", "rank": "0", "kernels": "posenc"}) for one in registries])"""
    result = subprocess.run(
        [sys.executable, "-c", program], text=True, check=True, capture_output=True,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)})
    assert result.stdout.splitlines()[-1] == "[1, 1]"


def test_layers_that_fall_back_are_counted(folder):
    """Without a compiler, all layers do."""
    _, metrics, log = ask_server(folder, "on", POSENC_LIBRARY_PATH="/nowhere")
    reason = "there are no kernels: cannot open /nowhere/libPosenc.so"
    [(name, count)] = [one for one in metrics.items() if "fallback" in one[0]]
    assert count == 2 and name.startswith(
        f'posenc_fallback_layers{{{LABELS},reason="{reason}')
    assert metrics[LAYERS.format("vllm")] == 2
    assert log.count("vLLM's kernels run where Posenc's should") == 1


def test_name_of_the_backend():
    """vLLM's own backend runs if it is asked for, and KV connectors see its name."""
    program = """if True:
        import types, posenc, posenc.vllm
        from vllm.platforms import current_platform as platform
        from vllm.utils.import_utils import resolve_obj_by_qualname
        from vllm.v1.attention.backends.registry import AttentionBackendEnum as Backends
        posenc.vllm.register()
        posenc.vllm.register()
        def show(selected, **change):
            path = platform.get_attn_backend_cls(selected, types.SimpleNamespace(**{
                "use_mla": False, "use_sparse": False, "use_kv_connector": False,
                **change}))
            print(path, resolve_obj_by_qualname(path).get_name())
        show(None)
        show(Backends.POSENC)
        show(Backends.CPU_ATTN)
        show(None, use_kv_connector=True)"""
    result = subprocess.run([sys.executable, "-c", program], text=True, check=True,
                            capture_output=True)
    ours, theirs = "posenc.vllm._backend.", "vllm.v1.attention.backends.cpu_attn."
    assert result.stdout.splitlines()[-4:] == [
        f"{ours}Backend POSENC", f"{ours}Backend POSENC",
        f"{theirs}CPUAttentionBackend CPU_ATTN", f"{ours}ConnectorBackend CPU_ATTN"]


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


def test_warm(folder, tmp_path):
    """The cache has the kernels of each process of a server, after which nothing is
    compiled."""
    def warm(*options, **environment):
        return run_module(folder, folder / "gemma2", "--warm", *options,
                          **{"POSENC_CACHE": str(tmp_path / "kernels"), **environment})

    def count():
        return len(list((tmp_path / "kernels").iterdir()))

    code, lines = warm()
    assert code == 0, lines
    assert re.fullmatch(r"4 kernels in \d+\.\d s", lines[-1]) and count() == 4
    # Heads are divided, but a rotation has no number of heads.
    code, lines = warm("--tensor-parallel-size", "2")
    assert code == 0 and count() == 7, lines
    for change, reason in [
            ({"POSENC_CACHE": "off"}, "POSENC_CACHE=off: there is no cache to fill"),
            ({"POSENC_VLLM": "off"}, "the plug-in is not active: POSENC_VLLM=off"),
            ({"POSENC_LIBRARY_PATH": "/nowhere"}, "there are no kernels: cannot open /nowh")]:
        code, lines = warm(**change)
        assert code == 1 and lines[-1].startswith(f"error: {reason}")


THREADS = """if True:
    import os, sys, torch
    from posenc.vllm import _kernels
    def count_ticks():
        ticks = {}
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            ticks[thread] = int(fields[11]) + int(fields[12])
        return ticks
    x = torch.randn(1000, 1000)
    x.tanh().sum()
    before = set(count_ticks())
    layer = _kernels.Layer(8, 2, 64, 0.125, None, None, False, False)
    attend = _kernels.compile_encoder(layer, "f32")
    q, k, v = (torch.randn(1500, heads, 64) for heads in (8, 2, 2))
    out, starts = torch.empty_like(q), torch.tensor([0, 1500], dtype=torch.int32)
    attend(q, k, v, starts, out=out)
    ticks = count_ticks()
    for _ in range(30):
        attend(q, k, v, starts, out=out)
    used = {thread for thread, count in count_ticks().items()
            if count > ticks.get(thread, 0) + 4}
    print(torch.get_num_threads(), len(used), used <= before, len(os.sched_getaffinity(0)))
"""


def find_iomp():
    [path] = [one.locate() for one in importlib.metadata.files("intel-openmp")
              if one.name == "libiomp5.so"]
    return path


@pytest.mark.parametrize("preload, environment", [
    (None, {"OMP_PLACES": "{0,1}", "OMP_PROC_BIND": "true"}),
    ("libgomp", {"GOMP_CPU_AFFINITY": "0 1"}),
    ("libiomp5", {"KMP_AFFINITY": "granularity=fine,explicit,proclist=[0,1]",
                  "KMP_BLOCKTIME": "5", "KMP_TPAUSE": "0"}),
    ("libiomp5", {})])
def test_kernels_use_the_threads_of_pytorch(preload, environment):
    """With what vLLM sets for its processes, and the libraries that it recommends."""
    import torch

    libraries = {"libgomp": pathlib.Path(torch.__file__).parent / "lib" / "libgomp.so.1",
                 "libiomp5": find_iomp()}
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU has no second thread")
    if preload:
        assert libraries[preload].exists()
        environment = {**environment, "LD_PRELOAD": str(libraries[preload])}
    result = subprocess.run(
        [sys.executable, "-c", THREADS], text=True, check=True, capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "2", **environment})
    threads, used, are_old, _ = result.stdout.split()
    assert (threads, used, are_old) == ("2", "2", "True")


def test_a_second_pool_is_seen():
    """Each thread that calls libgomp has a pool of its own."""
    loop = "for _ in range(30):\n        attend(q, k, v, starts, out=out)"
    assert loop in THREADS
    program = THREADS.replace(loop, """import threading
    def run():
        global count_ticks
        for _ in range(30):
            attend(q, k, v, starts, out=out)
        last = count_ticks()  # The pool ends with its thread.
        count_ticks = lambda: last
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()""")
    result = subprocess.run([sys.executable, "-c", program], text=True, check=True,
                            capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert result.stdout.split()[2] == "False"


def test_kernels_stay_on_the_cpus_of_a_process():
    """As numactl --physcpubind binds it."""
    result = subprocess.run(
        ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), sys.executable, "-c",
         THREADS], text=True, check=True, capture_output=True)
    assert result.stdout.split() == ["1", "1", "True", "1"]
