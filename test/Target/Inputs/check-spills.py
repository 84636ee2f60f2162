#!/usr/bin/env python3
# ===- check-spills.py - ptxas' statistics of kernels ----------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Assembles the kernels of a module for each architecture that ptxas knows:

    check-spills.py [--draw] POSENC_COMPILE PTXAS MODULE.mlir [--kernels=NAME,...]
                    [KERNEL=BYTES]... ARCH[/SUFFIX]...

With --draw, for one of them that test/Inputs/draw.py draws. With a suffix, only the kernels
whose names end with it are assembled; with --kernels, only those of these functions. A
kernel may spill as many bytes as are given for it. Fails if another kernel spills, or one
spills more, uses local memory, causes a warning or has other registers than those that
setmaxnreg sets, and if ptxas supports none of the architectures. Leaves the machine code in
MODULE.ARCH.cubin, and what ptxas printed in MODULE.ARCH.log.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../sass"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../Inputs"))
import draw
import limits
import ptxas_log


def select_functions(module, suffix):
    """Returns the option for the functions whose kernels of attention have the suffix."""
    end, found, _ = suffix.partition("_attention")
    names = re.findall(r"func\.func @(\w+)", pathlib.Path(module).read_text())
    chosen = ",".join(name for name in names if name.endswith(end))
    return [f"--kernels={chosen}"] if found else []


def find_spills(log, limits_of_kernels):
    """Returns sentences on kernels that spill more bytes than they may."""
    return [f"'{name}' spills {numbers['stores']} bytes, more than {limits_of_kernels[name]}"
            for name, numbers in ptxas_log.parse(log).items()
            if numbers["stores"] > limits_of_kernels.get(name, numbers["stores"])]


def assemble(compiler, ptxas, module, arch, suffix, options):
    """Returns the output of ptxas, or None if it does not support the architecture."""
    ptx = pathlib.Path(f"{pathlib.Path(module).stem}.{arch}.ptx")
    # What ptxas does in posenc-compile would be done twice.
    environment = dict(os.environ, POSENC_PTXAS="off")
    subprocess.run([compiler, module, "-o", ptx, f"--target=cuda:{arch}",
                    *(options or select_functions(module, suffix))], check=True, env=environment)
    head, *kernels = re.split(r"^(?=\.visible \.entry )", ptx.read_text(), flags=re.M)
    kept = [kernel for kernel in kernels
            if kernel.partition("(")[0].endswith(suffix)]
    ptx.write_text(head + "".join(kept))
    result = subprocess.run(
        [ptxas, "-v", f"-arch={arch}", ptx, "-o", ptx.with_suffix(".cubin")],
        capture_output=True,
        text=True,
        check=False,
    )
    if "is not defined for option 'gpu-name'" in result.stderr:
        return None
    if result.returncode != 0:
        sys.exit(f"{arch}: {result.stderr}")
    ptx.with_suffix(".log").write_text(result.stderr)
    return result.stderr


def find_pool_problems(ptx, log):
    """Returns sentences on kernels whose registers are not those of setmaxnreg."""
    problems = []
    for name, numbers in ptxas_log.parse(log).items():
        body = re.search(rf"^\.visible \.entry {name}\(.*?^}}", ptx, re.M | re.S)[0]
        threads = int(re.search(r"\.maxntid (\d+)", body)[1])
        setmaxnreg = {int(count) for count in re.findall(
            r"setmaxnreg\.\w+\.sync\.aligned\.u32 (\d+)", body)}
        problem = limits.find_pool_problem(numbers["registers"], threads,
                                           sorted(setmaxnreg))
        if problem:
            problems.append(f"'{name}': {problem}")
    return problems


def main():
    arguments = sys.argv[1:]
    draws = arguments[0] == "--draw"
    compiler, ptxas, module, *rest = arguments[draws:]
    options = [text for text in rest if text.startswith("--")]
    may_spill = {name: int(count) for name, _, count in
                 (text.partition("=") for text in rest if text not in options) if count}
    archs = [text for text in rest if "=" not in text]
    if draws:
        name = pathlib.Path(module).stem
        archs = draw.draw_values("check-spills", [name], archs)[name]
    done = 0
    for target in archs:
        arch, _, suffix = target.partition("/")
        log = assemble(compiler, ptxas, module, arch, suffix, options)
        if log is None:
            print(f"ptxas does not know {arch}")
            continue
        ptx = pathlib.Path(f"{pathlib.Path(module).stem}.{arch}.ptx").read_text()
        problems = ptxas_log.find_problems(log, may_spill=may_spill)
        problems += find_spills(log, may_spill) + find_pool_problems(ptx, log)
        if problems:
            sys.exit(f"{arch}: {problems[0]}\n{log}")
        done += len(ptxas_log.parse(log))
    if not done:
        sys.exit("no kernel was assembled")
    print(f"{done} kernels without spills")


if __name__ == "__main__":
    main()
