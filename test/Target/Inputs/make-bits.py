#!/usr/bin/env python3
# ===- make-bits.py - kernels whose bits are published ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: make-bits.py module|program
#
# Prints a module of small kernels with static shapes, or the C program that calls all of
# them on the same numbers and prints a hash of each result. The program is for the
# library `bits` and its header. bits.test compiles both for several processors.

import itertools
import sys

C_TYPES = {"f64": "double", "f32": "float", "f16": "uint16_t", "bf16": "uint16_t",
           "i64": "int64_t", "i32": "int32_t", "index": "int64_t", "i8": "int8_t",
           "f8E4M3FN": "uint8_t", "f8E5M2": "uint8_t"}
FLOATS = ["f32", "bf16", "f16", "f64"]
SHORT = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}


class Kernel:
    """A function of tensors. `inputs` are (name, shape, element type, kind of numbers);
    `results` are (shape, element type), and `body` defines one value for each, `%r0` and
    so on. `{o0}` in the body is an empty tensor of the first result, `{t0}` its type."""

    def __init__(self, name, inputs, results, body):
        self.name, self.inputs, self.results, self.body = name, inputs, results, body

    def print_function(self):
        arguments = ", ".join(f"%{name}: {tensor(shape, element)}"
                              for name, shape, element, _ in self.inputs)
        types = [tensor(shape, element) for shape, element in self.results]
        names = {f"o{i}": f"%o{i}" for i in range(len(types))}
        names.update({f"t{i}": text for i, text in enumerate(types)})
        print(f"func.func @{self.name}({arguments}) -> ({', '.join(types)}) {{")
        for i, text in enumerate(types):
            print(f"  %o{i} = tensor.empty() : {text}")
        body = self.body
        for key, value in names.items():
            body = body.replace("{" + key + "}", value)
        print("  " + body)
        values = ", ".join(f"%r{i}" for i in range(len(types)))
        print(f"  return {values} : {', '.join(types)}\n}}")

    def print_call(self):
        print("  {\n    begin();")
        arguments = []
        for name, shape, element, kind in self.inputs:
            print(f"    {C_TYPES[element]} *{name} = make_{kind}_{element}({count(shape)});")
            arguments.append(name)
        for i, (shape, element) in enumerate(self.results):
            print(f"    {C_TYPES[element]} *r{i} = make({count(shape)}, sizeof *r{i});")
            arguments.append(f"r{i}")
        print(f"    int error = bits_{self.name}({', '.join(arguments)});")
        print(f'    printf("{self.name}");')
        print("    if (error)\n      printf(\" error %d\", error);")
        for i, (shape, _) in enumerate(self.results):
            print(f"    print_hash(r{i}, {count(shape)} * sizeof *r{i});")
        print('    puts("");\n  }')


def tensor(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def count(shape):
    product = 1
    for size in shape:
        product *= size
    return product


SCALINGS = {
    "none": "",
    "linear": "#posenc.linear<factor = 4.0>",
    "llama3": "#posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, "
              "original_max_position = 8192.0>",
    "yarn": "#posenc.yarn<factor = 4.0, original_max_position = 4096.0>",
    "ntk": "#posenc.ntk<factor = 4.0>",
    "ntk_mixed": "#posenc.ntk<factor = 4.0, mixed_b = 0.625>",
    "dynamic": "#posenc.dynamic<factor = 2.0, max_position = 2048.0, length = 5000.0>",
    "longrope": "#posenc.longrope<short_factors = [{ones}], long_factors = [{ramp}], "
                "original_max_position = 4096.0, length = 8192.0, factor = 2.0>",
    "proportional": "#posenc.proportional<rotated_pairs = 8>",
    "divisors": "#posenc.divisors<values = [{ramp}]>",
    "geometric": "#posenc.geometric<shift = 1.0>",
    "explicit": "#posenc.explicit<values = [{falling}]>",
}


def frequencies(dim, scaling="none", precision=""):
    """Returns the attribute of frequencies for `dim` channels."""
    text = SCALINGS[scaling]
    for key, value in (("ones", lambda i: 1.0), ("ramp", lambda i: 1 + i / 4),
                       ("falling", lambda i: 0.75 ** i)):
        values = ", ".join(repr(float(value(i))) for i in range(dim // 2))
        text = text.replace("{" + key + "}", values)
    fields = [f"dim = {dim}"] + ([f"scaling = {text}"] if text else [])
    fields += [f"precision = {precision}"] if precision else []
    return f"#posenc.frequencies<{', '.join(fields)}>"


def list_tables():
    def sincos(name, attribute, element, position="i64", kind="positions"):
        yield Kernel(f"sincos_{name}_{element}", [("p", [23], position, kind)],
                     [([23, 16], element)] * 2,
                     f"%r0, %r1 = posenc.sincos {attribute} positions(%p : tensor<23x{position}>) "
                     "outs({o0}, {o1} : {t0}, {t1})")

    for scaling, element in itertools.product(SCALINGS, ["f32", "bf16", "f64"]):
        yield from sincos(scaling, frequencies(32, scaling), element)
    for position in ("i32", "index", "f32", "f64"):
        kind = "reals" if position[0] == "f" else "positions"
        yield from sincos(f"of_{position}", frequencies(32), "f32", position, kind)
    for scaling in ("none", "linear", "llama3", "yarn"):
        yield from sincos(f"hf_f32_{scaling}", frequencies(32, scaling, "hf_f32"), "f32")
    for order, element in itertools.product(["interleaved", "sin_cos", "cos_sin"], FLOATS):
        yield Kernel(f"sinusoidal_{order}_{element}", [("p", [23], "i64", "positions")],
                     [([23, 32], element)],
                     f"%r0 = posenc.sinusoidal {order} {frequencies(32)} "
                     "positions(%p : tensor<23xi64>) outs({o0} : {t0})")
    yield Kernel("sinusoidal_zero_pad_f32", [("p", [23], "i64", "positions")],
                 [([23, 33], "f32")],
                 f"%r0 = posenc.sinusoidal sin_cos {frequencies(32, 'geometric')} zero_pad "
                 "positions(%p : tensor<23xi64>) outs({o0} : {t0})")


def list_rotations():
    def rope(name, element, dims=64, attribute=None, extra="", window="", kind="positions"):
        attribute = attribute or frequencies(64)
        return Kernel(f"rope_{name}_{element}",
                      [("x", [9, 3, dims], element, "numbers"), ("p", [9], "i64", kind)],
                      [([9, 3, dims], element)],
                      f"%r0 = posenc.rope {attribute.join(extra.split('*', 1))} "
                      f"ins(%x : {tensor([9, 3, dims], element)}) positions(%p : tensor<9xi64>) "
                      f"dims = [0]{window} outs({{o0}} : {{t0}})")

    for pairing, element in itertools.product(["half", "interleaved"], FLOATS):
        yield rope(pairing, element, extra=f"{pairing} *")
        yield rope(f"{pairing}_inverse", element, extra=f"{pairing} inverse *")
        yield rope(f"{pairing}_window", element, 96, extra=f"{pairing} *", window=" offset = 16")
    for scaling in ("llama3", "yarn", "longrope"):
        yield rope(f"half_{scaling}", "f32", attribute=frequencies(64, scaling), extra="half *")
    yield rope("interleaved_xpos", "f32",
               extra="interleaved * scale #posenc.xpos<base = 512.0, gamma = 0.4>",
               kind="indices")
    for layout in ("contiguous", "interleaved", "axial"):
        yield Kernel(f"rope_axes_{layout}_f32",
                     [("x", [9, 3, 64], "f32", "numbers"), ("p", [3, 9], "i64", "positions")],
                     [([9, 3, 64], "f32")],
                     f"%r0 = posenc.rope half {frequencies(64)} axes #posenc.axes<{layout}, "
                     "[12, 10, 10]> ins(%x : tensor<9x3x64xf32>) positions(%p : tensor<3x9xi64>) "
                     "dims = [0] outs({o0} : {t0})")
    for pairing, element in itertools.product(["half", "interleaved"], FLOATS):
        table = "f64" if element == "f64" else "f32"
        yield Kernel(f"rotate_{pairing}_{element}",
                     [("x", [9, 3, 64], element, "numbers"), ("c", [9, 32], table, "numbers"),
                      ("s", [9, 32], table, "numbers")],
                     [([9, 3, 64], element)],
                     f"%r0 = posenc.rotate {pairing} ins(%x : {tensor([9, 3, 64], element)}) "
                     f"tables(%c, %s : tensor<9x32x{table}>) dims = [0] "
                     "outs({o0} : {t0})")


def list_attention():
    def attention(name, element, queries=37, keys=37, heads=4, key_heads=2, dim=64, flags="",
                  operands=(), clauses="", regions="", log_sum=False):
        q, k = [1, queries, heads, dim], [1, keys, key_heads, dim]
        wide = "f64" if element == "f64" else "f32"
        results = [(q, element)] + ([([1, queries, heads], wide)] if log_sum else [])
        values = "%r0, %r1" if log_sum else "%r0"
        outs = "({o0}, {o1} : {t0}, {t1})" if log_sum else "({o0} : {t0})"
        types = ", ".join(tensor(shape, element) for shape in (q, k, k))
        return Kernel(f"attention_{name}_{element}",
                      [("q", q, element, "numbers"), ("k", k, element, "numbers"),
                       ("v", k, element, "numbers"),
                       *((name, shape, wide, kind) for name, shape, kind in operands)],
                      results,
                      f"{values} = posenc.attention {flags} ins(%q, %k, %v : {types}) "
                      f"{clauses} outs{outs} {regions}".replace("f32", wide))

    rotation = "<pairing = half, frequencies = <dim = 64>>"
    rotations = f"query_rotation = {rotation} key_rotation = {rotation}"
    alibi = ("score(%s, %b, %h, %i, %j) { %a = posenc.alibi(%h, %i, %j) heads = 4 : f32 "
             "%y = arith.addf %s, %a : f32 posenc.yield %y : f32 }")
    cap = ("score(%s, %b, %h, %i, %j) { %c = arith.constant 30.0 : f32 "
           "%d = arith.divf %s, %c : f32 %t = math.tanh %d : f32 "
           "%y = arith.mulf %t, %c : f32 posenc.yield %y : f32 }")
    mask = ("where(%b, %h, %i, %j) { %d = arith.subi %i, %j : index "
            "%three = arith.constant 3 : index %m = arith.remui %d, %three : index "
            "%zero = arith.constant 0 : index %y = arith.cmpi eq, %m, %zero : index "
            "posenc.yield %y : i1 }")
    sinks = [("z", [4], "numbers")]
    for element in FLOATS:
        yield attention("full", element)
        yield attention("causal", element, flags="causal")
        yield attention("rotated", element, flags=f"causal {rotations}")
        yield attention("window", element, flags="causal window_left = 11", keys=70)
        yield attention("alibi", element, flags="causal", regions=alibi)
        yield attention("soft_cap", element, flags="causal", regions=cap)
        yield attention("where", element, regions=mask)
        yield attention("sinks", element, flags="causal", operands=sinks,
                        clauses="sinks(%z : tensor<4xf32>)", log_sum=True)
        yield attention("decode", element, queries=1, keys=300)
        yield attention("drafts", element, queries=5, keys=300, flags="causal")
    for dim in (40, 128, 256):
        yield attention(f"heads_of_{dim}", "f32", dim=dim, flags="causal")
    yield attention("decode_splits", "f32", queries=1, keys=2100)


def list_caches():
    for stored in ("f32", "bf16", "i8", "f8E4M3FN", "f8E5M2"):
        rows, cache, scales = [1, 5, 2, 64], [1, 2, 16, 64], [1, 2, 16]
        element = stored if stored in ("f32", "bf16") else "bf16"
        outs = [("kc", cache, stored, "zeros"), ("vc", cache, stored, "zeros")]
        if stored != element:
            outs += [("ks", scales, "f32", "ones"), ("vs", scales, "f32", "ones")]
        names = ", ".join(f"%{name}" for name, *_ in outs)
        types = ", ".join(tensor(shape, kind) for _, shape, kind, _ in outs)
        values = ", ".join(f"%r{i}" for i in range(len(outs)))
        yield Kernel(f"append_{SHORT.get(stored, stored)}",
                     [("k", rows, element, "numbers"), ("v", rows, element, "numbers"),
                      ("n", [1], "i64", "lengths"), *outs],
                     [(shape, kind) for _, shape, kind, _ in outs],
                     f"{values} = posenc.kv_append cache_layout = head_major "
                     f"ins(%k, %v : {tensor(rows, element)}, {tensor(rows, element)}) "
                     f"lengths(%n : tensor<1xi64>) outs({names} : {types})")


def list_linalg():
    for name in ("exp", "exp2", "log", "tanh", "erf", "sin", "cos", "rsqrt", "sqrt"):
        # A NaN that an instruction makes has a sign, which differs between processors.
        kind = "positives" if name in ("log", "rsqrt", "sqrt") else "numbers"
        for element in ("f32", "bf16"):
            yield Kernel(f"math_{name}_{element}", [("x", [301], element, kind)],
                         [([301], element)],
                         "%r0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, "
                         "affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} "
                         f"ins(%x : tensor<301x{element}>) outs({{o0}} : {{t0}}) {{ "
                         f"^bb0(%a: {element}, %b: {element}): %y = math.{name} %a : {element} "
                         f"linalg.yield %y : {element} }} -> {{t0}}")
    for m, k, n in ((1, 300, 33), (37, 300, 65), (5, 257, 17)):
        for element in ("f32", "bf16"):
            yield Kernel(f"matmul_{m}x{k}x{n}_{element}",
                         [("a", [m, k], element, "numbers"), ("b", [k, n], element, "numbers")],
                         [([m, n], "f32")],
                         "%zero = arith.constant 0.0 : f32 "
                         "%f = linalg.fill ins(%zero : f32) outs({o0} : {t0}) -> {t0} "
                         f"%r0 = linalg.matmul ins(%a, %b : {tensor([m, k], element)}, "
                         f"{tensor([k, n], element)}) outs(%f : {{t0}}) -> {{t0}}")
    yield Kernel("softmax_f32", [("x", [7, 301], "f32", "numbers")], [([7, 301], "f32")],
                 "%r0 = linalg.softmax dimension(1) ins(%x : tensor<7x301xf32>) "
                 "outs({o0} : {t0}) -> {t0}")


PROGRAM = r"""/* Prints hashes of the results of all kernels of the library `bits`. */

#include "bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char memory[4 << 20];
static size_t used;
static uint64_t state;

/* Each kernel gets the same numbers, whatever comes before it. */
static void begin(void) {
  used = 0;
  state = 1;
}

static void *make(size_t count, size_t size) {
  void *result = memory + used;
  used += (count * size + 63) / 64 * 64;
  if (used > sizeof memory)
    exit(1);
  memset(result, 0, count * size);
  return result;
}

static uint32_t draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* Draws a float of either sign between 2^-4 and 4. */
static uint32_t draw_bits(void) {
  uint32_t bits = draw() & 0x007fffff;
  bits |= (123 + draw() % 6) << 23;
  return bits | draw() << 31;
}

static float draw_float(void) {
  uint32_t bits = draw_bits();
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

static float *make_numbers_f32(size_t count) {
  float *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = draw_float();
  return result;
}

static float *make_positives_f32(size_t count) {
  float *result = make_numbers_f32(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = result[i] < 0 ? -result[i] : result[i];
  return result;
}

static double *make_numbers_f64(size_t count) {
  double *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = draw_float() + draw_float() * 0x1p-26;
  return result;
}

static uint16_t *make_numbers_bf16(size_t count) {
  uint16_t *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = (uint16_t)(draw_bits() >> 16);
  return result;
}

static uint16_t *make_positives_bf16(size_t count) {
  uint16_t *result = make_numbers_bf16(count);
  for (size_t i = 0; i < count; ++i)
    result[i] &= 0x7fff;
  return result;
}

/* An exponent of f32 that is less by 112 is the same of f16. */
static uint16_t *make_numbers_f16(size_t count) {
  uint16_t *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = draw_bits();
    result[i] = (uint16_t)((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) - (112 << 23)) >> 13);
  }
  return result;
}

/* Small positions, large ones and negative ones. */
static int64_t *make_positions_i64(size_t count) {
  int64_t *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = i % 3 == 0   ? (int64_t)i
                : i % 3 == 1 ? (int64_t)draw()
                             : -(int64_t)(draw() % 100000);
  return result;
}

static int64_t *make_indices_i64(size_t count) {
  int64_t *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = (int64_t)i * 37;
  return result;
}

static int64_t *make_positions_index(size_t count) {
  return make_positions_i64(count);
}

static int32_t *make_positions_i32(size_t count) {
  int32_t *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = (int32_t)(i % 2 ? draw() >> draw() % 20 : i);
  return result;
}

static float *make_reals_f32(size_t count) {
  float *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = draw_float() * (float)(1 << draw() % 12);
  return result;
}

static double *make_reals_f64(size_t count) {
  double *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = draw_float() * (double)(1 << draw() % 20);
  return result;
}

/* The rows that follow 6 others. */
static int64_t *make_lengths_i64(size_t count) {
  int64_t *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = 11;
  return result;
}

static float *make_zeros_f32(size_t count) { return make(count, sizeof(float)); }
static uint16_t *make_zeros_bf16(size_t count) { return make(count, sizeof(uint16_t)); }
static int8_t *make_zeros_i8(size_t count) { return make(count, 1); }
static uint8_t *make_zeros_f8E4M3FN(size_t count) { return make(count, 1); }
static uint8_t *make_zeros_f8E5M2(size_t count) { return make(count, 1); }

static float *make_ones_f32(size_t count) {
  float *result = make(count, sizeof *result);
  for (size_t i = 0; i < count; ++i)
    result[i] = 1;
  return result;
}

static void print_hash(const void *data, size_t size) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < size; ++i)
    hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
  printf(" %016llx", (unsigned long long)hash);
}

int main(void) {"""


def main():
    kernels = [*list_tables(), *list_rotations(), *list_attention(), *list_caches(),
               *list_linalg()]
    if sys.argv[1:] == ["module"]:
        for kernel in kernels:
            kernel.print_function()
    elif sys.argv[1:] == ["program"]:
        print(PROGRAM)
        for kernel in kernels:
            kernel.print_call()
        print("  return 0;\n}")
    else:
        sys.exit("usage: make-bits.py module|program")


if __name__ == "__main__":
    main()
