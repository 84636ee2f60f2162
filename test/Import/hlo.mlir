// StableHLO and TTIR become linalg, tensor and arith.
//
// RUN: posenc-opt %s --posenc-import-hlo --split-input-file | FileCheck %s

// Annotations of the producer are removed, private functions are inlined.
// CHECK-LABEL: module @jit_f {
// CHECK-LABEL: func public @main
//  CHECK-SAME: (%[[X:.*]]: tensor<4xf32>) -> tensor<4xf32>
//   CHECK-NOT: call
//       CHECK: %[[E:.*]] = math.exp %[[X]]
//       CHECK: return %[[E]]
//   CHECK-NOT: func private
module @jit_f attributes {mhlo.num_partitions = 1 : i32, jax.uses_shape_polymorphism = false} {
  func.func public @main(%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %y = call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.exponential %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// A write in place is read later, and returned.
// CHECK-LABEL: func @cache
//  CHECK-SAME: (%[[C:.*]]: tensor<2x1x4x2xf32>, %[[R:.*]]: tensor<1x1x3x2xf32>) -> (tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>)
//       CHECK: %[[A:.*]] = tensor.insert_slice %[[R]] into %[[C]][0, 0, 0, 0]
//       CHECK: %[[B:.*]] = tensor.insert_slice %[[R]] into %[[A]][1, 0, 0, 0]
//       CHECK: %[[N:.*]] = arith.negf %[[B]]
//       CHECK: return %[[N]], %[[B]]
module {
  builtin.module @inner attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>} {
    func.func @cache(%cache: tensor<2x1x4x2xf32> {ttcore.argument_type = #ttcore.argument_type<input>}, %rows: tensor<1x1x3x2xf32>) -> tensor<2x1x4x2xf32> {
      "ttir.fill_cache"(%cache, %rows) <{batch_offset = 0 : i32}> : (tensor<2x1x4x2xf32>, tensor<1x1x3x2xf32>) -> ()
      "ttir.fill_cache"(%cache, %rows) <{batch_offset = 1 : i32}> : (tensor<2x1x4x2xf32>, tensor<1x1x3x2xf32>) -> ()
      %n = "ttir.neg"(%cache) : (tensor<2x1x4x2xf32>) -> tensor<2x1x4x2xf32>
      return %n : tensor<2x1x4x2xf32>
    }
  }
}

// -----

// Arguments and results of ui8 are u8 in the C signature.
// CHECK-LABEL: func @bytes
//  CHECK-SAME: (%[[X:.*]]: tensor<4xi8> {posenc.unsigned}, %[[Y:.*]]: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8> {posenc.unsigned})
//       CHECK: %[[N:.*]] = arith.xori %[[X]]
//       CHECK: return %[[Y]], %[[N]]
func.func @bytes(%x: tensor<4xui8>, %y: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xui8>) {
  %n = stablehlo.not %x : tensor<4xui8>
  return %y, %n : tensor<4xi8>, tensor<4xui8>
}

// -----

// Slices without elements may begin at the end of their operand.
// CHECK-LABEL: func @empty
//  CHECK-SAME: (%[[X:.*]]: tensor<4x2xf32>, %[[NONE:.*]]: tensor<0x2xf32>
//   CHECK-NOT: extract_slice
//   CHECK-NOT: insert_slice
//       CHECK: return %{{.*}}, %{{.*}}, %[[X]] : tensor<0x2xf32>, tensor<0x2xf32>, tensor<4x2xf32>
func.func @empty(%x: tensor<4x2xf32>, %none: tensor<0x2xf32>, %at: tensor<i32>) -> (tensor<0x2xf32>, tensor<0x2xf32>, tensor<4x2xf32>) {
  %0 = stablehlo.slice %x [4:4, 0:2] : (tensor<4x2xf32>) -> tensor<0x2xf32>
  %1 = stablehlo.dynamic_slice %x, %at, %at, sizes = [0, 2] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<0x2xf32>
  %2 = stablehlo.dynamic_update_slice %x, %none, %at, %at : (tensor<4x2xf32>, tensor<0x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
  return %0, %1, %2 : tensor<0x2xf32>, tensor<0x2xf32>, tensor<4x2xf32>
}

// -----

// Sigmoids of f16 are computed in f32: the exponential may overflow in f16.
// CHECK-LABEL: func @sigmoid
//       CHECK: arith.extf
//       CHECK: math.exp %{{.*}} : tensor<4xf32>
//       CHECK: arith.divf %{{.*}} : tensor<4xf32>
//       CHECK: arith.truncf
func.func @sigmoid(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = stablehlo.logistic %x : tensor<4xf16>
  return %0 : tensor<4xf16>
}
