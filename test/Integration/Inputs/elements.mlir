//===- elements.mlir - sizes that are elements of inputs ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// x, and zeros up to t rows.
func.func @grow(%x: tensor<?xf32>, %t: tensor<1xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %element = tensor.extract %t[%c0] : tensor<1xi64>
  %total = arith.index_cast %element : i64 to index
  %rows = arith.maxsi %n, %total : index
  %empty = tensor.empty(%rows) : tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %result = tensor.insert_slice %x into %zeros[0] [%n] [1] : tensor<?xf32> into tensor<?xf32>
  return %result : tensor<?xf32>
}

// The first t elements of x.
func.func @first(%x: tensor<?xf32>, %t: tensor<i32>) -> tensor<?xf32> {
  %element = tensor.extract %t[] : tensor<i32>
  %n = arith.index_cast %element : i32 to index
  %slice = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  return %slice : tensor<?xf32>
}

// 2 * t + 1 rows, of the low half of an i64 in another shape.
func.func @computed(%t: tensor<1x1xi64>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %five = arith.constant 5.0 : f32
  %flat = tensor.collapse_shape %t [[0, 1]] : tensor<1x1xi64> into tensor<1xi64>
  %empty = tensor.empty() : tensor<1xi32>
  %narrow = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%flat : tensor<1xi64>) outs(%empty : tensor<1xi32>) {
  ^bb0(%in: i64, %out: i32):
    %low = arith.trunci %in : i64 to i32
    linalg.yield %low : i32
  } -> tensor<1xi32>
  %element = tensor.extract %narrow[%c0] : tensor<1xi32>
  %wide = arith.extsi %element : i32 to i64
  %double = arith.muli %wide, %two : i64
  %more = arith.addi %double, %one : i64
  %rows = arith.index_cast %more : i64 to index
  %result = tensor.splat %five[%rows] : tensor<?x3xf32>
  return %result : tensor<?x3xf32>
}

// t + u rows of u elements.
func.func @pair(%t: tensor<1xi64>, %u: tensor<i64>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %five = arith.constant 5.0 : f32
  %first = tensor.extract %t[%c0] : tensor<1xi64>
  %second = tensor.extract %u[] : tensor<i64>
  %sum = arith.addi %first, %second : i64
  %rows = arith.index_cast %sum : i64 to index
  %columns = arith.index_cast %second : i64 to index
  %result = tensor.splat %five[%rows, %columns] : tensor<?x?xf32>
  return %result : tensor<?x?xf32>
}

// x, then y. No value of an input is part of a size.
func.func @join(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %result = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %result : tensor<?xf32>
}

// The dimensions of all three tensors are the same.
func.func @sum(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %result = arith.addf %x, %y : tensor<?x3xf32>
  return %result : tensor<?x3xf32>
}

// A number of elements that is a scalar.
func.func @fill(%value: i64, %n: index) -> tensor<?xi64> {
  %result = tensor.splat %value[%n] : tensor<?xi64>
  return %result : tensor<?xi64>
}

// At least four of them.
func.func @cap(%value: i64, %n: index) -> tensor<?xi64> {
  %four = arith.constant 4 : index
  %rows = arith.maxsi %n, %four : index
  %result = tensor.splat %value[%rows] : tensor<?xi64>
  return %result : tensor<?xi64>
}
