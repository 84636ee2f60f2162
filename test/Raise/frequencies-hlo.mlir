// StableHLO, as JAX prints a rotation whose frequencies it computes.
//
// RUN: posenc-compile %s --precision=hf_f32 --emit=posenc -o - | FileCheck %s --check-prefixes=CHECK,HF
// RUN: posenc-compile %s --precision=exact --emit=posenc -o - | FileCheck %s --check-prefixes=CHECK,EXACT
// RUN: posenc-run %s --raise=no --opt-level=0 --input=1x32x4x16xf32=random --input=1x32xi32=iota --output=@%t.npy
// RUN: posenc-run %s --precision=hf_f32 --opt-level=0 --input=1x32x4x16xf32=random --input=1x32xi32=iota --expected_output=@%t.npy --atol=2e-6
// RUN: posenc-run %s --precision=exact --opt-level=0 --reference --input=1x32x4x16xf32=random --input=1x32xi32=iota

// HF: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 1.000000e+04, precision = hf_f32>
// EXACT: #[[$F:.*]] = #posenc.frequencies<dim = 16, base = 1.000000e+04>
// CHECK-LABEL: func.func public @main
//  CHECK-SAME: (%[[X:.*]]: tensor<1x32x4x16xf32> {{.*}}, %[[P:.*]]: tensor<1x32xi32> {posenc.name = "p"})
//       CHECK: posenc.rope half #[[$F]] ins(%[[X]] : {{.*}}) positions(%{{.*}} : tensor<32xi32>) dims = [1]
module @jit_rope {
  func.func public @main(%x: tensor<1x32x4x16xf32>, %p: tensor<1x32xi32>) -> tensor<1x32x4x16xf32> {
    %i = stablehlo.iota dim = 0 : tensor<8xf32>
    %two = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %twos = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %i2 = stablehlo.multiply %twos, %i : tensor<8xf32>
    %d = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %ds = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %exponents = stablehlo.divide %i2, %ds : tensor<8xf32>
    %base = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %bases = stablehlo.broadcast_in_dim %base, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %periods = stablehlo.power %bases, %exponents : tensor<8xf32>
    %one = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %f = stablehlo.divide %ones, %periods : tensor<8xf32>
    %p1 = stablehlo.broadcast_in_dim %p, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<1x32x1xi32>
    %pf = stablehlo.convert %p1 : (tensor<1x32x1xi32>) -> tensor<1x32x1xf32>
    %pb = stablehlo.broadcast_in_dim %pf, dims = [0, 1, 2] : (tensor<1x32x1xf32>) -> tensor<1x32x8xf32>
    %fb = stablehlo.broadcast_in_dim %f, dims = [2] : (tensor<8xf32>) -> tensor<1x32x8xf32>
    %a = stablehlo.multiply %pb, %fb : tensor<1x32x8xf32>
    %aa = stablehlo.concatenate %a, %a, dim = 2 : (tensor<1x32x8xf32>, tensor<1x32x8xf32>) -> tensor<1x32x16xf32>
    %c = stablehlo.cosine %aa : tensor<1x32x16xf32>
    %s = stablehlo.sine %aa : tensor<1x32x16xf32>
    %cb = stablehlo.broadcast_in_dim %c, dims = [0, 1, 3] : (tensor<1x32x16xf32>) -> tensor<1x32x4x16xf32>
    %sb = stablehlo.broadcast_in_dim %s, dims = [0, 1, 3] : (tensor<1x32x16xf32>) -> tensor<1x32x4x16xf32>
    %x0 = stablehlo.slice %x [0:1, 0:32, 0:4, 0:8] : (tensor<1x32x4x16xf32>) -> tensor<1x32x4x8xf32>
    %x1 = stablehlo.slice %x [0:1, 0:32, 0:4, 8:16] : (tensor<1x32x4x16xf32>) -> tensor<1x32x4x8xf32>
    %n = stablehlo.negate %x1 : tensor<1x32x4x8xf32>
    %r = stablehlo.concatenate %n, %x0, dim = 3 : (tensor<1x32x4x8xf32>, tensor<1x32x4x8xf32>) -> tensor<1x32x4x16xf32>
    %xc = stablehlo.multiply %x, %cb : tensor<1x32x4x16xf32>
    %rs = stablehlo.multiply %r, %sb : tensor<1x32x4x16xf32>
    %y = stablehlo.add %xc, %rs : tensor<1x32x4x16xf32>
    return %y : tensor<1x32x4x16xf32>
  }
}
