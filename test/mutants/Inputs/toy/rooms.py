# ===- rooms.py - the rooms of a small project -----------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

import collections

Room = collections.namedtuple("Room", "folder targets outputs tests")
CONFIGURE = "true"
TIMEOUT = 1
BUILD = "cc -O1 {tree}/lib/code.c {tree}/tests/check.c -o {build}/{targets}"
ROOMS = [Room("lib", ["check"], ["{build}/check"], ["{build}/check > {build}/log"])]
