func.func @attention(%q: tensor<1x?x8x64xf32>, %k: tensor<1x?x2x64xf32>, %v: tensor<1x?x2x64xf32>, %o: tensor<1x?x8x64xf32>) -> tensor<1x?x8x64xf32> {
  %r = posenc.attention causal window_left = 99
    ins(%q, %k, %v : tensor<1x?x8x64xf32>, tensor<1x?x2x64xf32>, tensor<1x?x2x64xf32>) outs(%o : tensor<1x?x8x64xf32>)
  return %r : tensor<1x?x8x64xf32>
}
