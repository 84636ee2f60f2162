// Tables that are not cos and sin of known frequencies are kept, and a remark says
// why.
//
// RUN: posenc-opt --posenc-raise=precision=hf_f32 --remarks-filter=posenc %s -o %t 2>&1 | FileCheck %s --check-prefixes=CHECK,HF
// RUN: FileCheck %s --check-prefix=LEFT --input-file=%t
// RUN: posenc-opt --posenc-raise=precision=exact --remarks-filter=posenc %s -o %t 2>&1 | FileCheck %s --check-prefixes=CHECK,EXACT
// LEFT-NOT: posenc.rope

#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>

// CHECK: Function=scaled_positions {{.*}}keeps the tables of a rotation: positions are scaled
func.func @scaled_positions(%x: tensor<8x8xf32>, %p: tensor<8xi64>, %f: tensor<4xf32>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %scale = arith.constant 0.3 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %ps = arith.mulf %pf, %scale : f32
    %a = arith.mulf %ps, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// CHECK: Function=f16_positions {{.*}}positions are rounded to f16
func.func @f16_positions(%x: tensor<8x8xf32>, %p: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pn = arith.sitofp %pi : i64 to f16
    %pf = arith.extf %pn : f16 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// CHECK: Function=bf16_angles {{.*}}angles are rounded before cos and sin
func.func @bf16_angles(%x: tensor<8x8xf32>, %p: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %an = arith.truncf %a : f32 to bf16
    %aw = arith.extf %an : bf16 to f32
    %c0 = math.cos %aw : f32
    %s0 = math.sin %aw : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// CHECK: Function=argument_frequencies {{.*}}frequencies are not constants
func.func @argument_frequencies(%x: tensor<8x8xf32>, %p: tensor<8xi64>, %f: tensor<4xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// The sines are those of later positions.
// CHECK: Function=other_angles {{.*}}cos and sin have other angles
func.func @other_angles(%x: tensor<8x8xf32>, %p: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %later = arith.addf %pf, %one : f32
    %a = arith.mulf %pf, %fi : f32
    %b = arith.mulf %later, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %b : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// CHECK: Function=other_factors {{.*}}factors of cos and sin differ
func.func @other_factors(%x: tensor<8x8xf32>, %p: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    %c1 = arith.mulf %c0, %two : f32
    linalg.yield %c1, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// Rows and columns of an image: two axes.
// CHECK: Function=two_axes {{.*}}its lanes have different positions
func.func @two_axes(%x: tensor<8x8xf32>, %p: tensor<8xi64>, %q: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1]> : tensor<2xf32>
  %e = tensor.empty() : tensor<8x2xf32>
  %a, %b = linalg.generic {indexing_maps = [#row, #row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q, %fc : tensor<8xi64>, tensor<8xi64>, tensor<2xf32>) outs(%e, %e : tensor<8x2xf32>, tensor<8x2xf32>) {
  ^bb0(%pi: i64, %qi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %qf = arith.sitofp %qi : i64 to f32
    %a0 = arith.mulf %pf, %fi : f32
    %b0 = arith.mulf %qf, %fi : f32
    linalg.yield %a0, %b0 : f32, f32
  } -> (tensor<8x2xf32>, tensor<8x2xf32>)
  %ab = tensor.concat dim(1) %a, %b : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>
  %c = math.cos %ab : tensor<8x4xf32>
  %s = math.sin %ab : tensor<8x4xf32>
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// Lanes of a pair with different frequencies are no rotation.
// CHECK: Function=unequal_pairs {{.*}}the lanes of pair 1 have different frequencies
func.func @unequal_pairs(%x: tensor<8x4xf32>, %p: tensor<8xi64>) -> tensor<8x4xf32> {
  %fc = arith.constant dense<[1.0, 0.01, 1.0, 0.02]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half full_tables ins(%x : tensor<8x4xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x4xf32>)
  return %y : tensor<8x4xf32>
}

// CHECK: Function=arguments {{.*}}tables are neither cos and sin of angles nor constants of f32
func.func @arguments(%x: tensor<8x8xf32>, %c: tensor<8x4xf32>, %s: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// The spelling of the first implementation, p / base^(2i/d), rounds otherwise
// than hf_f32. exact does not round.
// HF: Function=quotients {{.*}}its angles are not f32 products of positions and frequencies
// EXACT: Function=quotients {{.*}}found the frequencies of a rotation: #posenc.frequencies<dim = 8, base = 1.000000e+04>
func.func @quotients(%x: tensor<8x8xf32>, %p: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 10.0, 100.0, 1000.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.divf %pf, %fi : f32
    %c0 = math.cos %a : f32
    %s0 = math.sin %a : f32
    linalg.yield %c0, %s0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}

// HF: Function=f64_angles {{.*}}its angles are not f32 products of positions and frequencies
// EXACT: Function=f64_angles {{.*}}found the frequencies of a rotation: #posenc.frequencies<dim = 8, base = 1.000000e+04>
func.func @f64_angles(%x: tensor<8x8xf32>, %p: tensor<8xi64>) -> tensor<8x8xf32> {
  %fc = arith.constant dense<[1.0, 0.1, 0.01, 0.001]> : tensor<4xf64>
  %e = tensor.empty() : tensor<8x4xf32>
  %c, %s = linalg.generic {indexing_maps = [#row, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %fc : tensor<8xi64>, tensor<4xf64>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f64, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f64
    %a = arith.mulf %pf, %fi : f64
    %c0 = math.cos %a : f64
    %s0 = math.sin %a : f64
    %c1 = arith.truncf %c0 : f64 to f32
    %s1 = arith.truncf %s0 : f64 to f32
    linalg.yield %c1, %s1 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<8x8xf32>) tables(%c, %s : tensor<8x4xf32>) dims = [0] outs(%x : tensor<8x8xf32>)
  return %y : tensor<8x8xf32>
}
