# ===- sass.py - machine code of NVIDIA GPUs as text --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Reads a disassembly of nvdisasm (`nvdisasm -c X.cubin`): the instructions of each
kernel, the registers that they read and write, the control-flow graph, its natural
loops and the reaching definitions of registers.

Only what the checks of check-sass.py need is modelled: 32-bit registers R0, R1, ...,
not predicates and uniform registers. An instruction with an unknown name writes its
first register operand."""

import re

# Instructions without a register that they write.
NO_RESULT = re.compile(
    r"(ST|RED|BRA|BRX|JMP|BAR|BSSY|BSYNC|BREAK|BMOV|CALL|CCTL|DEPBAR|ELECT|ERRBAR|EXIT|"
    r"FENCE|FSETP|DSETP|HSETP2|ISETP|PLOP3|R2P|KILL|LDGDEPBAR|LDGSTS|MEMBAR|NANOSLEEP|"
    r"NOP|R2UR|RET|SYNCS|U[A-Z]|USETMAXREG|VOTEU|WARPGROUP|WARPSYNC|YIELD|ACQBULK|"
    r"ARRIVES|S2UR|PREEXIT|BPT)"
)
LOADS = ("LDSM", "LDS", "LDG", "LD", "LDC", "LDL", "ULDC")
LINE = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[T0-9]+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;"
)


def split_operands(text):
    """Splits at commas outside of brackets."""
    operands, depth = [""], 0
    for char in text:
        depth += (char in "[(") - (char in "])")
        if char == "," and depth == 0:
            operands.append("")
        else:
            operands[-1] += char
    return [operand.strip() for operand in operands if operand.strip()]


def get_number(operand):
    """Returns the number of a register operand such as R12.reuse; None for others."""
    match = re.match(r"^[-|~!]*R(\d+)\b", operand)
    return int(match.group(1)) if match else None


def span(number, width):
    return set() if number is None else set(range(number, number + width))


class Instruction:
    """Attributes: address, predicate (None: always), opcode ("LDSM.16.M88.4"), name
    ("LDSM"), operands; writes and reads, sets of registers; for an instruction of the
    tensor cores (HMMA, HGMMA) also a, b, c, its operands as sets of registers, empty
    for zero and for shared memory."""

    def __init__(self, address, predicate, opcode, operands):
        self.address, self.predicate, self.opcode = address, predicate, opcode
        self.name = opcode.split(".")[0]
        self.operands = split_operands(operands)
        self.text = f"{opcode} {operands}".strip()
        self.a = self.b = self.c = frozenset()
        self.is_async = self.name == "HGMMA"
        self.is_mma = self.name in ("HMMA", "HGMMA")
        # An asynchronous group ends with this instruction.
        self.ends_group = self.is_async and "gsb0" in self.operands
        self.writes, self.reads = set(), set()
        if self.is_mma:
            self._set_matrices()
        else:
            self._set_registers()

    def _set_matrices(self):
        numbers = [get_number(operand) for operand in self.operands]
        is_f32 = "F32" in self.opcode.split(".")[2:]
        if self.is_async:
            columns = int(re.search(r"\dx(\d+)x\d", self.opcode).group(1))
            width = columns // 2 if is_f32 else columns // 4
            last = max(
                i for i, text in enumerate(self.operands) if text.startswith("gdesc")
            )
            self.a = span(numbers[1] if last > 1 else None, 4)
            self.c = span(numbers[last + 1], width)
        else:
            depth = int(re.search(r"\.168(\d+)", self.opcode).group(1))
            width = 4 if is_f32 else 2
            self.a = span(numbers[1], 4 if depth == 16 else 2)
            self.b = span(numbers[2], 2 if depth == 16 else 1)
            self.c = span(numbers[3], width)
        self.writes = span(numbers[0], width)
        self.reads = self.a | self.b | self.c

    def _get_width(self):
        """Returns the number of registers of the result or of stored data."""
        parts = self.opcode.split(".")
        if self.name in ("LDSM", "STSM"):
            return int(parts[-1]) if parts[-1].isdigit() else 1
        if "128" in parts:
            return 4
        if self.name == "CS2R":
            return 1 if "32" in parts else 2
        if "64" in parts or "WIDE" in parts or self.name in ("DADD", "DMUL", "DFMA"):
            return 2
        return 1

    def _set_registers(self):
        operands = list(self.operands)
        width = self._get_width()
        if not NO_RESULT.match(self.name):
            while operands and re.match(r"^!?U?P(\d|T)$", operands[0]):
                operands.pop(0)
            if operands:
                self.writes = span(get_number(operands[0]), width)
                operands.pop(0)
        stored = width if self.name.startswith(("ST", "RED")) else 1
        for operand in operands:
            bracket = operand.startswith(("[", "desc"))
            for number, suffix in re.findall(r"\bR(\d+)((?:\.\w+)*)", operand):
                wide = ".64" in suffix
                self.reads |= span(int(number), 2 if wide else 1 if bracket else stored)

    def is_copy(self):
        """Whether it copies one register to another."""
        return (
            self.name == "MOV"
            or self.opcode == "IMAD.MOV.U32" and self.operands[1:3] == ["RZ", "RZ"]
        ) and len(self.reads) == 1

    def describe(self):
        return f"{self.address:#06x} {self.text}"


class Kernel:
    """The code of a kernel. Instructions are identified by their index in `code`."""

    def __init__(self, name):
        self.name, self.code, self.labels = name, [], {}
        self.successors, self.predecessors = [], []

    def connect(self):
        """Creates the control-flow graph. Raises ValueError if it is unknown."""
        addresses = {ins.address: i for i, ins in enumerate(self.code)}
        after_calls = [i + 1 for i, ins in enumerate(self.code) if ins.name == "CALL"]
        for i, ins in enumerate(self.code):
            following = []
            is_certain = ins.predicate is None or ins.predicate in ("PT", "UPT")
            jumps = ins.name in ("BRA", "JMP", "CALL")
            if jumps:
                label = re.search(r"`\((\S+?)\)|\b0x([0-9a-f]+)$", ins.text)
                if not label:
                    raise ValueError(f"unknown target: {ins.describe()}")
                target = (
                    self.labels.get(label.group(1))
                    if label.group(1)
                    else addresses.get(int(label.group(2), 16))
                )
                if target is not None and target < len(self.code):
                    following.append(target)
                elif ins.name != "CALL" and target is None:
                    raise ValueError(f"unknown target: {ins.describe()}")
            elif ins.name == "BRX":
                raise ValueError(f"indirect branch: {ins.describe()}")
            elif ins.name == "RET":
                following += [index for index in after_calls if index < len(self.code)]
            # BRA.U.ANY and branches on a further predicate operand may fall through.
            ends = ins.name in ("BRA", "JMP", "EXIT", "RET") and is_certain
            if ends and jumps:
                ends = len(ins.operands) == 1
            if not ends and i + 1 < len(self.code):
                following.append(i + 1)
            self.successors.append(sorted(set(following)))
        self.predecessors = [[] for _ in self.code]
        for i, following in enumerate(self.successors):
            for j in following:
                self.predecessors[j].append(i)

    def get_definitions(self, index, register):
        """Returns the indices of the instructions whose result may be in the register
        before instruction `index`; -1 stands for the entry of the kernel."""
        found, seen, stack = set(), set(), list(self.predecessors[index])
        if index == 0:
            found.add(-1)
        while stack:
            i = stack.pop()
            if i in seen:
                continue
            seen.add(i)
            if register in self.code[i].writes:
                found.add(i)
                if self.code[i].predicate is None:
                    continue
            if i == 0:
                found.add(-1)
            stack += self.predecessors[i]
        return found

    def get_sources(self, index, register):
        """Returns the definitions of a register, looking through copies."""
        found, seen, stack = set(), set(), [(index, register)]
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            for definition in self.get_definitions(*item):
                ins = self.code[definition] if definition >= 0 else None
                if ins and ins.is_copy():
                    stack += [(definition, source) for source in ins.reads]
                else:
                    found.add(definition)
        return found

    def get_loops(self):
        """Returns the natural loops: sets of indices by the index of their head."""
        # Iterates to the dominators of instructions as bit sets.
        count, everything = len(self.code), (1 << len(self.code)) - 1
        dominators = [1] + [everything] * (count - 1)
        order = self._get_order()
        changed = True
        while changed:
            changed = False
            for i in order:
                if i == 0:
                    continue
                value = everything
                for j in self.predecessors[i]:
                    value &= dominators[j]
                value |= 1 << i
                if value != dominators[i]:
                    dominators[i], changed = value, True
        reached = set(order)
        loops = {}
        for i in reached:
            for head in self.successors[i]:
                if not dominators[i] >> head & 1:
                    continue
                body = loops.setdefault(head, {head})
                stack = [i]
                while stack:
                    j = stack.pop()
                    if j not in body and j in reached:
                        body.add(j)
                        stack += self.predecessors[j]
        return loops

    def _get_order(self):
        """Returns the reachable instructions in reverse postorder."""
        order, seen, stack = [], {0}, [(0, iter(self.successors[0]))]
        while stack:
            i, following = stack[-1]
            for j in following:
                if j not in seen:
                    seen.add(j)
                    stack.append((j, iter(self.successors[j])))
                    break
            else:
                order.append(i)
                stack.pop()
        return order[::-1]


def parse(text):
    """Returns the kernels of a disassembly. Raises ValueError if there is none."""
    kernels, current = [], None
    for line in text.splitlines():
        name = re.match(r"^\.text\.(\S+):$", line)
        label = re.match(r"^(\.L\w+):$", line)
        match = LINE.match(line)
        if name:
            current = Kernel(name.group(1))
            kernels.append(current)
        elif line.startswith("\t.section") or line.startswith(".section"):
            current = None
        elif current and label:
            current.labels[label.group(1)] = len(current.code)
        elif current and match:
            address, predicate, opcode, operands = match.groups()
            current.code.append(
                Instruction(int(address, 16), predicate, opcode, operands)
            )
    kernels = [kernel for kernel in kernels if kernel.code]
    if not kernels:
        raise ValueError("no kernel in the disassembly")
    for kernel in kernels:
        kernel.connect()
    return kernels
