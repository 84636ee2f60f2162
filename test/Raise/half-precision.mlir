// Attention in f16 as JAX exports it: rotations by tables of f32, heads that share
// keys by slices, masks by functions, and a sum in f32.
//
// RUN: posenc-compile %s --emit=posenc --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file=%t
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// REMARK-DAG: Function=causal {{.*}}found attention of 4 query heads and 2 key heads, with a score
// REMARK-DAG: Function=least {{.*}}found attention of 2 query heads and 2 key heads, with conditions"
// REMARK-DAG: Function=least_elsewhere {{.*}}found attention of 2 query heads and 2 key heads, with a score

func.func private @lower(%all: tensor<6x6xi1>) -> tensor<6x6xi1> {
  %i = stablehlo.iota dim = 0 : tensor<6x6xi32>
  %j = stablehlo.iota dim = 1 : tensor<6x6xi32>
  %below = stablehlo.compare GE, %i, %j, SIGNED : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
  %none = stablehlo.constant dense<false> : tensor<6x6xi1>
  %r = stablehlo.select %below, %all, %none : tensor<6x6xi1>, tensor<6x6xi1>
  return %r : tensor<6x6xi1>
}

func.func private @choose(%c: tensor<6x6xi1>, %x: tensor<1x4x6x6xf16>, %y: tensor<f16>) -> tensor<1x4x6x6xf16> {
  %wide = stablehlo.broadcast_in_dim %c, dims = [2, 3] : (tensor<6x6xi1>) -> tensor<1x4x6x6xi1>
  %all = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f16>) -> tensor<1x4x6x6xf16>
  %r = stablehlo.select %wide, %x, %all : tensor<1x4x6x6xi1>, tensor<1x4x6x6xf16>
  return %r : tensor<1x4x6x6xf16>
}

// -10000 is no mask in f16: it is a score, which is computed for all keys.
// CHECK-LABEL: func @causal
//       CHECK: posenc.rotate half ins(%{{.*}} : tensor<1x4x6x16xf16>)
//       CHECK: posenc.rotate half ins(%{{.*}} : tensor<1x2x6x16xf16>)
//       CHECK: posenc.attention scale = 2.500000e-01 query_layout = head_major key_layout = head_major ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<1x4x6x16xf16>, tensor<1x2x6x16xf16>, tensor<1x2x6x16xf16>)
//  CHECK-NEXT: score(
//       CHECK: %[[C:.*]] = arith.cmpi sge
//       CHECK: arith.select %[[C]], %{{.*}}, %{{.*}} : f32
func.func @causal(%q: tensor<1x4x6x16xf16>, %k: tensor<1x2x6x16xf16>, %v: tensor<1x2x6x16xf16>, %angles: tensor<6x8xf32>) -> tensor<1x4x6x16xf16> {
  %f = stablehlo.concatenate %angles, %angles, dim = 1 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x16xf32>
  %c32 = stablehlo.cosine %f : tensor<6x16xf32>
  %s32 = stablehlo.sine %f : tensor<6x16xf32>
  %c = stablehlo.convert %c32 : (tensor<6x16xf32>) -> tensor<6x16xf16>
  %s = stablehlo.convert %s32 : (tensor<6x16xf32>) -> tensor<6x16xf16>
  %cq = stablehlo.broadcast_in_dim %c, dims = [2, 3] : (tensor<6x16xf16>) -> tensor<1x4x6x16xf16>
  %sq = stablehlo.broadcast_in_dim %s, dims = [2, 3] : (tensor<6x16xf16>) -> tensor<1x4x6x16xf16>
  %ck = stablehlo.broadcast_in_dim %c, dims = [2, 3] : (tensor<6x16xf16>) -> tensor<1x2x6x16xf16>
  %sk = stablehlo.broadcast_in_dim %s, dims = [2, 3] : (tensor<6x16xf16>) -> tensor<1x2x6x16xf16>
  %q0 = stablehlo.slice %q [0:1, 0:4, 0:6, 0:8] : (tensor<1x4x6x16xf16>) -> tensor<1x4x6x8xf16>
  %q1 = stablehlo.slice %q [0:1, 0:4, 0:6, 8:16] : (tensor<1x4x6x16xf16>) -> tensor<1x4x6x8xf16>
  %qn = stablehlo.negate %q1 : tensor<1x4x6x8xf16>
  %qr = stablehlo.concatenate %qn, %q0, dim = 3 : (tensor<1x4x6x8xf16>, tensor<1x4x6x8xf16>) -> tensor<1x4x6x16xf16>
  %qa = stablehlo.multiply %q, %cq : tensor<1x4x6x16xf16>
  %qb = stablehlo.multiply %qr, %sq : tensor<1x4x6x16xf16>
  %qt = stablehlo.add %qa, %qb : tensor<1x4x6x16xf16>
  %k0 = stablehlo.slice %k [0:1, 0:2, 0:6, 0:8] : (tensor<1x2x6x16xf16>) -> tensor<1x2x6x8xf16>
  %k1 = stablehlo.slice %k [0:1, 0:2, 0:6, 8:16] : (tensor<1x2x6x16xf16>) -> tensor<1x2x6x8xf16>
  %kn = stablehlo.negate %k1 : tensor<1x2x6x8xf16>
  %kr = stablehlo.concatenate %kn, %k0, dim = 3 : (tensor<1x2x6x8xf16>, tensor<1x2x6x8xf16>) -> tensor<1x2x6x16xf16>
  %ka = stablehlo.multiply %k, %ck : tensor<1x2x6x16xf16>
  %kb = stablehlo.multiply %kr, %sk : tensor<1x2x6x16xf16>
  %kt = stablehlo.add %ka, %kb : tensor<1x2x6x16xf16>
  %kh0 = stablehlo.slice %kt [0:1, 0:1, 0:6, 0:16] : (tensor<1x2x6x16xf16>) -> tensor<1x1x6x16xf16>
  %kh1 = stablehlo.slice %kt [0:1, 1:2, 0:6, 0:16] : (tensor<1x2x6x16xf16>) -> tensor<1x1x6x16xf16>
  %kh = stablehlo.concatenate %kh0, %kh0, %kh1, %kh1, dim = 1 : (tensor<1x1x6x16xf16>, tensor<1x1x6x16xf16>, tensor<1x1x6x16xf16>, tensor<1x1x6x16xf16>) -> tensor<1x4x6x16xf16>
  %vh0 = stablehlo.slice %v [0:1, 0:1, 0:6, 0:16] : (tensor<1x2x6x16xf16>) -> tensor<1x1x6x16xf16>
  %vh1 = stablehlo.slice %v [0:1, 1:2, 0:6, 0:16] : (tensor<1x2x6x16xf16>) -> tensor<1x1x6x16xf16>
  %vh = stablehlo.concatenate %vh0, %vh0, %vh1, %vh1, dim = 1 : (tensor<1x1x6x16xf16>, tensor<1x1x6x16xf16>, tensor<1x1x6x16xf16>, tensor<1x1x6x16xf16>) -> tensor<1x4x6x16xf16>
  %d = stablehlo.dot_general %qt, %kh, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<1x4x6x16xf16>, tensor<1x4x6x16xf16>) -> tensor<1x4x6x6xf16>
  %scale = stablehlo.constant dense<2.5e-01> : tensor<1x4x6x6xf16>
  %x = stablehlo.multiply %d, %scale : tensor<1x4x6x6xf16>
  %all = stablehlo.constant dense<true> : tensor<6x6xi1>
  %mask = func.call @lower(%all) : (tensor<6x6xi1>) -> tensor<6x6xi1>
  %low = stablehlo.constant dense<-1.0e+04> : tensor<f16>
  %l = func.call @choose(%mask, %x, %low) : (tensor<6x6xi1>, tensor<1x4x6x6xf16>, tensor<f16>) -> tensor<1x4x6x6xf16>
  %inf = stablehlo.constant dense<0xFC00> : tensor<f16>
  %m = stablehlo.reduce(%l init: %inf) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x6x6xf16>, tensor<f16>) -> tensor<1x4x6xf16>
  %mw = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<1x4x6xf16>) -> tensor<1x4x6x6xf16>
  %lm = stablehlo.subtract %l, %mw : tensor<1x4x6x6xf16>
  %e = stablehlo.exponential %lm : tensor<1x4x6x6xf16>
  %e32 = stablehlo.convert %e : (tensor<1x4x6x6xf16>) -> tensor<1x4x6x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%e32 init: %zero) applies stablehlo.add across dimensions = [3] : (tensor<1x4x6x6xf32>, tensor<f32>) -> tensor<1x4x6xf32>
  %sum16 = stablehlo.convert %sum : (tensor<1x4x6xf32>) -> tensor<1x4x6xf16>
  %sw = stablehlo.broadcast_in_dim %sum16, dims = [0, 1, 2] : (tensor<1x4x6xf16>) -> tensor<1x4x6x6xf16>
  %p = stablehlo.divide %e, %sw : tensor<1x4x6x6xf16>
  %o = stablehlo.dot_general %p, %vh, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x4x6x6xf16>, tensor<1x4x6x16xf16>) -> tensor<1x4x6x16xf16>
  return %o : tensor<1x4x6x16xf16>
}

func.func private @weights(%l: tensor<2x6x6xf16>) -> tensor<2x6x6xf16> {
  %inf = stablehlo.constant dense<0xFC00> : tensor<f16>
  %m = stablehlo.reduce(%l init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x6x6xf16>, tensor<f16>) -> tensor<2x6xf16>
  %mw = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x6xf16>) -> tensor<2x6x6xf16>
  %lm = stablehlo.subtract %l, %mw : tensor<2x6x6xf16>
  %e = stablehlo.exponential %lm : tensor<2x6x6xf16>
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x6x6xf16>, tensor<f16>) -> tensor<2x6xf16>
  %sw = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x6xf16>) -> tensor<2x6x6xf16>
  %p = stablehlo.divide %e, %sw : tensor<2x6x6xf16>
  return %p : tensor<2x6x6xf16>
}

// The least number of f16 is a mask if each query sees the key on the diagonal.
// CHECK-LABEL: func @least(
//       CHECK: posenc.attention
//  CHECK-NEXT: where(
//   CHECK-NOT: score(
func.func @least(%q: tensor<2x6x16xf16>, %k: tensor<2x6x16xf16>, %v: tensor<2x6x16xf16>) -> tensor<2x6x16xf16> {
  %d = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x6x16xf16>, tensor<2x6x16xf16>) -> tensor<2x6x6xf16>
  %i = stablehlo.iota dim = 1 : tensor<2x6x6xi32>
  %j = stablehlo.iota dim = 2 : tensor<2x6x6xi32>
  %later = stablehlo.compare LT, %i, %j, SIGNED : (tensor<2x6x6xi32>, tensor<2x6x6xi32>) -> tensor<2x6x6xi1>
  %low = stablehlo.constant dense<-6.5504e+04> : tensor<2x6x6xf16>
  %l = stablehlo.select %later, %low, %d : tensor<2x6x6xi1>, tensor<2x6x6xf16>
  %p = func.call @weights(%l) : (tensor<2x6x6xf16>) -> tensor<2x6x6xf16>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x6xf16>, tensor<2x6x16xf16>) -> tensor<2x6x16xf16>
  return %o : tensor<2x6x16xf16>
}

// The first query has no visible key, so that its weights are equal.
// CHECK-LABEL: func @least_elsewhere(
//       CHECK: posenc.attention
//   CHECK-NOT: where(
//       CHECK: score(
//   CHECK-NOT: where(
//       CHECK: return
func.func @least_elsewhere(%q: tensor<2x6x16xf16>, %k: tensor<2x6x16xf16>, %v: tensor<2x6x16xf16>) -> tensor<2x6x16xf16> {
  %d = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x6x16xf16>, tensor<2x6x16xf16>) -> tensor<2x6x6xf16>
  %i = stablehlo.iota dim = 1 : tensor<2x6x6xi32>
  %j = stablehlo.iota dim = 2 : tensor<2x6x6xi32>
  %later = stablehlo.compare LE, %i, %j, SIGNED : (tensor<2x6x6xi32>, tensor<2x6x6xi32>) -> tensor<2x6x6xi1>
  %low = stablehlo.constant dense<-6.5504e+04> : tensor<2x6x6xf16>
  %l = stablehlo.select %later, %low, %d : tensor<2x6x6xi1>, tensor<2x6x6xf16>
  %p = func.call @weights(%l) : (tensor<2x6x6xf16>) -> tensor<2x6x6xf16>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x6xf16>, tensor<2x6x16xf16>) -> tensor<2x6x16xf16>
  return %o : tensor<2x6x16xf16>
}
