// LLVM 24 prints many booleans with a byte for each, LLVM 22 with a bit.
//
// RUN: posenc-compile %s --emit=posenc -o - | FileCheck %s

// CHECK-LABEL: func @mask
//       CHECK: dense<{{\[\[}}true, false, false, false, false], [true, true, false, false, false], [true, true, true, false, false], [true, true, true, true, false], [true, true, true, true, true]]> : tensor<5x5xi1>
//       CHECK: dense<[true, false, true, true, true, true, true, true, false]> : tensor<9xi1>
func.func @mask(%x: tensor<5x5xf32>, %y: tensor<5x5xf32>, %z: tensor<9xf32>) -> (tensor<5x5xf32>, tensor<9xf32>) {
  %mask = arith.constant dense<"0x01000000000101000000010101000001010101000101010101"> : tensor<5x5xi1>
  %0 = arith.select %mask, %x, %y : tensor<5x5xi1>, tensor<5x5xf32>
  %bits = arith.constant dense<"0xFD00"> : tensor<9xi1>
  %1 = arith.negf %z : tensor<9xf32>
  %2 = arith.select %bits, %z, %1 : tensor<9xi1>, tensor<9xf32>
  return %0, %2 : tensor<5x5xf32>, tensor<9xf32>
}
