# ===- lit.cfg.py - configuration of tests out of time    ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#

import os
import tempfile

import lit.formats

config.name = "Fixture"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test"]
config.test_exec_root = os.environ.get("FIXTURE_OBJ", tempfile.gettempdir())
