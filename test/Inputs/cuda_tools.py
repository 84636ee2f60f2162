# ===- cuda_tools.py - finds the tools of the CUDA toolkit -------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Finds ptxas in the places where posenc-compile does; and ptxas and the disassembler
nvdisasm of the Python packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm, which
test/sass uses."""

import glob
import os
import shutil
import subprocess

VARIABLES = ["POSENC_PTXAS", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"]


def get_python_folders():
    """Returns the folders of packages of VIRTUAL_ENV or of the python3 on PATH."""
    environment = os.environ.get("VIRTUAL_ENV")
    python = (
        os.path.join(environment, "bin", "python3")
        if environment
        else shutil.which("python3")
    )
    try:
        return subprocess.run(
            [python, "-c", r"import sys; print(*sys.path, sep='\n')"],
            capture_output=True, text=True, check=True, timeout=10,
        ).stdout.split("\n")
    except (OSError, TypeError, subprocess.SubprocessError):
        return []


def find_tool(name):
    """Returns the path of a tool, or None."""
    if name == "ptxas" and os.environ.get("POSENC_PTXAS"):
        return os.environ["POSENC_PTXAS"]
    for variable in ["CUDA_HOME", "CUDA_PATH"]:
        path = os.path.join(os.environ.get(variable, ""), "bin", name)
        if os.environ.get(variable) and os.access(path, os.X_OK):
            return path
    if shutil.which(name):
        return shutil.which(name)
    folders = list(filter(None, get_python_folders()))
    for packages in ["nvidia", "triton/backends"]:
        for folder in folders:
            found = glob.glob(os.path.join(folder, packages, "*", "bin", name))
            if found:
                # Toolkits are in cu13, cu14, ...; older packages in cuda_nvcc etc.
                return max(found, key=lambda path: ("/cuda_" not in path, path))
    return None


def find_checked(folder, version):
    """Returns {name: path} of the tools of a version in a virtual environment, or None if
    one of them is missing."""
    packages = os.path.join(folder, "lib", "python*", "site-packages")
    tools = {}
    for tool, package in [("ptxas", "nvcc"), ("nvdisasm", "nvdisasm")]:
        record = f"nvidia_cuda_{package}-{version}.dist-info"
        found = glob.glob(os.path.join(packages, "nvidia", "*", "bin", tool))
        if not found or not glob.glob(os.path.join(packages, record)):
            return None
        tools[tool] = found[0]
    return tools
