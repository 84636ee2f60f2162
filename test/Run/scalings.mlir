// Tables of each scaling, at positions that depend on their index and beyond the
// context of any model, are compared with the oracle.
// RUN: posenc-run %s --function=ntk --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=ntk --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=ntk_mixed --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=ntk_mixed --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=dynamic --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=dynamic --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=longrope --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=longrope --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=proportional --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=proportional --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=divisors --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=divisors --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=yarn_half --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=yarn_half --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=yarn_linear --input=257xi64=random:seed=3 --input=257x4xf32=random --input=257x4xf32=random --reference | FileCheck %s
// RUN: posenc-run %s --function=yarn_linear --input=3xi64=2147483647 --input=3x4xf32=random --input=3x4xf32=random --reference | FileCheck %s

// CHECK: result #0: max error {{0\.[0-9]+|1\.00}} ulp
// CHECK: result #1: max error {{0\.[0-9]+|1\.00}} ulp

func.func @ntk(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.ntk<factor = 4>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @ntk_mixed(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.ntk<factor = 4, mixed_b = 0.625>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @dynamic(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.dynamic<factor = 2, max_position = 4096, length = 16384>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @longrope(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.longrope<short_factors = [1.0, 1.0, 1.0, 1.0], long_factors = [1.0, 1.1, 4.0, 16.0], original_max_position = 4096, length = 8192, factor = 32>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @proportional(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.proportional<rotated_pairs = 2>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @divisors(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.divisors<values = [1.0, 1.1, 4.0, 16.0]>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @yarn_half(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.yarn<factor = 4, original_max_position = 4096, ext_factor = 0.5, attn_factor = 2>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}

func.func @yarn_linear(%p: tensor<?xi64>, %c: tensor<?x4xf32>, %s: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8, scaling = #posenc.yarn<factor = 4, original_max_position = 4096, ext_factor = 0>>
    positions(%p : tensor<?xi64>) outs(%c, %s : tensor<?x4xf32>, tensor<?x4xf32>)
  return %cos, %sin : tensor<?x4xf32>, tensor<?x4xf32>
}
