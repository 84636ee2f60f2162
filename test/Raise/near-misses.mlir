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
