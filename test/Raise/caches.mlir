// Writes to a pair of caches, which a function takes and returns, become posenc.kv_append.
//
// RUN: posenc-opt --posenc-raise %s | FileCheck %s
// RUN: posenc-compile %s --header=%t.h -o %t.so && FileCheck %s --check-prefix=HEADER --input-file=%t.h
// RUN: %python %S/compare-raised.py posenc-run %s
// RUN: %python %S/compare-raised.py posenc-run %s --fault

// A slice at a position. The values are written after the keys were read.
// CHECK-LABEL: func @inserted
//       CHECK: %[[S:.*]] = linalg.generic
//       CHECK: %[[R:.*]]:2 = posenc.kv_append layout = head_major cache_layout = head_major ins(%{{.*}}, %{{.*}} : tensor<2x2x1x8xf32>, tensor<2x2x1x8xf32>) slots(%[[S]] : tensor<2x1xi64>) outs(%{{.*}}, %{{.*}} : tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>)
//       CHECK: posenc.attention {{.*}} ins(%{{.*}}, %[[R]]#0, %[[R]]#1
//       CHECK: return %{{.*}}, %[[R]]#0, %[[R]]#1
// HEADER-LABEL: /* inserted
//       HEADER: out1: {{.*}} may be kc (in place)
//       HEADER: out2: {{.*}} may be vc (in place)
func.func @inserted(%q: tensor<2x2x1x8xf32>, %k: tensor<2x2x1x8xf32>, %v: tensor<2x2x1x8xf32>, %kc: tensor<2x2x16x8xf32>, %vc: tensor<2x2x16x8xf32>, %at: tensor<1xi64>) -> (tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) {
  %c0_0 = arith.constant 0 : index
  %t0 = tensor.extract %at[%c0_0] : tensor<1xi64>
  %i0 = arith.index_cast %t0 : i64 to index
  %l0 = arith.maxsi %i0, %c0_0 : index
  %m0 = arith.constant 15 : index
  %n0 = arith.minsi %l0, %m0 : index
  %ku = tensor.insert_slice %k into %kc[0, 0, %n0, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x1x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %ku : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>) outs(%z : tensor<2x2x1x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x16xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x2x1x16xf32>) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %c0_1 = arith.constant 0 : index
  %t1 = tensor.extract %at[%c0_1] : tensor<1xi64>
  %i1 = arith.index_cast %t1 : i64 to index
  %l1 = arith.maxsi %i1, %c0_1 : index
  %m1 = arith.constant 15 : index
  %n1 = arith.minsi %l1, %m1 : index
  %vu = tensor.insert_slice %v into %vc[0, 0, %n1, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %oe = tensor.empty() : tensor<2x2x1x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x2x1x8xf32>) -> tensor<2x2x1x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vu : tensor<2x2x1x16xf32>, tensor<2x2x16x8xf32>) outs(%oz : tensor<2x2x1x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x8xf32>
  return %o, %ku, %vu : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>
}

// Three rows at positions of their own.
// CHECK-LABEL: func @scattered
//       CHECK: %[[S:.*]] = linalg.generic
//       CHECK: %[[R:.*]]:2 = posenc.kv_append layout = head_major cache_layout = head_major ins(%{{.*}}, %{{.*}} : tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>) slots(%[[S]] : tensor<2x3xi64>) outs(%{{.*}}, %{{.*}} : tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>)
//       CHECK: posenc.attention {{.*}} ins(%{{.*}}, %[[R]]#0, %[[R]]#1
//       CHECK: return %{{.*}}, %[[R]]#0, %[[R]]#1
// HEADER-LABEL: /* scattered
//       HEADER: out1: {{.*}} may be kc (in place)
//       HEADER: out2: {{.*}} may be vc (in place)
func.func @scattered(%q: tensor<2x2x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>, %kc: tensor<2x2x16x8xf32>, %vc: tensor<2x2x16x8xf32>, %at: tensor<3xi64>) -> (tensor<2x2x3x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) {
  %ku = linalg.generic {indexing_maps = [affine_map<(b, h, j, d, t) -> (b, h, t, d)>, affine_map<(b, h, j, d, t) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%k : tensor<2x2x3x8xf32>) outs(%kc : tensor<2x2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = linalg.index 4 : index
    %j = linalg.index 2 : index
    %i = tensor.extract %at[%t] : tensor<3xi64>
    %at_t = arith.index_cast %i : i64 to index
    %is = arith.cmpi eq, %at_t, %j : index
    %y = arith.select %is, %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<2x2x16x8xf32>
  %vu = linalg.generic {indexing_maps = [affine_map<(b, h, j, d, t) -> (b, h, t, d)>, affine_map<(b, h, j, d, t) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%v : tensor<2x2x3x8xf32>) outs(%vc : tensor<2x2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = linalg.index 4 : index
    %j = linalg.index 2 : index
    %i = tensor.extract %at[%t] : tensor<3xi64>
    %at_t = arith.index_cast %i : i64 to index
    %is = arith.cmpi eq, %at_t, %j : index
    %y = arith.select %is, %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<2x2x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x3x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x3x16xf32>) -> tensor<2x2x3x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %ku : tensor<2x2x3x8xf32>, tensor<2x2x16x8xf32>) outs(%z : tensor<2x2x3x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x3x16xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x2x3x16xf32>) outs(%e : tensor<2x2x3x16xf32>) -> tensor<2x2x3x16xf32>
  %oe = tensor.empty() : tensor<2x2x3x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vu : tensor<2x2x3x16xf32>, tensor<2x2x16x8xf32>) outs(%oz : tensor<2x2x3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x3x8xf32>
  return %o, %ku, %vu : tensor<2x2x3x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>
}

// Keys and values have other positions.
// CHECK-LABEL: func @other_positions
//   CHECK-NOT: posenc.kv_append
//       CHECK: return
func.func @other_positions(%q: tensor<2x2x1x8xf32>, %k: tensor<2x2x1x8xf32>, %v: tensor<2x2x1x8xf32>, %kc: tensor<2x2x16x8xf32>, %vc: tensor<2x2x16x8xf32>, %at: tensor<1xi64>, %other: tensor<1xi64>) -> (tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) {
  %c0_0 = arith.constant 0 : index
  %t0 = tensor.extract %at[%c0_0] : tensor<1xi64>
  %i0 = arith.index_cast %t0 : i64 to index
  %l0 = arith.maxsi %i0, %c0_0 : index
  %m0 = arith.constant 15 : index
  %n0 = arith.minsi %l0, %m0 : index
  %ku = tensor.insert_slice %k into %kc[0, 0, %n0, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x1x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %ku : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>) outs(%z : tensor<2x2x1x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x16xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x2x1x16xf32>) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %c0_1 = arith.constant 0 : index
  %t1 = tensor.extract %other[%c0_1] : tensor<1xi64>
  %i1 = arith.index_cast %t1 : i64 to index
  %l1 = arith.maxsi %i1, %c0_1 : index
  %m1 = arith.constant 15 : index
  %n1 = arith.minsi %l1, %m1 : index
  %vu = tensor.insert_slice %v into %vc[0, 0, %n1, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %oe = tensor.empty() : tensor<2x2x1x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x2x1x8xf32>) -> tensor<2x2x1x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vu : tensor<2x2x1x16xf32>, tensor<2x2x16x8xf32>) outs(%oz : tensor<2x2x1x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x8xf32>
  return %o, %ku, %vu : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>
}

// The caches are not returned.
// CHECK-LABEL: func @not_returned
//   CHECK-NOT: posenc.kv_append
//       CHECK: return
func.func @not_returned(%q: tensor<2x2x1x8xf32>, %k: tensor<2x2x1x8xf32>, %v: tensor<2x2x1x8xf32>, %kc: tensor<2x2x16x8xf32>, %vc: tensor<2x2x16x8xf32>, %at: tensor<1xi64>) -> (tensor<2x2x1x8xf32>) {
  %c0_0 = arith.constant 0 : index
  %t0 = tensor.extract %at[%c0_0] : tensor<1xi64>
  %i0 = arith.index_cast %t0 : i64 to index
  %l0 = arith.maxsi %i0, %c0_0 : index
  %m0 = arith.constant 15 : index
  %n0 = arith.minsi %l0, %m0 : index
  %ku = tensor.insert_slice %k into %kc[0, 0, %n0, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x1x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %ku : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>) outs(%z : tensor<2x2x1x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x16xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x2x1x16xf32>) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %c0_1 = arith.constant 0 : index
  %t1 = tensor.extract %at[%c0_1] : tensor<1xi64>
  %i1 = arith.index_cast %t1 : i64 to index
  %l1 = arith.maxsi %i1, %c0_1 : index
  %m1 = arith.constant 15 : index
  %n1 = arith.minsi %l1, %m1 : index
  %vu = tensor.insert_slice %v into %vc[0, 0, %n1, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %oe = tensor.empty() : tensor<2x2x1x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x2x1x8xf32>) -> tensor<2x2x1x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vu : tensor<2x2x1x16xf32>, tensor<2x2x16x8xf32>) outs(%oz : tensor<2x2x1x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x8xf32>
  return %o : tensor<2x2x1x8xf32>
}

// The new values depend on the updated keys.
// CHECK-LABEL: func @dependent
//   CHECK-NOT: posenc.kv_append
//       CHECK: return
func.func @dependent(%q: tensor<2x2x1x8xf32>, %k: tensor<2x2x1x8xf32>, %v: tensor<2x2x1x8xf32>, %kc: tensor<2x2x16x8xf32>, %vc: tensor<2x2x16x8xf32>, %at: tensor<1xi64>) -> (tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) {
  %c0_0 = arith.constant 0 : index
  %t0 = tensor.extract %at[%c0_0] : tensor<1xi64>
  %i0 = arith.index_cast %t0 : i64 to index
  %l0 = arith.maxsi %i0, %c0_0 : index
  %m0 = arith.constant 15 : index
  %n0 = arith.minsi %l0, %m0 : index
  %ku = tensor.insert_slice %k into %kc[0, 0, %n0, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %v2 = tensor.extract_slice %ku[0, 0, 3, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x16x8xf32> to tensor<2x2x1x8xf32>
  %c0_1 = arith.constant 0 : index
  %t1 = tensor.extract %at[%c0_1] : tensor<1xi64>
  %i1 = arith.index_cast %t1 : i64 to index
  %l1 = arith.maxsi %i1, %c0_1 : index
  %m1 = arith.constant 15 : index
  %n1 = arith.minsi %l1, %m1 : index
  %vu = tensor.insert_slice %v2 into %vc[0, 0, %n1, 0] [2, 2, 1, 8] [1, 1, 1, 1] : tensor<2x2x1x8xf32> into tensor<2x2x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x1x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %ku : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>) outs(%z : tensor<2x2x1x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x16xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x2x1x16xf32>) outs(%e : tensor<2x2x1x16xf32>) -> tensor<2x2x1x16xf32>
  %oe = tensor.empty() : tensor<2x2x1x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x2x1x8xf32>) -> tensor<2x2x1x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vu : tensor<2x2x1x16xf32>, tensor<2x2x16x8xf32>) outs(%oz : tensor<2x2x1x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x1x8xf32>
  return %o, %ku, %vu : tensor<2x2x1x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>
}

// A sum at a position is no write.
// CHECK-LABEL: func @sum
//   CHECK-NOT: posenc.kv_append
//       CHECK: return
func.func @sum(%q: tensor<2x2x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>, %kc: tensor<2x2x16x8xf32>, %vc: tensor<2x2x16x8xf32>, %at: tensor<3xi64>) -> (tensor<2x2x3x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>) {
  %ku = linalg.generic {indexing_maps = [affine_map<(b, h, j, d, t) -> (b, h, t, d)>, affine_map<(b, h, j, d, t) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%k : tensor<2x2x3x8xf32>) outs(%kc : tensor<2x2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = linalg.index 4 : index
    %j = linalg.index 2 : index
    %i = tensor.extract %at[%t] : tensor<3xi64>
    %at_t = arith.index_cast %i : i64 to index
    %is = arith.cmpi eq, %at_t, %j : index
    %x = arith.addf %a, %b : f32
    %y = arith.select %is, %x, %b : f32
    linalg.yield %y : f32
  } -> tensor<2x2x16x8xf32>
  %vu = linalg.generic {indexing_maps = [affine_map<(b, h, j, d, t) -> (b, h, t, d)>, affine_map<(b, h, j, d, t) -> (b, h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%v : tensor<2x2x3x8xf32>) outs(%vc : tensor<2x2x16x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = linalg.index 4 : index
    %j = linalg.index 2 : index
    %i = tensor.extract %at[%t] : tensor<3xi64>
    %at_t = arith.index_cast %i : i64 to index
    %is = arith.cmpi eq, %at_t, %j : index
    %x = arith.addf %a, %b : f32
    %y = arith.select %is, %x, %b : f32
    linalg.yield %y : f32
  } -> tensor<2x2x16x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2x3x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x3x16xf32>) -> tensor<2x2x3x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %ku : tensor<2x2x3x8xf32>, tensor<2x2x16x8xf32>) outs(%z : tensor<2x2x3x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x3x16xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x2x3x16xf32>) outs(%e : tensor<2x2x3x16xf32>) -> tensor<2x2x3x16xf32>
  %oe = tensor.empty() : tensor<2x2x3x8xf32>
  %oz = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, h, i, d, j) -> (b, h, i, j)>, affine_map<(b, h, i, d, j) -> (b, h, j, d)>, affine_map<(b, h, i, d, j) -> (b, h, i, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %vu : tensor<2x2x3x16xf32>, tensor<2x2x16x8xf32>) outs(%oz : tensor<2x2x3x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    %y = arith.addf %c, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x2x3x8xf32>
  return %o, %ku, %vu : tensor<2x2x3x8xf32>, tensor<2x2x16x8xf32>, tensor<2x2x16x8xf32>
}
