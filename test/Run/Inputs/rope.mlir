func.func @rope(%x: tensor<?x4x8xbf16> {posenc.name = "x"},
                %p: tensor<?xi64> {posenc.name = "p"})
    -> (tensor<?x4x8xbf16> {posenc.name = "y"}) {
  %y = posenc.rope half #posenc.frequencies<dim = 8>
    ins(%x : tensor<?x4x8xbf16>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x4x8xbf16>)
  return %y : tensor<?x4x8xbf16>
}
