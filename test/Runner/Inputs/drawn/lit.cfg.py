# ===- lit.cfg.py - configuration of tests that a run draws ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../Inputs"))
import drawn_tests

config.name = "Drawn"
config.test_format = drawn_tests.DrawnTests(int(lit_config.params["draw"]),
                                            execute_external=False)
config.suffixes = [".test"]
config.test_exec_root = os.environ.get("FIXTURE_OBJ", tempfile.gettempdir())
