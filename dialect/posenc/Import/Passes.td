//===- Passes.td - imports of other dialects ---------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IMPORT_PASSES_TD
#define POSENC_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def PosencImportHloPass : Pass<"posenc-import-hlo", "::mlir::ModuleOp"> {
  let summary = "Convert StableHLO, TTIR and tm_tensor to linalg";
  let description = [{
    Input: a module of StableHLO, in its pretty or generic form, or of TTIR in its
    generic form, or with the `tm_tensor.scan` that torch-mlir leaves for
    cumulative sums. TTIR has static shapes; dynamic sizes of StableHLO follow
    from those of arguments, as JAX writes them. Output: `linalg`, `tensor`,
    `arith`, `math`, `scf` for loops, and `cf.assert` for assertions on sizes;
    private functions are inlined, modules within the module are dissolved, and
    annotations for other compilers are removed. Other modules are
    left alone. An operation that is not known is an error that names it.
    posenc-compile and posenc-run do this to all modules that they read.

    ```
    %1 = stablehlo.slice %0 [0:4, 8:16] : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %2 = stablehlo.negate %1 : tensor<4x8xf32>
    ```
    becomes
    ```
    %1 = tensor.extract_slice %0[0, 8] [4, 8] [1, 1] : tensor<4x16xf32> to tensor<4x8xf32>
    %2 = arith.negf %1 : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::complex::ComplexDialect",
    "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // POSENC_IMPORT_PASSES_TD
