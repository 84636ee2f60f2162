// What resembles a sinusoidal table is left alone, and a remark says why.
//
// RUN: posenc-opt --posenc-raise --remarks-filter=posenc %s -o %t 2>&1 | FileCheck %s --check-prefixes=CHECK,HF
// RUN: FileCheck %s --check-prefix=LEFT --input-file=%t
// LEFT-NOT: posenc.sinusoidal
// RUN: posenc-opt --posenc-raise=precision=exact --remarks-filter=posenc %s -o %t 2>&1 | FileCheck %s --check-prefixes=CHECK,EXACT

#row = affine_map<(d0, d1) -> (d0)>
#lanes = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>

// CHECK: Function=sign {{.*}}'tensor.concat' looks like a sinusoidal table, but its sines and cosines have different factors
func.func @sign(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    %n0 = arith.negf %s0 : f32
    linalg.yield %n0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=negative {{.*}}its sines and cosines have a factor that is not positive
func.func @negative(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    %n0 = arith.negf %s0 : f32
    %n1 = arith.negf %k0 : f32
    linalg.yield %n0, %n1 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=factors {{.*}}its sines and cosines have different factors
func.func @factors(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    %s1 = arith.mulf %s0, %two : f32
    linalg.yield %s1, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=frequencies {{.*}}the sine and the cosine of pair 2 have different angles
func.func @frequencies(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %g = arith.constant dense<[1.0, 0.1, 0.02, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f, %g : tensor<8xi64>, tensor<4xf32>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %gi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %b = arith.mulf %pf, %gi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %b : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=swapped {{.*}}'tensor.insert_slice' looks like a sinusoidal table, but the cosine of each pair is before its sine
func.func @swapped(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %t = tensor.empty() : tensor<8x8xf32>
  %even = tensor.insert_slice %c into %t[0, 0] [8, 4] [1, 2] : tensor<8x4xf32> into tensor<8x8xf32>
  %y = tensor.insert_slice %s into %even[0, 1] [8, 4] [1, 2] : tensor<8x4xf32> into tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=scattered {{.*}}its sines and cosines are in no known order
func.func @scattered(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %s0 = tensor.extract_slice %s[0, 0] [8, 2] [1, 1] : tensor<8x4xf32> to tensor<8x2xf32>
  %s1 = tensor.extract_slice %s[0, 2] [8, 2] [1, 1] : tensor<8x4xf32> to tensor<8x2xf32>
  %y = tensor.concat dim(1) %s0, %c, %s1 : (tensor<8x2xf32>, tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// The width of an encoder is odd, and nothing is added.
// CHECK: Function=uneven {{.*}}it has 4 sines and 3 cosines
func.func @uneven(%p: tensor<8xi64>) -> tensor<8x7xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %c1 = tensor.extract_slice %c[0, 0] [8, 3] [1, 1] : tensor<8x4xf32> to tensor<8x3xf32>
  %y = tensor.concat dim(1) %s, %c1 : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<8x7xf32>
  return %y : tensor<8x7xf32>
}

// CHECK: Function=phase {{.*}}its angles have a phase
func.func @phase(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %shift = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a0 = arith.mulf %pf, %fi : f32
    %a = arith.addf %a0, %shift : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// A cosine that is written as a sine has a phase that is rounded.
// CHECK: Function=sines {{.*}}'math.sin' looks like a sinusoidal table, but its angles have a phase
func.func @sines(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %shift = arith.constant 1.57079637 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %b = arith.addf %a, %shift : f32
    linalg.yield %a, %b : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %ab = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %y = math.sin %ab : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=positions {{.*}}its lanes have different positions
func.func @positions(%p: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#both, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8x4xf32>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pf: f32, %fi: f32, %o0: f32, %o1: f32):
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=learned {{.*}}its angles are not products of positions and constants
func.func @learned(%p: tensor<8xi64>, %g: tensor<4xf32>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %g : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK: Function=half_angles {{.*}}its angles are f16
func.func @half_angles(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f16
    %fh = arith.truncf %fi : f32 to f16
    %ah = arith.mulf %pf, %fh : f16
    %sh = math.sin %ah : f16
    %kh = math.cos %ah : f16
    %s0 = arith.extf %sh : f16 to f32
    %k0 = arith.extf %kh : f16 to f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Angles that are rounded otherwise than those of hf_f32.
// HF: Function=scaled_angles {{.*}}its angles are not f32 products of positions and frequencies, which needs the precision exact
// EXACT: Function=scaled_angles {{.*}}found a sinusoidal table of 8 elements a row
func.func @scaled_angles(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %scale = arith.constant 1000.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a0 = arith.mulf %pf, %fi : f32
    %a = arith.mulf %a0, %scale : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// HF: Function=quotients {{.*}}its angles are not f32 products of positions and frequencies, which needs the precision exact
// EXACT: Function=quotients {{.*}}found a sinusoidal table of 8 elements a row
func.func @quotients(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 10.0, 100.0, 1000.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.divf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// The tables of a rotation, constants, and the sine and cosine of a float are no
// tables of positions.
// CHECK-NOT: sinusoidal
func.func @rotation(%p: tensor<8xi64>) -> tensor<8x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 1.000000047e-03]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %s, %c = linalg.generic {indexing_maps = [#row, #lanes, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p, %f : tensor<8xi64>, tensor<4xf32>) outs(%e, %e : tensor<8x4xf32>, tensor<8x4xf32>) {
  ^bb0(%pi: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %pi : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %s0 = math.sin %a : f32
    %k0 = math.cos %a : f32
    linalg.yield %s0, %k0 : f32, f32
  } -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %cc = tensor.concat dim(1) %c, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %ss = tensor.concat dim(1) %s, %s : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %y = arith.mulf %cc, %ss : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

func.func @constants() -> tensor<8x8xf32> {
  %a = arith.constant dense<0.5> : tensor<8x4xf32>
  %s = math.sin %a : tensor<8x4xf32>
  %c = math.cos %a : tensor<8x4xf32>
  %y = tensor.concat dim(1) %s, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

func.func @angle(%a: tensor<8x1xf32>) -> tensor<8x2xf32> {
  %s = math.sin %a : tensor<8x1xf32>
  %c = math.cos %a : tensor<8x1xf32>
  %y = tensor.concat dim(1) %s, %c : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}
