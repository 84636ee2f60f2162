# ===- drawn_tests.py - a format of lit tests of which each run draws some ----===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import draw
import lit.formats


class DrawnTests(lit.formats.ShTest):
    """One in `count` of the tests of each folder, rounded up, or all with
    POSENC_TEST_ALL=1."""

    def __init__(self, count, **options):
        super().__init__(**options)
        self.count = 1 if draw.runs_all() else count
        self.seed = draw.find_seed()

    def getTestsInDirectory(self, *arguments):
        tests = {"/".join(test.path_in_suite): test
                 for test in super().getTestsInDirectory(*arguments)}
        for name in draw.choose(self.seed, "lit", tests, self.count):
            yield tests[name]
