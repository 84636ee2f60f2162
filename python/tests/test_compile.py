# ===- test_compile.py - posenc.compile and posenc.load --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What can be compiled, the options, and the compiler's messages."""

import copy
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest

import posenc
from conftest import CONFIG, check_rope, is_close, make_inputs, rotate

MODULE = """
func.func @twice(%x: tensor<?x8xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>,
                                        affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x8xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %y = arith.addf %a, %a : f32
    linalg.yield %y : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
"""


def test_sources(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for source in (CONFIG, json.dumps(CONFIG), str(tmp_path / "config.json"),
                   tmp_path / "config.json", tmp_path):
        check_rope(posenc.compile(source, kernels=["rope"]))


@pytest.mark.parametrize("start", ["", "\ufeff", " \n\t", "\ufeff\r\n "])
def test_starts_of_a_text(start):
    text = start + json.dumps(CONFIG)
    for source in (text, text.encode()):
        check_rope(posenc.compile(source, kernels=["rope"], opt_level=0))
    text = start + MODULE
    x = np.arange(8, dtype=np.float32)[None]
    for source in (text, text.encode(), start + '{-# #-}' + MODULE):
        kernels = posenc.compile(source, opt_level=0)
        assert np.all(kernels.twice(x, x.copy()) == 2 * x)


@pytest.mark.skipif("not find_compiler()", reason="POSENC_BIN does not name the folder "
                    "of posenc-opt")
def test_bytecode(tmp_path):
    path = tmp_path / "twice.mlirbc"
    subprocess.run([find_compiler().parent / "posenc-opt", "-", "--emit-bytecode", "-o",
                    path], input=MODULE, text=True, check=True)
    x = np.arange(8, dtype=np.float32)[None]
    for source in (path, path.read_bytes()):
        assert np.all(posenc.compile(source).twice(x, x.copy()) == 2 * x)


def test_names_of_arguments():
    """Those of the text of a module."""
    x = np.arange(8, dtype=np.float32)[None]
    kernels = posenc.compile(MODULE)
    assert [one["name"] for one in kernels.metadata["functions"][0]["inputs"]] == ["x", "o"]
    assert np.all(kernels.twice(o=x.copy(), x=x) == 2 * x)


def test_ids_of_models():
    with pytest.raises(posenc.Error, match=r"cannot read 'owner/Model-3.2-1B': .*"
                       r"transformers\.AutoConfig\.from_pretrained\('owner/Model-3.2-1B'\)"):
        posenc.compile("owner/Model-3.2-1B")
    for path in ("folder/config.json", "Model-3.2-1B", "/owner/Model", "../Model"):
        with pytest.raises(posenc.Error, match="cannot read '[^']*': [^;]*$"):
            posenc.compile(path)


@pytest.mark.parametrize("name", ["my_func.json", "func.func.json", "a{config}.json",
                                  os.fsdecode(b"\xff.json")])
def test_paths_that_look_like_a_source(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(posenc.Error, match="cannot read|module.mlir:1:1"):
        posenc.compile(name)
    pathlib.Path(name).write_text(json.dumps(CONFIG))
    check_rope(posenc.compile(name, kernels=["rope"]))
    pathlib.Path(name).write_text("[")
    with pytest.raises(posenc.CompileError, match=r"\.json:1:\d"):
        posenc.compile(name)


def test_a_source_of_one_line(tmp_path):
    line = " ".join(MODULE.split())
    x = np.arange(8, dtype=np.float32)[None]
    assert np.all(posenc.compile(line).twice(x, x.copy()) == 2 * x)


def test_default_functions(kernels):
    assert list(kernels) == ["sincos", "rope", "attention", "decode"]
    assert "rope" in kernels and "append" not in kernels and len(kernels) == 4


def test_kernels_option():
    assert list(posenc.compile(CONFIG, kernels="rope,sincos")) == ["sincos", "rope"]
    assert "append_paged" in posenc.compile(CONFIG, kernels="serving", opt_level=0)


def test_module(tmp_path):
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    path = tmp_path / "twice.mlir"
    path.write_text(MODULE)
    for source in (MODULE, path):
        kernels = posenc.compile(source)
        out = np.empty_like(x)
        assert kernels.twice(x, out, out=out) is out and np.all(out == 2 * x)


def test_options():
    inputs = make_inputs()
    q, k, _, positions = inputs
    half = q.shape[-1] // 2
    kernels = posenc.compile(CONFIG, kernels="rope", pairing="interleaved",
                             threads="none", target="x86-64-v3", opt_level=0)
    assert kernels.metadata["targets"] == ["x86-64-v3"]
    # Interleaved pairs are halves in another order of channels.
    order = np.arange(2 * half).reshape(2, half).T.reshape(-1)
    expected = rotate(q, positions)
    actual = np.empty_like(q)
    actual[..., order] = kernels.rope(np.ascontiguousarray(q[..., order]),
                                      np.ascontiguousarray(k[..., order]), positions)[0]
    actual = kernels.rope(np.ascontiguousarray(q[..., order]),
                          np.ascontiguousarray(k[..., order]), positions)[0]
    assert is_close(actual, expected[..., order])


@pytest.mark.parametrize("dtype", ["f64", "float64", np.float64, np.dtype("float64")])
def test_dtype(dtype):
    kernels = posenc.compile(CONFIG, kernels="rope", dtype=dtype, opt_level=0)
    q, k, _, positions = make_inputs(dtype=np.float64)
    assert is_close(kernels.rope(q, k, positions)[0], rotate(q, positions), 1e-14)


def test_rope_length_as_a_number():
    config = {**CONFIG, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}
    kernels = posenc.compile(config, kernels="rope", rope_length="input", opt_level=0)
    q, k, _, positions = make_inputs()
    short = kernels.rope(q, k, positions, 4096)[0]
    assert is_close(short, rotate(q, positions))
    assert not is_close(kernels.rope(q, k, positions, 9000)[0], rotate(q, positions))
    with pytest.raises(posenc.Error, match="rope_length .* expected an integer"):
        kernels.rope(q, k, positions, 4096.5)


@pytest.mark.parametrize("source, options, message", [
    ({**CONFIG, "rope_theta": -1}, {}, r"config.json:1:\d+: error: .*rope_theta"),
    ({"model_type": "bert"}, {}, "config.json.*error"),
    ("{", {}, "config.json:1:"),
    (b"{", {}, "config.json:1:2"),
    ("\ufeff{", {}, "config.json:1:2"),
    ('{"model_type": "\udc80"}', {}, "config.json:1:"),
    ("func.func @\udc80() {\n}", {}, "module.mlir:1:"),
    ("func.func @f(", {}, "module.mlir:1:"),
    (b"\x7fELF", {}, "expected MLIR, .* got an ELF file"),
    (CONFIG, {"dtype": "f8"}, "unknown dtype 'f8': expected f32"),
    (CONFIG, {"dtype": np.int8}, "unknown dtype 'i8': expected f32"),
    (CONFIG, {"dtype": np.complex64}, "kernels have no type .*complex64"),
    (CONFIG, {"target": "pentium"}, "pentium"),
    (CONFIG, {"target": "cuda:sm_1"}, "unknown architecture 'sm_1'"),
    (CONFIG, {"target": ["host", "x86-64-v3"]}, "expected one CPU"),
    (CONFIG, {"target": "aarch64:neoverse-n1"}, "of another architecture"),
    (CONFIG, {"kernels": ["rape"]}, "no function 'rape'; the input has "),
    (CONFIG, {"kernels": "rope,"}, "'kernels' has an empty name"),
    (CONFIG, {"pairing": "both"}, "unknown pairing 'both'"),
    (CONFIG, {"precision": "f32"}, "unknown precision 'f32'"),
    (CONFIG, {"decode_tokens": 0}, "decode-tokens '0'"),
    (CONFIG, {"rope_length": "long"}, "rope-length 'long'"),
    (CONFIG, {"threads": "two"}, "unknown threads 'two'"),
    (CONFIG, {"opt_level": 1}, "'opt_level' needs 0 or 3"),
    (CONFIG, {"qk_norm": True}, "norm"),
    (CONFIG, {"stack_limit": 1, "kernels": "rope"}, r"pass stack_limit=\d+ or more"),
    (CONFIG, {"stack_limit": -1}, "error: stack_limit needs a positive number"),
    (CONFIG, {"tuning": "/no/such.json"}, "cannot read '/no/such.json'"),
    (MODULE, {"dtype": "f32"}, "error: dtype applies only to a config.json"),
    (MODULE, {"precision": "f32"}, "unknown precision 'f32'"),
    ("missing_func.json", {}, "cannot read 'missing_func.json'"),
    ("a\0b", {}, r"'a\\x00b' is not a path: it has a null character"),
    ("a{\0b", {}, "is not a path"),
    ("missing.json", {}, "cannot read 'missing.json'"),
    (7, {}, "cannot compile a int: expected the path or the text"),
])
def test_errors(source, options, message):
    with pytest.raises(posenc.Error, match=message):
        posenc.compile(source, **options)


def test_a_failed_compilation_leaves_the_compiler_usable():
    with pytest.raises(posenc.CompileError):
        posenc.compile("{")
    check_rope(posenc.compile(CONFIG, kernels="rope"))


def test_warnings():
    config = {**CONFIG, "model_type": "unheard_of"}
    with pytest.warns(posenc.CompileWarning, match="unheard_of") as caught:
        posenc.compile(config, kernels="rope", opt_level=0)
    assert caught[0].filename == __file__
    assert list(posenc.compile(config, kernels="rope", no_warnings=True))


def test_threads_compile_at_once():
    results = [None] * 4

    def work(i):
        results[i] = posenc.compile({**CONFIG, "rope_theta": 10000.0 + i},
                                    kernels="rope", opt_level=0)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    q, k, _, positions = make_inputs()
    for i, kernels in enumerate(results):
        assert is_close(kernels.rope(q, k, positions)[0],
                        rotate(q, positions, 10000.0 + i))


FORKS = """
import itertools, json, os, signal, sys, threading, time
import numpy as np
import posenc
import posenc.functional
from posenc._fork import fork_gate

config, numbers, stopped = json.loads(sys.argv[1]), itertools.count(), threading.Event()
q, positions = np.ones((1, 1, 3, 6), np.float32), np.ones((1, 1), np.int64)

def compile(theta):
    posenc.compile({**config, "rope_theta": theta}, kernels="rope", opt_level=0)

def call(theta):
    posenc.functional.rope(q, q, positions, theta=theta)

def work(function):
    while not stopped.is_set():
        function(100.0 + next(numbers))

def wait(child):
    for _ in range(2000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return "hangs"

def fork(*functions):
    child = os.fork()
    if child == 0:
        for function in functions:
            function(7.0)
        os._exit(0)
    return child

threads = [threading.Thread(target=work, args=(f,)) for f in (compile, call)]
for thread in threads:
    thread.start()
results = []
for i in range(3):
    time.sleep(0.01 * i)
    results.append(wait(fork(compile, call)))
# As in a signal handler during a compilation, while other threads wait for the lock.
with posenc._rope._lock, fork_gate:
    time.sleep(.1)
    results.append(wait(fork(compile)))
stopped.set()
for thread in threads:
    thread.join()
compile(8.0)
print(results)
"""


def test_forks_while_threads_compile():
    """Children can compile: no lock of the compiler is left locked."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, json.dumps(CONFIG)], text=True,
        capture_output=True, check=False, timeout=150,
        env={**os.environ, "POSENC_CACHE": "off"})
    assert (result.stdout, result.stderr) == ("[0, 0, 0, 0]\n", "")


# What the parent does before the fork; then the child computes, in other kernels.
CHILDREN = """
import json, os, signal, sys
import numpy as np
import posenc

def count_threads():
    return len(os.listdir("/proc/self/task"))

def compile(name):
    return getattr(posenc.compile(json.loads(sys.argv[1]), kernels=name), name)

def rope():
    compile("rope")(q, k, positions)

q, k = np.ones((1, 2048, 4, 64), "f4"), np.ones((1, 2048, 2, 64), "f4")
positions = np.arange(2048)[None]
compile("rope")
PARENT
child = os.fork()
if child == 0:
    signal.alarm(60)
    before = count_threads()
    compile("attention")(q, k, k, positions)
    print(before, count_threads(), flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def count_threads_of_child(parent):
    """Returns how many threads the child has before and after it computes."""
    config = {**CONFIG, "hidden_size": 256, "num_attention_heads": 4,
              "num_key_value_heads": 2, "head_dim": 64}
    result = subprocess.run(
        [sys.executable, "-c", CHILDREN.replace("PARENT", parent), json.dumps(config)],
        text=True, capture_output=True, check=False, timeout=150,
        env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"})
    assert not result.stderr
    return result.stdout.split()


def test_a_child_of_a_process_with_threads():
    """It lacks the threads that libgomp would wait for, whatever has started them."""
    assert count_threads_of_child("rope()") == ["1", "1"]


def test_a_child_of_a_process_with_one_thread():
    """Threads of NumPy do not count, because they end when a fork begins."""
    assert count_threads_of_child("np.ones((300, 300)) @ np.ones((300, 300))") == ["1", "2"]


def test_a_child_after_calls_of_pytorch():
    pytest.importorskip("torch")
    assert count_threads_of_child("""import torch
torch.set_num_threads(2)
torch.ones(1 << 22).exp().sum()
assert count_threads() > 1""") == ["1", "1"]


def test_a_fork_that_began_before_the_import():
    """Its first hook was not there yet when another thread imported the package."""
    result = subprocess.run(
        [sys.executable, "-c", """
import os
os.register_at_fork(before=lambda: __import__("posenc"))
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
import posenc
with posenc._fork.fork_gate:
    print("entered")
"""], text=True, capture_output=True, check=False, timeout=60)
    # Modules of Python itself complain about their locks.
    assert result.stdout == "entered\n" and "_fork.py" not in result.stderr


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path))
    posenc.compile(CONFIG, kernels="rope")
    [entry] = tmp_path.glob("llvmcache-*")
    before = entry.stat().st_mtime_ns, entry.stat().st_ino
    check_rope(posenc.compile(CONFIG, kernels="rope"))
    assert [entry] == list(tmp_path.glob("llvmcache-*"))
    assert before == (entry.stat().st_mtime_ns, entry.stat().st_ino)
    # Another process uses the entry, too.
    code = ("import json, sys, posenc\n"
            "posenc.compile(json.loads(sys.argv[1]), kernels='rope')")
    subprocess.run([sys.executable, "-c", code, json.dumps(CONFIG)], check=True)
    assert [entry] == list(tmp_path.glob("llvmcache-*"))


def test_cache_of_others(tmp_path):
    """A folder that others can write is not used, which a process says once."""
    tmp_path.chmod(0o777)
    code = ("import json, sys, posenc\n"
            "for theta in (2.0, 3.0):\n"
            "    config = {**json.loads(sys.argv[1]), 'rope_theta': theta}\n"
            "    posenc.compile(config, kernels='rope', opt_level=0)")
    result = subprocess.run(
        [sys.executable, "-c", code, json.dumps(CONFIG)], check=True, text=True,
        capture_output=True, env={**os.environ, "POSENC_CACHE": str(tmp_path)})
    assert result.stderr.count("CompileWarning") == 1
    assert f"'{tmp_path}' can be written by other users" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variable, folder", [("XDG_CACHE_HOME", "posenc"),
                                              ("HOME", ".cache/posenc")])
def test_default_cache(tmp_path, monkeypatch, variable, folder):
    for name in ("POSENC_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    posenc.compile(CONFIG, kernels="rope", opt_level=0)
    assert list((tmp_path / folder).glob("llvmcache-*"))


CRASH = """
import ctypes, json, os, signal, sys, threading, time
import numpy as np
import posenc

def list_threads():
    return set(map(int, os.listdir("/proc/self/task")))

def compile(results):
    try:
        posenc.compile(json.loads(sys.argv[1]), kernels="attention")
        results.append("compiled")
    except posenc.CompileError as error:
        results.append(str(error))

kernels = posenc.compile(json.loads(sys.argv[1]), kernels="rope")
results, others = [], []
other = threading.Thread(target=compile, args=(others,))
before = list_threads()
other.start()
while len(list_threads() - before) < 2:  # Its own and the compiler's.
    time.sleep(0.001)
before = list_threads()
thread = threading.Thread(target=compile, args=(results,))
thread.start()
while not (new := list_threads() - before - {thread.native_id}):
    time.sleep(0.001)
time.sleep(0.05)
tgkill = 234
ctypes.CDLL(None).syscall(tgkill, os.getpid(), max(new), int(signal.SIGSEGV))
thread.join()
compile(results)
other.join()
print(results[0], results[1], others[0], sep="\\n")
q = np.ones((1, 2, 4, 32), np.float32)
print(kernels.rope(q, q[:, :, :2], np.zeros((1, 2), np.int64))[0][0, 0, 0, 0])
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="sends a signal by a system "
                    "call of x86-64")
def test_a_crash_of_the_compiler():
    """It is an error, after which compiled kernels still work. Another thread that
    compiles at that time goes on."""
    result = subprocess.run([sys.executable, "-c", CRASH, json.dumps(CONFIG)], text=True,
                            capture_output=True, check=False,
                            env={**os.environ, "POSENC_CACHE": "off"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "error: internal error: the compiler crashed",
        "error: the compiler crashed before in this process: restart it", "compiled",
        "1.0"]


def test_a_missing_compiler(tmp_path):
    code = "import posenc\nposenc.compile('{}')"
    environment = {**os.environ, "POSENC_LIBRARY_PATH": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                            capture_output=True, check=False)
    assert "posenc.Error: cannot open " + str(tmp_path) in result.stderr


def find_compiler():
    folder = os.environ.get("POSENC_BIN")
    return pathlib.Path(folder, "posenc-compile") if folder else None


@pytest.mark.skipif(not find_compiler(), reason="POSENC_BIN does not name the folder of "
                    "posenc-compile")
def test_load(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    library = tmp_path / "libmodel.so"
    subprocess.run([find_compiler(), tmp_path / "config.json", "-o", library,
                    "--kernels=rope"], check=True)
    kernels = posenc.load(library)
    check_rope(kernels)
    assert kernels.metadata["prefix"] == "model"
    damaged = tmp_path / "libdamaged.so"
    damaged.write_bytes(library.read_bytes()[:1000])
    with pytest.raises(posenc.Error, match="libdamaged.so"):
        posenc.load(damaged)
    for path in ("missing.so", tmp_path, "missing\0.so"):
        with pytest.raises(posenc.Error, match="missing|regular file"):
            posenc.load(path)


@pytest.mark.skipif(not find_compiler(), reason="POSENC_BIN does not name the folder of "
                    "posenc-compile")
@pytest.mark.parametrize("copied", [True, False])
def test_load_of_weights(tmp_path, monkeypatch, copied):
    """The file of a library's weights is beside it, or where `weights` says."""
    if not copied:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    random = np.random.default_rng(int(copied))
    x, w = (random.standard_normal((rows, 64)).astype(np.float32) for rows in (5, 64))
    (tmp_path / "product.mlir").write_text(f"""
        func.func @product(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {{
          %zero = arith.constant 0.0 : f32
          %row = arith.constant 0 : index
          %w = arith.constant dense<"0x{w.tobytes().hex().upper()}"> : tensor<64x64xf32>
          %n = tensor.dim %x, %row : tensor<?x64xf32>
          %empty = tensor.empty(%n) : tensor<?x64xf32>
          %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>)
            -> tensor<?x64xf32>
          %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>)
            outs(%init : tensor<?x64xf32>) -> tensor<?x64xf32>
          return %y : tensor<?x64xf32>
        }}""")
    library, weights = tmp_path / "libmodel.so", tmp_path / "model.safetensors"
    subprocess.run([find_compiler(), tmp_path / "product.mlir", "-o", library,
                    "--weights=file"], check=True)
    assert is_close(posenc.load(library).product(x), x @ w)
    moved = tmp_path / "moved"
    moved.mkdir()
    library = library.rename(moved / "libother.so")
    weights = weights.rename(tmp_path / "weights")
    for path in (tmp_path / "missing", library):
        with pytest.raises(posenc.Error, match="libother.so: weights: .*(missing|other)"):
            posenc.load(library, weights=path)
    if copied:
        assert is_close(posenc.load(library, weights=weights).product(x), x @ w)
        return
    # The same file is loaded already, and has its weights from another path.
    with pytest.raises(posenc.Error, match="opened its weights already, from .*model.safe"):
        posenc.load(library, weights=weights)


@pytest.mark.skipif(not find_compiler(), reason="POSENC_BIN does not name the folder of "
                    "posenc-compile")
@pytest.mark.parametrize("copied", [True, False])
def test_load_of_a_rewritten_file(tmp_path, monkeypatch, copied):
    """The functions are those of the file's content, and older ones still work."""
    if not copied:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    q, k, _, positions = make_inputs()
    config, library = tmp_path / "config.json", tmp_path / "libmodel.so"
    (tmp_path / "new").mkdir()
    loaded = []
    for base in (10000.0, 300.0) if copied else (700.0,):
        config.write_text(json.dumps({**CONFIG, "rope_theta": base}))
        subprocess.run([find_compiler(), config, "-o", tmp_path / "new" / "libmodel.so",
                        "--kernels=rope"], check=True)
        library.write_bytes((tmp_path / "new" / "libmodel.so").read_bytes())
        loaded += [(posenc.load(library), base), (posenc.load(library), base)]
    for kernels, base in loaded:
        assert is_close(kernels.rope(q, k, positions)[0], rotate(q, positions, base))
    with pytest.raises(posenc.Error, match="loaded library cannot be pickled"):
        pickle.dumps(loaded[0][0])
    assert copy.deepcopy(loaded[0][0]) is loaded[0][0]


def test_pickle():
    """The kernels are compiled again where they are unpickled."""
    source = {**CONFIG, "rope_theta": 900.0}
    kernels = posenc.compile(source, kernels=["rope", "sincos"], opt_level=0)
    assert copy.copy(kernels) is kernels and copy.deepcopy([kernels])[0] is kernels
    q, k, _, positions = make_inputs()
    again = pickle.loads(pickle.dumps(kernels))
    assert list(again) == list(kernels) and again.metadata == kernels.metadata
    code = ("import pickle, sys\n"
            "function, inputs = pickle.load(sys.stdin.buffer)\n"
            "pickle.dump(function(*inputs), sys.stdout.buffer)\n")
    result = subprocess.run([sys.executable, "-c", code], check=True,
                            capture_output=True,
                            input=pickle.dumps((kernels.rope, (q, k, positions))))
    assert is_close(pickle.loads(result.stdout)[0], rotate(q, positions, 900.0))
