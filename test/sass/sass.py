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
    """The code of a kernel. Instructions are identified by their index in `code`. A
    function of the code that is called is copied into each of its callers, so that
    registers keep their values across a call."""

    def __init__(self, name):
        self.name, self.code, self.labels = name, [], {}
        self.successors, self.predecessors = [], []
        self._sources = {}

    def connect(self):
        """Creates the control-flow graph. Raises ValueError if it is unknown."""
        addresses = {ins.address: i for i, ins in enumerate(self.code)}
        calls = []
        for i, ins in enumerate(self.code):
            following = []
            is_certain = ins.predicate is None or ins.predicate in ("PT", "UPT")
            jumps = ins.name in ("BRA", "JMP", "CALL")
            is_call = False
            if jumps:
                label = re.search(r"`\((\S+?)\)|\b0x([0-9a-f]+)$", ins.text)
                if not label:
                    raise ValueError(f"unknown target: {ins.describe()}")
                target = (
                    self.labels.get(label.group(1))
                    if label.group(1)
                    else addresses.get(int(label.group(2), 16))
                )
                if target is None:
                    raise ValueError(f"unknown target: {ins.describe()}")
                # A call of a label of the kernel does not return.
                is_call = ins.name == "CALL" and "$" in ins.text
                if is_call:
                    calls.append((i, target))
                elif target < len(self.code):
                    following.append(target)
            elif ins.name == "BRX":
                raise ValueError(f"indirect branch: {ins.describe()}")
            # BRA.U.ANY and branches on a further predicate operand may fall through.
            ends = ins.name in ("BRA", "JMP", "EXIT", "RET", "CALL") and is_certain
            if ends and jumps:
                ends = len(ins.operands) == 1 and not is_call
            if is_call and is_certain:
                ends = True
            if not ends and i + 1 < len(self.code):
                following.append(i + 1)
            self.successors.append(sorted(set(following)))
        while calls:
            self._copy_function(*calls.pop(), calls)
        self._remove_unreachable()

    def _copy_function(self, call, target, calls):
        """Appends a copy of the function at `target` for the call; calls in it are added
        to `calls`."""
        if len(self.code) > 10**5:
            raise ValueError(f"recursive call: {self.code[call].describe()}")
        targets = dict(calls)
        copies, stack = {}, [target]
        while stack:
            i = stack.pop()
            if i in copies:
                continue
            copies[i] = len(self.code)
            self.code.append(self.code[i])
            self.successors.append([])
            if i in targets:
                calls.append((copies[i], targets[i]))
            stack += self.successors[i]
        for i, copy in copies.items():
            following = [copies[j] for j in self.successors[i]]
            if self.code[i].name == "RET" and call + 1 < len(self.code):
                following.append(call + 1)
            self.successors[copy] = sorted(following)
        self.successors[call] = sorted({*self.successors[call], copies[target]})

    def _remove_unreachable(self):
        """Removes code that is not reached, creates `predecessors` and basic blocks."""
        seen, stack = {0}, [0]
        while stack:
            for j in self.successors[stack.pop()]:
                if j not in seen:
                    seen.add(j)
                    stack.append(j)
        kept = sorted(seen)
        number = {old: new for new, old in enumerate(kept)}
        self.code = [self.code[i] for i in kept]
        self.successors = [[number[j] for j in self.successors[i]] for i in kept]
        self.predecessors = [[] for _ in kept]
        for i, following in enumerate(self.successors):
            for j in following:
                self.predecessors[j].append(i)
        # The first instruction of each block; the block of each instruction; the
        # blocks before and after each; and in each, the writes of a register.
        self._heads = [i for i, before in enumerate(self.predecessors)
                       if before != [i - 1] or len(self.successors[i - 1]) != 1]
        self._block = []
        for number, head in enumerate(self._heads):
            end = self._heads[number + 1] if number + 1 < len(self._heads) else len(kept)
            self._block += [number] * (end - head)
        self._before = [sorted({self._block[i] for i in self.predecessors[head]})
                        for head in self._heads]
        self._after = [[] for _ in self._heads]
        for number, before in enumerate(self._before):
            for other in before:
                self._after[other].append(number)
        self._writes = [{} for _ in self._heads]
        for i, ins in enumerate(self.code):
            for register in ins.writes:
                self._writes[self._block[i]].setdefault(register, []).append(i)

    def _search_block(self, block, register, end, found):
        """Adds the definitions of a register in a block, before instruction `end`, to
        `found`. Returns whether those of the blocks before may reach it, too."""
        for i in reversed(self._writes[block].get(register, ())):
            if i < end:
                found.add(i)
                if self.code[i].predicate is None:
                    return False
        return True

    def get_definitions(self, index, register):
        """Returns the indices of the instructions whose result may be in the register
        before instruction `index`; -1 stands for the entry of the kernel."""
        found, block = set(), self._block[index]
        if not self._search_block(block, register, index, found):
            return found
        seen, stack = set(), [block]
        while stack:
            block = stack.pop()
            if block == 0:
                found.add(-1)
            for other in self._before[block]:
                if other not in seen:
                    seen.add(other)
                    if self._search_block(other, register, len(self.code), found):
                        stack.append(other)
        return found

    def get_sources(self, index, register):
        """Returns the definitions of a register, looking through copies."""
        key = index, register
        if key in self._sources:
            return self._sources[key]
        found, seen, stack = set(), set(), [key]
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
        self._sources[key] = found
        return found

    def get_loops(self):
        """Returns the natural loops: sets of indices by the index of their head."""
        # Iterates to the dominators of blocks as bit sets.
        count, everything = len(self._heads), (1 << len(self._heads)) - 1
        dominators = [1] + [everything] * (count - 1)
        order = self._get_order()
        changed = True
        while changed:
            changed = False
            for i in order:
                if i == 0:
                    continue
                value = everything
                for j in self._before[i]:
                    value &= dominators[j]
                value |= 1 << i
                if value != dominators[i]:
                    dominators[i], changed = value, True
        loops = {}
        for i in range(count):
            for head in self._after[i]:
                if not dominators[i] >> head & 1:
                    continue
                body = loops.setdefault(head, {head})
                stack = [i]
                while stack:
                    j = stack.pop()
                    if j not in body:
                        body.add(j)
                        stack += self._before[j]
        instructions = [[] for _ in self._heads]
        for i, block in enumerate(self._block):
            instructions[block].append(i)
        return {
            self._heads[head]: {i for block in body for i in instructions[block]}
            for head, body in loops.items()
        }

    def _get_order(self):
        """Returns the blocks in reverse postorder."""
        order, seen, stack = [], {0}, [(0, iter(self._after[0]))]
        while stack:
            i, following = stack[-1]
            for j in following:
                if j not in seen:
                    seen.add(j)
                    stack.append((j, iter(self._after[j])))
                    break
            else:
                order.append(i)
                stack.pop()
        return order[::-1]


def parse(text, names=()):
    """Returns the kernels of a disassembly, or those of `names` if there are any. Raises
    ValueError if the disassembly has no kernel."""
    kernels, current, is_skipped = [], None, False
    for line in text.splitlines():
        if line.startswith(".text."):
            name = re.match(r"^\.text\.(\S+):$", line)
            if name:
                current = Kernel(name.group(1))
                kernels.append(current)
                is_skipped = names and current.name not in names
                continue
        if line.startswith(("\t.section", ".section")):
            current = None
        if not current or (is_skipped and current.code):
            continue
        label = re.match(r"^(\.L\w+|\$\S+):$", line)
        match = LINE.match(line)
        if label:
            current.labels[label.group(1)] = len(current.code)
        elif match:
            address, predicate, opcode, operands = match.groups()
            current.code.append(
                Instruction(int(address, 16), predicate, opcode, operands)
            )
    kernels = [kernel for kernel in kernels if kernel.code]
    if not kernels:
        raise ValueError("no kernel in the disassembly")
    kernels = [kernel for kernel in kernels if not names or kernel.name in names]
    for kernel in kernels:
        kernel.connect()
    return kernels
