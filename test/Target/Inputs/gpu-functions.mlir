//===- gpu-functions.mlir - math functions on GPUs ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @acos_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.acos %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @acosh_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.acosh %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @asin_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.asin %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @asinh_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.asinh %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @atan_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.atan %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @atanh_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.atanh %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @cbrt_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.cbrt %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @cos_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.cos %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @cosh_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.cosh %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @erf_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.erf %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @erfc_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.erfc %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @exp_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.exp %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @exp2_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.exp2 %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @expm1_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.expm1 %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @log_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.log %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @log10_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.log10 %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @log1p_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.log1p %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @log2_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.log2 %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @rsqrt_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.rsqrt %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @sin_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.sin %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @sinh_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.sinh %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @sqrt_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.sqrt %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @tan_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.tan %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @tanh_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.tanh %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @absf_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.absf %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @ceil_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.ceil %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @floor_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.floor %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @round_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.round %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @roundeven_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.roundeven %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @trunc_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.trunc %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @atan2_f32(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.atan2 %x, %y : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @powf_f32(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.powf %x, %y : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @copysign_f32(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r = math.copysign %x, %y : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @acos_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.acos %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @acosh_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.acosh %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @asin_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.asin %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @asinh_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.asinh %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @atan_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.atan %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @atanh_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.atanh %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @cbrt_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.cbrt %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @cos_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.cos %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @cosh_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.cosh %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @erf_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.erf %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @erfc_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.erfc %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @exp_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.exp %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @exp2_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.exp2 %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @expm1_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.expm1 %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @log_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.log %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @log10_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.log10 %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @log1p_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.log1p %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @log2_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.log2 %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @rsqrt_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.rsqrt %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @sin_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.sin %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @sinh_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.sinh %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @sqrt_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.sqrt %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @tan_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.tan %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @tanh_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.tanh %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @absf_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.absf %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @ceil_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.ceil %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @floor_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.floor %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @round_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.round %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @roundeven_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.roundeven %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @trunc_f64(%x: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.trunc %x : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @atan2_f64(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.atan2 %x, %y : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @powf_f64(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.powf %x, %y : tensor<?xf64>
  return %r : tensor<?xf64>
}
func.func @copysign_f64(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = math.copysign %x, %y : tensor<?xf64>
  return %r : tensor<?xf64>
}

// In 16 bits, with a constant exponent, and with sums that are rounded in between.
func.func @mixed_bf16(%x: tensor<?xbf16>) -> tensor<?xbf16> {
  %size = arith.constant 0 : index
  %n = tensor.dim %x, %size : tensor<?xbf16>
  %e = tensor.empty(%n) : tensor<?xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xbf16>) outs(%e : tensor<?xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %c = arith.constant 3.0 : bf16
    %p = math.powf %a, %c : bf16
    %s = math.sin %p : bf16
    %t = arith.addf %s, %a : bf16
    %u = math.rsqrt %t : bf16
    linalg.yield %u : bf16
  } -> tensor<?xbf16>
  return %r : tensor<?xbf16>
}
func.func @sigmoid_f16(%x: tensor<?xf16>) -> tensor<?xf16> {
  %size = arith.constant 0 : index
  %n = tensor.dim %x, %size : tensor<?xf16>
  %e = tensor.empty(%n) : tensor<?xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf16>) outs(%e : tensor<?xf16>) {
  ^bb0(%a: f16, %o: f16):
    %one = arith.constant 1.0 : f16
    %m = arith.negf %a : f16
    %p = math.exp %m : f16
    %s = arith.addf %one, %p : f16
    %t = arith.divf %one, %s : f16
    linalg.yield %t : f16
  } -> tensor<?xf16>
  return %r : tensor<?xf16>
}

// Classification of floating-point numbers.
func.func @classes_f32(%x: tensor<?xf32>) -> tensor<?xf32> {
  %size = arith.constant 0 : index
  %n = tensor.dim %x, %size : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %three = arith.constant 3.0 : f32
    %isNaN = math.isnan %a : f32
    %isInf = math.isinf %a : f32
    %isNormal = math.isnormal %a : f32
    %s = arith.select %isNaN, %one, %a : f32
    %t = arith.select %isInf, %two, %s : f32
    %u = arith.select %isNormal, %three, %t : f32
    linalg.yield %u : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
