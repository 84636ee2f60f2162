# ===- lit.cfg.py - configuration of the lit tests -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Run lit on the build tree (`lit build/test`), where lit.site.cfg.py defines the
# paths.

import atexit
import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "locks"))
import cuda_tools
import draw
import drawn_tests
import lock_files


# Returns the interpreter that a command starts. The python3 of pyenv is a script that takes
# eight times as long to start as the interpreter that it finds.
def resolve_python(python):
    result = subprocess.run([python, "-c", "import sys; print(sys.executable)"],
                            capture_output=True, text=True, check=False)
    return result.stdout.strip() or python


config.python = resolve_python(config.python)

config.name = "Posenc"
# `make debug-check` repeats a part of the tests of `make test`.
config.test_format = drawn_tests.DrawnTests(int(lit_config.params.get("draw", 1)),
                                            execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "locks", "unit", "fuzz"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.posenc_obj_root, "test")

# Limits variables without `$` to the next CHECK-LABEL, and makes unused prefixes
# an error.
config.environment["FILECHECK_OPTS"] = (
    "-enable-var-scope --allow-unused-prefixes=false"
)
# Diagnostics may contain messages of the system, which depend on the locale.
config.environment["LC_ALL"] = "C"
# Commands that compile the same module share its code, in a folder of this run of lit
# alone. Tests of the compilation itself set POSENC_CACHE=off.
cache = tempfile.mkdtemp(prefix="cache-", dir=config.test_exec_root)
atexit.register(shutil.rmtree, cache, ignore_errors=True)
config.environment["POSENC_CACHE"] = cache

# Some tests draw their cases by this seed.
config.environment["POSENC_TEST_SEED"] = draw.find_seed()
if draw.runs_all():
    config.environment["POSENC_TEST_ALL"] = "1"

# Longer names come first, since substitutions replace plain text.
config.substitutions += [
    ("%posenc_src", config.posenc_src_root),
    ("%posenc_obj", config.posenc_obj_root),
    ("%posenc_lib", config.posenc_lib),
    ("%llvm_include", config.llvm_include_dir),
    ("%llvm_tools", config.llvm_tools_dir),
    ("%lit", config.lit),
    ("%cc", config.cc),
    ("%cxx", config.cxx),
    ("%cmake", config.cmake),
    ("%python", config.python),
]


# Replaces the names of tools by full paths, so that a tool that has not been built
# is not found elsewhere.
def add_tool(directory, name):
    # Does not match a part of a longer name or of a path.
    pattern = r"(?<![\w./-])" + re.escape(name) + r"(?![\w./-])"
    config.substitutions.append((pattern, os.path.join(directory, name)))


for tool in [
    "posenc-opt", "posenc-compile", "posenc-run", "posenc-bench", "posenc-tune",
]:
    add_tool(os.path.join(config.posenc_obj_root, "bin"), tool)
for tool in [
    "FileCheck", "lli", "llvm-ar", "llvm-nm", "llvm-objdump", "llvm-readelf",
    "llvm-strings", "mlir-opt", "mlir-runner", "mlir-tblgen",
    "mlir-translate", "not", "split-file",
]:
    add_tool(config.llvm_tools_dir, tool)

# Tests that need an emulator or a libc of another architecture are skipped if it is
# not installed.
for emulator in ["qemu-x86_64", "qemu-aarch64", "bochs"]:
    if shutil.which(emulator):
        config.available_features.add(emulator)
if os.path.exists("/usr/aarch64-linux-gnu/lib/libc.so.6"):
    config.available_features.add("aarch64-libc")

# Tools of the CUDA toolkit.
for variable in cuda_tools.VARIABLES:
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
ptxas = cuda_tools.find_tool("ptxas")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

# Code generation for Vulkan, unless the build leaves it out.
if config.posenc_vulkan == "ON":
    config.available_features.add("spirv")

# The solver of the proofs.
if shutil.which("z3"):
    config.available_features.add("z3")


# The checker of memory, which needs the symbols of the dynamic loader: Debian's libc6-dbg.
def runs(*command):
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


if runs("valgrind", "--quiet", "true"):
    config.available_features.add("valgrind")

# The SPIR-V validator.
if shutil.which("spirv-val"):
    config.available_features.add("spirv-val")

# Whether there is no real CUDA driver. Other tests use an emulated one.
try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    config.available_features.add("no-cuda")

# A Vulkan device, which may be a software implementation.
try:
    runtime = ctypes.CDLL(
        os.path.join(config.posenc_obj_root, "lib", "libposenc_runtime.so")
    )
    count = ctypes.c_uint32()
    if runtime.posenc_vulkan_count_devices(ctypes.byref(count)) == 0 and count:
        config.available_features.add("vulkan")
except (OSError, AttributeError):
    pass

# Third-party headers and Python modules.
if os.path.exists("/usr/include/dlpack/dlpack.h"):
    config.available_features.add("dlpack")


def has_modules(python, modules):
    result = subprocess.run(
        [python, "-c", "import " + modules], capture_output=True, check=False
    )
    return result.returncode == 0


# Installs a group of Python packages into a virtual environment of the build folder, once.
# `find` returns what the packages are for, or None. Without network access it stays None,
# its tests are skipped, and the installation is retried after an hour.
def install_packages(base, group, find):
    folder = os.path.join(config.test_exec_root, "venv")
    python = os.path.join(folder, "bin", "python")
    found = find(folder)
    attempt = f"{folder}.{group}.attempt"
    if found or (
        os.path.exists(attempt) and time.time() - os.path.getmtime(attempt) < 3600
    ):
        return found
    with open(attempt, "w"):
        pass
    commands = [[python, "-m", "pip", "install", "--quiet", "--timeout=10",
                 "--retries=1", *lock_files.install_arguments(group)]]
    if not os.path.exists(python) or not has_modules(python, "pip"):
        commands.insert(0, [base, "-m", "venv", "--system-site-packages", folder])
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    return find(folder)


def find_tvm(folder):
    python = os.path.join(folder, "bin", "python")
    return python if os.path.exists(python) and has_modules(python, "tvm_ffi") else None


# Debian's Python modules work only with Debian's Python; PYTHONPATH may have
# others.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
environment_python = config.python
for python in [config.python, "/usr/bin/python3"]:
    if os.path.exists(python) and has_modules(python, "numpy"):
        environment_python = python
        config.available_features.add("numpy")
        config.substitutions.insert(0, ("%numpy_python", python))
        tvm_python = install_packages(python, "tvm", find_tvm)
        if tvm_python:
            config.available_features.add("tvm_ffi")
            config.substitutions.insert(0, ("%tvm_python", tvm_python))
        break

# The assembler and the disassembler whose machine code test/sass checks. Its limits are
# those of one version; ptxas 12.8 to 13.0 can assign wrong registers to operands of wgmma.
# These tools are not used by other tests, which stay as fast as without them.
def find_cuda(folder):
    return cuda_tools.find_checked(folder, lock_files.read_versions()["nvidia-cuda-nvcc"])


tools = install_packages(environment_python, "cuda", find_cuda)
if tools:
    config.available_features.add("cuda-wheels")
    config.substitutions += [("%checked_ptxas", tools["ptxas"]),
                             ("%checked_nvdisasm", tools["nvdisasm"])]
    for arch in draw.draw_values("sass", ["arch"], ["sm_80", "sm_90a"])["arch"]:
        config.available_features.add(f"sass-{arch}")

# PyTorch and transformers are gigabytes, so no test installs them.
for python in [os.environ.get("POSENC_TEST_PYTHON"), config.python, "/usr/bin/python3"]:
    if python and os.path.exists(python) and has_modules(
            python, "numpy, torch, transformers"):
        config.available_features.add("transformers")
        config.substitutions.insert(0, ("%transformers_python", python))
        break

if config.host_processor in ("x86_64", "AMD64"):
    config.available_features.add("x86_64")
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = set(file.read().split())
        if {"avx2", "bmi2", "f16c", "fma"} <= flags:
            config.available_features.add("x86-64-v3")
        if "avx512vl" in flags:
            config.available_features.add("avx512")
        # Tests check that kernels for a CPU with more features fail cleanly.
        if not {"avx512_bf16", "avx512_vnni"} <= flags:
            config.available_features.add("no-avx512bf16")
        # Linux may refuse the tile registers to the process.
        arch_prctl, request_permission, tile_data = 158, 0x1023, 18
        if {"amx_bf16", "amx_tile"} <= flags and not ctypes.CDLL(None).syscall(
                arch_prctl, request_permission, tile_data):
            config.available_features.add("amx")
    except OSError:
        pass
# The thread sanitizer, which does not stand every layout of memory. The program says
# that it needs arguments.
threads = os.path.join(config.test_exec_root, "fixture", "PosencThreads")
if os.path.exists(threads):
    result = subprocess.run([threads], capture_output=True, check=False)
    if b"expected LIBRARY" in result.stderr:
        config.available_features.add("thread-sanitizer")
# A Python that can load libPosenc.so, which in a sanitized build needs the sanitizers'
# runtime. Only Clang's is found.
library_python = config.python
if config.posenc_sanitize == "ON":
    config.available_features.add("sanitizer")
    # LLVM does not free all of its memory at exit. test/Sanitizer/Options.c has the
    # others, which Python lacks.
    config.environment["ASAN_OPTIONS"] = (
        "detect_leaks=0:allow_user_poisoning=0:detect_container_overflow=0"
    )
    runtimes = glob.glob(os.path.join(
        config.llvm_tools_dir, "..", "lib", "clang", "*", "lib", "*",
        f"libclang_rt.asan-{config.host_processor}.so"))
    library_python = f"env LD_PRELOAD={runtimes[0]} {config.python}" if runtimes else None
if library_python:
    config.available_features.add("library-python")
    config.substitutions.insert(0, ("%library_python", library_python))
