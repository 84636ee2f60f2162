// Reductions, norms and softmax of rows on GPUs.
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#heads = affine_map<(t, h, d) -> (t, h, d)>
#token = affine_map<(t, h, d) -> (t)>
#head = affine_map<(t, h, d) -> (t, h)>
#channel = affine_map<(t, h, d) -> (d)>
#frequencies = #posenc.frequencies<dim = 64, base = 1.000000e+04>

// A warp reduces a row.
// INPUTS: 7x100xbf16
// INPUTS: 0x100xbf16
func.func @softmax(%x: tensor<?x100xbf16>) -> tensor<?x100xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x100xbf16>
  %e = tensor.empty(%n) : tensor<?x100xbf16>
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x100xbf16>) outs(%e : tensor<?x100xbf16>) -> tensor<?x100xbf16>
  return %r : tensor<?x100xbf16>
}

// A block reduces a row of unknown length.
// INPUTS: 33x77xbf16 33xbf16
// INPUTS: 3x0xbf16 3xbf16
func.func @sums(%x: tensor<?x?xbf16>, %init: tensor<?xbf16>) -> tensor<?xbf16> {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xbf16>) outs(%init : tensor<?xbf16>) dimensions = [1]
  return %r : tensor<?xbf16>
}

// Two trailing dimensions.
// INPUTS: 5x12x20xf64
func.func @slices(%x: tensor<?x12x20xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f64
  %n = tensor.dim %x, %c0 : tensor<?x12x20xf64>
  %e = tensor.empty(%n) : tensor<?xf64>
  %f = linalg.fill ins(%one : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
  %r = linalg.reduce { arith.mulf } ins(%x : tensor<?x12x20xf64>) outs(%f : tensor<?xf64>) dimensions = [1, 2]
  return %r : tensor<?xf64>
}

// A thread reduces a column.
// INPUTS: 33x77xf32 77xf32
func.func @columns(%x: tensor<?x?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%init : tensor<?xf32>) dimensions = [0]
  return %r : tensor<?xf32>
}

// All elements: the length of a rope.
// INPUTS: 3x1111xi64
// INPUTS: 3x0xi64
func.func @length(%p: tensor<?x?xi64>) -> tensor<i64> {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%zero : i64) outs(%e : tensor<i64>) -> tensor<i64>
  %r = linalg.reduce ins(%p : tensor<?x?xi64>) outs(%f : tensor<i64>) dimensions = [0, 1] (%x: i64, %max: i64) {
    %y = arith.addi %x, %one : i64
    %z = arith.maxsi %y, %max : i64
    linalg.yield %z : i64
  }
  return %r : tensor<i64>
}

// The index of the largest element: each row in its order.
// INPUTS: 9x77xf32 9xf32=-100 9xi32=-1
func.func @argmax(%x: tensor<?x?xf32>, %m: tensor<?xf32>, %i: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%m, %i : tensor<?xf32>, tensor<?xi32>) {
  ^bb0(%e: f32, %max: f32, %at: i32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %isMore = arith.cmpf ogt, %e, %max : f32
    %newMax = arith.select %isMore, %e, %max : f32
    %newAt = arith.select %isMore, %k, %at : i32
    linalg.yield %newMax, %newAt : f32, i32
  } -> (tensor<?xf32>, tensor<?xi32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xi32>
}

// A norm of each head, then a rotation, in one kernel.
// INPUTS: 7x3x64xf32 64xf32 7xi64
func.func @norm_rope(%x: tensor<?x3x64xf32>, %w: tensor<64xf32>, %p: tensor<?xi64>) -> tensor<?x3x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %size = arith.constant 64.0 : f32
  %eps = arith.constant 1.0e-6 : f32
  %n = tensor.dim %x, %c0 : tensor<?x3x64xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %s = linalg.generic {indexing_maps = [#heads, #head], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x3x64xf32>) outs(%f : tensor<?x3xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %q = arith.mulf %a, %a : f32
    %t = arith.addf %sum, %q : f32
    linalg.yield %t : f32
  } -> tensor<?x3xf32>
  %o = tensor.empty(%n) : tensor<?x3x64xf32>
  %y = linalg.generic {indexing_maps = [#heads, #head, #channel, #heads], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s, %w : tensor<?x3x64xf32>, tensor<?x3xf32>, tensor<64xf32>) outs(%o : tensor<?x3x64xf32>) {
  ^bb0(%a: f32, %sum: f32, %weight: f32, %unused: f32):
    %mean = arith.divf %sum, %size : f32
    %shifted = arith.addf %mean, %eps : f32
    %factor = math.rsqrt %shifted : f32
    %u = arith.mulf %a, %factor : f32
    %v = arith.mulf %u, %weight : f32
    linalg.yield %v : f32
  } -> tensor<?x3x64xf32>
  %r = posenc.rope half #frequencies ins(%y : tensor<?x3x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%o : tensor<?x3x64xf32>)
  return %r : tensor<?x3x64xf32>
}

// A cache with a norm of the keys.
// INPUTS: 7x2x32xbf16 7x2x32xbf16 32xbf16 7xi64 7xi64=iota 2x2x4x32xbf16 2x2x4x32xbf16
func.func @append(%k: tensor<?x2x32xbf16>, %v: tensor<?x2x32xbf16>, %w: tensor<32xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x2x?x32xbf16>, %vc: tensor<?x2x?x32xbf16>) -> (tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major norm_eps = 1.0e-6 norm_offset = 1.0
    rotation = <pairing = half, frequencies = <dim = 32>>
    ins(%k, %v : tensor<?x2x32xbf16>, tensor<?x2x32xbf16>) positions(%p : tensor<?xi64>) norm(%w : tensor<32xbf16>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>)
  return %r#0, %r#1 : tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>
}

// A quantized cache with a norm of the keys.
// INPUTS: 7x2x32xbf16 7x2x32xbf16 32xbf16 7xi64 7xi64=iota 2x2x4x32xf8E4M3FN 2x2x4x32xf8E4M3FN 2x2x4xf32 2x2x4xf32
func.func @append_f8(%k: tensor<?x2x32xbf16>, %v: tensor<?x2x32xbf16>, %w: tensor<32xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x2x?x32xf8E4M3FN>, %vc: tensor<?x2x?x32xf8E4M3FN>, %ks: tensor<?x2x?xf32>, %vs: tensor<?x2x?xf32>) -> (tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major norm_eps = 1.0e-6
    rotation = <pairing = interleaved, frequencies = <dim = 32>>
    ins(%k, %v : tensor<?x2x32xbf16>, tensor<?x2x32xbf16>) positions(%p : tensor<?xi64>) norm(%w : tensor<32xbf16>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>
}
