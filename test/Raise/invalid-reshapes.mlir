// RUN: not posenc-opt %s --posenc-raise 2>&1 | FileCheck %s
// RUN: not posenc-opt %s --posenc-simplify-reductions 2>&1 | FileCheck %s
// RUN: not posenc-opt %s --posenc-to-cpu 2>&1 | FileCheck %s
// RUN: not posenc-compile %s -o %t.so 2>&1 | FileCheck %s
// RUN: not posenc-run %s --reference 2>&1 | FileCheck %s

// The verifiers of reshapes take the numbers of dimensions modulo 2^32.

// CHECK: error: groups dimension 4294967296 of 'tensor<2x4x6xf32>', which has 3
func.func @collapsed(%x: tensor<2x4x6xf32>) -> tensor<8x6xf32> {
  %0 = tensor.collapse_shape %x [[4294967296, 1], [2]]
      : tensor<2x4x6xf32> into tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
