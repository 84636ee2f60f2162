// A near miss of a rotation is left alone, and a remark says why.
//
// RUN: posenc-opt --posenc-raise --remarks-filter=posenc %s -o %t 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=LEFT --input-file=%t
// LEFT-NOT: posenc.

// CHECK: Function=signs {{.*}}the sines of lanes 0 and 4 have the same sign
func.func @signs(%x: tensor<8x8xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %r = tensor.concat dim(1) %x1, %x0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %a = arith.mulf %x, %cos : tensor<8x8xf32>
  %b = arith.mulf %r, %sin : tensor<8x8xf32>
  %y = arith.addf %a, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=both_negated {{.*}}the sines of lanes 0 and 4 have the same sign
func.func @both_negated(%x: tensor<8x8xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %j = tensor.concat dim(1) %x1, %x0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %r = arith.negf %j : tensor<8x8xf32>
  %a = arith.mulf %x, %cos : tensor<8x8xf32>
  %b = arith.mulf %r, %sin : tensor<8x8xf32>
  %y = arith.addf %a, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=unequal_parts {{.*}}pairs are neither neighbours nor halves of a window
func.func @unequal_parts(%x: tensor<8x8xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [8, 3] [1, 1] : tensor<8x8xf32> to tensor<8x3xf32>
  %x1 = tensor.extract_slice %x[0, 3] [8, 5] [1, 1] : tensor<8x8xf32> to tensor<8x5xf32>
  %n = arith.negf %x1 : tensor<8x5xf32>
  %r = tensor.concat dim(1) %n, %x0 : (tensor<8x5xf32>, tensor<8x3xf32>) -> tensor<8x8xf32>
  %a = arith.mulf %x, %cos : tensor<8x8xf32>
  %b = arith.mulf %r, %sin : tensor<8x8xf32>
  %y = arith.addf %a, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=other_rows {{.*}}lanes of other rows are added
func.func @other_rows(%x: tensor<8x8xf32>, %cos: tensor<7x8xf32>, %sin: tensor<7x8xf32>) -> tensor<7x8xf32> {
  %up = tensor.extract_slice %x[1, 0] [7, 8] [1, 1] : tensor<8x8xf32> to tensor<7x8xf32>
  %x0 = tensor.extract_slice %x[0, 0] [7, 4] [1, 1] : tensor<8x8xf32> to tensor<7x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [7, 4] [1, 1] : tensor<8x8xf32> to tensor<7x4xf32>
  %n = arith.negf %x1 : tensor<7x4xf32>
  %r = tensor.concat dim(1) %n, %x0 : (tensor<7x4xf32>, tensor<7x4xf32>) -> tensor<7x8xf32>
  %a = arith.mulf %up, %cos : tensor<7x8xf32>
  %b = arith.mulf %r, %sin : tensor<7x8xf32>
  %y = arith.addf %a, %b : tensor<7x8xf32>
  return %y : tensor<7x8xf32>
}

// The halves of one lane's pair have different factors, which no table shows.
// CHECK: Function=factors {{.*}}the factors of the lanes of a pair differ
func.func @factors(%x: tensor<8x8xf32>, %c0: tensor<8x4xf32>, %c1: tensor<8x4xf32>, %s: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %a = arith.mulf %x0, %c0 : tensor<8x4xf32>
  %b = arith.mulf %x1, %s : tensor<8x4xf32>
  %c = arith.mulf %x1, %c1 : tensor<8x4xf32>
  %d = arith.mulf %x0, %s : tensor<8x4xf32>
  %y0 = arith.subf %a, %b : tensor<8x4xf32>
  %y1 = arith.addf %c, %d : tensor<8x4xf32>
  %y = tensor.concat dim(1) %y0, %y1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// The halves are exchanged by a product with a matrix that is not known.
// CHECK: Function=matrix {{.*}}the lanes are added to those of 'linalg.matmul', which is not known to move lanes
func.func @matrix(%x: tensor<8x8xf32>, %m: tensor<8x8xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.matmul ins(%x, %m : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = arith.mulf %x, %cos : tensor<8x8xf32>
  %b = arith.mulf %r, %sin : tensor<8x8xf32>
  %y = arith.addf %a, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// A gate and a residual are no rotation, and nothing is reported.
// CHECK-NOT: Function=gate
func.func @gate(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %g = arith.mulf %x, %w : tensor<8x8xf32>
  %t = math.tanh %g : tensor<8x8xf32>
  %h = arith.mulf %t, %x : tensor<8x8xf32>
  %y = arith.addf %h, %b : tensor<8x8xf32>
  %z = arith.addf %y, %x : tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// Lanes of halves are paired with neighbours: neither order of lanes fits.
// CHECK-NOT: Function=mixed_orders {{.*}}found
func.func @mixed_orders(%x: tensor<6x8xf32>, %cos: tensor<6x4xf32>, %sin: tensor<6x4xf32>) -> tensor<6x8xf32> {
  %even = tensor.extract_slice %x[0, 0] [6, 4] [1, 2] : tensor<6x8xf32> to tensor<6x4xf32>
  %half = tensor.extract_slice %x[0, 4] [6, 4] [1, 1] : tensor<6x8xf32> to tensor<6x4xf32>
  %a = arith.mulf %even, %cos : tensor<6x4xf32>
  %b = arith.mulf %half, %sin : tensor<6x4xf32>
  %first = arith.subf %a, %b : tensor<6x4xf32>
  %c = arith.mulf %half, %cos : tensor<6x4xf32>
  %d = arith.mulf %even, %sin : tensor<6x4xf32>
  %second = arith.addf %c, %d : tensor<6x4xf32>
  %y = tensor.concat dim(1) %first, %second : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// Residuals that are added to a norm, to a gate and to a shifted token are no
// near misses, and nothing is reported: no lanes are exchanged.
#rows = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#lane = affine_map<(i, j) -> (j)>
// CHECK-NOT: Function=norm
func.func @norm(%x: tensor<8x16xf32>, %m: tensor<16x16xf32>, %w: tensor<16xf32>, %gate: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %four = arith.constant 4.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = linalg.matmul ins(%x, %m : tensor<8x16xf32>, tensor<16x16xf32>) outs(%z : tensor<8x16xf32>) -> tensor<8x16xf32>
  %re = tensor.empty() : tensor<8xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%re : tensor<8xf32>) -> tensor<8xf32>
  %squares = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<8x16xf32>) outs(%rz : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.mulf %a, %a : f32
    %c = arith.addf %o, %b : f32
    linalg.yield %c : f32
  } -> tensor<8xf32>
  // 4 x + y / norm(y) * (1 + w)
  %scaled = linalg.generic {indexing_maps = [#rows, #rows, #row, #lane, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %y, %squares, %w : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32, %u: f32, %o: f32):
    %r = math.rsqrt %s : f32
    %n = arith.mulf %b, %r : f32
    %v = arith.addf %one, %u : f32
    %nv = arith.mulf %n, %v : f32
    %ax = arith.mulf %a, %four : f32
    %sum = arith.addf %ax, %nv : f32
    linalg.yield %sum : f32
  } -> tensor<8x16xf32>
  // x * gate + tanh(x) * gate
  %t = math.tanh %scaled : tensor<8x16xf32>
  %p = arith.mulf %scaled, %gate : tensor<8x16xf32>
  %q = arith.mulf %t, %gate : tensor<8x16xf32>
  %gated = arith.addf %p, %q : tensor<8x16xf32>
  return %scaled, %gated : tensor<8x16xf32>, tensor<8x16xf32>
}

// CHECK-NOT: Function=shifted
func.func @shifted(%x: tensor<9x16xf32>, %a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %x0 = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<9x16xf32> to tensor<8x16xf32>
  %x1 = tensor.extract_slice %x[1, 0] [8, 16] [1, 1] : tensor<9x16xf32> to tensor<8x16xf32>
  %p = arith.mulf %x0, %a : tensor<8x16xf32>
  %q = arith.mulf %x1, %b : tensor<8x16xf32>
  %y = arith.addf %p, %q : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// A near miss that is moved and scaled is reported once.
// CHECK: Function=moved {{.*}}"'arith.addf' looks like a rotation, but the sines of lanes 0 and 4 have the same sign"
// CHECK-NOT: Function=moved
func.func @moved(%x: tensor<8x8xf32>, %cos: tensor<8x8xf32>, %sin: tensor<8x8xf32>) -> tensor<2x4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<8x8xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %r = tensor.concat dim(1) %x1, %x0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %a = arith.mulf %x, %cos : tensor<8x8xf32>
  %b = arith.mulf %r, %sin : tensor<8x8xf32>
  %y = arith.addf %a, %b : tensor<8x8xf32>
  %s = arith.mulf %y, %half : tensor<8x8xf32>
  %z = tensor.expand_shape %s [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf32> into tensor<2x4x8xf32>
  return %z : tensor<2x4x8xf32>
}

// The sines of a constant have one sign in both lanes.
// CHECK: Function=unsigned_constant {{.*}}the sines of lanes 0 and 1 have the same sign
func.func @unsigned_constant(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %cos = arith.constant dense<[[1.0, 1.0], [0.54, 0.54], [-0.42, -0.42]]> : tensor<3x2xf32>
  %sin = arith.constant dense<[[0.0, 0.0], [0.84, 0.84], [0.91, 0.91]]> : tensor<3x2xf32>
  %x0 = tensor.extract_slice %x[0, 0] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3x1xf32>
  %x1 = tensor.extract_slice %x[0, 1] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3x1xf32>
  %r = tensor.concat dim(1) %x1, %x0 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %a = arith.mulf %x, %cos : tensor<3x2xf32>
  %b = arith.mulf %r, %sin : tensor<3x2xf32>
  %y = arith.addf %a, %b : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// The sines of a constant have other signs in the last row only.
// CHECK: Function=one_row {{.*}}the sines of lanes 0 and 1 have the same sign
func.func @one_row(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %cos = arith.constant dense<[[1.0, 1.0], [0.54, 0.54], [-0.42, -0.42]]> : tensor<3x2xf32>
  %sin = arith.constant dense<[[0.0, 0.0], [-0.84, 0.84], [0.91, 0.91]]> : tensor<3x2xf32>
  %x0 = tensor.extract_slice %x[0, 0] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3x1xf32>
  %x1 = tensor.extract_slice %x[0, 1] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3x1xf32>
  %r = tensor.concat dim(1) %x1, %x0 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %a = arith.mulf %x, %cos : tensor<3x2xf32>
  %b = arith.mulf %r, %sin : tensor<3x2xf32>
  %y = arith.addf %a, %b : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// One lane is negated in the graph and in the constant.
// CHECK: Function=reflection {{.*}}the sines of lanes 0 and 1 have the same sign
func.func @reflection(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %cos = arith.constant dense<[[1.0, 1.0], [0.54, 0.54], [-0.42, -0.42]]> : tensor<3x2xf32>
  %sin = arith.constant dense<[[0.0, 0.0], [-0.84, 0.84], [-0.91, 0.91]]> : tensor<3x2xf32>
  %x0 = tensor.extract_slice %x[0, 0] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3x1xf32>
  %x1 = tensor.extract_slice %x[0, 1] [3, 1] [1, 1] : tensor<3x2xf32> to tensor<3x1xf32>
  %n = arith.negf %x1 : tensor<3x1xf32>
  %r = tensor.concat dim(1) %n, %x0 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %a = arith.mulf %x, %cos : tensor<3x2xf32>
  %b = arith.mulf %r, %sin : tensor<3x2xf32>
  %y = arith.addf %a, %b : tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// The cosines are negated with the sines.
// CHECK: Function=signed_cosines {{.*}}the factor of lane 0 itself is negative
func.func @signed_cosines(%x: tensor<8x8xf32>, %f: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %cos = math.cos %f : tensor<8x4xf32>
  %sin = math.sin %f : tensor<8x4xf32>
  %cosn = arith.negf %cos : tensor<8x4xf32>
  %sinn = arith.negf %sin : tensor<8x4xf32>
  %c = tensor.concat dim(1) %cosn, %cos : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %s = tensor.concat dim(1) %sinn, %sin : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %x0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %x1 = tensor.extract_slice %x[0, 4] [8, 4] [1, 1] : tensor<8x8xf32> to tensor<8x4xf32>
  %r = tensor.concat dim(1) %x1, %x0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %a = arith.mulf %x, %c : tensor<8x8xf32>
  %b = arith.mulf %r, %s : tensor<8x8xf32>
  %y = arith.addf %a, %b : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Fewer rows are rotated than the tensor has, perhaps.
// CHECK-NOT: Function=part_of_reshape {{.*}}found
func.func @part_of_reshape(%x: tensor<?x16xf32>, %p: tensor<?xf32>, %cos: tensor<?x2x4xf32>, %sin: tensor<?x2x4xf32>) -> tensor<?x2x8xf32> {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2 : i64
  %eight = arith.constant 8 : i64
  %n = tensor.dim %p, %c0 : tensor<?xf32>
  %m = tensor.dim %cos, %c0 : tensor<?x2x4xf32>
  %n64 = arith.index_cast %n : index to i64
  %shape = tensor.from_elements %n64, %two, %eight : tensor<3xi64>
  %r = tensor.reshape %x(%shape) : (tensor<?x16xf32>, tensor<3xi64>) -> tensor<?x2x8xf32>
  %x0 = tensor.extract_slice %r[0, 0, 0] [%m, 2, 4] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x4xf32>
  %x1 = tensor.extract_slice %r[0, 0, 4] [%m, 2, 4] [1, 1, 1] : tensor<?x2x8xf32> to tensor<?x2x4xf32>
  %ac = arith.mulf %x0, %cos : tensor<?x2x4xf32>
  %bs = arith.mulf %x1, %sin : tensor<?x2x4xf32>
  %y0 = arith.subf %ac, %bs : tensor<?x2x4xf32>
  %as = arith.mulf %x0, %sin : tensor<?x2x4xf32>
  %bc = arith.mulf %x1, %cos : tensor<?x2x4xf32>
  %y1 = arith.addf %as, %bc : tensor<?x2x4xf32>
  %y = tensor.concat dim(2) %y0, %y1 : (tensor<?x2x4xf32>, tensor<?x2x4xf32>) -> tensor<?x2x8xf32>
  return %y : tensor<?x2x8xf32>
}

// The transposed keys are scaled, and the weights are exponentials that are
// divided by their sum over the queries.
// CHECK: Function=scaled_keys {{.*}}exponentials are not divided by their own sum over the keys
func.func @scaled_keys(%q: tensor<6x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %root = arith.constant 0.5946 : f64
  %ke = tensor.empty() : tensor<8x6xf32>
  %kt = linalg.transpose ins(%k : tensor<6x8xf32>) outs(%ke : tensor<8x6xf32>) permutation = [1, 0]
  %ks = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%kt : tensor<8x6xf32>) outs(%ke : tensor<8x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.truncf %root : f64 to f32
    %y = arith.mulf %a, %r : f32
    linalg.yield %y : f32
  } -> tensor<8x6xf32>
  %se = tensor.empty() : tensor<6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<6x6xf32>) -> tensor<6x6xf32>
  %s = linalg.matmul ins(%q, %ks : tensor<6x8xf32>, tensor<8x6xf32>) outs(%sz : tensor<6x6xf32>) -> tensor<6x6xf32>
  %x = math.exp %s : tensor<6x6xf32>
  %te = tensor.empty() : tensor<6xf32>
  %tz = linalg.fill ins(%zero : f32) outs(%te : tensor<6xf32>) -> tensor<6xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<6x6xf32>) outs(%tz : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = arith.addf %a, %o : f32
    linalg.yield %y : f32
  } -> tensor<6xf32>
  %p = linalg.generic {indexing_maps = [#rows, #lane, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %t : tensor<6x6xf32>, tensor<6xf32>) outs(%se : tensor<6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<6x6xf32>
  %oe = tensor.empty() : tensor<6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<6x8xf32>) -> tensor<6x8xf32>
  %o = linalg.matmul ins(%p, %v : tensor<6x6xf32>, tensor<6x8xf32>) outs(%oz : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %o : tensor<6x8xf32>
}
