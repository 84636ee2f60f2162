// Entry points check lengths and slots that are arguments. Those that a function
// computes are accepted if it clamps them to the cache.
//
// RUN: posenc-opt %s --split-input-file --posenc-create-kernels --verify-diagnostics

#row = affine_map<(d0) -> (d0)>

func.func @clamped(%q: tensor<?x1x4x16xf32>, %k: tensor<?x?x2x16xf32>, %n: tensor<?xi32>) -> tensor<?x1x4x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %batch = tensor.dim %q, %c0 : tensor<?x1x4x16xf32>
  %keys = tensor.dim %k, %c1 : tensor<?x?x2x16xf32>
  %limit = arith.index_cast %keys : index to i64
  %e = tensor.empty(%batch) : tensor<?xi64>
  %lengths = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%n : tensor<?xi32>) outs(%e : tensor<?xi64>) {
  ^bb0(%x: i32, %o: i64):
    %y = arith.extsi %x : i32 to i64
    %low = arith.maxsi %y, %zero : i64
    %high = arith.minsi %low, %limit : i64
    linalg.yield %high : i64
  } -> tensor<?xi64>
  %r = posenc.attention causal ins(%q, %k, %k : tensor<?x1x4x16xf32>, tensor<?x?x2x16xf32>, tensor<?x?x2x16xf32>)
    lengths(%lengths : tensor<?xi64>) outs(%q : tensor<?x1x4x16xf32>)
  return %r : tensor<?x1x4x16xf32>
}

// -----

// A minimum alone may be negative.

#row = affine_map<(d0) -> (d0)>

func.func @no_maximum(%q: tensor<2x1x4x16xf32>, %k: tensor<2x64x2x16xf32>, %n: tensor<2xi64>) -> tensor<2x1x4x16xf32> {
  %limit = arith.constant 64 : i64
  %e = tensor.empty() : tensor<2xi64>
  %lengths = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%n : tensor<2xi64>) outs(%e : tensor<2xi64>) {
  ^bb0(%x: i64, %o: i64):
    %high = arith.minsi %x, %limit : i64
    linalg.yield %high : i64
  } -> tensor<2xi64>
  // expected-error@+1 {{expected lengths to be an argument of the function}}
  %r = posenc.attention causal ins(%q, %k, %k : tensor<2x1x4x16xf32>, tensor<2x64x2x16xf32>, tensor<2x64x2x16xf32>)
    lengths(%lengths : tensor<2xi64>) outs(%q : tensor<2x1x4x16xf32>)
  return %r : tensor<2x1x4x16xf32>
}

// -----

// The limit is larger than the cache.

#rows = affine_map<(d0, d1) -> (d0, d1)>

func.func @too_large(%k: tensor<2x1x2x16xf32>, %c: tensor<2x64x2x16xf32>, %n: tensor<2x1xi64>) -> tensor<2x64x2x16xf32> {
  %limit = arith.constant 128 : i64
  %e = tensor.empty() : tensor<2x1xi64>
  %slots = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%n : tensor<2x1xi64>) outs(%e : tensor<2x1xi64>) {
  ^bb0(%x: i64, %o: i64):
    %high = arith.minsi %x, %limit : i64
    linalg.yield %high : i64
  } -> tensor<2x1xi64>
  // expected-error@+1 {{expected slots to be an argument of the function}}
  %r:2 = posenc.kv_append ins(%k, %k : tensor<2x1x2x16xf32>, tensor<2x1x2x16xf32>)
    slots(%slots : tensor<2x1xi64>) outs(%c, %c : tensor<2x64x2x16xf32>, tensor<2x64x2x16xf32>)
  return %r#0 : tensor<2x64x2x16xf32>
}
