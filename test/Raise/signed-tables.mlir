// Lanes are rolled, and the sines of one lane of each pair are negative.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// The parts of the roll have types of dynamic sizes, which are static.
// CHECK-LABEL: func @casts
//  CHECK-SAME: (%[[X:.*]]: tensor<4x8x16xf32>
//       CHECK: posenc.rotate half ins(%[[X]] : tensor<4x8x16xf32>)
func.func @casts(%x: tensor<4x8x16xf32>, %f: tensor<4x8x8xf32>) -> tensor<4x8x16xf32> {
  %cos = math.cos %f : tensor<4x8x8xf32>
  %sin = math.sin %f : tensor<4x8x8xf32>
  %neg = arith.negf %sin : tensor<4x8x8xf32>
  %c = tensor.concat dim(2) %cos, %cos : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %s = tensor.concat dim(2) %neg, %sin : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %x1 = tensor.extract_slice %x[0, 0, 8] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %d0 = tensor.cast %x0 : tensor<4x8x8xf32> to tensor<4x8x?xf32>
  %d1 = tensor.cast %x1 : tensor<4x8x8xf32> to tensor<4x8x?xf32>
  %r = tensor.concat dim(2) %d1, %d0 : (tensor<4x8x?xf32>, tensor<4x8x?xf32>) -> tensor<4x8x16xf32>
  %a = arith.mulf %x, %c : tensor<4x8x16xf32>
  %b = arith.mulf %r, %s : tensor<4x8x16xf32>
  %y = arith.addf %a, %b : tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}

// -----

// The signs are those of the angles.
// CHECK-LABEL: func @signed_angles
//       CHECK: posenc.rotate half ins(%{{.*}} : tensor<4x8x16xf32>) tables(%{{.*}}, %{{.*}} : tensor<8x8xf32>)
func.func @signed_angles(%x: tensor<4x8x16xf32>, %f: tensor<8x8xf32>) -> tensor<4x8x16xf32> {
  %minus = arith.negf %f : tensor<8x8xf32>
  %angles = tensor.concat dim(1) %minus, %f : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>
  %cos = math.cos %angles : tensor<8x16xf32>
  %sin = math.sin %angles : tensor<8x16xf32>
  %c = tensor.expand_shape %cos [[0, 1], [2]] output_shape [1, 8, 16] : tensor<8x16xf32> into tensor<1x8x16xf32>
  %s = tensor.expand_shape %sin [[0, 1], [2]] output_shape [1, 8, 16] : tensor<8x16xf32> into tensor<1x8x16xf32>
  %x0 = tensor.extract_slice %x[0, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %x1 = tensor.extract_slice %x[0, 0, 8] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %r = tensor.concat dim(2) %x1, %x0 : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %e = tensor.empty() : tensor<4x8x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, i, d) -> (h, i, d)>, affine_map<(h, i, d) -> (h, i, d)>, affine_map<(h, i, d) -> (0, i, d)>, affine_map<(h, i, d) -> (0, i, d)>, affine_map<(h, i, d) -> (h, i, d)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %r, %c, %s : tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<1x8x16xf32>, tensor<1x8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %ca: f32, %sb: f32, %o: f32):
    %p = arith.mulf %a, %ca : f32
    %q = arith.mulf %b, %sb : f32
    %z = arith.addf %p, %q : f32
    linalg.yield %z : f32
  } -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}

// -----

// Rows of constants, with pairs of neighbours: each column of the sines has the
// numbers of its neighbour with the other sign. They are scaled.
// CHECK-LABEL: func @constant_rows
//       CHECK: posenc.rotate interleaved full_tables ins(%{{.*}} : tensor<5x4xf32>) tables(%{{.*}}, %{{.*}} : tensor<5x4xf32>)
#lanes = affine_map<(i, d) -> (i, d)>
#rows = affine_map<(i, d) -> (i)>
func.func @constant_rows(%x: tensor<5x4xf32>, %p: tensor<5xi64>) -> tensor<5x4xf32> {
  %cos = arith.constant dense<[[1.0, 1.0, 1.0, 1.0], [0.54, 0.54, 0.98, 0.98], [-0.42, -0.42, 0.92, 0.92], [-0.99, -0.99, 0.83, 0.83], [-0.65, -0.65, 0.70, 0.70]]> : tensor<5x4xf32>
  %sin = arith.constant dense<[[0.0, 0.0, 0.0, 0.0], [-0.84, 0.84, -0.19, 0.19], [-0.91, 0.91, -0.38, 0.38], [-0.14, 0.14, -0.56, 0.56], [0.76, -0.76, -0.71, 0.71]]> : tensor<5x4xf32>
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<5x4xf32>
  %c = linalg.generic {indexing_maps = [#rows, #lanes], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<5xi64>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%row: i64, %o: f32):
    %i = arith.index_cast %row : i64 to index
    %d = linalg.index 1 : index
    %y = tensor.extract %cos[%i, %d] : tensor<5x4xf32>
    linalg.yield %y : f32
  } -> tensor<5x4xf32>
  %s = linalg.generic {indexing_maps = [#rows, #lanes], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<5xi64>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%row: i64, %o: f32):
    %i = arith.index_cast %row : i64 to index
    %d = linalg.index 1 : index
    %y = tensor.extract %sin[%i, %d] : tensor<5x4xf32>
    %z = arith.mulf %y, %two : f32
    linalg.yield %z : f32
  } -> tensor<5x4xf32>
  %pairs = tensor.expand_shape %x [[0], [1, 2]] output_shape [5, 2, 2] : tensor<5x4xf32> into tensor<5x2x2xf32>
  %x0 = tensor.extract_slice %pairs[0, 0, 0] [5, 2, 1] [1, 1, 1] : tensor<5x2x2xf32> to tensor<5x2x1xf32>
  %x1 = tensor.extract_slice %pairs[0, 0, 1] [5, 2, 1] [1, 1, 1] : tensor<5x2x2xf32> to tensor<5x2x1xf32>
  %swapped = tensor.concat dim(2) %x1, %x0 : (tensor<5x2x1xf32>, tensor<5x2x1xf32>) -> tensor<5x2x2xf32>
  %r = tensor.collapse_shape %swapped [[0], [1, 2]] : tensor<5x2x2xf32> into tensor<5x4xf32>
  %a = arith.mulf %x, %c : tensor<5x4xf32>
  %b = arith.mulf %r, %s : tensor<5x4xf32>
  %y = arith.addf %a, %b : tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

// A part of a constant that is a resource, with as many rows as there are
// tokens. The lower half is subtracted.
// CHECK-LABEL: func @resource
//       CHECK: posenc.rotate interleaved inverse full_tables ins(%{{.*}} : tensor<?x2xf32>)
module {
  func.func @resource(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?x2xf32>
    %cos = arith.constant dense<[[1.0, 1.0], [0.54, 0.54], [-0.42, -0.42], [-0.99, -0.99], [-0.65, -0.65], [0.28, 0.28]]> : tensor<6x2xf32>
    %sin = arith.constant dense_resource<sines> : tensor<6x2xf32>
    %c = tensor.extract_slice %cos[0, 0] [%n, 2] [1, 1] : tensor<6x2xf32> to tensor<?x2xf32>
    %s = tensor.extract_slice %sin[0, 0] [%n, 2] [1, 1] : tensor<6x2xf32> to tensor<?x2xf32>
    %x0 = tensor.extract_slice %x[0, 0] [%n, 1] [1, 1] : tensor<?x2xf32> to tensor<?x1xf32>
    %x1 = tensor.extract_slice %x[0, 1] [%n, 1] [1, 1] : tensor<?x2xf32> to tensor<?x1xf32>
    %r = tensor.concat dim(1) %x1, %x0 : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
    %a = arith.mulf %x, %c : tensor<?x2xf32>
    %b = arith.mulf %r, %s : tensor<?x2xf32>
    %y = arith.subf %a, %b : tensor<?x2xf32>
    return %y : tensor<?x2xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      sines: "0x0400000000000000000000803D0A573F3D0A57BFC3F5683FC3F568BF295C0F3E295C0FBE5C8F42BF5C8F423F8FC275BF8FC2753F"
    }
  }
#-}
