# ===- rules.py - rules for the registers of tensor-core instructions ---------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""What the machine code of an attention kernel must obey. ptxas 12.8 to 13.0 can
assign one register to two values that live across the back edge of a loop, where one
is an operand of a wgmma; the kernel is then silently wrong. So the definitions that
reach each operand are compared with those that the algorithm has."""

from sass import LOADS

CONVERSIONS = ("F2FP", "F2F")
MMA = ("HMMA", "HGMMA")
# Zero, the rescaling of the output, and the merge of branches.
ACCUMULATOR = MMA + ("CS2R", "FMUL", "FMUL2", "FFMA", "FFMA2", "FADD", "FADD2", "FSEL",
                     "SEL")


def is_zero(ins):
    return ins.opcode in ("MOV", "IMAD.MOV.U32") and not ins.reads


def is_output(kernel, index):
    """Whether the accumulator is carried by a loop or rescaled, as that of P V is; that
    of Q K^T begins with zero in each tile."""
    seen, stack = set(), [index]
    while stack:
        i = stack.pop()
        for register in kernel.code[i].c:
            for source in kernel.get_sources(i, register):
                if source < 0 or not kernel.code[source].is_mma or source == index:
                    return True
                if source not in seen:
                    seen.add(source)
                    stack.append(source)
    return False


def describe_sources(kernel, sources):
    return ", ".join(kernel.code[source].describe() for source in sorted(sources))


def check_operand(kernel, register, operand, sources, is_of_output):
    """Returns what is wrong with the definitions of a register of an operand, or ''."""
    definitions = [kernel.code[source] for source in sources]
    names = {definition.name for definition in definitions}
    if operand == "c":
        if not all(definition.name in ACCUMULATOR or is_zero(definition)
                   for definition in definitions):
            return f"the accumulator R{register} is overwritten"
    elif operand == "a" and is_of_output:
        # The weights of rows that stand for no query are zeros, and those that
        # warpgroups exchange are loaded four at a time.
        is_loaded = [definition.opcode for definition in definitions] == ["LDS.128"]
        if not (names <= set(CONVERSIONS) or all(map(is_zero, definitions))
                or is_loaded):
            return f"P in R{register} is not only the result of conversions"
    elif len(definitions) > 1:
        # Fragments are loaded once, or once more in each iteration. An operand that
        # is converted in the loop, as V of another type, has one kind of definition.
        is_same = names <= set(LOADS) or operand == "b" and len(names) == 1
        if not is_same:
            return f"R{register} holds several values"
    return ""


def find_wrong_operands(kernel):
    """Yields (index of the instruction, sentence)."""
    for index, ins in enumerate(kernel.code):
        if not ins.is_mma:
            continue
        is_of_output = is_output(kernel, index)
        for operand in "abc":
            for register in sorted(getattr(ins, operand)):
                sources = kernel.get_sources(index, register) - {-1}
                problem = check_operand(
                    kernel, register, operand, sources, is_of_output
                )
                if problem:
                    yield index, (f"{problem}; its definitions: "
                                  f"{describe_sources(kernel, sources)}")
                    break


def may_be_undefined(kernel, index, register):
    """Whether a register may have no value before an instruction. Looks through copies
    and through instructions that rescale the register."""
    seen, stack = set(), [(index, register)]
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        for source in kernel.get_sources(*item):
            if source < 0:
                return True
            if not kernel.code[source].is_mma and register in kernel.code[source].reads:
                stack.append((source, register))
    return False


def find_undefined(kernel):
    """Yields (index, sentence) for operands that may have no value. Other registers are
    not checked: they may be defined and read under equal conditions."""
    for index, ins in enumerate(kernel.code):
        if not ins.is_mma:
            continue
        undefined = [f"R{register}" for register in sorted(ins.reads)
                     if may_be_undefined(kernel, index, register)]
        if undefined:
            yield index, f"{', '.join(undefined)} may have no value"


def get_retired_group(ins):
    """Returns how many groups a wait leaves in flight; None for other instructions."""
    if not ins.opcode.startswith("WARPGROUP.DEPBAR"):
        return None
    return int(ins.operands[-1], 16)


def find_hazards(kernel):
    """Yields (index, sentence) for the first access to the registers of an HGMMA between
    it and the wait that retires its group."""
    for index, ins in enumerate(kernel.code):
        if not ins.is_async:
            continue
        found = {}
        # States: an instruction, and the number of groups that ended after the HGMMA's
        # own, which has not ended yet at -1.
        stack = [(i, 0 if ins.ends_group else -1) for i in kernel.successors[index]]
        seen = set()
        while stack:
            state = stack.pop()
            if state in seen:
                continue
            seen.add(state)
            i, groups = state
            other = kernel.code[i]
            left = get_retired_group(other)
            if left is not None and 0 <= left <= groups:
                continue
            if other.writes & ins.a:
                found[i] = "writes A"
            elif not other.is_async and other.writes & ins.writes:
                found[i] = "writes the accumulator"
            elif not other.is_async and other.reads & ins.writes:
                found[i] = "reads the accumulator"
            elif other.is_async and other.writes & ins.writes and (
                other.writes != ins.writes
            ):
                found[i] = "overlaps the accumulator"
            # No kernel has more than a few groups in flight.
            groups = min(groups + 1, 4) if other.ends_group else groups
            stack += [(j, groups) for j in kernel.successors[i]]
        for i, what in sorted(found.items())[:1]:
            yield index, f"{kernel.code[i].describe()} {what} before the wait"


def find_register_limits(kernel):
    """Yields (index, limit, used) for each setmaxnreg: the registers that the code
    after it may have, and those that it uses, up to the next one."""
    for index, ins in enumerate(kernel.code):
        if ins.name != "USETMAXREG":
            continue
        seen, stack, most = set(), list(kernel.successors[index]), -1
        while stack:
            i = stack.pop()
            if i in seen or kernel.code[i].name == "USETMAXREG":
                continue
            seen.add(i)
            most = max([most, *kernel.code[i].writes, *kernel.code[i].reads])
            stack += kernel.successors[i]
        yield index, int(ins.operands[-1], 16), most + 1
