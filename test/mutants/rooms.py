# ===- rooms.py - which tests watch over which folder ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# A room is a folder of sources, the targets to build after a change in it, the files that
# its tests run, and the tests: shell commands, the quickest first. {tree} is the copy of
# the sources, {build} its build, {jobs} the number of jobs.

import collections
import importlib.util

Room = collections.namedtuple("Room", "folder targets outputs tests")

# One object for each file, so that a change compiles one of them.
CONFIGURE = ("cmake -S {tree} -B {build} --preset files > {build}/configure.log 2>&1 "
             "|| (cat {build}/configure.log; exit 1)")

# Seconds that the tests of a change may take, if they take less without it.
TIMEOUT = 120
BUILD = "cmake --build {build} -j {jobs} --target {targets}"

TOOLS = ["posenc-opt", "posenc-compile", "posenc-run"]
LIBRARY = ["{build}/lib/libPosenc.so"]
RUNTIME = ["{build}/lib/libposenc_runtime.so"]


def unit(*names):
    return [f"{{build}}/test/unit/{name} --gtest_brief=1 --gtest_fail_fast"
            for name in names]


def lit(names):
    return [f"{{python}} {{lit}} -q --max-failures=1 -j {{jobs}} --filter '{names}' "
            "{build}/test {build}/test/unit"]


PROOFS = ["{build}/test/fixture/PosencProofs --quick {tree}"]

ROOMS = [
    Room("lib/ABI", [*TOOLS, "PosencProofs"], LIBRARY,
         PROOFS + lit("Posenc :: (Compile|Codegen|Run)/")),
    Room("lib/CAPI", TOOLS, LIBRARY, lit("Posenc :: (Integration|install)/")),
    Room("lib/Codegen", [*TOOLS, "PosencNumericsTests"], LIBRARY,
         lit("Posenc :: (Codegen|Pipelines|Run)/|/PosencNumericsTests/")),
    Room("lib/Conversion", [*TOOLS, "PosencNumericsTests"], LIBRARY,
         lit("Posenc :: (Conversion|Pipelines|Run)/|/PosencNumericsTests/")),
    Room("lib/Driver", TOOLS, LIBRARY, lit("Posenc :: (Compile|Tools|Run|Frontend)/")),
    Room("lib/Frontend", [*TOOLS, "PosencFrontendTests"], LIBRARY,
         unit("PosencFrontendTests") + lit("Posenc :: (Frontend|Compile)/")),
    Room("lib/IR", [*TOOLS, "PosencIRTests", "PosencProofs"], LIBRARY,
         unit("PosencIRTests") + PROOFS
         + lit("Posenc :: (IR|Transforms|Conversion|Codegen|Pipelines)/")),
    Room("lib/Import", TOOLS, LIBRARY, lit("Posenc :: (Import|Raise)/")),
    Room("lib/Interpreter", [*TOOLS, "PosencInterpreterTests"], LIBRARY,
         unit("PosencInterpreterTests") + lit("Posenc :: Run/")),
    Room("lib/Numerics", [*TOOLS, "PosencNumericsTests"], LIBRARY,
         lit("Posenc :: (Conversion|Codegen|Run)/|/PosencNumericsTests/")),
    Room("lib/Pipelines", TOOLS, LIBRARY, lit("Posenc :: (Pipelines|Compile)/")),
    Room("lib/Raise", TOOLS, LIBRARY, lit("Posenc :: (Raise|Import)/")),
    Room("lib/Reference", ["PosencReferenceTests"], LIBRARY,
         unit("PosencReferenceTests")),
    Room("lib/Registration", TOOLS, LIBRARY, lit("Posenc :: (Tools|install|IR)/")),
    Room("lib/Support", [*TOOLS, "PosencIRTests", "PosencProofs"], LIBRARY,
         unit("PosencIRTests") + PROOFS + lit("Posenc :: (IR|Import|Compile|Frontend)/")),
    Room("lib/Target", [*TOOLS, "PosencTargetTests"], LIBRARY,
         unit("PosencTargetTests") + lit("Posenc :: (Target|Compile|Integration)/")),
    Room("lib/TargetInfo", [*TOOLS, "PosencTargetTests"], LIBRARY,
         unit("PosencTargetTests") + lit("Posenc :: (Target|Codegen|Compile|Tune)/")),
    Room("lib/Transforms", [*TOOLS, "PosencProofs", "PosencNumericsTests"], LIBRARY,
         PROOFS + lit("Posenc :: (Transforms|Conversion|Codegen|Pipelines)/")
         + lit("/PosencNumericsTests/Attention")),
    Room("runtime/kernel", [*TOOLS, "PosencProofs"], LIBRARY,
         PROOFS + lit("Posenc :: (Integration|Run)/")),
    Room("runtime/lib", [*TOOLS, "posenc_runtime", "PosencRuntimeTests",
                         "PosencRuntimeInternalTests", "PosencVulkanTests"],
         RUNTIME + ["{build}/test/unit/PosencRuntimeInternalTests"],
         unit("PosencRuntimeTests", "PosencRuntimeInternalTests", "PosencVulkanTests")
         + lit("Posenc :: (Integration|Run)/")),
]


def load(path):
    """Returns this table, or that of another file."""
    if path:
        spec = importlib.util.spec_from_file_location("other_rooms", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    return importlib.import_module(__name__)


def find_room(table, path):
    """Returns the room of a source file, or None."""
    if not path.endswith((".c", ".cpp", ".h")):
        return None
    for room in table.ROOMS:
        if path.startswith(room.folder + "/"):
            return room
    return None
