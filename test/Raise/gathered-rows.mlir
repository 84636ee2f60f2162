// Rows of a table that repeats rows are gathered by an input: the index that the
// repetition is computed from is no affine expression. The positions are not found.
//
// RUN: posenc-opt --posenc-raise=precision=hf_f32 --remarks-filter=posenc %s 2>&1 | FileCheck %s
// RUN: %python %S/compare-raised.py posenc-run %s --precision=hf_f32
// RUN: %python %S/compare-raised.py posenc-run %s --precision=hf_f32 --fault
//
//       CHECK: Function=gathered_repeats {{.*}}keeps the tables of a rotation: tables are neither cos and sin of angles nor constants of f32
// CHECK-LABEL: func @gathered_repeats
//       CHECK: posenc.rotate
//   CHECK-NOT: posenc.rope

#row = affine_map<(d0, d1) -> (d0)>
#lane = affine_map<(d0, d1) -> (d1)>
#both = affine_map<(d0, d1) -> (d0, d1)>
#half = affine_map<(d0, d1) -> (d0 floordiv 2)>
func.func @gathered_repeats(%x: tensor<4x8xf32>, %q: tensor<3xi64>, %p: tensor<4xi64>) -> tensor<4x8xf32> {
  %f = arith.constant dense<[1.0, 0.1, 0.01, 0.001]> : tensor<4xf32>
  %wide = tensor.empty() : tensor<6x4xf32>
  %c2, %s2 = linalg.generic {indexing_maps = [#half, #lane, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%q, %f : tensor<3xi64>, tensor<4xf32>) outs(%wide, %wide : tensor<6x4xf32>, tensor<6x4xf32>) {
  ^bb0(%i: i64, %fi: f32, %o0: f32, %o1: f32):
    %pf = arith.sitofp %i : i64 to f32
    %a = arith.mulf %pf, %fi : f32
    %c = math.cos %a : f32
    %s = math.sin %a : f32
    linalg.yield %c, %s : f32, f32
  } -> (tensor<6x4xf32>, tensor<6x4xf32>)
  %e = tensor.empty() : tensor<4x4xf32>
  %ct, %st = linalg.generic {indexing_maps = [#row, #both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<4xi64>) outs(%e, %e : tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%at: i64, %o0: f32, %o1: f32):
    %i = arith.index_cast %at : i64 to index
    %j = linalg.index 1 : index
    %c = tensor.extract %c2[%i, %j] : tensor<6x4xf32>
    %s = tensor.extract %s2[%i, %j] : tensor<6x4xf32>
    linalg.yield %c, %s : f32, f32
  } -> (tensor<4x4xf32>, tensor<4x4xf32>)
  %y = posenc.rotate half ins(%x : tensor<4x8xf32>) tables(%ct, %st : tensor<4x4xf32>) dims = [0] outs(%x : tensor<4x8xf32>)
  return %y : tensor<4x8xf32>
}
