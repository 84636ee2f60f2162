// Tables of sines and cosines become posenc.sinusoidal.
//
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s --check-prefixes=CHECK,HF
// RUN: posenc-opt --posenc-raise=precision=exact --split-input-file %s | FileCheck %s --check-prefixes=CHECK,EXACT
//
// Angles are those of the graph, unless they are exact.
// RUN: %python %S/compare-raised.py posenc-run %s --limit=1e-6
// RUN: %python %S/compare-raised.py posenc-run %s --precision=exact --limit=1e-4

// Time steps of DiT, whose frequencies are computed. The graph rounds exponents, so
// hf_f32 has the numbers.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 320, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, {{.*}}]>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 320, base = 1.000000e+04>
// CHECK-LABEL: func @dit
//  CHECK-SAME: (%[[T:.*]]: tensor<?xi64>)
//       CHECK: %[[N:.*]] = tensor.dim %[[T]]
//       CHECK: %[[E:.*]] = tensor.empty(%[[N]])
//  CHECK-NEXT: %[[R:.*]] = posenc.sinusoidal cos_sin #[[$F]] positions(%[[T]] : tensor<?xi64>) outs(%[[E]] : tensor<?x320xf32>)
//  CHECK-NEXT: return %[[R]]
#lane = affine_map<(d0) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0, 0)>
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @dit(%t: tensor<?xi64>) -> tensor<?x320xf32> {
  %c0 = arith.constant 0 : index
  %log = arith.constant -9.2103403719761836 : f64
  %half = arith.constant 160.0 : f32
  %fe = tensor.empty() : tensor<160xf32>
  %f = linalg.generic {indexing_maps = [#lane], iterator_types = ["parallel"]} outs(%fe : tensor<160xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    %if = arith.sitofp %i64 : i64 to f32
    %lf = arith.truncf %log : f64 to f32
    %x = arith.mulf %if, %lf : f32
    %y = arith.divf %x, %half : f32
    %z = math.exp %y : f32
    linalg.yield %z : f32
  } -> tensor<160xf32>
  %n = tensor.dim %t, %c0 : tensor<?xi64>
  %column = tensor.expand_shape %t [[0, 1]] output_shape [%n, 1] : tensor<?xi64> into tensor<?x1xi64>
  %e = tensor.empty(%n) : tensor<?x160xf32>
  %a = linalg.generic {indexing_maps = [#rows, #lanes, #both], iterator_types = ["parallel", "parallel"]}
      ins(%column, %f : tensor<?x1xi64>, tensor<160xf32>) outs(%e : tensor<?x160xf32>) {
  ^bb0(%p: i64, %fi: f32, %o: f32):
    %pf = arith.sitofp %p : i64 to f32
    %x = arith.mulf %pf, %fi : f32
    linalg.yield %x : f32
  } -> tensor<?x160xf32>
  %c = math.cos %a : tensor<?x160xf32>
  %s = math.sin %a : tensor<?x160xf32>
  %y = tensor.concat dim(1) %c, %s : (tensor<?x160xf32>, tensor<?x160xf32>) -> tensor<?x320xf32>
  return %y : tensor<?x320xf32>
}

// -----

// Frequencies of f32 that are those of transformers are given by their base. Sines
// and cosines are exchanged behind their concatenation, an odd width has a zero, and
// positions are an expression with large values.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 4, base = 1.000000e+04, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 4, base = 1.000000e+04>
// CHECK-LABEL: func @flipped_and_padded
//       CHECK: %[[P:.*]] = linalg.generic
//       CHECK:   arith.muli
//       CHECK: posenc.sinusoidal cos_sin #[[$F]] zero_pad positions(%[[P]] : tensor<7xi32>)
//  CHECK-SAME: outs(%{{.*}} : tensor<7x5xf32>)
//   CHECK-NOT: tensor.pad
#row = affine_map<(d0, d1) -> (d0)>
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @flipped_and_padded(%t: tensor<7xi32>) -> tensor<7x5xf32> {
  %zero = arith.constant 0.0 : f32
  %f = arith.constant dense<[1.0, 0.01]> : tensor<2xf32>
  %step = arith.constant 143 : i32
  %e = tensor.empty() : tensor<7x2xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%t, %f : tensor<7xi32>, tensor<2xf32>) outs(%e, %e : tensor<7x2xf32>, tensor<7x2xf32>) {
  ^bb0(%p: i32, %fi: f32, %o0: f32, %o1: f32):
    %later = arith.muli %p, %step : i32
    %pf = arith.sitofp %later : i32 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %c0 = math.cos %a : f32
    linalg.yield %s0, %c0 : f32, f32
  } -> (tensor<7x2xf32>, tensor<7x2xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<7x2xf32>, tensor<7x2xf32>) -> tensor<7x4xf32>
  %y0 = tensor.extract_slice %y[0, 0] [7, 2] [1, 1] : tensor<7x4xf32> to tensor<7x2xf32>
  %y1 = tensor.extract_slice %y[0, 2] [7, 2] [1, 1] : tensor<7x4xf32> to tensor<7x2xf32>
  %z = tensor.concat dim(1) %y1, %y0 : (tensor<7x2xf32>, tensor<7x2xf32>) -> tensor<7x4xf32>
  %w = tensor.pad %z low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<7x4xf32> to tensor<7x5xf32>
  return %w : tensor<7x5xf32>
}

// -----

// Positions of an encoder: even lanes are written, then odd ones, and positions are
// the numbers of the rows and a first one.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 6, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, {{.*}}]>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 6, base = 1.000000e+04, scaling = #posenc.geometric<shift = 1.000000e+00>>
// CHECK-LABEL: func @inserted
//       CHECK: %[[FIRST:.*]] = arith.constant 3 : i64
//       CHECK: %[[R:.*]] = posenc.sinusoidal interleaved #[[$F]] positions(%[[FIRST]] : i64) outs(%{{.*}} : tensor<?x6xf32>)
//   CHECK-NOT: tensor.insert_slice
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @inserted(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3 : i64
  %f = arith.constant dense<[1.0, 0.01, 1.0e-4]> : tensor<3xf32>
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %s, %c = linalg.generic {indexing_maps = [#lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%f : tensor<3xf32>) outs(%e, %e : tensor<?x3xf32>, tensor<?x3xf32>) {
  ^bb0(%fi: f32, %o0: f32, %o1: f32):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    %later = arith.addi %p, %three : i64
    %pf = arith.sitofp %later : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<?x3xf32>, tensor<?x3xf32>)
  %t = tensor.empty(%n) : tensor<?x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%t : tensor<?x6xf32>) -> tensor<?x6xf32>
  %even = tensor.insert_slice %s into %z[0, 0] [%n, 3] [1, 2] : tensor<?x3xf32> into tensor<?x6xf32>
  %odd = tensor.insert_slice %c into %even[0, 1] [%n, 3] [1, 2] : tensor<?x3xf32> into tensor<?x6xf32>
  %y = arith.addf %x, %odd : tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}

// -----

// One time step for all sequences: its row is computed once. The position is scaled
// before it is multiplied by the frequencies, as in Flux.
// CHECK-LABEL: func @broadcast
//  CHECK-SAME: (%[[T:.*]]: tensor<f32>, %{{.*}}: tensor<?x8xf32>)
//       CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1xf32>)
//       CHECK:   tensor.extract %[[T]][]
//       CHECK:   arith.mulf
//       CHECK: %[[R:.*]] = posenc.sinusoidal sin_cos #{{.*}} positions(%[[P]] : tensor<1xf32>) outs(%{{.*}} : tensor<1x8xf32>)
//       CHECK: %[[ROW:.*]] = tensor.collapse_shape %[[R]]
//       CHECK: linalg.broadcast ins(%[[ROW]] : tensor<8xf32>) outs(%{{.*}} : tensor<?x8xf32>) dimensions = [0]
#none = affine_map<(d0, d1) -> ()>
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @broadcast(%t: tensor<f32>, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %thousand = arith.constant 1000.0 : f32
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#none, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%t, %f : tensor<f32>, tensor<4xf32>) outs(%e, %e : tensor<?x4xf32>, tensor<?x4xf32>) {
  ^bb0(%p: f32, %fi: f32, %o0: f32, %o1: f32):
    %scaled = arith.mulf %p, %thousand : f32
    %a = arith.mulf %scaled, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<?x4xf32>, tensor<?x4xf32>)
  %table = tensor.concat dim(1) %s, %c : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %y = arith.addf %x, %table : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Stacked pairs of positions with two dimensions, one of which is 1, in bf16. The
// angle is divided by a power of two, which rounds nothing.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.linear<factor = 2.500000e-01>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.geometric<shift = 0.000000e+00, scale = 4.000000e+00>>
// CHECK-LABEL: func @stacked
//  CHECK-SAME: (%[[P:.*]]: tensor<1x?xi64>)
//       CHECK: %[[ROWS:.*]] = tensor.extract_slice %[[P]]
//       CHECK: posenc.sinusoidal interleaved #[[$F]] positions(%[[ROWS]] : tensor<?xi64>) outs(%{{.*}} : tensor<?x4xbf16>)
//       CHECK: tensor.expand_shape %{{.*}} : tensor<?x4xbf16> into tensor<1x?x4xbf16>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#lanes = affine_map<(d0, d1, d2) -> (d2)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @stacked(%p: tensor<1x?xi64>) -> tensor<1x?x4xbf16> {
  %c1 = arith.constant 1 : index
  %quarter = arith.constant 0.25 : f32
  %f = arith.constant dense<[1.0, 0.01]> : tensor<2xf32>
  %n = tensor.dim %p, %c1 : tensor<1x?xi64>
  %e = tensor.empty(%n) : tensor<1x?x2xf32>
  %s, %c = linalg.generic {indexing_maps = [#rows, #lanes, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %f : tensor<1x?xi64>, tensor<2xf32>) outs(%e, %e : tensor<1x?x2xf32>, tensor<1x?x2xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a0 = arith.mulf %pf, %fi : f32
    %a = arith.divf %a0, %quarter : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<1x?x2xf32>, tensor<1x?x2xf32>)
  %s1 = tensor.expand_shape %s [[0], [1], [2, 3]] output_shape [1, %n, 2, 1] : tensor<1x?x2xf32> into tensor<1x?x2x1xf32>
  %k1 = tensor.expand_shape %c [[0], [1], [2, 3]] output_shape [1, %n, 2, 1] : tensor<1x?x2xf32> into tensor<1x?x2x1xf32>
  %pairs = tensor.concat dim(3) %s1, %k1 : (tensor<1x?x2x1xf32>, tensor<1x?x2x1xf32>) -> tensor<1x?x2x2xf32>
  %y = tensor.collapse_shape %pairs [[0], [1], [2, 3]] : tensor<1x?x2x2xf32> into tensor<1x?x4xf32>
  %z = arith.truncf %y : tensor<1x?x4xf32> to tensor<1x?x4xbf16>
  return %z : tensor<1x?x4xbf16>
}

// -----

// Rows and columns of an image are two tables.
// CHECK-LABEL: func @axes
//  CHECK-SAME: (%[[P:.*]]: tensor<6xi64>, %[[Q:.*]]: tensor<6xi64>)
//       CHECK: %[[A:.*]] = posenc.sinusoidal sin_cos #[[F:.*]] positions(%[[P]] : tensor<6xi64>)
//       CHECK: %[[B:.*]] = posenc.sinusoidal sin_cos #[[F]] positions(%[[Q]] : tensor<6xi64>)
//       CHECK: tensor.concat dim(1) %[[A]], %[[B]]
#row = affine_map<(d0, d1) -> (d0)>
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @axes(%p: tensor<6xi64>, %q: tensor<6xi64>) -> tensor<6x8xf32> {
  %f = arith.constant dense<[1.0, 0.01]> : tensor<2xf32>
  %e = tensor.empty() : tensor<6x2xf32>
  %a, %b = linalg.generic {indexing_maps = [#row, #row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q, %f : tensor<6xi64>, tensor<6xi64>, tensor<2xf32>) outs(%e, %e : tensor<6x2xf32>, tensor<6x2xf32>) {
  ^bb0(%pi: i64, %qi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %qf = arith.sitofp %qi : i64 to f32
    %a0 = arith.mulf %pf, %fi : f32
    %b0 = arith.mulf %qf, %fi : f32
    linalg.yield %a0, %b0 : f32, f32
  } -> (tensor<6x2xf32>, tensor<6x2xf32>)
  %as = math.sin %a : tensor<6x2xf32>
  %ac = math.cos %a : tensor<6x2xf32>
  %bs = math.sin %b : tensor<6x2xf32>
  %bc = math.cos %b : tensor<6x2xf32>
  %ta = tensor.concat dim(1) %as, %ac : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %tb = tensor.concat dim(1) %bs, %bc : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %y = tensor.concat dim(1) %ta, %tb : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Time steps of f32, and a factor of all sines and cosines; a single pair, whose
// positions are integers.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 4, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, 0.699999{{.*}}], attention_factor = 1.4142135381698608>, precision = hf_f32>
// CHECK-LABEL: func @floats
//  CHECK-SAME: (%[[T:.*]]: tensor<5xf32>, %[[P:.*]]: tensor<5xi64>)
//   CHECK-DAG: posenc.sinusoidal sin_cos #[[$F]] positions(%[[T]] : tensor<5xf32>) outs(%{{.*}} : tensor<5x4xf32>)
//   CHECK-DAG: posenc.sinusoidal sin_cos #{{.*}} positions(%[[P]] : tensor<5xi64>) outs(%{{.*}} : tensor<5x2xf32>)
#row = affine_map<(d0, d1) -> (d0)>
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @floats(%t: tensor<5xf32>, %p: tensor<5xi64>) -> (tensor<5x4xf32>, tensor<5x2xf32>) {
  %f = arith.constant dense<[1.0, 0.7]> : tensor<2xf32>
  %root = arith.constant 1.41421354 : f32
  %e = tensor.empty() : tensor<5x2xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%t, %f : tensor<5xf32>, tensor<2xf32>) outs(%e, %e : tensor<5x2xf32>, tensor<5x2xf32>) {
  ^bb0(%ti: f32, %fi: f32, %o0: f32, %o1: f32):
    %a = arith.mulf %ti, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    %s1 = arith.mulf %s0, %root : f32
    %k1 = arith.mulf %root, %k0 : f32
    linalg.yield %s1, %k1 : f32, f32
  } -> (tensor<5x2xf32>, tensor<5x2xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x4xf32>
  %pf = arith.sitofp %p : tensor<5xi64> to tensor<5xf32>
  %column = tensor.expand_shape %pf [[0, 1]] output_shape [5, 1] : tensor<5xf32> into tensor<5x1xf32>
  %ps = math.sin %column : tensor<5x1xf32>
  %pc = math.cos %column : tensor<5x1xf32>
  %z = tensor.concat dim(1) %ps, %pc : (tensor<5x1xf32>, tensor<5x1xf32>) -> tensor<5x2xf32>
  return %y, %z : tensor<5x4xf32>, tensor<5x2xf32>
}

// -----

// DETR: the lanes of a pair compute their frequency each, by a floor, and positions
// are divided, which only exact angles do not round otherwise.
// HF-LABEL: func @quotients
//   HF-NOT: posenc.sinusoidal
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 6, base = 1.000000e+04>
// EXACT-LABEL: func @quotients
//  EXACT-SAME: (%[[X:.*]]: tensor<2x3xf32>)
//       EXACT: posenc.sinusoidal interleaved #[[$F]] positions(%[[X]] : tensor<2x3xf32>) outs(%{{.*}} : tensor<2x3x6xf32>)
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @quotients(%x: tensor<2x3xf32>) -> tensor<2x3x6xf32> {
  %base = arith.constant 10000.0 : f32
  %two = arith.constant 2.0 : f32
  %d = arith.constant 6.0 : f32
  %e = tensor.empty() : tensor<2x3x6xf32>
  %a = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 2 : index
    %i64 = arith.index_cast %i : index to i64
    %lane = arith.sitofp %i64 : i64 to f32
    %half = arith.divf %lane, %two : f32
    %pair = math.floor %half : f32
    %i2 = arith.mulf %pair, %two : f32
    %exponent = arith.divf %i2, %d : f32
    %period = math.powf %base, %exponent : f32
    %q = arith.divf %p, %period : f32
    linalg.yield %q : f32
  } -> tensor<2x3x6xf32>
  %even = tensor.extract_slice %a[0, 0, 0] [2, 3, 3] [1, 1, 2] : tensor<2x3x6xf32> to tensor<2x3x3xf32>
  %odd = tensor.extract_slice %a[0, 0, 1] [2, 3, 3] [1, 1, 2] : tensor<2x3x6xf32> to tensor<2x3x3xf32>
  %s = math.sin %even : tensor<2x3x3xf32>
  %c = math.cos %odd : tensor<2x3x3xf32>
  %s1 = tensor.expand_shape %s [[0], [1], [2, 3]] output_shape [2, 3, 3, 1] : tensor<2x3x3xf32> into tensor<2x3x3x1xf32>
  %c1 = tensor.expand_shape %c [[0], [1], [2, 3]] output_shape [2, 3, 3, 1] : tensor<2x3x3xf32> into tensor<2x3x3x1xf32>
  %pairs = tensor.concat dim(3) %s1, %c1 : (tensor<2x3x3x1xf32>, tensor<2x3x3x1xf32>) -> tensor<2x3x3x2xf32>
  %y = tensor.collapse_shape %pairs [[0], [1], [2, 3]] : tensor<2x3x3x2xf32> into tensor<2x3x6xf32>
  return %y : tensor<2x3x6xf32>
}

// -----

// A table in a loop, whose rows are repeated for each batch and then joined: two rows
// are computed.
// CHECK-LABEL: func @repeated
//       CHECK: scf.for %[[I:[a-z0-9]+]] =
//       CHECK:   %[[P:.*]] = arith.index_cast %[[I]] : index to i64
//       CHECK:   %[[R:.*]] = posenc.sinusoidal sin_cos #{{.*}} positions(%[[P]] : i64) outs(%{{.*}} : tensor<2x4xf32>)
//       CHECK:   linalg.broadcast ins(%[[R]] : tensor<2x4xf32>) outs(%{{.*}} : tensor<3x2x4xf32>) dimensions = [0]
//       CHECK:   tensor.collapse_shape
#lanes = affine_map<(d0, d1, d2) -> (d2)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @repeated(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %f = arith.constant dense<[1.0, 0.01]> : tensor<2xf32>
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %x) -> tensor<6x4xf32> {
    %first = arith.index_cast %i : index to i64
    %e = tensor.empty() : tensor<3x2x2xf32>
    %s, %c = linalg.generic {indexing_maps = [#lanes, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%f : tensor<2xf32>) outs(%e, %e : tensor<3x2x2xf32>, tensor<3x2x2xf32>) {
    ^bb0(%fi: f32, %o0: f32, %o1: f32):
      %j = linalg.index 1 : index
      %row = arith.index_cast %j : index to i64
      %p = arith.addi %row, %first : i64
      %pf = arith.sitofp %p : i64 to f32
      %a = arith.mulf %pf, %fi : f32
      %s0 = math.sin %a : f32
      %k0 = math.cos %a : f32
      linalg.yield %s0, %k0 : f32, f32
    } -> (tensor<3x2x2xf32>, tensor<3x2x2xf32>)
    %z = tensor.concat dim(2) %s, %c : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x4xf32>
    %rows = tensor.collapse_shape %z [[0, 1], [2]] : tensor<3x2x4xf32> into tensor<6x4xf32>
    %sum = arith.addf %acc, %rows : tensor<6x4xf32>
    scf.yield %sum : tensor<6x4xf32>
  }
  return %y : tensor<6x4xf32>
}
