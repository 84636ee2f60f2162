# ===- random-linalg.py - random linalg programs against NumPy --------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""random-linalg.py POSENC-COMPILE FOLDER FIRST COUNT: chains of elementwise
operations, broadcasts, transposes, reductions, softmax and products on square
matrices, whose results may share the memory of inputs."""

import random
import sys

import numpy as np
import programs

suite = programs.Suite(*sys.argv[1:3])
M, V = "tensor<?x?xf32>", "tensor<?xf32>"
MAPS = {"ij": "affine_map<(i, j) -> (i, j)>", "ji": "affine_map<(i, j) -> (j, i)>",
        "i": "affine_map<(i, j) -> (i)>", "j": "affine_map<(i, j) -> (j)>"}


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.size = self.random.choice([1, 5, 16, 33, 64, 190])
        self.lines, self.arguments, self.arrays = [], [], []
        self.matrices, self.vectors = [], []  # names and values
        for _ in range(self.random.randint(1, 3)):
            self.add_argument(2)
        self.add_argument(1)

    def add_argument(self, rank):
        array = self.numbers.standard_normal((self.size,) * rank).astype(np.float32)
        name = f"%x{len(self.arguments)}"
        self.arguments.append(f"{name}: {M if rank == 2 else V}")
        self.arrays.append(array)
        (self.matrices if rank == 2 else self.vectors).append(
            (name, array.astype(np.float64)))

    def define(self, text, value):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        # The next operation reads the value rounded to f32.
        value = value.astype(np.float32).astype(np.float64)
        (self.matrices if value.ndim == 2 else self.vectors).append((name, value))

    def generic(self, ins, out, rank, body, kinds):
        maps = ", ".join(MAPS[one] for one in [m for _, m in ins] + [out])
        types = [M if len(m) == 2 else V for _, m in ins]
        result = M if rank == 2 else V
        names = ", ".join(f"%{letter}: f32" for letter in "abcd"[:len(ins)])
        destination = "%full" if rank == 2 else "%zeros"
        return (f"linalg.generic {{indexing_maps = [{maps}], iterator_types = "
                f"[{', '.join(chr(34) + k + chr(34) for k in kinds)}]}} "
                f"ins({', '.join(n for n, _ in ins)} : {', '.join(types)}) "
                f"outs({destination} : {result}) {{\n  ^bb0({names}, %o: f32):\n"
                f"{body}  }} -> {result}")

    def pick(self):
        # Prefers recent values, which gives chains of operations.
        return self.matrices[-self.random.choice([1, 1, 1, 2, 2, 3, 4]) % len(self.matrices)]

    def read(self, name, value):
        if value.ndim == 2:
            map_ = self.random.choice(["ij"] * 5 + ["ji"])
            return (name, map_), value if map_ == "ij" else value.T
        map_ = self.random.choice("ij")
        return (name, map_), value[:, None] if map_ == "i" else value[None, :]

    def add_elementwise(self):
        operands = [self.pick()]
        for _ in range(self.random.randint(0, 2)):
            operands.append(self.pick() if self.random.random() < .6
                            else self.random.choice(self.vectors))
        ins, values = zip(*(self.read(*one) for one in operands))
        body, total = "", "%a"
        value = values[0]
        for letter, other in zip("bc", values[1:]):
            kind = self.random.choice(["addf", "mulf", "subf"])
            body += f"    %t{letter} = arith.{kind} {total}, %{letter} : f32\n"
            total = f"%t{letter}"
            value = {"addf": np.add, "mulf": np.multiply, "subf": np.subtract}[kind](value, other)
        body += f"    %y = math.tanh {total} : f32\n    linalg.yield %y : f32\n"
        value = np.tanh(value + np.zeros((self.size, self.size)))
        self.define(self.generic(ins, "ij", 2, body, ["parallel", "parallel"]), value)

    def add_reduction(self):
        name, value = self.pick()
        columns = self.random.random() < .4
        # The first loop is the result's dimension, the second one the reduction.
        body = ("    %s = arith.addf %o, %a : f32\n    linalg.yield %s : f32\n")
        text = self.generic([(name, "ji" if columns else "ij")], "i", 1, body,
                            ["parallel", "reduction"])
        self.define(text, value.sum(0 if columns else 1))

    def add_softmax(self):
        name, value = self.pick()
        dim = self.random.choice([0, 1, 1])
        e = np.exp(value - value.max(dim, keepdims=True))
        self.define(f"linalg.softmax dimension({dim}) ins({name} : {M}) outs(%full : {M}) -> {M}",
                    e / e.sum(dim, keepdims=True))

    def add_product(self):
        (a, x), (b, y) = self.pick(), self.random.choice(self.matrices)
        self.define(f"linalg.matmul ins({a}, {b} : {M}, {M}) outs(%zero2 : {M}) -> {M}", x @ y)

    def check(self, name):
        steps = [self.add_elementwise] * 5 + [self.add_reduction] * 3 + [
            self.add_softmax, self.add_product]
        for _ in range(self.random.randint(2, 7)):
            self.random.choice(steps)()
        computed = [one for one in self.matrices + self.vectors if one[0].startswith("%v")]
        computed.sort(key=lambda one: int(one[0][2:]))
        results = computed[-1:]
        if len(computed) > 1 and self.random.random() < .4:
            results.append(self.random.choice(computed[:-1]))
        types = ", ".join(M if value.ndim == 2 else V for _, value in results)
        text = f"""func.func @f({', '.join(self.arguments)}) -> ({types}) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x0, %c0 : {M}
  %full = tensor.empty(%n, %n) : {M}
  %row = tensor.empty(%n) : {V}
  %zeros = linalg.fill ins(%zero : f32) outs(%row : {V}) -> {V}
  %zero2 = linalg.fill ins(%zero : f32) outs(%full : {M}) -> {M}
""" + "\n".join(self.lines) + f"""
  return {', '.join(one for one, _ in results)} : {types}
}}"""
        suite.check(name, text, self.arrays, [value for _, value in results], 2e-5)


first, count = map(int, sys.argv[3:])
for seed in range(first, first + count):
    Program(seed).check(f"seed {seed}")
suite.finish()
