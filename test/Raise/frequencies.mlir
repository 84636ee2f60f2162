// Tables of cos and sin become frequencies if --precision is given.
//
// RUN: posenc-opt --posenc-raise=precision=hf_f32 --split-input-file %s | FileCheck %s --check-prefixes=CHECK,HF
// RUN: posenc-opt --posenc-raise=precision=exact --split-input-file %s | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: posenc-opt --posenc-raise --split-input-file %s | FileCheck %s --check-prefix=TABLES
// TABLES-NOT: posenc.rope
// RUN: not posenc-opt --posenc-raise=precision=f16 --split-input-file %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown precision 'f16': expected tables, exact or hf_f32
//
// Angles that are rounded as those of the graph give its results. Others differ
// at large positions. Equal limits notice that.
// RUN: %python %S/compare-raised.py posenc-run %s --precision=hf_f32 --limit=2e-6
// RUN: %python %S/compare-raised.py posenc-run %s --precision=exact --limit=2e-3
// RUN: not %python %S/compare-raised.py posenc-run %s --precision=exact --limit=2e-6 | FileCheck %s --check-prefix=ROUNDED
// ROUNDED-COUNT-8: {{: DIFFERENT$}}
// RUN: %python %S/compare-raised.py posenc-run %s --precision=hf_f32 --fault

// The spelling of Llama in transformers: a constant vector, a product, the same
// angles for both halves.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04>
// CHECK-LABEL: func @llama
//  CHECK-SAME: (%[[X:.*]]: tensor<1x2x4096x8xf32>, %[[P:.*]]: tensor<1x4096xi64>)
//       CHECK: %[[ROWS:.*]] = tensor.extract_slice %[[P]][0, 0] [1, 4096] [1, 1] : tensor<1x4096xi64> to tensor<4096xi64>
//       CHECK: posenc.rope half #[[$F]] ins(%[[X]] : {{.*}}) positions(%[[ROWS]] : tensor<4096xi64>) dims = [2]
//   CHECK-NOT: math.cos
//  TABLES-NOT: posenc.rope
//      TABLES: posenc.rotate
func.func @llama(%x: tensor<1x2x4096x8xf32>, %p: tensor<1x4096xi64>) -> tensor<1x2x4096x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %pf = arith.sitofp %p : tensor<1x4096xi64> to tensor<1x4096xf32>
  %ae = tensor.empty() : tensor<1x4096x4xf32>
  %pb = linalg.broadcast ins(%pf : tensor<1x4096xf32>) outs(%ae : tensor<1x4096x4xf32>) dimensions = [2]
  %fb = linalg.broadcast ins(%f : tensor<4xf32>) outs(%ae : tensor<1x4096x4xf32>) dimensions = [0, 1]
  %a = arith.mulf %pb, %fb : tensor<1x4096x4xf32>
  %aa = tensor.concat dim(2) %a, %a : (tensor<1x4096x4xf32>, tensor<1x4096x4xf32>) -> tensor<1x4096x8xf32>
  %c = math.cos %aa : tensor<1x4096x8xf32>
  %s = math.sin %aa : tensor<1x4096x8xf32>
  %e = tensor.empty() : tensor<1x2x4096x8xf32>
  %cb = linalg.broadcast ins(%c : tensor<1x4096x8xf32>) outs(%e : tensor<1x2x4096x8xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<1x4096x8xf32>) outs(%e : tensor<1x2x4096x8xf32>) dimensions = [1]
  %x0 = tensor.extract_slice %x[0, 0, 0, 0] [1, 2, 4096, 4] [1, 1, 1, 1] : tensor<1x2x4096x8xf32> to tensor<1x2x4096x4xf32>
  %x1 = tensor.extract_slice %x[0, 0, 0, 4] [1, 2, 4096, 4] [1, 1, 1, 1] : tensor<1x2x4096x8xf32> to tensor<1x2x4096x4xf32>
  %n = arith.negf %x1 : tensor<1x2x4096x4xf32>
  %r = tensor.concat dim(3) %n, %x0 : (tensor<1x2x4096x4xf32>, tensor<1x2x4096x4xf32>) -> tensor<1x2x4096x8xf32>
  %xc = arith.mulf %x, %cb : tensor<1x2x4096x8xf32>
  %rs = arith.mulf %r, %sb : tensor<1x2x4096x8xf32>
  %y = arith.addf %xc, %rs : tensor<1x2x4096x8xf32>
  return %y : tensor<1x2x4096x8xf32>
}

// -----

// Linear scaling, and positions that are the numbers of the rows.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.linear<factor = 4.000000e+00>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.linear<factor = 4.000000e+00>>
// CHECK-LABEL: func @linear
//       CHECK: %[[P:.*]] = linalg.generic
//       CHECK:   linalg.index 0
//       CHECK: posenc.rope interleaved #[[$F]] ins(%{{.*}}) positions(%[[P]] : tensor<4096xi64>) dims = [0]
#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @linear(%x: tensor<4096x8xf32>) -> tensor<4096x8xf32> {
  %f = arith.constant dense<[0.25, 0.025, 0.0025, 2.500000119e-04]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4096x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%f : tensor<4xf32>) outs(%e, %e : tensor<4096x4xf32>, tensor<4096x4xf32>) {
  ^bb0(%fi: f32, %o0: f32, %o1: f32):
    %i = linalg.index 0 : index
    %p = arith.index_cast %i : index to i64
    %pf = arith.sitofp %p : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<4096x4xf32>, tensor<4096x4xf32>)
  %y = posenc.rotate interleaved ins(%x : tensor<4096x8xf32>) tables(%c, %s : tensor<4096x4xf32>) dims = [0] outs(%x : tensor<4096x8xf32>)
  return %y : tensor<4096x8xf32>
}

// -----

// The scaling of Llama 3.1, and bf16 rows.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 5.000000e+05, scaling = #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 4.000000e+00, original_max_position = 8.192000e+03>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 5.000000e+05, scaling = #posenc.llama3<factor = 8.000000e+00, low_freq_factor = 1.000000e+00, high_freq_factor = 4.000000e+00, original_max_position = 8.192000e+03>>
// CHECK-LABEL: func @llama3
//       CHECK: posenc.rope half #[[$F]]
#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @llama3(%x: tensor<4096x16xf32>, %p: tensor<4096xi32>) -> tensor<4096x16xf32> {
  %f = arith.constant dense<[1.0, 0.193922758, 0.0376060307, 0.00729266508, 5.248460e-04, 3.42810235E-5, 6.64786967E-6, 1.28917316E-6]> : tensor<8xf32>
  %e = tensor.empty() : tensor<4096x8xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<4096xi32>, tensor<8xf32>) outs(%e, %e : tensor<4096x8xf32>, tensor<4096x8xf32>) {
  ^bb0(%pi: i32, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i32 to f32
    %a = arith.mulf %fi, %pf : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<4096x8xf32>, tensor<4096x8xf32>)
  %y = posenc.rotate half ins(%x : tensor<4096x16xf32>) tables(%c, %s : tensor<4096x8xf32>) dims = [0] outs(%x : tensor<4096x16xf32>)
  return %y : tensor<4096x16xf32>
}

// -----

// YaRN with its factor, and a window. The factor of the tables is that of the rope.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = {{.*}}, attention_factor = 1.13862943{{.*}}>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.yarn<factor = 4.000000e+00, original_max_position = {{.*}}, attention_factor = 1.13862943{{.*}}>>
// CHECK-LABEL: func @yarn
//       CHECK: posenc.rope half #[[$F]] {{.*}} dims = [0] offset = 2
#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @yarn(%x: tensor<4096x20xf32>, %p: tensor<4096xi64>) -> tensor<4096x20xf32> {
  %f = arith.constant dense<[1.0, 0.316227764, 0.1, 0.025693506, 0.00624999962, 0.00138349656, 2.5e-04, 7.90569466E-5]> : tensor<8xf32>
  %factor = arith.constant 1.13862944 : f32
  %e = tensor.empty() : tensor<4096x8xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<4096xi64>, tensor<8xf32>) outs(%e, %e : tensor<4096x8xf32>, tensor<4096x8xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    %c1 = arith.mulf %c0, %factor : f32
    %s1 = arith.mulf %s0, %factor : f32
    linalg.yield %c1, %s1 : f32, f32
  } -> (tensor<4096x8xf32>, tensor<4096x8xf32>)
  %y = posenc.rotate half ins(%x : tensor<4096x20xf32>) tables(%c, %s : tensor<4096x8xf32>) dims = [0] offset = 2 outs(%x : tensor<4096x20xf32>)
  return %y : tensor<4096x20xf32>
}

// -----

// Frequencies that are computed: 1 / pow(base, 2i / d).
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 5.000000e+05, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 5.000000e+05>
// CHECK-LABEL: func @power
//       CHECK: posenc.rope half #[[$F]]
#row = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @power(%x: tensor<4096x8xf32>, %p: tensor<4096xi64>) -> tensor<4096x8xf32> {
  %base = arith.constant 5.0e5 : f32
  %d = arith.constant 8.0 : f32
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2 : index
  %e = tensor.empty() : tensor<4096x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4096xi64>) outs(%e, %e : tensor<4096x4xf32>, tensor<4096x4xf32>) {
  ^bb0(%pi: i64, %o0: f32, %o1: f32):
    %lane = linalg.index 1 : index
    %i2 = arith.muli %lane, %two : index
    %i64 = arith.index_cast %i2 : index to i64
    %i = arith.sitofp %i64 : i64 to f32
    %exponent = arith.divf %i, %d : f32
    %period = math.powf %base, %exponent : f32
    %f = arith.divf %one, %period : f32
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %f : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<4096x4xf32>, tensor<4096x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<4096x8xf32>) tables(%c, %s : tensor<4096x4xf32>) dims = [0] outs(%x : tensor<4096x8xf32>)
  return %y : tensor<4096x8xf32>
}

// -----

// exp(-i * ln(10000) / 4), whose exponents are rounded: hf_f32 takes the numbers
// that the graph computes, and exact those of the base.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, 0.316227{{.*}}, 0.0999999{{.*}}]>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 1.000000e+04>
// CHECK-LABEL: func @exponential
//       CHECK: posenc.rope half #[[$F]]
#row = affine_map<(d0, d1) -> (d0)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @exponential(%x: tensor<4096x16xf32>, %p: tensor<4096xi64>) -> tensor<4096x16xf32> {
  %step = arith.constant -1.15129256 : f32
  %e = tensor.empty() : tensor<4096x8xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4096xi64>) outs(%e, %e : tensor<4096x8xf32>, tensor<4096x8xf32>) {
  ^bb0(%pi: i64, %o0: f32, %o1: f32):
    %lane = linalg.index 1 : index
    %i64 = arith.index_cast %lane : index to i64
    %i = arith.sitofp %i64 : i64 to f32
    %exponent = arith.mulf %i, %step : f32
    %f = math.exp %exponent : f32
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %f : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<4096x8xf32>, tensor<4096x8xf32>)
  %y = posenc.rotate half ins(%x : tensor<4096x16xf32>) tables(%c, %s : tensor<4096x8xf32>) dims = [0] outs(%x : tensor<4096x16xf32>)
  return %y : tensor<4096x16xf32>
}

// -----

// Frequencies of no base are a list, and positions are an expression. exact does
// not round the products of the listed numbers.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, 0.699999{{[0-9]*}}, 0.200000{{[0-9]*}}, 0.000000e+00], attention_factor = 5.000000e-01>, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, scaling = #posenc.explicit<values = [1.000000e+00, 0.699999{{[0-9]*}}, 0.200000{{[0-9]*}}, 0.000000e+00], attention_factor = 5.000000e-01>>
// CHECK-LABEL: func @listed
//       CHECK: arith.addi
//       CHECK: posenc.rope half #[[$F]]
#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @listed(%x: tensor<4096x8xf32>, %p: tensor<4096xi64>) -> tensor<4096x8xf32> {
  %f = arith.constant dense<[1.0, 0.7, 0.2, 0.0]> : tensor<4xf32>
  %half = arith.constant 0.5 : f32
  %seven = arith.constant 7 : i64
  %e = tensor.empty() : tensor<4096x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<4096xi64>, tensor<4xf32>) outs(%e, %e : tensor<4096x4xf32>, tensor<4096x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %later = arith.addi %pi, %seven : i64
    %pf = arith.sitofp %later : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    %c1 = arith.mulf %c0, %half : f32
    %s1 = arith.mulf %s0, %half : f32
    linalg.yield %c1, %s1 : f32, f32
  } -> (tensor<4096x4xf32>, tensor<4096x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<4096x8xf32>) tables(%c, %s : tensor<4096x4xf32>) dims = [0] outs(%x : tensor<4096x8xf32>)
  return %y : tensor<4096x8xf32>
}

// -----

// Queries of attention whose heads are split after the rotation: the rope reads
// the split ones, so that attention can rotate its queries itself.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04>
// CHECK-LABEL: func @split
//       CHECK: %[[X:.*]] = tensor.expand_shape
//       CHECK: posenc.rope half #[[$F]] ins(%[[X]] : tensor<1x2x4096x8xf32>) positions(%{{.*}} : tensor<4096xi64>) dims = [2]
#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @split(%x: tensor<2x4096x8xf32>, %p: tensor<4096xi64>) -> tensor<1x2x4096x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4096x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<4096xi64>, tensor<4xf32>) outs(%e, %e : tensor<4096x4xf32>, tensor<4096x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<4096x4xf32>, tensor<4096x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<2x4096x8xf32>) tables(%c, %s : tensor<4096x4xf32>) dims = [1] outs(%x : tensor<2x4096x8xf32>)
  %z = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [1, 2, 4096, 8] : tensor<2x4096x8xf32> into tensor<1x2x4096x8xf32>
  return %z : tensor<1x2x4096x8xf32>
}

// -----

// One token: its position has a dimension, too.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04>
// CHECK-LABEL: func @one_token
//       CHECK: posenc.rope half inverse #[[$F]] {{.*}} positions(%{{.*}} : tensor<1x1xi64>) dims = [0, 1]
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
#lane = affine_map<(d0, d1, d2) -> (d2)>
#both = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @one_token(%x: tensor<1x1x2x8xf32>, %p: tensor<1x1xi64>) -> tensor<1x1x2x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %last = arith.constant 4095 : i64
  %e = tensor.empty() : tensor<1x1x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %f : tensor<1x1xi64>, tensor<4xf32>) outs(%e, %e : tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %later = arith.addi %pi, %last : i64
    %pf = arith.sitofp %later : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %y = posenc.rotate half inverse ins(%x : tensor<1x1x2x8xf32>) tables(%c, %s : tensor<1x1x4xf32>) dims = [0, 1] outs(%x : tensor<1x1x2x8xf32>)
  return %y : tensor<1x1x2x8xf32>
}

// -----

// Positions that an exporter folded are a constant of f32.
// HF: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 8, base = 1.000000e+04>
// CHECK-LABEL: func @folded_positions
//       CHECK: %[[P:.*]] = arith.constant dense<[0, 4095, 2, 1000]> : tensor<4xi64>
//       CHECK: posenc.rope half #[[$F]] {{.*}} positions(%[[P]] : tensor<4xi64>) dims = [0]
#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
func.func @folded_positions(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %p = arith.constant dense<[0.0, 4095.0, 2.0, 1000.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<4xf32>, tensor<4xf32>) outs(%e, %e : tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%pf: f32, %fi: f32, %o0: f32, %o1: f32):
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<4x4xf32>, tensor<4x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<4x8xf32>) tables(%c, %s : tensor<4x4xf32>) dims = [0] outs(%x : tensor<4x8xf32>)
  return %y : tensor<4x8xf32>
}
