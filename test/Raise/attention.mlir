// Softmax attention in the spellings of frameworks becomes posenc.attention.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// A softmax as an operation, after heads were joined with the batch.
// CHECK-LABEL: func @joined_heads
//  CHECK-SAME: (%[[Q:.*]]: tensor<2x4x6x8xf32>, %[[K:.*]]: tensor<2x4x7x8xf32>, %[[V:.*]]: tensor<2x4x7x8xf32>)
//       CHECK: %[[O:.*]] = posenc.attention scale = 1.000000e+00 query_layout = head_major key_layout = head_major ins(%[[Q]], %[[K]], %[[V]] :
//       CHECK: tensor.collapse_shape %[[O]]
//   CHECK-NOT: linalg.softmax
func.func @joined_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> tensor<8x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %qh = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %kh = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %vh = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %te = tensor.empty() : tensor<8x8x7xf32>
  %kt = linalg.transpose ins(%kh : tensor<8x7x8xf32>) outs(%te : tensor<8x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<8x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<8x6x7xf32>) -> tensor<8x6x7xf32>
  %s = linalg.batch_matmul ins(%qh, %kt : tensor<8x6x8xf32>, tensor<8x8x7xf32>) outs(%sz : tensor<8x6x7xf32>) -> tensor<8x6x7xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<8x6x7xf32>) outs(%se : tensor<8x6x7xf32>) -> tensor<8x6x7xf32>
  %oe = tensor.empty() : tensor<8x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o = linalg.batch_matmul ins(%p, %vh : tensor<8x6x7xf32>, tensor<8x7x8xf32>) outs(%oz : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %o : tensor<8x6x8xf32>
}

// -----

// A causal mask by minus infinity, a sum that keeps its dimension, and keys that
// are repeated for the heads of a group.
// CHECK-LABEL: func @repeated_keys
//       CHECK: posenc.attention scale = 2.500000e-01 query_layout = head_major key_layout = head_major ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>)
//       CHECK: where(
//       CHECK: arith.cmpi sgt
#s = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
#kept = affine_map<(b, h, i, j) -> (b, h, i, 0)>
#few = affine_map<(b, h, r, j, d) -> (b, h, j, d)>
#many = affine_map<(b, h, r, j, d) -> (b, h, r, j, d)>
func.func @repeated_keys(%q: tensor<2x4x6x8xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>) -> tensor<8x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.25 : f32
  %re = tensor.empty() : tensor<2x2x2x6x8xf32>
  %kr = linalg.generic {indexing_maps = [#few, #many], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<2x2x6x8xf32>) outs(%re : tensor<2x2x2x6x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2x2x6x8xf32>
  %vr = linalg.generic {indexing_maps = [#few, #many], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%v : tensor<2x2x6x8xf32>) outs(%re : tensor<2x2x2x6x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x2x2x6x8xf32>
  %k4 = tensor.collapse_shape %kr [[0], [1, 2], [3], [4]] : tensor<2x2x2x6x8xf32> into tensor<2x4x6x8xf32>
  %v3 = tensor.collapse_shape %vr [[0, 1, 2], [3], [4]] : tensor<2x2x2x6x8xf32> into tensor<8x6x8xf32>
  %te = tensor.empty() : tensor<2x4x8x6xf32>
  %kt = linalg.transpose ins(%k4 : tensor<2x4x6x8xf32>) outs(%te : tensor<2x4x8x6xf32>) permutation = [0, 1, 3, 2]
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %k3 = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x4x8x6xf32> into tensor<8x8x6xf32>
  %se = tensor.empty() : tensor<8x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %s3 = linalg.batch_matmul ins(%q3, %k3 : tensor<8x6x8xf32>, tensor<8x8x6xf32>) outs(%sz : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %s4 = tensor.expand_shape %s3 [[0, 1], [2], [3]] output_shape [2, 4, 6, 6] : tensor<8x6x6xf32> into tensor<2x4x6x6xf32>
  %e4 = tensor.empty() : tensor<2x4x6x6xf32>
  %m = linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s4 : tensor<2x4x6x6xf32>) outs(%e4 : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %x = arith.mulf %a, %scale : f32
    %future = arith.cmpi sgt, %j, %i : index
    %y = arith.select %future, %low, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x4x6x6xf32>
  %me = tensor.empty() : tensor<2x4x6xf32>
  %mi = linalg.fill ins(%low : f32) outs(%me : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %max = linalg.generic {indexing_maps = [#s, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%m : tensor<2x4x6x6xf32>) outs(%mi : tensor<2x4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %x = arith.maximumf %a, %o : f32
    linalg.yield %x : f32
  } -> tensor<2x4x6xf32>
  %maxk = tensor.expand_shape %max [[0], [1], [2, 3]] output_shape [2, 4, 6, 1] : tensor<2x4x6xf32> into tensor<2x4x6x1xf32>
  %x = linalg.generic {indexing_maps = [#s, #kept, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%m, %maxk : tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) outs(%e4 : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<2x4x6x6xf32>
  %e = math.exp %x : tensor<2x4x6x6xf32>
  %ke = tensor.empty() : tensor<2x4x6x1xf32>
  %kz = linalg.fill ins(%zero : f32) outs(%ke : tensor<2x4x6x1xf32>) -> tensor<2x4x6x1xf32>
  %sum = linalg.generic {indexing_maps = [#s, #kept], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%e : tensor<2x4x6x6xf32>) outs(%kz : tensor<2x4x6x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x4x6x1xf32>
  %p = linalg.generic {indexing_maps = [#s, #kept, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e, %sum : tensor<2x4x6x6xf32>, tensor<2x4x6x1xf32>) outs(%e4 : tensor<2x4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<2x4x6x6xf32>
  %p3 = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x4x6x6xf32> into tensor<8x6x6xf32>
  %oe = tensor.empty() : tensor<8x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o = linalg.batch_matmul ins(%p3, %v3 : tensor<8x6x6xf32>, tensor<8x6x8xf32>) outs(%oz : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %o : tensor<8x6x8xf32>
}

// -----

// Groups of heads as a dimension, token-major rows, a soft cap, a mask that is
// added, no maximum, and a product with the reciprocal of the sum.
// CHECK-LABEL: func @grouped
//       CHECK: posenc.attention scale = 6.250000e-02 ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x6x4x8xf32>, tensor<?x7x2x8xf32>, tensor<?x7x2x8xf32>)
//  CHECK-SAME: mask(%{{.*}} : tensor<1x1x6x7xf32>)
//       CHECK: score(
//       CHECK: math.tanh
#q = affine_map<(b, g, r, i, j, d) -> (b, i, g, r, d)>
#k = affine_map<(b, g, r, i, j, d) -> (b, j, g, d)>
#l = affine_map<(b, g, r, i, j, d) -> (b, g, r, i, j)>
#w = affine_map<(b, g, r, i, j) -> (b, g, r, i, j)>
#n = affine_map<(b, g, r, i, j) -> (b, g, r, i)>
#mask = affine_map<(b, g, r, i, j) -> (i, j)>
func.func @grouped(%q: tensor<?x6x2x2x8xf32>, %k: tensor<?x7x2x8xf32>, %v: tensor<?x7x2x8xf32>, %mask: tensor<6x7xf32>) -> tensor<?x6x2x2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %cap = arith.constant 2.0 : f32
  %scale = arith.constant 8.0 : f32
  %c0 = arith.constant 0 : index
  %batch = tensor.dim %q, %c0 : tensor<?x6x2x2x8xf32>
  %se = tensor.empty(%batch) : tensor<?x2x2x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<?x2x2x6x7xf32>) -> tensor<?x2x2x6x7xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #l], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<?x6x2x2x8xf32>, tensor<?x7x2x8xf32>) outs(%sz : tensor<?x2x2x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<?x2x2x6x7xf32>
  %e = linalg.generic {indexing_maps = [#w, #mask, #w], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<?x2x2x6x7xf32>, tensor<6x7xf32>) outs(%se : tensor<?x2x2x6x7xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %x = arith.divf %a, %scale : f32
    %u = arith.divf %x, %cap : f32
    %t = math.tanh %u : f32
    %c = arith.mulf %t, %cap : f32
    %z = arith.addf %c, %m : f32
    %y = math.exp %z : f32
    linalg.yield %y : f32
  } -> tensor<?x2x2x6x7xf32>
  %ne = tensor.empty(%batch) : tensor<?x2x2x6xf32>
  %nz = linalg.fill ins(%zero : f32) outs(%ne : tensor<?x2x2x6xf32>) -> tensor<?x2x2x6xf32>
  %sum = linalg.generic {indexing_maps = [#w, #n], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%e : tensor<?x2x2x6x7xf32>) outs(%nz : tensor<?x2x2x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<?x2x2x6xf32>
  %p = linalg.generic {indexing_maps = [#w, #n, #w], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%e, %sum : tensor<?x2x2x6x7xf32>, tensor<?x2x2x6xf32>) outs(%se : tensor<?x2x2x6x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %one, %b : f32
    %d = arith.mulf %a, %r : f32
    linalg.yield %d : f32
  } -> tensor<?x2x2x6x7xf32>
  %oe = tensor.empty(%batch) : tensor<?x6x2x2x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<?x6x2x2x8xf32>) -> tensor<?x6x2x2x8xf32>
  %o = linalg.generic {
      indexing_maps = [affine_map<(b, i, g, r, d, j) -> (b, g, r, i, j)>, affine_map<(b, i, g, r, d, j) -> (b, j, g, d)>, affine_map<(b, i, g, r, d, j) -> (b, i, g, r, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<?x2x2x6x7xf32>, tensor<?x7x2x8xf32>) outs(%oz : tensor<?x6x2x2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<?x6x2x2x8xf32>
  return %o : tensor<?x6x2x2x8xf32>
}

// -----

// A finite number hides keys where each query sees another one; scales of both
// queries and keys; heads without a batch.
// CHECK-LABEL: func @finite_mask
//       CHECK: posenc.attention scale = 2.500000e-01 query_layout = head_major key_layout = head_major
//       CHECK: where(
//       CHECK: arith.cmpi sge
#p = affine_map<(h, i, j) -> (h, i, j)>
func.func @finite_mask(%q: tensor<4x6x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x5xf32>) -> tensor<4x6x5xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %root = arith.constant dense<0.5> : tensor<4x6x8xf32>
  %qs = arith.mulf %q, %root : tensor<4x6x8xf32>
  %ks = arith.mulf %k, %root : tensor<4x6x8xf32>
  %te = tensor.empty() : tensor<4x8x6xf32>
  %kt = linalg.transpose ins(%ks : tensor<4x6x8xf32>) outs(%te : tensor<4x8x6xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %s = linalg.batch_matmul ins(%qs, %kt : tensor<4x6x8xf32>, tensor<4x8x6xf32>) outs(%sz : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %m = linalg.generic {indexing_maps = [#p], iterator_types = ["parallel", "parallel", "parallel"]} outs(%se : tensor<4x6x6xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %i64 = arith.index_cast %i : index to i64
    %j64 = arith.index_cast %j : index to i64
    %seen = arith.cmpi sge, %i64, %j64 : i64
    %x = arith.select %seen, %zero, %lowest : f32
    linalg.yield %x : f32
  } -> tensor<4x6x6xf32>
  %b = arith.addf %m, %s : tensor<4x6x6xf32>
  %p = linalg.softmax dimension(2) ins(%b : tensor<4x6x6xf32>) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %oe = tensor.empty() : tensor<4x6x5xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x6xf32>, tensor<4x6x5xf32>) outs(%oz : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  return %o : tensor<4x6x5xf32>
}

// -----

// A bias by head and relative position, and another number of queries than keys:
// query positions count from the end of the keys.
// CHECK-LABEL: func @bias
//       CHECK: posenc.attention
//       CHECK: score(%{{.*}}, %{{.*}}, %[[H:.*]], %[[I:.*]], %[[J:.*]]) {
//       CHECK: %[[OFFSET:.*]] = arith.constant 3 : index
//       CHECK: arith.subi %[[I]], %[[OFFSET]]
//       CHECK: tensor.extract %{{.*}}[%[[H]]]
#p = affine_map<(h, i, j) -> (h, i, j)>
#slope = affine_map<(h, i, j) -> (h)>
func.func @bias(%q: tensor<4x6x8xf32>, %k: tensor<4x9x8xf32>, %v: tensor<4x9x8xf32>, %slopes: tensor<4xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<4x8x9xf32>
  %kt = linalg.transpose ins(%k : tensor<4x9x8xf32>) outs(%te : tensor<4x8x9xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x9xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x9xf32>) -> tensor<4x6x9xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x9xf32>) outs(%sz : tensor<4x6x9xf32>) -> tensor<4x6x9xf32>
  %b = linalg.generic {indexing_maps = [#p, #slope, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %slopes : tensor<4x6x9xf32>, tensor<4xf32>) outs(%se : tensor<4x6x9xf32>) {
  ^bb0(%a: f32, %slope: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = arith.subi %j, %i : index
    %d32 = arith.index_cast %d : index to i32
    %df = arith.sitofp %d32 : i32 to f32
    %x = arith.mulf %slope, %df : f32
    %y = arith.addf %a, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x6x9xf32>
  %p = linalg.softmax dimension(2) ins(%b : tensor<4x6x9xf32>) outs(%se : tensor<4x6x9xf32>) -> tensor<4x6x9xf32>
  %oe = tensor.empty() : tensor<4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x9xf32>, tensor<4x9x8xf32>) outs(%oz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// Weights that are not a softmax along the keys are left alone.
// CHECK-LABEL: func @other_sum
//   CHECK-NOT: posenc.attention
//       CHECK: return
#p = affine_map<(h, i, j) -> (h, i, j)>
#n = affine_map<(h, i, j) -> (h, i)>
func.func @other_sum(%q: tensor<4x6x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>, %x: tensor<4x6x6xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<4x8x6xf32>
  %kt = linalg.transpose ins(%k : tensor<4x6x8xf32>) outs(%te : tensor<4x8x6xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x6xf32>) outs(%sz : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %e = math.exp %s : tensor<4x6x6xf32>
  %f = math.exp %x : tensor<4x6x6xf32>
  %ne = tensor.empty() : tensor<4x6xf32>
  %nz = linalg.fill ins(%zero : f32) outs(%ne : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.generic {indexing_maps = [#p, #n], iterator_types = ["parallel", "parallel", "reduction"]} ins(%f : tensor<4x6x6xf32>) outs(%nz : tensor<4x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  %w = linalg.generic {indexing_maps = [#p, #n, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %sum : tensor<4x6x6xf32>, tensor<4x6xf32>) outs(%se : tensor<4x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<4x6x6xf32>
  %oz = tensor.empty() : tensor<4x6x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<4x6x6xf32>, tensor<4x6x8xf32>) outs(%of : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// A softmax along the queries is none along the keys.
// CHECK-LABEL: func @along_queries
//   CHECK-NOT: posenc.attention
//       CHECK: return
func.func @along_queries(%q: tensor<4x6x8xf32>, %k: tensor<4x8x6xf32>, %v: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<4x6x8xf32>, tensor<4x8x6xf32>) outs(%sz : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %w = linalg.softmax dimension(1) ins(%s : tensor<4x6x6xf32>) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %oz = tensor.empty() : tensor<4x6x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o = linalg.batch_matmul ins(%w, %v : tensor<4x6x6xf32>, tensor<4x6x8xf32>) outs(%of : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// Heads split from the channels of a projection, whose tokens are joined with
// the batch, and zeros for weights that are not numbers, as PyTorch exports them.
// CHECK-LABEL: func @projections
//       CHECK: posenc.attention scale = 1.000000e+00 ins(%{{.*}} : tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>, tensor<2x6x4x8xf32>)
func.func @projections(%q: tensor<12x32xf32>, %k: tensor<12x32xf32>, %v: tensor<12x32xf32>) -> tensor<8x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<8x6x6xf32>
  %q4 = tensor.expand_shape %q [[0, 1], [2, 3]] output_shape [2, 6, 4, 8] : tensor<12x32xf32> into tensor<2x6x4x8xf32>
  %k4 = tensor.expand_shape %k [[0, 1], [2, 3]] output_shape [2, 6, 4, 8] : tensor<12x32xf32> into tensor<2x6x4x8xf32>
  %v4 = tensor.expand_shape %v [[0, 1], [2, 3]] output_shape [2, 6, 4, 8] : tensor<12x32xf32> into tensor<2x6x4x8xf32>
  %he = tensor.empty() : tensor<2x4x6x8xf32>
  %ke = tensor.empty() : tensor<2x4x8x6xf32>
  %qt = linalg.transpose ins(%q4 : tensor<2x6x4x8xf32>) outs(%he : tensor<2x4x6x8xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%k4 : tensor<2x6x4x8xf32>) outs(%ke : tensor<2x4x8x6xf32>) permutation = [0, 2, 3, 1]
  %vt = linalg.transpose ins(%v4 : tensor<2x6x4x8xf32>) outs(%he : tensor<2x4x6x8xf32>) permutation = [0, 2, 1, 3]
  %q3 = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %k3 = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x4x8x6xf32> into tensor<8x8x6xf32>
  %v3 = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %se = tensor.empty() : tensor<8x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %s = linalg.batch_matmul ins(%q3, %k3 : tensor<8x6x8xf32>, tensor<8x8x6xf32>) outs(%sz : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<8x6x6xf32>) outs(%se : tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %nan = arith.cmpf uno, %p, %p : tensor<8x6x6xf32>
  %w = arith.select %nan, %zeros, %p : tensor<8x6x6xi1>, tensor<8x6x6xf32>
  %oe = tensor.empty() : tensor<8x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o = linalg.batch_matmul ins(%w, %v3 : tensor<8x6x6xf32>, tensor<8x6x8xf32>) outs(%oz : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %o : tensor<8x6x8xf32>
}

// -----

// A part of keys of unknown number is not all of them, and scaled values are no
// rows of attention, so the slice and the product are its operands.
// CHECK-LABEL: func @part_of_keys
//       CHECK: %[[K:.*]] = tensor.extract_slice
//       CHECK: %[[V:.*]] = arith.mulf
//       CHECK: posenc.attention {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x6x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
func.func @part_of_keys(%q: tensor<4x6x8xf32>, %cache: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant dense<0.5> : tensor<4x3x8xf32>
  %k = tensor.extract_slice %cache[0, 0, 0] [4, 3, 8] [1, 1, 1] : tensor<4x?x8xf32> to tensor<4x3x8xf32>
  %v0 = tensor.extract_slice %v[0, 0, 0] [4, 3, 8] [1, 1, 1] : tensor<4x?x8xf32> to tensor<4x3x8xf32>
  %vs = arith.mulf %v0, %half : tensor<4x3x8xf32>
  %te = tensor.empty() : tensor<4x8x3xf32>
  %kt = linalg.transpose ins(%k : tensor<4x3x8xf32>) outs(%te : tensor<4x8x3xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x3xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x3xf32>) -> tensor<4x6x3xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x3xf32>) outs(%sz : tensor<4x6x3xf32>) -> tensor<4x6x3xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x6x3xf32>) outs(%se : tensor<4x6x3xf32>) -> tensor<4x6x3xf32>
  %oe = tensor.empty() : tensor<4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o = linalg.batch_matmul ins(%p, %vs : tensor<4x6x3xf32>, tensor<4x3x8xf32>) outs(%oz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// Another mask of minus infinity hides the key at the diagonal of some queries.
// They see an average of keys with the finite number, which is a bias then.
// CHECK-LABEL: func @finite_and_infinite
//       CHECK: posenc.attention
//       CHECK: score(
//       CHECK: arith.constant -3.40282347E+38
#p = affine_map<(h, i, j) -> (h, i, j)>
func.func @finite_and_infinite(%q: tensor<4x6x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %te = tensor.empty() : tensor<4x8x6xf32>
  %kt = linalg.transpose ins(%k : tensor<4x6x8xf32>) outs(%te : tensor<4x8x6xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<4x6x6xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x6x8xf32>, tensor<4x8x6xf32>) outs(%sz : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %m = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x6x6xf32>) outs(%se : tensor<4x6x6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c2 = arith.constant 2 : index
    %seen = arith.cmpi sge, %i, %j : index
    %x = arith.select %seen, %a, %lowest : f32
    %padding = arith.cmpi ult, %j, %c2 : index
    %y = arith.select %padding, %low, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x6x6xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<4x6x6xf32>) outs(%se : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %oe = tensor.empty() : tensor<4x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x6x6xf32>, tensor<4x6x8xf32>) outs(%oz : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %o : tensor<4x6x8xf32>
}

// -----

// Probabilities that are returned are computed in any case.
// CHECK-LABEL: func @returned
//   CHECK-NOT: posenc.attention
//       CHECK: return
func.func @returned(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>) -> (tensor<8x6x8xf32>, tensor<8x6x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %qh = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x6x8xf32> into tensor<8x6x8xf32>
  %kh = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %vh = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %te = tensor.empty() : tensor<8x8x7xf32>
  %kt = linalg.transpose ins(%kh : tensor<8x7x8xf32>) outs(%te : tensor<8x8x7xf32>) permutation = [0, 2, 1]
  %se = tensor.empty() : tensor<8x6x7xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<8x6x7xf32>) -> tensor<8x6x7xf32>
  %s = linalg.batch_matmul ins(%qh, %kt : tensor<8x6x8xf32>, tensor<8x8x7xf32>) outs(%sz : tensor<8x6x7xf32>) -> tensor<8x6x7xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<8x6x7xf32>) outs(%se : tensor<8x6x7xf32>) -> tensor<8x6x7xf32>
  %oe = tensor.empty() : tensor<8x6x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %o = linalg.batch_matmul ins(%p, %vh : tensor<8x6x7xf32>, tensor<8x7x8xf32>) outs(%oz : tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %o, %p : tensor<8x6x8xf32>, tensor<8x6x7xf32>
}

// -----

// A mask is as large as the queries and keys. Of one that may be larger, the
// score reads elements.
// CHECK-LABEL: func @larger_mask
//  CHECK-SAME: %[[MASK:[^ :]*]]: tensor<?x?xf32>)
//       CHECK: posenc.attention
//   CHECK-NOT: mask(
//       CHECK: score(%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %[[J:.*]]) {
//       CHECK: %[[M:.*]] = tensor.extract %[[MASK]][%{{.*}}, %[[J]]]
//       CHECK: arith.addf %[[S]], %[[M]]
func.func @larger_mask(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>, %mask: tensor<?x?xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %q, %c0 : tensor<?x8xf32>
  %m = tensor.dim %k, %c0 : tensor<?x8xf32>
  %cut = tensor.extract_slice %mask[0, 0] [%n, %m] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  %te = tensor.empty(%m) : tensor<8x?xf32>
  %kt = linalg.transpose ins(%k : tensor<?x8xf32>) outs(%te : tensor<8x?xf32>) permutation = [1, 0]
  %se = tensor.empty(%n, %m) : tensor<?x?xf32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.matmul ins(%q, %kt : tensor<?x8xf32>, tensor<8x?xf32>) outs(%sz : tensor<?x?xf32>) -> tensor<?x?xf32>
  %l = arith.addf %s, %cut : tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%l : tensor<?x?xf32>) outs(%se : tensor<?x?xf32>) -> tensor<?x?xf32>
  %oe = tensor.empty(%n) : tensor<?x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<?x8xf32>) -> tensor<?x8xf32>
  %o = linalg.matmul ins(%p, %v : tensor<?x?xf32>, tensor<?x8xf32>) outs(%oz : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %o : tensor<?x8xf32>
}
