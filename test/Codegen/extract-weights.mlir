// RUN: posenc-opt %s --posenc-extract-weights=min-bytes=64 | FileCheck %s
// RUN: posenc-opt %s --posenc-extract-weights="min-bytes=64 max-embedded-bytes=191" | FileCheck %s
// RUN: posenc-opt %s --posenc-extract-weights="min-bytes=64 max-embedded-bytes=192" | FileCheck %s --check-prefix=STAYS
// RUN: posenc-opt %s --posenc-extract-weights | FileCheck %s --check-prefix=STAYS

// Equal elements have the bytes of all of them. Constants that are small, not
// private or of bits stay, and so do variables.
// CHECK: module attributes {posenc.weights = {mapped = dense_resource<mapped> : tensor<16xf32>, splat = dense<1> : tensor<2x16xi32>}} {
// CHECK: memref.global "private" constant @splat : memref<2x16xi32>{{$}}
// CHECK: memref.global "private" constant @mapped : memref<16xf32>{{$}}
// CHECK: memref.global "private" constant @small : memref<15xf32> = dense
// CHECK: memref.global constant @public : memref<16xf32> = dense
// CHECK: memref.global "private" constant @bits : memref<1024xi1> = dense
// CHECK: memref.global "private" @variable : memref<16xf32> = dense
// STAYS-NOT: posenc.weights
memref.global "private" constant @splat : memref<2x16xi32> = dense<1>
memref.global "private" constant @mapped : memref<16xf32> = dense_resource<mapped>
memref.global "private" constant @small : memref<15xf32> = dense<2.0>
memref.global constant @public : memref<16xf32> = dense<3.0>
memref.global "private" constant @bits : memref<1024xi1> = dense<true>
memref.global "private" @variable : memref<16xf32> = dense<4.0>

{-#
  dialect_resources: {
    builtin: {
      mapped: "0x040000000000803F000000400000404000008040000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    }
  }
#-}
