func.func @rope(%x: tensor<?x2x64xf32>, %p: tensor<?xi64>)
    -> tensor<?x2x64xf32> {
  %y = posenc.rope half #posenc.frequencies<dim = 64>
    ins(%x : tensor<?x2x64xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x2x64xf32>)
  return %y : tensor<?x2x64xf32>
}
func.func @small(%x: tensor<5x1x16xbf16>, %p: tensor<5xi32>)
    -> tensor<5x1x16xbf16> {
  %y = posenc.rope interleaved #posenc.frequencies<dim = 16>
    ins(%x : tensor<5x1x16xbf16>) positions(%p : tensor<5xi32>) dims = [0]
    outs(%x : tensor<5x1x16xbf16>)
  return %y : tensor<5x1x16xbf16>
}
func.func @table(%p: tensor<?xi64>, %t: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = posenc.sinusoidal interleaved #posenc.frequencies<dim = 64>
    positions(%p : tensor<?xi64>) outs(%t : tensor<?x64xf32>)
  return %y : tensor<?x64xf32>
}
