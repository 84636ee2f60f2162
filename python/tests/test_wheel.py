# ===- test_wheel.py - the wheel for machines without LLVM -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The wheel of `make wheel`, in a new virtual environment where LLVM is hidden."""

import fcntl
import glob
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

SOURCE = pathlib.Path(os.environ.get("POSENC_SOURCE", pathlib.Path(__file__).parents[2]))
BIN = os.environ.get("POSENC_BIN")
pytestmark = pytest.mark.skipif(BIN is None, reason="POSENC_BIN is not set")

MODULE = """\
func.func @rope(%x: tensor<?x2x8xf32>, %p: tensor<?xi64>) -> tensor<?x2x8xf32> {
  %y = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x : tensor<?x2x8xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x2x8xf32>)
  return %y : tensor<?x2x8xf32>
}
"""

# Calls a kernel of one of the package's configs, and says where libraries are from.
PROGRAM = r"""
import re
import numpy as np, posenc
kernels = posenc.compile(posenc.configs / "mistral-7b.json", dtype="f32", kernels="rope")
random = np.random.default_rng(0)
q, k = (random.standard_normal((1, 3, heads, 128), np.float32) for heads in (32, 8))
positions = np.array([[5, 70, 900]])
angles = positions[..., None, None] * 1e4 ** (-np.arange(64) / 64)
for x, rotated in zip((q, k), kernels.rope(q, k, positions)):
    a, b = x[..., :64].astype(float), x[..., 64:].astype(float)
    expected = [a * np.cos(angles) - b * np.sin(angles),
                b * np.cos(angles) + a * np.sin(angles)]
    assert np.abs(rotated - np.concatenate(expected, -1)).max() < 2e-6
with open("/proc/self/maps") as maps:
    print(*sorted(set(re.findall(r"/\S+$", maps.read(), re.M))), sep="\n")
"""


def pip(python, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python,
         "install", "--quiet", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The folder of a virtual environment with the wheel. Processes of pytest-xdist share
    it, since tests of one file may run in several."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "wheel"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = folder / "skipped"
        if not (folder / "complete").exists() and not reason.exists():
            obstacle = create_environment(folder)
            if obstacle:
                reason.write_text(obstacle, encoding="utf-8")
            else:
                (folder / "complete").touch()
        if reason.exists():
            pytest.skip(reason.read_text(encoding="utf-8"))
    return folder / "venv"


def create_environment(folder):
    """Builds the wheel and installs it. Returns why that is not possible without a
    network, or None."""
    result = subprocess.run(
        [sys.executable, SOURCE / "python" / "make-wheel.py", "--level", "0",
         "--build-dir", pathlib.Path(BIN).parent, "--output-dir", folder / "dist"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if "which come from PyPI" in result.stdout:
        return result.stdout.splitlines()[-1]
    assert result.returncode == 0, result.stdout
    wheel = result.stdout.splitlines()[-1]
    assert re.search(r"-py3-none-manylinux_2_\d+_\w+\.whl$", wheel)
    with zipfile.ZipFile(wheel) as archive:
        sizes = {os.path.basename(entry.filename): entry.file_size
                 for entry in archive.infolist()}
    # What only other programs need from LLVM is left out.
    unused = [name for name in sizes if re.match(r"lib(z3|xml2|icu)", name)]
    assert all(sizes[name] < 1e5 for name in unused), unused
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip",
                    folder / "venv"], check=True)
    result = pip(python, "--timeout=10", "--retries=1", "--require-hashes",
                 "--requirement", SOURCE / "test" / "locks" / "runtime.txt")
    if result.returncode:
        return result.stdout.splitlines()[-1]
    # Nothing else is needed.
    result = pip(python, "--no-index", wheel)
    assert result.returncode == 0, result.stdout
    (folder / "hash").write_text(hash_file(wheel))
    os.remove(wheel)
    return None


def hash_file(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def load_program(name):
    """Imports a program of the folder python, such as "make-wheel"."""
    spec = importlib.util.spec_from_file_location(
        name.replace("-", "_"), SOURCE / "python" / f"{name}.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def find_llvm():
    """The prefix of the LLVM of the build folder."""
    cache = (pathlib.Path(BIN).parent / "CMakeCache.txt").read_text()
    return re.search(r"^POSENC_LLVM:PATH=(.*)$", cache, re.M)[1]


@pytest.fixture(scope="module")
def hidden(environment, tmp_path_factory):
    """The start of a command line that hides LLVM and the build folder from a program;
    an empty list where this is not allowed."""
    for command in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        try:
            if subprocess.run([*command, "true"], capture_output=True,
                              check=False).returncode == 0:
                break
        except OSError:
            return []
    else:
        return []
    folder = tmp_path_factory.mktemp("empty")
    (folder / "file").touch()
    (folder / "folder").mkdir()
    build = pathlib.Path(BIN).parent
    llvm = find_llvm()
    files = {os.path.realpath(path) for name in ("LLVM", "MLIR", "lld")
             for path in glob.glob(f"{llvm}/lib/lib{name}*.so*")}
    mounts = [(folder / "folder", path) for path in (llvm, build / "lib", build / "bin")]
    mounts += [(folder / "file", path) for path in files
               if not path.startswith(os.path.realpath(llvm) + "/")]
    script = "".join(f"mount --bind '{what}' '{where}' && " for what, where in mounts)
    return [*command, "sh", "-c", script + 'exec "$@"', "sh"]


def run(*command, code=0):
    variables = {**os.environ, "POSENC_CACHE": "off"}
    for name in ("LD_LIBRARY_PATH", "POSENC_LIBRARY_PATH", "PYTHONPATH"):
        variables.pop(name, None)
    result = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=variables, check=False)
    assert result.returncode == code, result.stdout
    return result.stdout


def check_libraries(text, environment):
    """Checks that libraries of LLVM and Posenc are those of the wheel."""
    paths = re.findall(r"/\S*lib(?:LLVM|MLIR|Posenc|z3)\S*", text)
    assert {re.search(r"lib([A-Za-z]+)", os.path.basename(path))[1]
            for path in paths} >= {"LLVM", "MLIR", "Posenc"}
    for path in paths:
        assert os.path.realpath(path).startswith(os.path.realpath(environment) + "/"), path


def test_package(environment, hidden):
    text = run(*hidden, environment / "bin" / "python", "-c", PROGRAM)
    check_libraries(text, environment)


def test_control(hidden):
    """The wheel of `pip install .` needs the system's LLVM, which is hidden."""
    if not hidden:
        pytest.skip("unshare is not allowed")
    [package] = importlib.util.find_spec("posenc").submodule_search_locations
    text = run(*hidden, sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
               f"{package}/lib/libPosenc.so", code=1)
    assert re.search(r"OSError: lib(LLVM|MLIR)\.so\S*: cannot open", text)


def test_tools(environment, hidden, tmp_path):
    tools = environment / "bin"
    for tool in ("posenc-compile", "posenc-opt", "posenc-run"):
        # posenc-opt has only the version of LLVM.
        version = run(*hidden, tools / tool, "--version")
        assert ("LLVM version 22." if tool == "posenc-opt" else "0.1.0") in version
        # The dynamic loader prints the libraries instead of running the program.
        [binary] = environment.glob(f"lib/python*/site-packages/posenc/bin/{tool}")
        text = run(*hidden, "env", "LD_TRACE_LOADED_OBJECTS=1", binary)
        check_libraries(text, environment)
    module, library = tmp_path / "x.mlir", tmp_path / "libx.so"
    module.write_text(MODULE)
    inputs = ["--input=3x2x8xf32=random:seed=1", "--input=3xi64=iota"]
    assert "posenc.rope" in run(*hidden, tools / "posenc-opt", module)
    run(*hidden, tools / "posenc-compile", module, "-o", library)
    result = tmp_path / "x.npy"
    run(*hidden, tools / "posenc-run", library, *inputs, f"--output=@{result}")
    text = run(*hidden, tools / "posenc-run", module, *inputs, "--reference",
               f"--expected_output=@{result}")
    assert re.search(r"^result #0: max error", text, re.M)


def test_run_paths(environment):
    """No file looks for libraries where another user can put them."""
    [packages] = environment.glob("lib/python*/site-packages")
    text = run(sys.executable, SOURCE / "test" / "install" / "Inputs" / "check-run-paths.py",
               "--tools", f"{find_llvm()}/bin", "--installed", packages / "posenc",
               packages / "posenc.libs")
    # The tools, ld.lld, Posenc's two libraries, LLVM and MLIR at least.
    assert int(text.split()[0]) >= 8


def test_ptxas(environment, hidden, tmp_path):
    """Tools find the ptxas of nvidia-cuda-nvcc in the environment of their scripts."""
    [packages] = environment.glob("lib/python*/site-packages")
    ptxas = packages / "nvidia" / "cu13" / "bin" / "ptxas"
    ptxas.parent.mkdir(parents=True)
    ptxas.write_text("#!/bin/sh\necho this is $0\nexit 1\n")
    ptxas.chmod(0o755)
    module = tmp_path / "x.mlir"
    module.write_text(MODULE)
    text = run(*hidden, "env", "-u", "CUDA_HOME", "-u", "CUDA_PATH", "-u", "VIRTUAL_ENV",
               "-u", "POSENC_PTXAS", "PATH=/bin", environment / "bin" / "posenc-compile",
               module, "--target=cuda:sm_80", "-o", tmp_path / "x.cubin", code=1)
    assert f"this is {ptxas}" in text


def test_bill_of_materials(environment, tmp_path):
    """The bill has Python's packages, the bundled libraries and the linker."""
    output = tmp_path / "bom.json"
    result = subprocess.run(
        [sys.executable, SOURCE / "python" / "make-sbom.py", "--python",
         environment / "bin" / "python", "--build-dir", pathlib.Path(BIN).parent,
         "--output", output],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if "which come from PyPI" in result.stdout:
        pytest.skip(result.stdout.splitlines()[-1])
    assert result.returncode == 0, result.stdout
    bom = json.loads(output.read_text(encoding="utf-8"))
    names = {one["name"] for one in bom["components"]}
    assert names >= {"posenc", "numpy", "apache-tvm-ffi"} and "pip" not in names
    if shutil.which("dpkg"):
        assert names >= {"libllvm22", "libmlir-22", "lld-22", "nlohmann-json3-dev"}
    assert all(one.get("version") for one in bom["components"])
    # Each package whose licence is in the wheel is a component; another run writes the same.
    again = tmp_path / "again.json"
    subprocess.run(
        [sys.executable, SOURCE / "python" / "make-sbom.py", "--python",
         environment / "bin" / "python", "--build-dir", pathlib.Path(BIN).parent,
         "--output", again], stdout=subprocess.DEVNULL, check=True)
    assert again.read_bytes() == output.read_bytes()
    licences = {path.stem for path in environment.glob(
        "lib/python*/site-packages/posenc-*.dist-info/licenses/*.txt")}
    assert not find_unlisted(bom, licences) and bool(licences) == bool(shutil.which("dpkg"))
    # Another licence in the wheel, and a bill that lacks a package, are found.
    assert find_unlisted(bom, {*licences, "libother"}) == {"libother"}
    for name in licences:
        kept = [one for one in bom["components"] if one["name"] != name]
        assert find_unlisted({**bom, "components": kept}, licences) == {name}


def find_unlisted(bom, licences):
    """Returns the packages of licences that a bill of materials does not list."""
    return licences - {one["name"] for one in bom["components"]}


def test_date_of_files(monkeypatch):
    """An empty SOURCE_DATE_EPOCH counts as not given."""
    program = load_program("make-wheel")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    default = program.find_date(SOURCE)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    assert program.find_date(SOURCE) == default and int(default)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert program.find_date(SOURCE) == "1700000000"


def test_same_bytes(environment, tmp_path):
    """A wheel that is built at another time, in another folder and time zone, and with other
    permissions of new files, has the same bytes."""
    before = os.umask(0o077)
    result = subprocess.run(
        [sys.executable, SOURCE / "python" / "make-wheel.py", "--level", "0",
         "--build-dir", pathlib.Path(BIN).parent, "--output-dir", tmp_path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, "TZ": "Asia/Tokyo"})
    os.umask(before)
    assert result.returncode == 0, result.stdout
    wheel = result.stdout.splitlines()[-1]
    assert hash_file(wheel) == (environment.parent / "hash").read_text()


def test_source_distribution(environment):
    """Source distributions from copies of the sources have the same bytes."""
    result = subprocess.run(
        [sys.executable, SOURCE / "python" / "compare-packages.py", "--only", "sdist",
         "--build-dir", pathlib.Path(BIN).parent],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1] == "1 of 1 files are the same"


def test_comparison_of_packages(tmp_path):
    """compare-packages.py finds another byte, date and link, and names the file."""
    program = load_program("compare-packages")

    def write(name, content, day, link):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "library.so").write_bytes(content)
        (folder / "link").symlink_to(link)
        with zipfile.ZipFile(folder / "posenc.whl", "w") as archive:
            archive.writestr(zipfile.ZipInfo("a", (2000, 1, 1, 0, 0, 0)), b"a")
            archive.writestr(zipfile.ZipInfo("b", (2000, 1, day, 0, 0, 0)), b"b")
        return folder

    first = write("first", b"1", 1, "library.so")
    assert program.compare(first, write("same", b"1", 1, "library.so")) == ([], 3)
    other = write("other", b"2", 2, "posenc.whl")
    (other / "more").touch()
    assert program.compare(first, other) == (
        ["more: only in one", "library.so", "link", "posenc.whl: b"], 3)


def test_hidden_package(environment, tmp_path):
    """A script names the package that is found instead of the wheel's."""
    (tmp_path / "posenc").mkdir()
    (tmp_path / "posenc" / "__init__.py").touch()
    result = subprocess.run([environment / "bin" / "posenc-run", "--version"], text=True,
                            stderr=subprocess.PIPE, check=False,
                            env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert result.returncode == 1
    assert f"expected {tmp_path}/posenc/bin/posenc-run: another package" in result.stderr
