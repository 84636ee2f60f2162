#!/usr/bin/env python3
# ===- make-calls.py - a program that calls every entry of a library --------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Usage: make-calls.py LIBRARY HEADER [NAME=VALUE,...]

Prints a program in C that calls each entry point of a library for CPUs once, as its metadata
describe them. Each tensor is a block of the heap of its own, of exactly its bytes, and each
byte of a result decides a branch, so that valgrind sees accesses behind the ends of tensors
and results that depend on memory without values. Dynamic sizes are 3, and elements 1, if the
last arguments do not set others: `layer.n=5` a size, `layer.lengths=2:3` elements, the last
of which is repeated. `fault=short` makes outputs one byte too short, `fault=empty` leaves
inputs without values.
"""

import ctypes
import json
import os
import sys

# Of each element type: code and bits of DLPack, and the type in C.
TYPES = {"f64": (2, 64, "double"), "f32": (2, 32, "float"), "f16": (2, 16, "uint16_t"),
         "bf16": (4, 16, "uint16_t"), "i64": (0, 64, "int64_t"), "index": (0, 64, "int64_t"),
         "i32": (0, 32, "int32_t"), "i8": (0, 8, "int8_t"), "i1": (6, 8, "uint8_t"),
         "u8": (1, 8, "uint8_t"), "f8E4M3FN": (10, 8, "uint8_t"),
         "f8E5M2": (12, 8, "uint8_t")}

START = """\
#include "%s"
#define NO_TVM_FFI
#include "ffi.h"
#include <stdio.h>
#include <stdlib.h>

static int failures;

/* Branches on each byte. */
static unsigned readBytes(const void *data, size_t size) {
  const volatile unsigned char *bytes = data;
  unsigned ones = 0;
  for (size_t i = 0; i < size; ++i)
    if (bytes[i] & 1)
      ++ones;
  return ones;
}

static void check(const char *entry, int code, const char *message) {
  if (code) {
    printf("%%s: %%d %%s\\n", entry, code, message);
    ++failures;
  }
}

static int64_t count(const int64_t *shape, int rank) {
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i)
    elements *= shape[i];
  return elements;
}

static Any makeReal(double real) {
  Any any;
  any.type = 3;
  any.padding = 0;
  memcpy(&any.value, &real, sizeof real);
  return any;
}

/* The host's own loop over tasks. */
static void runTasks(void *ctx, void (*body)(void *, int64_t), void *arg, int64_t n) {
  ++*(int *)ctx;
  for (int64_t i = 0; i < n; ++i)
    body(arg, i);
}

"""


class Program:
    def __init__(self, library, header, settings):
        self.settings = settings
        self.prefix = os.path.basename(library).removeprefix("lib").removesuffix(".so")
        code = ctypes.CDLL(os.path.abspath(library))
        metadata = getattr(code, f"{self.prefix}_metadata")
        metadata.restype = ctypes.c_char_p
        self.metadata = json.loads(metadata())
        self.code = code
        self.text = START % os.path.basename(header)
        self.calls, self.entries = [], 0

    def add(self, *lines):
        self.text += "".join(f"  {line}\n" for line in lines)

    def call(self, entry, arguments, message='""'):
        self.entries += 1
        self.add(f'check("{entry}", {entry}({", ".join(arguments)}), {message});')

    def setting(self, function, name, default):
        return self.settings.get(f"{function}.{name}", default)

    def make_tensor(self, function, argument, shape, is_input):
        """Declares the shape, the data and the tensor of DLPack of an argument."""
        name, (code, bits, c_type) = argument["name"], TYPES[argument["dtype"]]
        rank, fault = len(argument["shape"]), self.settings.get("fault")
        short = " - 1" if fault == "short" and not is_input else ""
        if is_input:
            self.add(f"int64_t {name}_shape[] = {{{', '.join(shape) or '0'}}};")
        self.add(f"int64_t {name}_count = count({name}_shape, {rank});",
                 f"{c_type} *{name} = malloc((size_t){name}_count * sizeof *{name} + "
                 f"!{name}_count{short});")
        if is_input and fault != "empty":
            one = {"f16": "0x3c00", "bf16": "0x3f80"}.get(argument["dtype"], "1")
            values = self.setting(function, name, one).split(":")
            self.add(f"for (int64_t i = 0; i < {name}_count; ++i)",
                     f"  {name}[i] = i >= {len(values) - 1} ? {values[-1]} : "
                     f"(({c_type}[]){{{', '.join(values)}}})[i];")
        self.add(f"DLTensor {name}_dl = {{{name}, {{1, 0}}, {rank}, {{{code}, {bits}, 1}}, "
                 f"{name}_shape, NULL, 0}};")

    def add_function(self, function):
        name = function["name"]
        inputs, outputs = function["inputs"], function["outputs"]
        self.text += f"static void call_{name}(void) {{\n"
        self.add("char err[256] = \"\";", "(void)err;")
        for size in function["sizes"]:
            self.add(f"int64_t size_{size} = {self.setting(name, size, '3')};")
        tensors = [one for one in inputs if one["kind"] == "tensor"]
        for one in inputs:
            if one["kind"] == "tensor":
                shape = [f"size_{dim}" if isinstance(dim, str) else str(dim)
                         for dim in one["shape"]]
                self.make_tensor(name, one, shape, True)
            else:
                self.add(f"{TYPES[one['dtype']][2]} {one['name']} = "
                         f"{self.setting(name, one['name'], '1')};")
        self.add_shapes(function, tensors, inputs, outputs)
        for one in outputs:
            self.make_tensor(name, one, [], False)
        plain = [one["name"] for one in inputs + outputs]
        checked = [f"&{one['name']}_dl" if one["kind"] == "tensor" else one["name"]
                   for one in inputs + outputs]
        ffi = [f"makePointer({one})" if one.startswith("&") else
               f"makeReal({one})" if kind["dtype"] in ("f64", "f32") else f"makeInteger({one})"
               for one, kind in zip(checked, inputs + outputs)]
        sizes = [f"size_{size}" for size in function["sizes"]]
        workspace = []
        if "workspace" in function:
            self.entries += 1
            self.add(f"int64_t bytes = {function['workspace']}({', '.join(sizes)});",
                     "void *workspace = malloc((size_t)bytes + !bytes);",
                     "DLTensor workspace_dl = {workspace, {1, 0}, 1, {1, 8, 1}, &bytes, NULL, 0};")
            workspace = ["workspace"]
            ffi.append("makePointer(&workspace_dl)")
        self.call(function["symbol"], plain + sizes + workspace)
        self.read_outputs(outputs)
        self.call(function["dl"], checked + workspace + ["err", "sizeof err"], "err")
        self.read_outputs(outputs)
        self.add(f"Any values[] = {{{', '.join(ffi)}}}, result = makeInteger(0);")
        self.call(function["tvm_ffi"], ["NULL", "values", str(len(ffi)), "&result"])
        self.read_outputs(outputs)
        for one in tensors + outputs + [{"name": name} for name in workspace]:
            self.add(f"free({one['name']});")
        self.text += "}\n\n"
        self.calls.append(f"call_{name}();")

    def add_shapes(self, function, tensors, inputs, outputs):
        """Computes the shapes of the outputs."""
        shapes = [f"{one['name']}_shape[{dim}]" for one in tensors
                  for dim in range(len(one["shape"]))]
        ranks = [len(one["shape"]) for one in outputs]
        self.add(f"int64_t in_shapes[] = {{{', '.join(shapes) or '0'}}};",
                 f"int64_t out_shapes[{max(sum(ranks), 1)}] = {{0}};")
        by_values = function.get("output_sizes_by_values")
        self.entries += 1
        self.add(f"int unknown = {function['output_sizes']}(in_shapes, out_shapes);",
                 f'check("{function["output_sizes"]}", unknown != {16 if by_values else 0}, "");')
        if by_values:
            values = [f"&{one['name']}" if one["kind"] == "scalar" else one["name"]
                      for one in inputs if one.get("size_value")]
            self.add(f"const void *known[] = {{{', '.join(values)}}};")
            self.call(by_values, ["in_shapes", "known", "out_shapes", "err", "sizeof err"], "err")
        first = 0
        for one, rank in zip(outputs, ranks):
            self.add(f"int64_t *{one['name']}_shape = out_shapes + {first};")
            first += rank

    def read_outputs(self, outputs):
        for one in outputs:
            self.add(f"readBytes({one['name']}, (size_t){one['name']}_count * sizeof "
                     f"*{one['name']});")

    def print(self):
        functions = self.metadata["functions"]
        for function in functions:
            if "tvm_ffi" in function:
                self.text += (f"int {function['tvm_ffi']}(void *handle, const Any *args, "
                              "int32_t count, Any *result);\n")
        for function in functions:
            self.add_function(function)
        self.text += "int main(void) {\n"
        self.entries += 1
        self.add(f"readBytes({self.prefix}_metadata(), strlen({self.prefix}_metadata()));")
        if hasattr(self.code, f"{self.prefix}_weights_open"):
            self.add("char err[256] = \"\";")
            self.call(f"{self.prefix}_weights_open", ["NULL", "err", "sizeof err"], "err")
        self.add(*self.calls)
        if hasattr(self.code, f"{self.prefix}_set_parallel_for"):
            self.entries += 1
            self.add("int loops = 0;",
                     f"{self.prefix}_set_parallel_for(runTasks, &loops);", *self.calls,
                     f"{self.prefix}_set_parallel_for(NULL, NULL);",
                     'puts(loops ? "loops of the host" : "no loops");')
        self.add(f'printf("{self.entries} entries, %d failures\\n", failures);',
                 "return failures != 0;")
        print(self.text + "}")


def main():
    library, header, *rest = sys.argv[1:]
    settings = dict(one.split("=", 1) for text in rest for one in text.split(","))
    Program(library, header, settings).print()


if __name__ == "__main__":
    main()
