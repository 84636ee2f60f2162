//===- relative.mlir - learned relative positions ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Relative positions whose terms depend on the query: a matrix product computes
// the terms of all queries, and the score region reads the one of each pair.
//
//===----------------------------------------------------------------------===//

#query = affine_map<(b, t, h, r, c) -> (b, t, h, c)>
#band = affine_map<(b, t, h, r, c) -> (b, t + r, h, c)>
#table = affine_map<(b, t, h, r, c) -> (r, c)>
#table_of_head = affine_map<(b, t, h, r, c) -> (r, h, c)>
#row = affine_map<(b, t, h, r, c) -> (b, t, h, r)>

#all = affine_map<(b, t, h, c) -> (b, t, h, c)>
#head = affine_map<(b, t, h, c) -> (h, c)>
#each = affine_map<(b, t, h, c) -> (b, t, h)>

!q = tensor<?x?x8x64xf32>
!table = tensor<33x64xf32>
!rows = tensor<?x?x8x33xf32>
!lse = tensor<?x?x8xf32>
!one = tensor<?x?x8x1xf32>

// Shaw et al. 2018, keys: q . (k_j + table[clip(j - i)]) / 8, clipped to
// [-16, 16].
func.func @shaw_keys(%q: !q, %k: !q, %v: !q, %table: !table) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %batch = tensor.dim %q, %c0 : !q
  %queries = tensor.dim %q, %c1 : !q
  %keys = tensor.dim %k, %c1 : !q
  %first = arith.subi %keys, %queries : index
  %e = tensor.empty(%batch, %queries) : !rows
  %f = linalg.fill ins(%zero : f32) outs(%e : !rows) -> !rows
  %rows = linalg.generic {indexing_maps = [#query, #table, #row],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %table : !q, !table) outs(%f : !rows) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> !rows
  %o = posenc.attention ins(%q, %k, %v : !q, !q, !q) outs(%q : !q)
    score(%s, %b, %h, %i, %j) {
      %min = arith.constant -16 : index
      %max = arith.constant 16 : index
      %scale = arith.constant 0.125 : f32
      %t = arith.subi %i, %first : index
      %relative = arith.subi %j, %i : index
      %low = arith.maxsi %relative, %min : index
      %clipped = arith.minsi %low, %max : index
      %n = arith.addi %clipped, %max : index
      %x = tensor.extract %rows[%b, %t, %h, %n] : !rows
      %bias = arith.mulf %x, %scale : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
  return %o : !q
}

// Shaw et al. 2018, keys and values: o_i = sum_j p_ij (v_j + table[clip(j - i)]).
// The probabilities are summed by row of the table: rows between the two ends
// have one key each, whose score is computed again; those of the ends are softmax
// denominators of attention to the keys beyond them.
func.func @shaw(%q: !q, %k: !q, %v: !q, %key_table: !table, %value_table: !table) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f32
  %batch = tensor.dim %q, %c0 : !q
  %queries = tensor.dim %q, %c1 : !q
  %keys = tensor.dim %k, %c1 : !q
  %first = arith.subi %keys, %queries : index
  %e = tensor.empty(%batch, %queries) : !rows
  %f = linalg.fill ins(%zero : f32) outs(%e : !rows) -> !rows
  %rows = linalg.generic {indexing_maps = [#query, #table, #row],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %key_table : !q, !table) outs(%f : !rows) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> !rows

  // All keys, and the keys beyond each end, of which only the log-sum-exp is
  // needed.
  %no_o = tensor.empty(%batch, %queries) : !one
  %no_lse = tensor.empty(%batch, %queries) : !lse
  %one = tensor.extract_slice %v[0, 0, 0, 0] [%batch, %keys, 8, 1] [1, 1, 1, 1] : !q to !one
  %o, %lse = posenc.attention ins(%q, %k, %v : !q, !q, !q) outs(%q, %no_lse : !q, !lse)
    score(%s, %b, %h, %i, %j) {
      %min = arith.constant -16 : index
      %max = arith.constant 16 : index
      %t = arith.subi %i, %first : index
      %relative = arith.subi %j, %i : index
      %low = arith.maxsi %relative, %min : index
      %clipped = arith.minsi %low, %max : index
      %n = arith.addi %clipped, %max : index
      %x = tensor.extract %rows[%b, %t, %h, %n] : !rows
      %bias = arith.mulf %x, %scale : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
  %l, %left = posenc.attention ins(%q, %k, %one : !q, !q, !one)
    outs(%no_o, %no_lse : !one, !lse)
    score(%s, %b, %h, %i, %j) {
      %t = arith.subi %i, %first : index
      %x = tensor.extract %rows[%b, %t, %h, %c0] : !rows
      %bias = arith.mulf %x, %scale : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
    where(%b, %h, %i, %j) {
      %relative = arith.subi %i, %j : index
      %y = arith.cmpi sge, %relative, %c16 : index
      posenc.yield %y : i1
    }
  %r, %right = posenc.attention ins(%q, %k, %one : !q, !q, !one)
    outs(%no_o, %no_lse : !one, !lse)
    score(%s, %b, %h, %i, %j) {
      %t = arith.subi %i, %first : index
      %x = tensor.extract %rows[%b, %t, %h, %c32] : !rows
      %bias = arith.mulf %x, %scale : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
    where(%b, %h, %i, %j) {
      %relative = arith.subi %j, %i : index
      %y = arith.cmpi sge, %relative, %c16 : index
      posenc.yield %y : i1
    }

  // The scores of keys i - 16 to i + 16.
  %padded = tensor.pad %k low[0, 16, 0, 0] high[0, 16, 0, 0] {
    ^bb0(%b: index, %j: index, %h: index, %c: index):
      tensor.yield %zero : f32
  } : !q to !q
  %count = arith.addi %queries, %c32 : index
  %near = tensor.extract_slice %padded[0, %first, 0, 0] [%batch, %count, 8, 64] [1, 1, 1, 1]
    : !q to !q
  %scores = linalg.generic {indexing_maps = [#query, #band, #row],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %near : !q, !q) outs(%f : !rows) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> !rows
  %weights = linalg.generic {indexing_maps = [#all, #all, #each, #each, #each, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scores, %rows, %lse, %left, %right : !rows, !rows, !lse, !lse, !lse)
      outs(%e : !rows) {
    ^bb0(%s: f32, %term: f32, %total: f32, %before: f32, %after: f32, %out: f32):
      %none = arith.constant 0xFF800000 : f32
      %t = linalg.index 1 : index
      %n = linalg.index 3 : index
      %i = arith.addi %t, %first : index
      %above = arith.addi %i, %n : index
      %j = arith.subi %above, %c16 : index
      %exists = arith.cmpi ult, %j, %keys : index
      %with_term = arith.addf %s, %term : f32
      %scaled = arith.mulf %with_term, %scale : f32
      %inside = arith.select %exists, %scaled, %none : f32
      %is_first = arith.cmpi eq, %n, %c0 : index
      %is_last = arith.cmpi eq, %n, %c32 : index
      %x = arith.select %is_first, %before, %inside : f32
      %y = arith.select %is_last, %after, %x : f32
      %d = arith.subf %y, %total : f32
      %p = math.exp %d : f32
      linalg.yield %p : f32
  } -> !rows
  %result = linalg.generic {indexing_maps = [#row, #table, #query],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
      ins(%weights, %value_table : !rows, !table) outs(%o : !q) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> !q
  return %result : !q
}

// Transformer-XL: ((q + u) . k_j + (q + w) . r_(i-j)) / 8, where r are sinusoidal
// tables times a matrix. Row n of r belongs to the relative position
// keys - 1 - n, so the region reads it in place of a shifted copy.
func.func @transformer_xl(%q: !q, %k: !q, %v: !q, %u: tensor<8x64xf32>,
                          %w: tensor<8x64xf32>, %matrix: tensor<512x512xf32>) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %batch = tensor.dim %q, %c0 : !q
  %queries = tensor.dim %q, %c1 : !q
  %keys = tensor.dim %k, %c1 : !q
  %first = arith.subi %keys, %queries : index
  %last = arith.subi %keys, %c1 : index

  %p = tensor.empty(%keys) : tensor<?xi64>
  %positions = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>],
                               iterator_types = ["parallel"]}
      outs(%p : tensor<?xi64>) {
    ^bb0(%out: i64):
      %n = linalg.index 0 : index
      %x = arith.subi %last, %n : index
      %y = arith.index_cast %x : index to i64
      linalg.yield %y : i64
  } -> tensor<?xi64>
  %e = tensor.empty(%keys) : tensor<?x512xf32>
  %sinusoidal = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 512>
    positions(%positions : tensor<?xi64>) outs(%e : tensor<?x512xf32>)
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %projected = linalg.matmul ins(%sinusoidal, %matrix : tensor<?x512xf32>, tensor<512x512xf32>)
    outs(%f : tensor<?x512xf32>) -> tensor<?x512xf32>
  %r = tensor.expand_shape %projected [[0], [1, 2]] output_shape [%keys, 8, 64]
    : tensor<?x512xf32> into tensor<?x8x64xf32>

  %qe = tensor.empty(%batch, %queries) : !q
  %qu, %qw = linalg.generic {indexing_maps = [#all, #head, #head, #all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q, %u, %w : !q, tensor<8x64xf32>, tensor<8x64xf32>) outs(%qe, %qe : !q, !q) {
    ^bb0(%a: f32, %x: f32, %y: f32, %o0: f32, %o1: f32):
      %m = arith.addf %a, %x : f32
      %n = arith.addf %a, %y : f32
      linalg.yield %m, %n : f32, f32
  } -> (!q, !q)
  %te = tensor.empty(%batch, %queries, %keys) : tensor<?x?x8x?xf32>
  %tf = linalg.fill ins(%zero : f32) outs(%te : tensor<?x?x8x?xf32>) -> tensor<?x?x8x?xf32>
  %terms = linalg.generic {indexing_maps = [#query, #table_of_head, #row],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%qw, %r : !q, tensor<?x8x64xf32>) outs(%tf : tensor<?x?x8x?xf32>) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> tensor<?x?x8x?xf32>
  %o = posenc.attention causal ins(%qu, %k, %v : !q, !q, !q) outs(%q : !q)
    score(%s, %b, %h, %i, %j) {
      %scale = arith.constant 0.125 : f32
      %t = arith.subi %i, %first : index
      %relative = arith.subi %i, %j : index
      %shifted = arith.subi %last, %relative : index
      // Keys after the query, which are masked, have no row.
      %n = arith.minsi %shifted, %last : index
      %x = tensor.extract %terms[%b, %t, %h, %n] : tensor<?x?x8x?xf32>
      %bias = arith.mulf %x, %scale : f32
      %y = arith.addf %s, %bias : f32
      posenc.yield %y : f32
    }
  return %o : !q
}

//===----------------------------------------------------------------------===//
// Two dimensions
//===----------------------------------------------------------------------===//

#patch = affine_map<(b, y, x, h, n, c) -> (b, y, x, h, c)>
#of_row = affine_map<(b, y, x, h, n, c) -> (y, n, c)>
#of_column = affine_map<(b, y, x, h, n, c) -> (x, n, c)>
#term = affine_map<(b, y, x, h, n, c) -> (b, y, x, h, n)>

!patches = tensor<?x196x12x64xf32>
!grid = tensor<?x14x14x12x64xf32>
!terms = tensor<?x14x14x12x14xf32>
!flat = tensor<?x196x12x14xf32>

// SAM (and MViT v2), for windows of 14 x 14 patches: the score of a query at
// (y, x) and a key at (m, n) has the terms q . rows[y - m + 13] and
// q . columns[x - n + 13].
func.func @sam(%q: !patches, %k: !patches, %v: !patches, %rows: tensor<27x64xf32>,
               %columns: tensor<27x64xf32>) -> !patches {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %batch = tensor.dim %q, %c0 : !patches
  %ge = tensor.empty() : tensor<14x14x64xf32>
  %of_row, %of_column = linalg.generic {
      indexing_maps = [affine_map<(y, m, c) -> (y - m + 13, c)>,
                       affine_map<(y, m, c) -> (y - m + 13, c)>,
                       affine_map<(y, m, c) -> (y, m, c)>, affine_map<(y, m, c) -> (y, m, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%rows, %columns : tensor<27x64xf32>, tensor<27x64xf32>)
      outs(%ge, %ge : tensor<14x14x64xf32>, tensor<14x14x64xf32>) {
    ^bb0(%a: f32, %x: f32, %o0: f32, %o1: f32):
      linalg.yield %a, %x : f32, f32
  } -> (tensor<14x14x64xf32>, tensor<14x14x64xf32>)
  %grid = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [%batch, 14, 14, 12, 64]
    : !patches into !grid
  %e = tensor.empty(%batch) : !terms
  %f = linalg.fill ins(%zero : f32) outs(%e : !terms) -> !terms
  %by_row = linalg.generic {indexing_maps = [#patch, #of_row, #term], iterator_types =
      ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%grid, %of_row : !grid, tensor<14x14x64xf32>) outs(%f : !terms) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> !terms
  %by_column = linalg.generic {indexing_maps = [#patch, #of_column, #term], iterator_types =
      ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%grid, %of_column : !grid, tensor<14x14x64xf32>) outs(%f : !terms) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %m = arith.mulf %a, %x : f32
      %y = arith.addf %sum, %m : f32
      linalg.yield %y : f32
  } -> !terms
  %row_terms = tensor.collapse_shape %by_row [[0], [1, 2], [3], [4]] : !terms into !flat
  %column_terms = tensor.collapse_shape %by_column [[0], [1, 2], [3], [4]] : !terms into !flat
  %o = posenc.attention ins(%q, %k, %v : !patches, !patches, !patches) outs(%q : !patches)
    score(%s, %b, %h, %i, %j) {
      %size = arith.constant 14 : index
      %m = arith.divui %j, %size : index
      %n = arith.remui %j, %size : index
      %x = tensor.extract %row_terms[%b, %i, %h, %m] : !flat
      %y = tensor.extract %column_terms[%b, %i, %h, %n] : !flat
      %z = arith.addf %x, %y : f32
      %r = arith.addf %s, %z : f32
      posenc.yield %r : f32
    }
  return %o : !patches
}

!window = tensor<?x49x3x32xf32>

// Swin, for windows of 7 x 7 patches: a table with a row for each of the 13 x 13
// relative positions and a column for each head. The bias does not depend on the
// window, so it is gathered once, as the operand mask. In shifted windows,
// patches see those of their own part of the window.
func.func @swin(%q: !window, %k: !window, %v: !window, %table: tensor<169x3xf32>,
                %parts: tensor<?x49xi32>) -> !window {
  %c0 = arith.constant 0 : index
  %windows = tensor.dim %parts, %c0 : tensor<?x49xi32>
  %e = tensor.empty() : tensor<1x3x49x49xf32>
  %bias = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>],
                          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%e : tensor<1x3x49x49xf32>) {
    ^bb0(%out: f32):
      %size = arith.constant 7 : index
      %last = arith.constant 6 : index
      %width = arith.constant 13 : index
      %h = linalg.index 1 : index
      %i = linalg.index 2 : index
      %j = linalg.index 3 : index
      %yi = arith.divui %i, %size : index
      %xi = arith.remui %i, %size : index
      %yj = arith.divui %j, %size : index
      %xj = arith.remui %j, %size : index
      %dy = arith.subi %yi, %yj : index
      %dx = arith.subi %xi, %xj : index
      %row = arith.addi %dy, %last : index
      %column = arith.addi %dx, %last : index
      %base = arith.muli %row, %width : index
      %n = arith.addi %base, %column : index
      %x = tensor.extract %table[%n, %h] : tensor<169x3xf32>
      linalg.yield %x : f32
  } -> tensor<1x3x49x49xf32>
  %o = posenc.attention ins(%q, %k, %v : !window, !window, !window)
    mask(%bias : tensor<1x3x49x49xf32>) outs(%q : !window)
    where(%b, %h, %i, %j) {
      %w = arith.remui %b, %windows : index
      %m = tensor.extract %parts[%w, %i] : tensor<?x49xi32>
      %n = tensor.extract %parts[%w, %j] : tensor<?x49xi32>
      %y = arith.cmpi eq, %m, %n : i32
      posenc.yield %y : i1
    }
  return %o : !window
}
