// Rotations in the spellings of frameworks become posenc.rotate.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// Tables as arguments may differ in the lanes of a pair.
// CHECK-LABEL: func @rotate_half
//  CHECK-SAME: (%[[X:.*]]: tensor<2x4x8x16xf32>, %[[C:.*]]: tensor<8x16xf32>, %[[S:.*]]: tensor<8x16xf32>)
//       CHECK: posenc.rotate half full_tables ins(%[[X]] : {{.*}}) tables(%[[C]], %[[S]] : tensor<8x16xf32>) dims = [2]
//   CHECK-NOT: arith.mulf
func.func @rotate_half(%x: tensor<2x4x8x16xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<2x4x8x16xf32> {
  %e = tensor.empty() : tensor<2x4x8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0, 0] [2, 4, 8, 8] [1, 1, 1, 1] : tensor<2x4x8x16xf32> to tensor<2x4x8x8xf32>
  %x1 = tensor.extract_slice %x[0, 0, 0, 8] [2, 4, 8, 8] [1, 1, 1, 1] : tensor<2x4x8x16xf32> to tensor<2x4x8x8xf32>
  %n = arith.negf %x1 : tensor<2x4x8x8xf32>
  %r = tensor.concat dim(3) %n, %x0 : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x16xf32>
  %c = linalg.broadcast ins(%cos : tensor<8x16xf32>) outs(%e : tensor<2x4x8x16xf32>) dimensions = [0, 1]
  %s = linalg.broadcast ins(%sin : tensor<8x16xf32>) outs(%e : tensor<2x4x8x16xf32>) dimensions = [0, 1]
  %a = arith.mulf %x, %c : tensor<2x4x8x16xf32>
  %b = arith.mulf %r, %s : tensor<2x4x8x16xf32>
  %y = arith.addf %b, %a : tensor<2x4x8x16xf32>
  return %y : tensor<2x4x8x16xf32>
}

// -----

// Tables of angles that are the same for both halves have one lane for a pair.
// CHECK-LABEL: func @concatenated_angles
//       CHECK: %[[C:.*]] = math.cos
//       CHECK: %[[S:.*]] = math.sin
//       CHECK: %[[CH:.*]] = tensor.extract_slice %[[C]][0, 8] [8, 8] [1, 1]
//       CHECK: %[[SH:.*]] = tensor.extract_slice %[[S]][0, 8] [8, 8] [1, 1]
//       CHECK: posenc.rotate half ins(%{{.*}}) tables(%[[CH]], %[[SH]] : tensor<8x8xf32>) dims = [1]
func.func @concatenated_angles(%x: tensor<4x8x16xf32>, %f: tensor<8x8xf32>) -> tensor<4x8x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %ff = tensor.concat dim(1) %f, %f : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %cos = math.cos %ff : tensor<8x16xf32>
  %sin = math.sin %ff : tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %x1 = tensor.extract_slice %x[0, 0, 8] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %n = arith.negf %x1 : tensor<4x8x8xf32>
  %r = tensor.concat dim(2) %n, %x0 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %c = linalg.broadcast ins(%cos : tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) dimensions = [0]
  %s = linalg.broadcast ins(%sin : tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) dimensions = [0]
  %a = arith.mulf %x, %c : tensor<4x8x16xf32>
  %b = arith.mulf %r, %s : tensor<4x8x16xf32>
  %y = arith.addf %a, %b : tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}

// -----

// Halves are rotated one by one, with subtraction, and bf16 rows are computed in
// f32: the roundings between are left out.
// CHECK-LABEL: func @halves_in_f32
//  CHECK-SAME: (%[[X:.*]]: tensor<?x4x16xbf16>, %[[C:.*]]: tensor<?x8xf32>, %[[S:.*]]: tensor<?x8xf32>)
//       CHECK: posenc.rotate half ins(%[[X]] : tensor<?x4x16xbf16>) tables(%[[C]], %[[S]] : tensor<?x8xf32>) dims = [0]
#rows = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#table = affine_map<(d0, d1, d2) -> (d0, d2)>
func.func @halves_in_f32(%x: tensor<?x4x16xbf16>, %cos: tensor<?x8xf32>, %sin: tensor<?x8xf32>) -> tensor<?x4x16xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x16xbf16>
  %w = arith.extf %x : tensor<?x4x16xbf16> to tensor<?x4x16xf32>
  %x0 = tensor.extract_slice %w[0, 0, 0] [%n, 4, 8] [1, 1, 1] : tensor<?x4x16xf32> to tensor<?x4x8xf32>
  %x1 = tensor.extract_slice %w[0, 0, 8] [%n, 4, 8] [1, 1, 1] : tensor<?x4x16xf32> to tensor<?x4x8xf32>
  %e = tensor.empty(%n) : tensor<?x4x8xf32>
  %y:2 = linalg.generic {indexing_maps = [#rows, #rows, #table, #table, #rows, #rows], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x0, %x1, %cos, %sin : tensor<?x4x8xf32>, tensor<?x4x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%e, %e : tensor<?x4x8xf32>, tensor<?x4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %o0: f32, %o1: f32):
    %ac = arith.mulf %a, %c : f32
    %bs = arith.mulf %b, %s : f32
    %bc = arith.mulf %b, %c : f32
    %as = arith.mulf %a, %s : f32
    %first = arith.subf %ac, %bs : f32
    %second = arith.addf %bc, %as : f32
    linalg.yield %first, %second : f32, f32
  } -> (tensor<?x4x8xf32>, tensor<?x4x8xf32>)
  %j = tensor.concat dim(2) %y#0, %y#1 : (tensor<?x4x8xf32>, tensor<?x4x8xf32>) -> tensor<?x4x16xf32>
  %t = arith.truncf %j : tensor<?x4x16xf32> to tensor<?x4x16xbf16>
  return %t : tensor<?x4x16xbf16>
}

// -----

// Lanes are selected inside of a linalg.generic, as fused compilers write it.
// CHECK-LABEL: func @extracted_lanes
//       CHECK: posenc.rotate interleaved {{.*}} dims = [0]
func.func @extracted_lanes(%x: tensor<?x4x16xf32>, %t: tensor<?x16xf32>) -> tensor<?x4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x16xf32>
  %e = tensor.empty(%n) : tensor<?x4x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<?x16xf32>) outs(%e : tensor<?x4x16xf32>) {
  ^bb0(%angle: f32, %o: f32):
    %i = linalg.index 0 : index
    %h = linalg.index 1 : index
    %l = linalg.index 2 : index
    %pair = arith.divui %l, %c2 : index
    %rest = arith.remui %l, %c2 : index
    %first = arith.muli %pair, %c2 : index
    %second = arith.addi %first, %c1 : index
    %a = tensor.extract %x[%i, %h, %first] : tensor<?x4x16xf32>
    %b = tensor.extract %x[%i, %h, %second] : tensor<?x4x16xf32>
    %c = math.cos %angle : f32
    %s = math.sin %angle : f32
    %ac = arith.mulf %a, %c : f32
    %bs = arith.mulf %b, %s : f32
    %bc = arith.mulf %b, %c : f32
    %as = arith.mulf %a, %s : f32
    %y0 = arith.subf %ac, %bs : f32
    %y1 = arith.addf %bc, %as : f32
    %even = arith.cmpi eq, %rest, %c0 : index
    %z = arith.select %even, %y0, %y1 : f32
    linalg.yield %z : f32
  } -> tensor<?x4x16xf32>
  return %y : tensor<?x4x16xf32>
}

// -----

// Products of complex numbers, whose parts are the lanes of a pair.
// CHECK-LABEL: func @complex
//       CHECK: posenc.rotate interleaved ins(%{{.*}} : tensor<4x8x16xf32>) tables({{.*}} : tensor<8x8xf32>) dims = [1]
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#of_row = affine_map<(d0, d1, d2) -> (d1, d2)>
func.func @complex(%x: tensor<4x8x16xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<4x8x16xf32> {
  %p = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [4, 8, 8, 2] : tensor<4x8x16xf32> into tensor<4x8x8x2xf32>
  %r = tensor.extract_slice %p[0, 0, 0, 0] [4, 8, 8, 1] [1, 1, 1, 1] : tensor<4x8x8x2xf32> to tensor<4x8x8xf32>
  %i = tensor.extract_slice %p[0, 0, 0, 1] [4, 8, 8, 1] [1, 1, 1, 1] : tensor<4x8x8x2xf32> to tensor<4x8x8xf32>
  %e = tensor.empty() : tensor<4x8x8xcomplex<f32>>
  %z = linalg.generic {indexing_maps = [#id, #id, #of_row, #of_row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r, %i, %cos, %sin : tensor<4x8x8xf32>, tensor<4x8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8x8xcomplex<f32>>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %o: complex<f32>):
    %u = complex.create %a, %b : complex<f32>
    %v = complex.create %c, %s : complex<f32>
    %w = complex.mul %u, %v : complex<f32>
    linalg.yield %w : complex<f32>
  } -> tensor<4x8x8xcomplex<f32>>
  %f = tensor.empty() : tensor<4x8x8xf32>
  %y:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%z : tensor<4x8x8xcomplex<f32>>) outs(%f, %f : tensor<4x8x8xf32>, tensor<4x8x8xf32>) {
  ^bb0(%w: complex<f32>, %o0: f32, %o1: f32):
    %re = complex.re %w : complex<f32>
    %im = complex.im %w : complex<f32>
    linalg.yield %re, %im : f32, f32
  } -> (tensor<4x8x8xf32>, tensor<4x8x8xf32>)
  %y0 = tensor.expand_shape %y#0 [[0], [1], [2, 3]] output_shape [4, 8, 8, 1] : tensor<4x8x8xf32> into tensor<4x8x8x1xf32>
  %y1 = tensor.expand_shape %y#1 [[0], [1], [2, 3]] output_shape [4, 8, 8, 1] : tensor<4x8x8xf32> into tensor<4x8x8x1xf32>
  %j = tensor.concat dim(3) %y0, %y1 : (tensor<4x8x8x1xf32>, tensor<4x8x8x1xf32>) -> tensor<4x8x8x2xf32>
  %t = tensor.collapse_shape %j [[0], [1], [2, 3]] : tensor<4x8x8x2xf32> into tensor<4x8x16xf32>
  return %t : tensor<4x8x16xf32>
}

// -----

// Strided slices, which are inserted into a copy of the lanes that are not
// rotated; the sines are negative, so the rotation is inverse.
// CHECK-LABEL: func @partial_strided
//       CHECK: posenc.rotate interleaved inverse ins(%{{.*}} : tensor<8x4x16xf32>) tables({{.*}} : tensor<8x4xf32>) dims = [0] offset = 4
func.func @partial_strided(%x: tensor<8x4x16xf32>, %cos: tensor<8x4xf32>, %sin: tensor<8x4xf32>) -> tensor<8x4x16xf32> {
  %e = tensor.empty() : tensor<8x4x4xf32>
  %c = linalg.broadcast ins(%cos : tensor<8x4xf32>) outs(%e : tensor<8x4x4xf32>) dimensions = [1]
  %s = linalg.broadcast ins(%sin : tensor<8x4xf32>) outs(%e : tensor<8x4x4xf32>) dimensions = [1]
  %a = tensor.extract_slice %x[0, 0, 4] [8, 4, 4] [1, 1, 2] : tensor<8x4x16xf32> to tensor<8x4x4xf32>
  %b = tensor.extract_slice %x[0, 0, 5] [8, 4, 4] [1, 1, 2] : tensor<8x4x16xf32> to tensor<8x4x4xf32>
  %ac = arith.mulf %a, %c : tensor<8x4x4xf32>
  %bs = arith.mulf %b, %s : tensor<8x4x4xf32>
  %bc = arith.mulf %b, %c : tensor<8x4x4xf32>
  %as = arith.mulf %a, %s : tensor<8x4x4xf32>
  %y0 = arith.addf %ac, %bs : tensor<8x4x4xf32>
  %y1 = arith.subf %bc, %as : tensor<8x4x4xf32>
  %t0 = tensor.insert_slice %y0 into %x[0, 0, 4] [8, 4, 4] [1, 1, 2] : tensor<8x4x4xf32> into tensor<8x4x16xf32>
  %t1 = tensor.insert_slice %y1 into %t0[0, 0, 5] [8, 4, 4] [1, 1, 2] : tensor<8x4x4xf32> into tensor<8x4x16xf32>
  return %t1 : tensor<8x4x16xf32>
}

// -----

// Two axes, each with halves of its own, are two rotations.
// CHECK-LABEL: func @two_axes
//       CHECK: %[[A:.*]] = posenc.rotate half full_tables {{.*}} dims = [0] outs
//       CHECK: posenc.rotate half full_tables ins(%[[A]] {{.*}} dims = [0] offset = 8
func.func @two_axes(%x: tensor<8x16xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x16xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x16xf32> to tensor<8x4xf32>
  %x2 = tensor.extract_slice %x[0, 8] [8, 4] [1, 1] : tensor<8x16xf32> to tensor<8x4xf32>
  %x3 = tensor.extract_slice %x[0, 12] [8, 4] [1, 1] : tensor<8x16xf32> to tensor<8x4xf32>
  %n1 = arith.negf %x1 : tensor<8x4xf32>
  %n3 = arith.negf %x3 : tensor<8x4xf32>
  %r = tensor.concat dim(1) %n1, %x0, %n3, %x2 : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x16xf32>
  %a = arith.mulf %x, %cos : tensor<8x16xf32>
  %b = arith.mulf %r, %sin : tensor<8x16xf32>
  %y = arith.addf %a, %b : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// Rolled lanes and a table of sines with signs: the expansion of the table shows
// that the halves of a pair are rotated together.
// CHECK-LABEL: func @roll
//       CHECK: posenc.rotate half ins(%{{.*}} : tensor<8x16xf32>) tables({{.*}} : tensor<8x8xf32>) dims = [0]
func.func @roll(%x: tensor<8x16xf32>, %f: tensor<8x8xf32>) -> tensor<8x16xf32> {
  %h = math.cos %f : tensor<8x8xf32>
  %g = math.sin %f : tensor<8x8xf32>
  %m = arith.negf %g : tensor<8x8xf32>
  %cos = tensor.concat dim(1) %h, %h : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %sin = tensor.concat dim(1) %m, %g : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %x1 = tensor.extract_slice %x[0, 8] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %r = tensor.concat dim(1) %x1, %x0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %a = arith.mulf %x, %cos : tensor<8x16xf32>
  %b = arith.mulf %r, %sin : tensor<8x16xf32>
  %y = arith.addf %a, %b : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// A product with matrices of 2 by 2, as a contraction.
// CHECK-LABEL: func @matrices
//       CHECK: posenc.rotate interleaved ins(%{{.*}} : tensor<4x8x16xf32>) tables({{.*}} : tensor<8x8xf32>) dims = [1]
func.func @matrices(%x: tensor<4x8x16xf32>, %f: tensor<8x8xf32>) -> tensor<4x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %cos = math.cos %f : tensor<8x8xf32>
  %sin = math.sin %f : tensor<8x8xf32>
  %neg = arith.negf %sin : tensor<8x8xf32>
  %c = tensor.expand_shape %cos [[0], [1, 2]] output_shape [8, 8, 1] : tensor<8x8xf32> into tensor<8x8x1xf32>
  %s = tensor.expand_shape %sin [[0], [1, 2]] output_shape [8, 8, 1] : tensor<8x8xf32> into tensor<8x8x1xf32>
  %n = tensor.expand_shape %neg [[0], [1, 2]] output_shape [8, 8, 1] : tensor<8x8xf32> into tensor<8x8x1xf32>
  %m = tensor.concat dim(2) %c, %n, %s, %c : (tensor<8x8x1xf32>, tensor<8x8x1xf32>, tensor<8x8x1xf32>, tensor<8x8x1xf32>) -> tensor<8x8x4xf32>
  %q = tensor.expand_shape %m [[0], [1], [2, 3]] output_shape [8, 8, 2, 2] : tensor<8x8x4xf32> into tensor<8x8x2x2xf32>
  %p = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [4, 8, 8, 2] : tensor<4x8x16xf32> into tensor<4x8x8x2xf32>
  %e = tensor.empty() : tensor<4x8x8x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8x8x2xf32>) -> tensor<4x8x8x2xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %p : tensor<8x8x2x2xf32>, tensor<4x8x8x2xf32>) outs(%z : tensor<4x8x8x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %ab = arith.mulf %a, %b : f32
    %sum = arith.addf %o, %ab : f32
    linalg.yield %sum : f32
  } -> tensor<4x8x8x2xf32>
  %t = tensor.collapse_shape %y [[0], [1], [2, 3]] : tensor<4x8x8x2xf32> into tensor<4x8x16xf32>
  return %t : tensor<4x8x16xf32>
}

// -----

// An assertion says that two sizes are equal.
// CHECK-LABEL: func @equal_sizes
//       CHECK: posenc.rotate half full_tables {{.*}} dims = [0]
func.func @equal_sizes(%t: tensor<?x8xf32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x8xf32>
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %same = arith.cmpi eq, %m, %n : index
  cf.assert %same, "sizes differ"
  %x0 = tensor.extract_slice %x[0, 0] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %neg = arith.negf %x1 : tensor<?x4xf32>
  %r = tensor.concat dim(1) %neg, %x0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %a = arith.mulf %x, %t : tensor<?x8xf32>
  %b = arith.mulf %r, %t : tensor<?x8xf32>
  %y = arith.addf %a, %b : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Neighbours are moved to halves before they are rotated.
// CHECK-LABEL: func @even_lanes_first
//  CHECK-SAME: (%[[X:.*]]: tensor<2x6x8xf32>, %[[C:.*]]: tensor<6x4xf32>, %[[S:.*]]: tensor<6x4xf32>)
//       CHECK: %[[P:.*]] = tensor.expand_shape %[[X]] {{.*}} into tensor<2x6x4x2xf32>
//       CHECK: %[[T:.*]] = linalg.transpose ins(%[[P]] : tensor<2x6x4x2xf32>)
//       CHECK: %[[H:.*]] = tensor.collapse_shape %[[T]] {{.*}} into tensor<2x6x8xf32>
//       CHECK: posenc.rotate half ins(%[[H]] : tensor<2x6x8xf32>) tables(%[[C]], %[[S]] : tensor<6x4xf32>) dims = [1]
#row = affine_map<(b, i, j) -> (b, i, j)>
#table = affine_map<(b, i, j) -> (i, j)>
func.func @even_lanes_first(%x: tensor<2x6x8xf32>, %cos: tensor<6x4xf32>, %sin: tensor<6x4xf32>) -> tensor<2x6x8xf32> {
  %even = tensor.extract_slice %x[0, 0, 0] [2, 6, 4] [1, 1, 2] : tensor<2x6x8xf32> to tensor<2x6x4xf32>
  %odd = tensor.extract_slice %x[0, 0, 1] [2, 6, 4] [1, 1, 2] : tensor<2x6x8xf32> to tensor<2x6x4xf32>
  %e = tensor.empty() : tensor<2x6x4xf32>
  %y:2 = linalg.generic {indexing_maps = [#row, #row, #table, #table, #row, #row], iterator_types = ["parallel", "parallel", "parallel"]} ins(%even, %odd, %cos, %sin : tensor<2x6x4xf32>, tensor<2x6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) outs(%e, %e : tensor<2x6x4xf32>, tensor<2x6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %o0: f32, %o1: f32):
    %ac = arith.mulf %a, %c : f32
    %bs = arith.mulf %b, %s : f32
    %first = arith.subf %ac, %bs : f32
    %bc = arith.mulf %b, %c : f32
    %as = arith.mulf %a, %s : f32
    %second = arith.addf %bc, %as : f32
    linalg.yield %first, %second : f32, f32
  } -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>)
  %r = tensor.concat dim(2) %y#0, %y#1 : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x8xf32>
  return %r : tensor<2x6x8xf32>
}

// -----

// Halves are rotated to neighbours.
// CHECK-LABEL: func @halves_to_neighbours
//       CHECK: %[[P:.*]] = tensor.expand_shape %{{.*}} into tensor<6x2x4xf32>
//       CHECK: posenc.rotate interleaved
func.func @halves_to_neighbours(%x: tensor<6x8xf32>, %cos: tensor<6x4xf32>, %sin: tensor<6x4xf32>) -> tensor<6x8xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a = arith.mulf %x0, %cos : tensor<6x4xf32>
  %b = arith.mulf %x1, %sin : tensor<6x4xf32>
  %first = arith.subf %a, %b : tensor<6x4xf32>
  %c = arith.mulf %x1, %cos : tensor<6x4xf32>
  %d = arith.mulf %x0, %sin : tensor<6x4xf32>
  %second = arith.addf %c, %d : tensor<6x4xf32>
  %f = tensor.expand_shape %first [[0], [1, 2]] output_shape [6, 4, 1] : tensor<6x4xf32> into tensor<6x4x1xf32>
  %g = tensor.expand_shape %second [[0], [1, 2]] output_shape [6, 4, 1] : tensor<6x4xf32> into tensor<6x4x1xf32>
  %p = tensor.concat dim(2) %f, %g : (tensor<6x4x1xf32>, tensor<6x4x1xf32>) -> tensor<6x4x2xf32>
  %y = tensor.collapse_shape %p [[0], [1, 2]] : tensor<6x4x2xf32> into tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Queries of normed rows, scaled after the rotation: the norm is not part of the
// tables, and the scale is.
// CHECK-LABEL: func @scaled_rows
//       CHECK: %[[X:.*]] = arith.mulf
//       CHECK: posenc.rotate half full_tables ins(%[[X]] : tensor<4x8x16xf32>) tables({{.*}} : tensor<8x16xf32>) dims = [1]
func.func @scaled_rows(%q: tensor<4x8x16xf32>, %norm: tensor<4x8xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<4x8x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %half = arith.constant dense<0.5> : tensor<4x8x16xf32>
  %n = linalg.broadcast ins(%norm : tensor<4x8xf32>) outs(%e : tensor<4x8x16xf32>) dimensions = [2]
  %x = arith.mulf %q, %n : tensor<4x8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %x1 = tensor.extract_slice %x[0, 0, 8] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %m = arith.negf %x1 : tensor<4x8x8xf32>
  %r = tensor.concat dim(2) %m, %x0 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %c = linalg.broadcast ins(%cos : tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) dimensions = [0]
  %s = linalg.broadcast ins(%sin : tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) dimensions = [0]
  %a = arith.mulf %x, %c : tensor<4x8x16xf32>
  %b = arith.mulf %r, %s : tensor<4x8x16xf32>
  %y = arith.addf %a, %b : tensor<4x8x16xf32>
  %z = arith.mulf %y, %half : tensor<4x8x16xf32>
  return %z : tensor<4x8x16xf32>
}

// -----

// Heads of projections: the sizes of a reshape are those of the tables, which
// follows from the shape that it is given.
// CHECK-LABEL: func @reshaped_projections
//       CHECK: %[[R:.*]] = tensor.reshape
//       CHECK: posenc.rotate half ins(%[[R]] : tensor<?x?x2x8xf32>) tables(%{{.*}}, %{{.*}} : tensor<?x?x4xf32>) dims = [0, 1]
#lanes = affine_map<(b, i, h, d) -> (b, i, h, d)>
#table = affine_map<(b, i, h, d) -> (b, i, d)>
func.func @reshaped_projections(%x: tensor<?x?x16xf32>, %cos: tensor<?x?x4xf32>, %sin: tensor<?x?x4xf32>) -> tensor<?x?x2x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2 : i64
  %eight = arith.constant 8 : i64
  %n = tensor.dim %cos, %c0 : tensor<?x?x4xf32>
  %m = tensor.dim %cos, %c1 : tensor<?x?x4xf32>
  %n64 = arith.index_cast %n : index to i64
  %m64 = arith.index_cast %m : index to i64
  %shape = tensor.from_elements %n64, %m64, %two, %eight : tensor<4xi64>
  %r = tensor.reshape %x(%shape) : (tensor<?x?x16xf32>, tensor<4xi64>) -> tensor<?x?x2x8xf32>
  %x0 = tensor.extract_slice %r[0, 0, 0, 0] [%n, %m, 2, 4] [1, 1, 1, 1] : tensor<?x?x2x8xf32> to tensor<?x?x2x4xf32>
  %x1 = tensor.extract_slice %r[0, 0, 0, 4] [%n, %m, 2, 4] [1, 1, 1, 1] : tensor<?x?x2x8xf32> to tensor<?x?x2x4xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?x2x4xf32>
  %y0, %y1 = linalg.generic {indexing_maps = [#lanes, #lanes, #table, #table, #lanes, #lanes], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %x1, %cos, %sin : tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32>, tensor<?x?x4xf32>, tensor<?x?x4xf32>) outs(%e, %e : tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %o: f32, %p: f32):
    %ac = arith.mulf %a, %c : f32
    %bs = arith.mulf %b, %s : f32
    %first = arith.subf %ac, %bs : f32
    %as = arith.mulf %a, %s : f32
    %bc = arith.mulf %b, %c : f32
    %second = arith.addf %as, %bc : f32
    linalg.yield %first, %second : f32, f32
  } -> (tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32>)
  %y = tensor.concat dim(3) %y0, %y1 : (tensor<?x?x2x4xf32>, tensor<?x?x2x4xf32>) -> tensor<?x?x2x8xf32>
  return %y : tensor<?x?x2x8xf32>
}

// -----

// Lanes that a constant selects, as a gather does: its indices are clamped.
// CHECK-LABEL: func @selected_lanes
//  CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32>
//       CHECK: posenc.rotate interleaved ins(%[[X]] : tensor<6x4xf32>)
func.func @selected_lanes(%x: tensor<6x4xf32>, %f: tensor<6x2xf32>) -> tensor<6x4xf32> {
  %lanes = arith.constant dense<[1, 0, 3, 2]> : tensor<4xi32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %wide = tensor.expand_shape %f [[0], [1, 2]] output_shape [6, 2, 1] : tensor<6x2xf32> into tensor<6x2x1xf32>
  %minus = arith.negf %wide : tensor<6x2x1xf32>
  %both = tensor.concat dim(2) %minus, %wide : (tensor<6x2x1xf32>, tensor<6x2x1xf32>) -> tensor<6x2x2xf32>
  %angles = tensor.collapse_shape %both [[0], [1, 2]] : tensor<6x2x2xf32> into tensor<6x4xf32>
  %c = math.cos %angles : tensor<6x4xf32>
  %s = math.sin %angles : tensor<6x4xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, d) -> (i, d)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %d = linalg.index 1 : index
    %lane = tensor.extract %lanes[%d] : tensor<4xi32>
    %at = arith.index_cast %lane : i32 to index
    %least = arith.maxsi %at, %c0 : index
    %clamped = arith.minsi %least, %c3 : index
    %y = tensor.extract %x[%i, %clamped] : tensor<6x4xf32>
    linalg.yield %y : f32
  } -> tensor<6x4xf32>
  %a = arith.mulf %x, %c : tensor<6x4xf32>
  %b = arith.mulf %r, %s : tensor<6x4xf32>
  %y = arith.addf %a, %b : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// -----

// Rows of a concatenation of halves are sliced by the size of the tokens.
// CHECK-LABEL: func @sliced_concatenation
//  CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>
//       CHECK: posenc.rotate half ins(%[[X]] : tensor<?x8xf32>)
func.func @sliced_concatenation(%x: tensor<?x8xf32>, %f: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %cos = math.cos %f : tensor<?x4xf32>
  %sin = math.sin %f : tensor<?x4xf32>
  %c = tensor.concat dim(1) %cos, %cos : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %s = tensor.concat dim(1) %sin, %sin : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %x0 = tensor.extract_slice %x[0, 0] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [%n, 4] [1, 1] : tensor<?x8xf32> to tensor<?x4xf32>
  %m = arith.negf %x1 : tensor<?x4xf32>
  %r = tensor.concat dim(1) %m, %x0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %parts = tensor.concat dim(1) %x, %r : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %own = tensor.extract_slice %parts[0, 0] [%n, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %other = tensor.extract_slice %parts[0, 8] [%n, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
  %a = arith.mulf %own, %c : tensor<?x8xf32>
  %b = arith.mulf %other, %s : tensor<?x8xf32>
  %y = arith.addf %a, %b : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
