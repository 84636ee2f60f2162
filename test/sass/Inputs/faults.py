#!/usr/bin/env python3
# ===- faults.py - seeded faults in machine code -------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Runs check-sass.py on loops.sass, and on copies with one fault each:

    faults.py CHECK_SASS LOOPS FOLDER

Prints what it finds in each; fails if a fault cannot be seeded."""

import pathlib
import re
import subprocess
import sys

HGMMA_S = "HGMMA.64x16x16.F32.BF16 R24, R4, gdesc[UR4], RZ, !UPT, gsb0 ;"
HGMMA_O = "HGMMA.64x8x16.F32.BF16 R40, R12, gdesc[UR8].tnspB, R40, gsb0 ;"
WAIT = "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"
NOTHING = "NOP ;"

# The name of a fault, and replacements: each is made at its first place, the next ones
# behind it.
FAULTS = [
    ("P in the registers of Q (the error of ptxas 13.0)",
     [("PACK_AB R12,", "PACK_AB R4,"), ("PACK_AB R13,", "PACK_AB R5,"),
      ("PACK_AB R14,", "PACK_AB R6,"), ("PACK_AB R15,", "PACK_AB R7,"),
      ("R40, R12, gdesc", "R40, R4, gdesc")]),
    ("one register of Q written in the loop",
     [("MUFU.EX2 R23, R31", "MUFU.EX2 R6, R31")]),
    ("P is no result of a conversion",
     [("F2FP.BF16.F32.PACK_AB R14, R21, R20", "LDS R14, [R0]")]),
    ("P is a copy of Q",
     [("F2FP.BF16.F32.PACK_AB R14, R21, R20", "IMAD.MOV.U32 R14, RZ, RZ, R6")]),
    ("one register of the output is never set",
     [("CS2R R42, SRZ", "CS2R.32 R42, SRZ")]),
    ("Q is loaded under a condition",
     [("LDSM.16.M88.4 R4, [R0]",
       "NOP ;\n        /*00a8*/ @!P2 LDSM.16.M88.4 R4, [R0]")]),
    ("the output is overwritten by a load", [("FMUL R41, R41, R16", "LDS R41, [R0]")]),
    ("no wait before the scores are read", [(HGMMA_S, HGMMA_S), (WAIT, NOTHING)]),
    ("no wait before the output is rescaled", [(HGMMA_O, HGMMA_O), (WAIT, NOTHING)]),
    ("the wait leaves one group in flight",
     [(HGMMA_S, HGMMA_S), (WAIT, WAIT.replace("0x0", "0x1"))]),
    ("Q is loaded again while it is read",
     [(HGMMA_S, HGMMA_S), (WAIT, "LDSM.16.M88.4 R4, [R0] ;"),
      ("MUFU.EX2 R16, R24 ;", WAIT)]),
    ("the accumulators of two groups overlap",
     [(HGMMA_O, HGMMA_O),
      (WAIT, "HGMMA.64x8x16.F32.BF16 R42, gdesc[UR8], R42, gsb0 ;")]),
    ("more registers than setmaxnreg leaves",
     [("STG.E [R4.64], R0", "STG.E [R4.64], R24")]),
    ("a spilled register", [("WARPGROUP.ARRIVE ;", "STL [R1], R16 ;")]),
    ("mma.sync: P in the registers of Q",
     [(".text.mma:", ".text.mma:"), ("PACK_AB R12,", "PACK_AB R4,"),
      ("PACK_AB R13,", "PACK_AB R5,"), ("PACK_AB R14,", "PACK_AB R6,"),
      ("PACK_AB R15,", "PACK_AB R7,"), ("R40, R12, R32", "R40, R4, R32")]),
    ("mma.sync: a conversion overwrites K on one path",
     [(".text.mma:", ".text.mma:"), ("LDSM.16.MT88.4 R32, [R0+0x2000] ;",
       "LDSM.16.MT88.4 R32, [R0+0x2000] ;\n"
       "        /*0068*/ @P2 F2FP.BF16.F32.PACK_AB R9, R0, R0 ;")]),
    ("mma.sync: the accumulator is overwritten",
     [(".text.mma:", ".text.mma:"), ("FMUL R43, R43, R16", "MUFU.EX2 R43, R43")]),
]


def seed(text, replacements):
    """Returns the text with replacements, each behind the one before it."""
    done = ""
    for old, new in replacements:
        before, found, text = text.partition(old)
        if not found:
            sys.exit(f"cannot seed: no '{old}' in the rest of the text")
        done += before + new
    return done + text


def run(checker, path):
    result = subprocess.run([sys.executable, checker, path], capture_output=True,
                            text=True, check=False)
    return result.stdout + result.stderr


def main():
    checker, loops, folder = sys.argv[1:]
    text = pathlib.Path(loops).read_text(encoding="utf-8")
    for name, replacements in [("no fault", []), *FAULTS]:
        path = pathlib.Path(folder) / "fault.sass"
        path.write_text(seed(text, replacements), encoding="utf-8")
        output = run(checker, path)
        print(f"== {name}")
        print("\n".join(re.findall(r"^error.*|^\d+ problems|Traceback.*", output,
                                   re.MULTILINE)))


if __name__ == "__main__":
    main()
