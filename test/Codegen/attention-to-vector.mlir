//===- attention-to-vector.mlir - attention as vectors --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: posenc-opt %s --convert-posenc-attention-to-vector --posenc-lower-tile-products --canonicalize --cse --split-input-file | FileCheck %s
// RUN: posenc-opt %s --convert-posenc-attention-to-vector=vector-bytes=64 --posenc-lower-tile-products --canonicalize --cse --split-input-file | FileCheck %s --check-prefix=WIDE

// The keys and values of a task are shared by two query heads. All scratch
// memory is on the stack of the function; the stride of its rows is an odd
// number of cache lines.
// CHECK-LABEL: func.func @full
// CHECK-SAME: (%[[Q:.*]]: memref<2x199x4x64xf32>, %[[K:.*]]: memref<2x?x2x64xf32>, %[[V:.*]]: memref<2x?x2x64xf32>, %[[O:.*]]: memref<2x199x4x64xf32>)
// CHECK-NOT: memref.alloc()
// CHECK-DAG: %[[QT:.*]] = memref.alloca() {alignment = 64 : i64} : memref<24x64x16xf32>
// CHECK-DAG: %[[S:.*]] = memref.alloca() {alignment = 64 : i64} : memref<96x16xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<96x80xf32>
// CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) in (2, 2, 2) {
// CHECK: vector.load %[[Q]]
// Rows of keys, then of values.
// CHECK: vector.load %[[K]]
// CHECK: vector.load %[[V]]
// A step has 6 keys and two vectors of queries, without divisions, calls and
// comparisons.
// CHECK: scf.for {{.*}} step %c6
// CHECK: scf.for {{.*}} -> ([[TILE:vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>]])
// CHECK-NEXT: memref.load
// CHECK-COUNT-5: memref.load
// CHECK-NOT: arith.
// CHECK-COUNT-12: math.fma
// CHECK-NEXT: scf.yield
// The other versions of the loop know that every key is visible.
// CHECK: } else {
// CHECK: scf.for {{.*}} step %c6
// CHECK: scf.for {{.*}} -> ([[TILE]])
// CHECK-NOT: arith.cmpi
// CHECK: scf.yield
// The weights are computed by a polynomial.
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK-NOT: arith.div
// CHECK: vector.load %[[S]]
// CHECK-COUNT-5: math.fma
// CHECK: arith.shli
// Steps of 6 value columns, and the last 4.
// CHECK: scf.for {{.*}} = %c0 to %c60 step %c6
// CHECK: scf.for
// CHECK-COUNT-12: math.fma
// CHECK-NEXT: scf.yield
// CHECK: scf.for
// CHECK-COUNT-8: math.fma
// CHECK-NEXT: scf.yield
// CHECK: vector.store %{{.*}}, %[[O]]
// WIDE-LABEL: func.func @full
// WIDE: scf.for {{.*}} step %c8
// WIDE-COUNT-16: math.fma %{{.*}} : vector<16xf32>
func.func @full(%q: memref<2x199x4x64xf32>, %k: memref<2x?x2x64xf32>, %v: memref<2x?x2x64xf32>, %o: memref<2x199x4x64xf32>) {
  posenc.attention ins(%q, %k, %v : memref<2x199x4x64xf32>, memref<2x?x2x64xf32>, memref<2x?x2x64xf32>) outs(%o : memref<2x199x4x64xf32>)
  return
}

// -----

// The loop over keys ends at the last key that the last query sees. Only key
// tiles that some query sees in part have masks.
// CHECK-LABEL: func.func @causal
// CHECK: scf.for %[[FIRST:.*]] = %c0 to %[[END:.*]] step %c96
// CHECK-NEXT: arith.subi %[[END]], %[[FIRST]]
// CHECK: scf.if {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK: arith.cmpi slt, {{.*}} : vector<8xi32>
// CHECK: arith.select {{.*}} : vector<8xi1>, vector<8xf32>
// CHECK: } else {
// CHECK-NOT: arith.cmpi
// CHECK: arith.shli
func.func @causal(%q: memref<1x1x?x8xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
  return
}

// -----

// Rows of bf16 are widened when they are copied to the stack, and results are
// narrowed when they are stored.
// CHECK-LABEL: func.func @bf16
// CHECK: arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK-NOT: bf16 to
func.func @bf16(%q: memref<1x1x?x8xbf16>, %o: memref<1x1x?x8xbf16>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xbf16>, memref<1x1x?x8xbf16>, memref<1x1x?x8xbf16>) outs(%o : memref<1x1x?x8xbf16>)
  return
}

// -----

// The key is the same for all lanes, so values that depend on the key alone
// stay scalar. In score regions, divisions become products with the reciprocal.
// Math functions are expanded later.
// CHECK-LABEL: func.func @regions
// CHECK: memref.load %{{.*}} : memref<?xf32>
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK-NOT: arith.divf
// CHECK: arith.mulf
// CHECK: math.tanh {{.*}} : vector<8xf32>
// CHECK-NOT: arith.divf
// CHECK: arith.cmpi ult, {{.*}} : vector<8xindex>
func.func @regions(%q: memref<1x1x?x8xf32>, %t: memref<?xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = memref.load %t[%j] : memref<?xf32>
      %y = arith.addf %s, %x : f32
      %c = arith.constant 50.0 : f32
      %a = arith.divf %y, %c : f32
      %z = math.tanh %a : f32
      posenc.yield %z : f32
    }
    where(%b, %h, %i, %j) {
      %x = arith.cmpi ult, %j, %i : index
      posenc.yield %x : i1
    }
  return
}

// -----

// Tensor elements that depend on the relative position are computed once for
// each relative position in a block.
// CHECK-LABEL: func.func @distances
// CHECK-SAME: %[[T:[a-z0-9]+]]: memref<?xf32>
// CHECK: %[[D:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1x112xf32>
// CHECK: scf.for %[[AT:.*]] = %c0 to %c112 step %c8 {
// CHECK: %[[INDEX:.*]] = vector.from_elements {{.*}} : vector<8xindex>
// CHECK: arith.subi %{{.*}}, %[[INDEX]] : vector<8xindex>
// CHECK-COUNT-8: memref.load %[[T]]
// CHECK: vector.store %{{.*}}, %[[D]][%c0, %[[AT]]]
// CHECK-NOT: memref.load %[[T]]
// CHECK: vector.load %[[D]][%c0, %{{.*}}]
// CHECK-NOT: memref.load %[[T]]
// CHECK: return
func.func @distances(%q: memref<1x1x?x8xf32>, %t: memref<?xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major causal
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %query = arith.index_cast %i : index to i32
      %key = arith.index_cast %j : index to i32
      %distance = arith.subi %query, %key : i32
      %n = arith.index_cast %distance : i32 to index
      %x = memref.load %t[%n] : memref<?xf32>
      %y = arith.addf %s, %x : f32
      posenc.yield %y : f32
    }
  return
}

// -----

// An index that wraps is not the token index that it is computed from, unless
// the relative position wraps in the same way.
// CHECK-LABEL: func.func @wrapped
// CHECK-NOT: memref<1x112xf32>
// CHECK: return
func.func @wrapped(%q: memref<1x1x?x8xf32>, %t: memref<?xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %narrow = arith.index_cast %i : index to i8
      %query = arith.index_cast %narrow : i8 to index
      %narrower = arith.index_cast %j : index to i16
      %key = arith.index_cast %narrower : i16 to index
      %left = arith.subi %query, %j : index
      %right = arith.subi %i, %key : index
      %x = memref.load %t[%left] : memref<?xf32>
      %y = memref.load %t[%right] : memref<?xf32>
      %z = arith.addf %x, %y : f32
      %w = arith.addf %s, %z : f32
      posenc.yield %w : f32
    }
  return
}
// CHECK-LABEL: func.func @wraps
// CHECK: memref<1x112xf32>
func.func @wraps(%q: memref<1x1x?x8xf32>, %t: memref<?xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %query = arith.index_cast %i : index to i8
      %key = arith.index_cast %j : index to i8
      %distance = arith.subi %query, %key : i8
      %n = arith.index_cast %distance : i8 to index
      %x = memref.load %t[%n] : memref<?xf32>
      %y = arith.addf %s, %x : f32
      posenc.yield %y : f32
    }
  return
}

// -----

// Token indices differ by less than 2^31; other indices may differ by more.
// CHECK-LABEL: func.func @alibi
// CHECK: scf.forall
// CHECK: arith.subi %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK: arith.subi %{{.*}}, %{{.*}} : vector<8xi64>
func.func @alibi(%q: memref<1x1x?x8xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
    score(%s, %b, %h, %i, %j) {
      %many = arith.constant 2147483648 : index
      %query = arith.muli %i, %many : index
      %x = posenc.alibi(%h, %i, %j) heads = 1 : f32
      %y = posenc.alibi(%h, %query, %j) heads = 1 : f32
      %z = arith.addf %x, %y : f32
      %w = arith.addf %s, %z : f32
      posenc.yield %w : f32
    }
  return
}

// -----

// Decode reads two keys at a time for all four heads. Vectors of 8 lanes
// process the first and the last 8 of every 16 channels one after the other, so
// that results have the bits of 16-lane vectors. Loops over keys prefetch lines
// of values, and loops over values the next keys, in both cases up to the end
// of a memory page. Scores and weights have separate loops, and the max is
// updated only if it changes.
// CHECK-LABEL: func.func @decode
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x1x128xf32>, %[[K:.*]]: memref<?x1x?x128xf32>, %[[V:.*]]: memref<?x1x?x128xf32>, %[[O:.*]]: memref<?x4x1x128xf32>)
// CHECK: %[[SHARED:.*]] = memref.alloca() {alignment = 64 : i64, posenc.shared_buffer}
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (%{{.*}}, %[[SHARES:.*]]) {
// CHECK: scf.for {{.*}} step %c8 {
// CHECK: memref.extract_aligned_pointer_as_index %[[V]]
// CHECK: %[[BYTES:.*]] = arith.andi %{{.*}}, %c4095
// CHECK: arith.divui %[[BYTES]], %c4
// CHECK: %[[PAGES:.*]] = memref.reinterpret_cast %{{.*}} strides: [%{{.*}}, %{{.*}}, 128, 1]
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c2 {
// CHECK-NOT: memref.prefetch %[[K]]
// CHECK-NEXT: %{{.*}} = arith.addi
// CHECK-NEXT: %{{.*}} = arith.addi
// CHECK-NEXT: %{{.*}} = arith.addi
// CHECK-NEXT: %[[HALF:.*]]:8 = scf.for {{.*}} = %c0 to %c64 step %c16 iter_args
// CHECK-NEXT: vector.load %[[K]]
// CHECK-NEXT: vector.load %[[K]]
// CHECK-COUNT-8: math.fma
// CHECK: scf.yield
// CHECK-NEXT: loop_annotation
// CHECK-NOT: memref.prefetch %[[K]]
// CHECK-COUNT-8: memref.prefetch %[[PAGES]]
// CHECK-NEXT: scf.for {{.*}} = %c64 to %c128 step %c16 iter_args({{.*}} = %[[HALF]]#0
// CHECK-COUNT-8: math.fma
// CHECK-COUNT-4: arith.addf
// CHECK: scf.for {{.*}} = %c0 to %c64 step %c16 iter_args
// CHECK-NEXT: arith.addi %{{.*}}, %c8
// CHECK-COUNT-8: math.fma
// CHECK-COUNT-8: memref.prefetch %[[PAGES]]
// CHECK: scf.for {{.*}} = %c64 to %c128 step %c16 iter_args
// CHECK-COUNT-8: math.fma
// CHECK-COUNT-4: arith.addf
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c2 {
// CHECK-COUNT-7: arith.addf
// CHECK-NOT: vector.reduction
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c4 iter_args
// CHECK: %[[ISANY:.*]] = vector.reduction <or>, %{{.*}} : vector<8xi1>
// CHECK: scf.if %[[ISANY]] -> (vector<8xf32>, vector<8xf32>) {
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c4 iter_args
// CHECK: } else {
// CHECK: memref.extract_aligned_pointer_as_index %[[K]]
// CHECK: %[[NEXT:.*]] = memref.reinterpret_cast
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c1 {
// CHECK: memref.prefetch %[[NEXT]]
// CHECK-NOT: memref.prefetch
// CHECK: vector.load %[[V]]
// CHECK-COUNT-8: math.fma
// CHECK: vector.store %{{.*}}, %[[SHARED]]
// CHECK: {posenc.tasks_by = #posenc.tasks_by<inputs>}
// CHECK: scf.execute_region no_inline {
// CHECK: vector.load %[[SHARED]]
// CHECK: vector.store %{{.*}}, %[[O]]
func.func @decode(%q: memref<?x4x1x128xf32>, %k: memref<?x1x?x128xf32>, %v: memref<?x1x?x128xf32>, %o: memref<?x4x1x128xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : memref<?x4x1x128xf32>, memref<?x1x?x128xf32>, memref<?x1x?x128xf32>) outs(%o : memref<?x4x1x128xf32>)
  return
}

// -----

// If the key heads of a token are contiguous, a task processes all of them and
// prefetches whole rows. Otherwise 8 heads are enough tasks.
// CHECK-LABEL: func.func @decode_rows
// CHECK-SAME: (%[[Q:.*]]: memref<?x1x16x64xf32>, %[[K:.*]]: memref<?x?x8x64xf32>, %[[V:.*]]: memref<?x?x8x64xf32>)
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (%{{.*}}, %{{.*}}) {
// CHECK: scf.for {{.*}} step %c16 {
// CHECK-NEXT: scf.for %[[HEAD:.*]] = %c0{{.*}} to %c8
// CHECK: memref.prefetch %[[K]]
// CHECK-NOT: memref.prefetch %[[V]]
// CHECK: vector.load %[[K]][%{{.*}}, %{{.*}}, %[[HEAD]], %{{.*}}]
func.func @decode_rows(%q: memref<?x1x16x64xf32>, %k: memref<?x?x8x64xf32>, %v: memref<?x?x8x64xf32>) {
  posenc.attention
    ins(%q, %k, %v : memref<?x1x16x64xf32>, memref<?x?x8x64xf32>, memref<?x?x8x64xf32>) outs(%q : memref<?x1x16x64xf32>)
  return
}

// CHECK-LABEL: func.func @decode_heads
// CHECK-NOT: shared
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (%{{.*}}, 8) {
// CHECK-NOT: scf.forall
func.func @decode_heads(%q: memref<?x16x1x64xf32>, %k: memref<?x8x?x64xf32>, %v: memref<?x8x?x64xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : memref<?x16x1x64xf32>, memref<?x8x?x64xf32>, memref<?x8x?x64xf32>) outs(%q : memref<?x16x1x64xf32>)
  return
}

// -----

// Multi-token decode: 12 queries are three blocks of four. All blocks process a
// key tile, and then its values; each block prefetches its share of the next
// tile. Only the tiles at the end have masks: for the tokens of the lanes, and
// for values whose weight is 0.
// CHECK-LABEL: func.func @few
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x3x128xf32>, %[[K:.*]]: memref<?x1x?x128xf32>, %[[V:.*]]: memref<?x1x?x128xf32>, %[[O:.*]]: memref<?x4x3x128xf32>)
// CHECK: scf.forall
// CHECK: scf.for {{.*}} = %c0 to %c12 step %c1 {
// CHECK: arith.divui %{{.*}}, %c4
// CHECK: scf.for {{.*}} step %c8 {
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c2 {
// CHECK: arith.divui %{{.*}}, %c3
// CHECK: memref.prefetch
// CHECK: vector.load %[[K]]
// CHECK-NOT: arith.cmpi slt, %{{.*}} : vector<8xi32>
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: memref.prefetch
// CHECK: vector.load %[[V]]
// CHECK-COUNT-8: math.fma
// CHECK-NOT: arith.select
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: arith.addi %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK-NEXT: arith.minsi {{.*}} : vector<8xi32>
// CHECK-NEXT: arith.cmpi {{.*}} : vector<8xi32>
// CHECK-NEXT: arith.select {{.*}} : vector<8xi1>
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: vector.load %[[V]]
// CHECK: arith.cmpf oeq
// CHECK: math.fma
// CHECK-NEXT: arith.select
// CHECK: vector.store %{{.*}}, %[[O]]
func.func @few(%q: memref<?x4x3x128xf32>, %k: memref<?x1x?x128xf32>, %v: memref<?x1x?x128xf32>, %o: memref<?x4x3x128xf32>) {
  posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : memref<?x4x3x128xf32>, memref<?x1x?x128xf32>, memref<?x1x?x128xf32>) outs(%o : memref<?x4x3x128xf32>)
  return
}

// All queries see all keys: no masks, and a loop over the key heads of a task.
// CHECK-LABEL: func.func @few_rows
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x16x64xf32>, %[[K:.*]]: memref<?x?x8x64xf32>, %[[V:.*]]: memref<?x?x8x64xf32>)
// CHECK: scf.for {{.*}} step %c16 {
// CHECK-NEXT: scf.for %[[HEAD:.*]] = %c0{{.*}} to %c8
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK: memref.prefetch %[[K]]
// CHECK-NOT: memref.prefetch %[[V]]
// CHECK: vector.load %[[K]]
// CHECK-NOT: arith.cmpi slt
// CHECK: vector.load %[[V]]
func.func @few_rows(%q: memref<?x4x16x64xf32>, %k: memref<?x?x8x64xf32>, %v: memref<?x?x8x64xf32>) {
  posenc.attention
    ins(%q, %k, %v : memref<?x4x16x64xf32>, memref<?x?x8x64xf32>, memref<?x?x8x64xf32>) outs(%q : memref<?x4x16x64xf32>)
  return
}

// With many queries, memory traffic matters little: the lanes of a vector are
// queries of one head.
// CHECK-LABEL: func.func @many
// CHECK-NOT: prefetch
// CHECK: scf.forall
// CHECK: arith.minsi %{{.*}}, %c96
func.func @many(%q: memref<?x16x33x64xf32>, %k: memref<?x8x?x64xf32>, %v: memref<?x8x?x64xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : memref<?x16x33x64xf32>, memref<?x8x?x64xf32>, memref<?x8x?x64xf32>) outs(%q : memref<?x16x33x64xf32>)
  return
}

// -----

// The second attention reuses the scratch memory of the first; rows of queries
// and of keys share memory.
// CHECK-LABEL: func.func @two
// CHECK-COUNT-7: memref.alloca()
// CHECK-NOT: memref.alloca()
// CHECK: scf.forall
// CHECK: scf.forall
func.func @two(%q: memref<1x1x?x8xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%o, %o, %o : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%q : memref<1x1x?x8xf32>)
  return
}

// -----

// A tile of a ragged batch finds its sequence by bisection. Tokens after the
// last sequence are one more sequence, without keys. Values of cu_seqlens are
// clamped to the size of the tensor.
// CHECK-LABEL: func.func @packed
// CHECK-SAME: (%[[Q:.*]]: memref<?x2x8xf32>, %[[C:.*]]: memref<?xi32>, %[[O:.*]]: memref<?x2x8xf32>)
// CHECK: %[[T:.*]] = memref.dim %[[Q]], %c0
// CHECK: scf.forall (%{{.*}}, %[[TILE:.*]]) in (2, %{{.*}}) {
// CHECK: scf.while
// CHECK: scf.condition
// CHECK: memref.load %[[C]]
// CHECK: arith.cmpi sle, %{{.*}}, %[[TILE]]
// CHECK: scf.yield
// CHECK: arith.minsi %{{.*}}, %[[T]]
// CHECK: scf.if
// CHECK: vector.load %[[Q]][%{{.*}}, %{{.*}}, %{{.*}}]
func.func @packed(%q: memref<?x2x8xf32>, %c: memref<?xi32>, %o: memref<?x2x8xf32>) {
  posenc.attention ins(%q, %q, %q : memref<?x2x8xf32>, memref<?x2x8xf32>, memref<?x2x8xf32>)
    cu_seqlens(%c, %c : memref<?xi32>, memref<?xi32>) outs(%o : memref<?x2x8xf32>)
  return
}

// -----

// A head size that is no multiple of the vector width ends in shorter vectors.
// The last columns of values are padded with zeros, which are summed, too.
// CHECK-LABEL: func.func @odd
// CHECK-SAME: (%[[Q:.*]]: memref<1x1x?x13xbf16>, %[[V:.*]]: memref<1x1x?x7xbf16>, %[[O:.*]]: memref<1x1x?x7xbf16>)
// CHECK: vector.load %[[Q]]{{.*}} vector<8xbf16>
// CHECK: vector.load %[[Q]]{{.*}} vector<4xbf16>
// CHECK: vector.load %[[Q]]{{.*}} vector<1xbf16>
// CHECK: vector.store %cst{{.*}}, %[[ROWS:[a-z0-9_]+]][%[[ROW:[a-z0-9]+]], %c0] : memref<96x16xf32>, vector<8xf32>
// CHECK-NEXT: vector.load %[[V]]{{.*}} vector<4xbf16>
// CHECK: vector.load %[[V]]{{.*}} vector<2xbf16>
// CHECK: vector.load %[[V]]{{.*}} vector<1xbf16>
// CHECK: vector.store %{{.*}}, %[[ROWS]][%[[ROW]], %c0] : memref<96x16xf32>, vector<4xf32>
// CHECK-NEXT: vector.store %{{.*}}, %[[ROWS]][%[[ROW]], %c4] : memref<96x16xf32>, vector<2xf32>
// CHECK-NEXT: vector.store %{{.*}}, %[[ROWS]][%[[ROW]], %c6] : memref<96x16xf32>, vector<1xf32>
// CHECK: scf.for {{.*}} = %c0 to %c8 step %c4
// CHECK: vector.store %{{.*}}, %[[O]]{{.*}} vector<4xbf16>
// CHECK: vector.store %{{.*}}, %[[O]]{{.*}} vector<2xbf16>
// CHECK: vector.store %{{.*}}, %[[O]]{{.*}} vector<1xbf16>
func.func @odd(%q: memref<1x1x?x13xbf16>, %v: memref<1x1x?x7xbf16>, %o: memref<1x1x?x7xbf16>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %v : memref<1x1x?x13xbf16>, memref<1x1x?x13xbf16>, memref<1x1x?x7xbf16>) outs(%o : memref<1x1x?x7xbf16>)
  return
}

// -----

// With masks, a non-finite value must not reach queries that do not see it.
// Without masks, all queries see it.
// CHECK-LABEL: func.func @unsafe
// CHECK: %[[UNSAFE:.*]] = arith.cmpf uno
// CHECK: scf.if %[[UNSAFE]] {
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK: } else {
func.func @unsafe(%q: memref<1x1x?x8xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @safe
// CHECK-NOT: arith.cmpf uno
func.func @safe(%q: memref<1x1x?x8xf32>, %o: memref<1x1x?x8xf32>) {
  posenc.attention query_layout = head_major key_layout = head_major
    ins(%q, %q, %q : memref<1x1x?x8xf32>, memref<1x1x?x8xf32>, memref<1x1x?x8xf32>) outs(%o : memref<1x1x?x8xf32>)
  return
}
