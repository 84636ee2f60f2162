//===- gpu-divisions.mlir - integer divisions on GPUs ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#map = affine_map<(i) -> (i)>

// Divides numbers of both signs by -3 to 3, and the smallest number by -1.
func.func @divide_i32(%a: tensor<?xi32>, %o: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r:6 = linalg.generic {indexing_maps = [#map, #map, #map, #map, #map, #map, #map], iterator_types = ["parallel"]}
      ins(%a : tensor<?xi32>) outs(%o, %o, %o, %o, %o, %o : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  ^bb0(%x: i32, %0: i32, %1: i32, %2: i32, %3: i32, %4: i32, %5: i32):
    %seven = arith.constant 7 : i32
    %three = arith.constant 3 : i32
    %step = arith.constant 123456789 : i32
    %smallest = arith.constant -2147483648 : i32
    %rest = arith.remui %x, %seven : i32
    %divisor = arith.subi %rest, %three : i32
    %product = arith.muli %x, %step : i32
    %other = arith.subi %product, %step : i32
    %n = arith.xori %other, %smallest : i32
    %isFirst = arith.cmpi ult, %x, %seven : i32
    %y = arith.select %isFirst, %smallest, %n : i32
    %d = arith.divsi %y, %divisor : i32
    %u = arith.divui %y, %divisor : i32
    %s = arith.remsi %y, %divisor : i32
    %v = arith.remui %y, %divisor : i32
    %f = arith.floordivsi %y, %divisor : i32
    %c = arith.ceildivsi %y, %seven : i32
    linalg.yield %d, %u, %s, %v, %f, %c : i32, i32, i32, i32, i32, i32
  } -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
  return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5 : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

// Chunks of 16 tokens that do not see each other; scores of a group of four keys
// have the same bias.
func.func @chunks(%q: tensor<?x?x4x16xbf16>, %k: tensor<?x?x2x16xbf16>, %v: tensor<?x?x2x16xbf16>, %o: tensor<?x?x4x16xbf16>) -> tensor<?x?x4x16xbf16> {
  %r = posenc.attention ins(%q, %k, %v : tensor<?x?x4x16xbf16>, tensor<?x?x2x16xbf16>, tensor<?x?x2x16xbf16>)
    outs(%o : tensor<?x?x4x16xbf16>)
    score(%s, %b, %h, %i, %j) {
      %four = arith.constant 4 : index
      %n = arith.divui %j, %four : index
      %m = arith.remui %n, %four : index
      %w = arith.index_cast %m : index to i32
      %f = arith.sitofp %w : i32 to f32
      %y = arith.addf %s, %f : f32
      posenc.yield %y : f32
    }
    where(%b, %h, %i, %j) {
      %size = arith.constant 16 : index
      %m = arith.floordivsi %i, %size : index
      %n = arith.floordivsi %j, %size : index
      %y = arith.cmpi eq, %m, %n : index
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x4x16xbf16>
}
