#rotation = #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 32>>

func.func @decode(%q: tensor<?x1x8x32xf32>, %k: tensor<?x2x?x32xf32>,
                  %v: tensor<?x2x?x32xf32>, %n: tensor<?xi64>,
                  %o: tensor<?x1x8x32xf32>) -> tensor<?x1x8x32xf32> {
  %r = posenc.attention key_layout = head_major query_rotation = #rotation
    ins(%q, %k, %v : tensor<?x1x8x32xf32>, tensor<?x2x?x32xf32>,
                     tensor<?x2x?x32xf32>)
    lengths(%n : tensor<?xi64>) outs(%o : tensor<?x1x8x32xf32>)
  return %r : tensor<?x1x8x32xf32>
}

func.func @rows(%q: tensor<?x1x8x32xbf16>, %k: tensor<?x?x2x32xbf16>,
                %v: tensor<?x?x2x32xbf16>, %n: tensor<?xi64>,
                %o: tensor<?x1x8x32xbf16>) -> tensor<?x1x8x32xbf16> {
  %r = posenc.attention key_layout = token_major query_rotation = #rotation
    ins(%q, %k, %v : tensor<?x1x8x32xbf16>, tensor<?x?x2x32xbf16>,
                     tensor<?x?x2x32xbf16>)
    lengths(%n : tensor<?xi64>) outs(%o : tensor<?x1x8x32xbf16>)
  return %r : tensor<?x1x8x32xbf16>
}

func.func @attention(%q: tensor<?x?x4x32xf32>, %k: tensor<?x?x2x32xf32>,
                     %v: tensor<?x?x2x32xf32>, %p: tensor<?x?xi64>,
                     %o: tensor<?x?x4x32xf32>) -> tensor<?x?x4x32xf32> {
  %r = posenc.attention causal query_rotation = #rotation
    key_rotation = #rotation
    ins(%q, %k, %v : tensor<?x?x4x32xf32>, tensor<?x?x2x32xf32>,
                     tensor<?x?x2x32xf32>)
    query_positions(%p : tensor<?x?xi64>) key_positions(%p : tensor<?x?xi64>)
    outs(%o : tensor<?x?x4x32xf32>)
  return %r : tensor<?x?x4x32xf32>
}

func.func @window(%q: tensor<?x?x4x32xf32>, %k: tensor<?x?x2x32xf32>,
                  %v: tensor<?x?x2x32xf32>,
                  %o: tensor<?x?x4x32xf32>) -> tensor<?x?x4x32xf32> {
  %r = posenc.attention causal window_left = 49
    ins(%q, %k, %v : tensor<?x?x4x32xf32>, tensor<?x?x2x32xf32>,
                     tensor<?x?x2x32xf32>)
    outs(%o : tensor<?x?x4x32xf32>)
  return %r : tensor<?x?x4x32xf32>
}

func.func @nested(%q: tensor<?x?x4x32xf64>, %k: tensor<?x?x2x32xf64>,
                  %v: tensor<?x?x2x32xf64>,
                  %o: tensor<?x?x4x32xf64>) -> tensor<?x?x4x32xf64> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x32xf64>, tensor<?x?x2x32xf64>,
                     tensor<?x?x2x32xf64>)
    outs(%o : tensor<?x?x4x32xf64>)
  return %r : tensor<?x?x4x32xf64>
}
