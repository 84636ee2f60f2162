//===- MathPasses.td - arithmetic without libm -------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_MATHPASSES_TD
#define POSENC_CODEGEN_MATHPASSES_TD

include "mlir/Pass/PassBase.td"

def PosencExpandArithPass : Pass<"posenc-expand-arith"> {
  let summary = "Expand arith operations that would become library calls";
  let description = [{
    Input: arith operations on scalars and vectors for which the backend would
    call libm or the compiler's runtime library; a kernel library links neither.
    Output:

    - `truncf` from f64 to f16 and bf16, and conversions of integers of 25 to 64
      bits to these types, become a conversion to f32 that rounds to odd, and a
      `truncf` that rounds to nearest, which together round once;
    - `remf` becomes a loop of exact steps;
    - `maxnumf` and `minnumf` of f16 and bf16 become comparisons in f32;
    - integer divisions by tensor elements never trap: x / 0 is -1 with the
      remainder x, and the minimum divided by -1 is the minimum.

    Errors: divisions of integers of more than 64 bits, conversions between such
    integers and floats, and arithmetic on floats other than f16, bf16, f32 and
    f64. Left alone: all other operations.

    ```
    %r = arith.truncf %x : f64 to f16
    ```
    becomes
    ```
    %0 = ... round %x to f32, to odd ...
    %r = arith.truncf %0 : f32 to f16
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencExpandBF16Pass : Pass<"posenc-expand-bf16"> {
  let summary = "Expand bf16 conversions and dot products into arithmetic";
  let description = [{
    Input: `arith.extf` and `arith.truncf` between bf16 and f32, and
    `x86vector.avx512.dot`, for targets without AVX512-BF16. Output: integer
    operations and fused multiply-adds with the same bits, except that
    conversions keep subnormal numbers, which the instruction flushes to zero.
    Left alone: all other operations.

    ```
    %r = arith.extf %x : bf16 to f32
    ```
    becomes
    ```
    %0 = arith.bitcast %x : bf16 to i16
    %1 = arith.extui %0 : i16 to i32
    %2 = arith.shli %1, %c16 : i32
    %r = arith.bitcast %2 : i32 to f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencExpandTilesPass : Pass<"posenc-expand-tiles", "::mlir::func::FuncOp"> {
  let summary = "Expand AMX tiles into buffers and loops";
  let description = [{
    Input: `amx.tile_zero`, `amx.tile_load` and `amx.tile_store` without a stride,
    and `amx.tile_mulf` of bf16, for targets without AMX-BF16. Output: a tile is a
    buffer on the stack, and loops over its rows have the bits of the instructions:
    the products of the even elements of a row, and those of the odd ones, are
    added in order, then both sums, then the accumulator; subnormal numbers are 0.
    So do products of signed and unsigned bytes (`amx.tile_muli`), as arithmetic of
    i32. The intrinsic that rounds weights to bf16 becomes arithmetic, too, unless
    `avx512` those for their exponentials, and unless `int8-dots` the dot product of
    bytes.
    Left alone: other `amx` operations, and those that use their results.

    ```
    %0 = amx.tile_load %a[%i, %j] : memref<64x16xf32> into !amx.tile<16x32xbf16>
    ```
    becomes
    ```
    %0 = memref.alloca() : memref<16x16xf32>
    scf.for %row = %c0 to %c16 step %c1 {
      %at = arith.addi %i, %row : index
      %words = vector.load %a[%at, %j] : memref<64x16xf32>, vector<16xf32>
      vector.store %words, %0[%row, %c0] : memref<16x16xf32>, vector<16xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
  let options = [
    Option<"avx512", "avx512", "bool", /*default=*/"false",
           "Whether the target has AVX-512">,
    Option<"int8Dots", "int8-dots", "bool", /*default=*/"false",
           "Leave the dot product of bytes (AVX512-VNNI)">
  ];
}

def PosencExpandF8Pass : Pass<"posenc-expand-f8"> {
  let summary = "Expand f8 conversions into integer arithmetic and f16";
  let description = [{
    Input: `arith.extf` and `arith.truncf` from and to `f8E4M3FN` and `f8E5M2`, for
    which CPUs have no instructions. Output: an extension goes by way of f16,
    which represents all f8 values. A truncation from f32 rounds once, to nearest,
    ties to even, as `arith.truncf` defines it; values that are too large become
    NaN in `f8E4M3FN` and infinite in `f8E5M2`. Other floats are converted from or
    to f32. Left alone: operations that only move f8, which is i8 in the LLVM
    dialect.

    ```mlir
    func.func @widen(%x: vector<8xf8E5M2>) -> vector<8xf32> {
      %0 = arith.extf %x : vector<8xf8E5M2> to vector<8xf32>
      return %0 : vector<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @widen(%x: vector<8xf8E5M2>) -> vector<8xf32> {
      %c8 = arith.constant dense<8> : vector<8xi16>
      %0 = arith.bitcast %x : vector<8xf8E5M2> to vector<8xi8>
      %1 = arith.extui %0 : vector<8xi8> to vector<8xi16>
      %2 = arith.shli %1, %c8 : vector<8xi16>
      %3 = arith.bitcast %2 : vector<8xi16> to vector<8xf16>
      %4 = arith.extf %3 : vector<8xf16> to vector<8xf32>
      return %4 : vector<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::vector::VectorDialect"];
}

def PosencLegalizeBF16Pass : Pass<"posenc-legalize-bf16"> {
  let summary = "Replace bf16 by i16 in the LLVM dialect";
  let description = [{
    Input: functions of the LLVM dialect that load, store and move bf16. Without
    AVX512-BF16, the backend has no bf16 vectors and emits library calls for
    conversions that its optimizations insert. Output: the same functions on i16.
    Left alone: a module that computes with bf16.

    ```
    %0 = llvm.load %p : !llvm.ptr -> vector<8xbf16>
    llvm.store %0, %q : vector<8xbf16>, !llvm.ptr
    ```
    becomes
    ```
    %0 = llvm.load %p : !llvm.ptr -> vector<8xi16>
    llvm.store %0, %q : vector<8xi16>, !llvm.ptr
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def PosencLegalizeI1Pass : Pass<"posenc-legalize-i1"> {
  let summary = "Load and store i1 as bytes";
  let description = [{
    Input: loads and stores of i1, and of vectors of i1, in the LLVM dialect.
    Output: loads and stores of bytes. A caller's boolean is a byte, and any value
    but 0 is true. LLVM treats bytes other than 0 and 1 as poison, and packs
    vectors of i1 into bits. Left alone: all other operations.

    ```
    %b = llvm.load %p : !llvm.ptr -> i1
    ```
    becomes
    ```
    %0 = llvm.load %p : !llvm.ptr -> i8
    %1 = llvm.mlir.zero : i8
    %b = llvm.icmp "ne" %0, %1 : i8
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def PosencExpandMathPass : Pass<"posenc-expand-math"> {
  let summary = "Expand math functions into arithmetic";
  let description = [{
    Input: operations of the math dialect on scalars and vectors: a kernel library
    does not link libm, and GPU kernels do not link libdevice. Output: arithmetic
    with an error of at most 4 units in the last place for all finite arguments,
    and with the special values of IEEE 754. `sin`, `cos` and `tan` reduce
    arguments of any size exactly. docs/numerics.md lists the largest measured
    errors. Results have the same bits on all targets with a fused multiply-add,
    with or without `avx512`. Functions of f16 and bf16 are computed in f32 and
    rounded once.

    - Expanded: `acos` `acosh` `asin` `asinh` `atan` `atan2` `atanh` `cbrt`
      `clampf` `cos` `cosh` `erf` `erfc` `exp` `exp2` `expm1` `fpowi` `isfinite`
      `isinf` `isnan` `isnormal` `log` `log10` `log1p` `log2` `powf` `rsqrt` `sin`
      `sincos` `sinh` `tan` `tanh`, and `ipowi` with a constant exponent from 0 to
      64. Powers with a constant integer exponent of magnitude up to 64, or with
      exponent 0.5 or -0.5, become products, quotients and square roots.
    - Left to the target, which has instructions: `absf` `absi` `ceil`
      `copysign` `ctlz` `ctpop` `cttz` `floor` `fma` `round` `roundeven` `sqrt`
      `trunc`.
    - Errors: other exponents of `ipowi`, and other types.

    The pass drops fast-math flags of math functions, which could make them less
    accurate. It keeps the flags `reassoc` and `contract` of `arith` operations and
    drops their other flags. Left alone: operations on tensors.

    ```mlir
    func.func @f(%x: f32) -> f32 {
      %r = math.rsqrt %x : f32
      return %r : f32
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f32) -> f32 {
      %one = arith.constant 1.0 : f32
      %root = math.sqrt %x : f32
      %r = arith.divf %one, %root : f32
      return %r : f32
    }
    ```
  }];
  let options = [
    Option<"avx512", "avx512", "bool", /*default=*/"false",
           "Use AVX-512 to multiply vectors of 64 bytes by powers of two">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // POSENC_CODEGEN_MATHPASSES_TD
