// Forms of kv_append for GPUs. Those without a norm have the CPU's bits.
#half = #posenc.frequencies<dim = 32, base = 1.000000e+04>
#grown = #posenc.frequencies<dim = 32, base = 1.000000e+04, scaling = #posenc.dynamic<factor = 2, max_position = 64>>
#part = #posenc.frequencies<dim = 16, base = 5.000000e+05>

// INPUTS: 2x5x2x32xbf16 2x5x2x48xbf16 i64[4,6] 2x2x6x32xbf16 2x2x6x48xbf16
// INPUTS: 2x0x2x32xbf16 2x0x2x48xbf16 i64[3,0] 2x2x6x32xbf16 2x2x6x48xbf16
func.func @plain(%k: tensor<?x?x2x32xbf16>, %v: tensor<?x?x2x48xbf16>, %n: tensor<?xi64>, %kc: tensor<?x2x?x32xbf16>, %vc: tensor<?x2x?x48xbf16>) -> (tensor<?x2x?x32xbf16>, tensor<?x2x?x48xbf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    ins(%k, %v : tensor<?x?x2x32xbf16>, tensor<?x?x2x48xbf16>) lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x32xbf16>, tensor<?x2x?x48xbf16>)
  return %r#0, %r#1 : tensor<?x2x?x32xbf16>, tensor<?x2x?x48xbf16>
}

// Positions are the slots.
// INPUTS: 2x5x2x32xbf16 2x5x2x32xbf16 i64[6,3] 2x2x6x32xbf16 2x2x6x32xbf16
func.func @rotated(%k: tensor<?x?x2x32xbf16>, %v: tensor<?x?x2x32xbf16>, %n: tensor<?xi64>, %kc: tensor<?x2x?x32xbf16>, %vc: tensor<?x2x?x32xbf16>) -> (tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #half>
    ins(%k, %v : tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>) lengths(%n : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>)
  return %r#0, %r#1 : tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>
}

// Pages, ragged rows, a rotary window, heads whose rows are not aligned.
// INPUTS: 7x3x22xf32 7x3x5xf32 7xi64 i64[0,8,3,-1,5,2,7] 3x3x3x22xf32 3x3x3x5xf32
func.func @pages(%k: tensor<?x3x22xf32>, %v: tensor<?x3x5xf32>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x3x?x22xf32>, %vc: tensor<?x3x?x5xf32>) -> (tensor<?x3x?x22xf32>, tensor<?x3x?x5xf32>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = interleaved, frequencies = #part, offset = 3>
    ins(%k, %v : tensor<?x3x22xf32>, tensor<?x3x5xf32>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x3x?x22xf32>, tensor<?x3x?x5xf32>)
  return %r#0, %r#1 : tensor<?x3x?x22xf32>, tensor<?x3x?x5xf32>
}

// Head-major rows, three axes of positions, slots as i32, f64.
// INPUTS: 2x2x5x32xf64 2x2x5x32xf64 3x2x5xi64 2x5xi32=iota 3x4x2x32xf64 3x4x2x32xf64
func.func @axes(%k: tensor<?x2x?x32xf64>, %v: tensor<?x2x?x32xf64>, %p: tensor<3x?x?xi64>, %s: tensor<?x?xi32>, %kc: tensor<?x?x2x32xf64>, %vc: tensor<?x?x2x32xf64>) -> (tensor<?x?x2x32xf64>, tensor<?x?x2x32xf64>) {
  %r:2 = posenc.kv_append layout = head_major
    rotation = <pairing = half, frequencies = #half, axes = <interleaved, [6, 5, 5]>>
    ins(%k, %v : tensor<?x2x?x32xf64>, tensor<?x2x?x32xf64>) positions(%p : tensor<3x?x?xi64>) slots(%s : tensor<?x?xi32>)
    outs(%kc, %vc : tensor<?x?x2x32xf64>, tensor<?x?x2x32xf64>)
  return %r#0, %r#1 : tensor<?x?x2x32xf64>, tensor<?x?x2x32xf64>
}

// Rows are rounded once, to the type of the caches.
// INPUTS: 7x2x32xf32 7x2x32xf32 7xi64 7xi64=iota 3x4x2x32xf16 3x4x2x32xf16
func.func @rounded(%k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x?x2x32xf16>, %vc: tensor<?x?x2x32xf16>) -> (tensor<?x?x2x32xf16>, tensor<?x?x2x32xf16>) {
  %r:2 = posenc.kv_append rotation = <pairing = half, frequencies = #half>
    ins(%k, %v : tensor<?x2x32xf32>, tensor<?x2x32xf32>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc : tensor<?x?x2x32xf16>, tensor<?x?x2x32xf16>)
  return %r#0, %r#1 : tensor<?x?x2x32xf16>, tensor<?x?x2x32xf16>
}

// INPUTS: 7x2x32xbf16 7x2x24xbf16 7xi64 7xi64=iota 3x2x4x32xi8 3x2x4x24xi8 3x2x4xf32 3x2x4xf32
func.func @i8(%k: tensor<?x2x32xbf16>, %v: tensor<?x2x24xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x2x?x32xi8>, %vc: tensor<?x2x?x24xi8>, %ks: tensor<?x2x?xf32>, %vs: tensor<?x2x?xf32>) -> (tensor<?x2x?x32xi8>, tensor<?x2x?x24xi8>, tensor<?x2x?xf32>, tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #part>
    ins(%k, %v : tensor<?x2x32xbf16>, tensor<?x2x24xbf16>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x2x?x32xi8>, tensor<?x2x?x24xi8>, tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<?x2x?x32xi8>, tensor<?x2x?x24xi8>, tensor<?x2x?xf32>, tensor<?x2x?xf32>
}

// INPUTS: 2x5x2x32xf16 2x5x2x32xf16 i64[4,6] 2x6x2x32xf8E4M3FN 2x6x2x32xf8E4M3FN 2x2x6xf32 2x2x6xf32
func.func @f8e4m3(%k: tensor<?x?x2x32xf16>, %v: tensor<?x?x2x32xf16>, %n: tensor<?xi64>, %kc: tensor<?x?x2x32xf8E4M3FN>, %vc: tensor<?x?x2x32xf8E4M3FN>, %ks: tensor<?x2x?xf32>, %vs: tensor<?x2x?xf32>) -> (tensor<?x?x2x32xf8E4M3FN>, tensor<?x?x2x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append
    ins(%k, %v : tensor<?x?x2x32xf16>, tensor<?x?x2x32xf16>) lengths(%n : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x?x2x32xf8E4M3FN>, tensor<?x?x2x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<?x?x2x32xf8E4M3FN>, tensor<?x?x2x32xf8E4M3FN>, tensor<?x2x?xf32>, tensor<?x2x?xf32>
}

// INPUTS: 7x2x32xf32 7x2x32xf32 7xi64 7xi64=iota 3x2x4x32xf8E5M2 3x2x4x32xf8E5M2 3x2x4xf32 3x2x4xf32
func.func @f8e5m2(%k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi64>, %s: tensor<?xi64>, %kc: tensor<?x2x?x32xf8E5M2>, %vc: tensor<?x2x?x32xf8E5M2>, %ks: tensor<?x2x?xf32>, %vs: tensor<?x2x?xf32>) -> (tensor<?x2x?x32xf8E5M2>, tensor<?x2x?x32xf8E5M2>, tensor<?x2x?xf32>, tensor<?x2x?xf32>) {
  %r:4 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = interleaved, frequencies = #half>
    ins(%k, %v : tensor<?x2x32xf32>, tensor<?x2x32xf32>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    outs(%kc, %vc, %ks, %vs : tensor<?x2x?x32xf8E5M2>, tensor<?x2x?x32xf8E5M2>, tensor<?x2x?xf32>, tensor<?x2x?xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<?x2x?x32xf8E5M2>, tensor<?x2x?x32xf8E5M2>, tensor<?x2x?xf32>, tensor<?x2x?xf32>
}

// The frequencies depend on the length of the call.
// INPUTS: 100 2x5x2x32xbf16 2x5x2x32xbf16 2x5xi64 i64[4,6] 2x2x6x32xbf16 2x2x6x32xbf16
func.func @turns(%l: i64, %k: tensor<?x?x2x32xbf16>, %v: tensor<?x?x2x32xbf16>, %p: tensor<?x?xi64>, %n: tensor<?xi64>, %kc: tensor<?x2x?x32xbf16>, %vc: tensor<?x2x?x32xbf16>) -> (tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>) {
  %high, %low = posenc.turns #grown length(%l : i64)
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #grown>
    ins(%k, %v : tensor<?x?x2x32xbf16>, tensor<?x?x2x32xbf16>) positions(%p : tensor<?x?xi64>) lengths(%n : tensor<?xi64>) turns(%high, %low : tensor<16xi64>, tensor<16xi64>)
    outs(%kc, %vc : tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>)
  return %r#0, %r#1 : tensor<?x2x?x32xbf16>, tensor<?x2x?x32xbf16>
}

// Scales are given: one of all keys, one of each head of values.
// INPUTS: 7x2x32xbf16 7x2x24xbf16 7xi64 7xi64=iota 1x1x1xf32=0.013 1x2x1xf32=0.02 3x2x4x32xf8E4M3FN 3x2x4x24xf8E4M3FN
func.func @given(%k: tensor<?x2x32xbf16>, %v: tensor<?x2x24xbf16>, %p: tensor<?xi64>, %s: tensor<?xi64>, %ks: tensor<1x1x1xf32>, %vs: tensor<1x2x1xf32>, %kc: tensor<?x2x?x32xf8E4M3FN>, %vc: tensor<?x2x?x24xf8E4M3FN>) -> (tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x24xf8E4M3FN>) {
  %r:2 = posenc.kv_append cache_layout = head_major
    rotation = <pairing = half, frequencies = #part>
    ins(%k, %v : tensor<?x2x32xbf16>, tensor<?x2x24xbf16>) positions(%p : tensor<?xi64>) slots(%s : tensor<?xi64>)
    key_scales(%ks : tensor<1x1x1xf32>) value_scales(%vs : tensor<1x2x1xf32>)
    outs(%kc, %vc : tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x24xf8E4M3FN>)
  return %r#0, %r#1 : tensor<?x2x?x32xf8E4M3FN>, tensor<?x2x?x24xf8E4M3FN>
}
