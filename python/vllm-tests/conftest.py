# ===- conftest.py - what the tests of the plug-in share ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The checkpoints, and the line of the log about a model."""

import os
import pathlib
import re

import models
import pytest

# The line about a model, from the number of its layers on.
LINE = re.compile(r"Posenc \S+, vLLM 0\.32\S*, PyTorch \S+: Posenc's kernels run "
                  r"(.*); kernels are cached in: \S+")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    keep = os.environ.get("POSENC_VLLM_FOLDER")
    path = pathlib.Path(keep) if keep else tmp_path_factory.mktemp("vllm")
    path.mkdir(exist_ok=True)
    for name in models.MODELS:
        models.write_checkpoint(name, str(path / name))
    return path
