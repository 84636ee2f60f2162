func.func @window(%x: tensor<?x8xf32>, %p: tensor<?xi64>) -> tensor<?x8xf32> {
  %y = posenc.rope half #posenc.frequencies<dim = 4>
    ins(%x : tensor<?x8xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x8xf32>)
  return %y : tensor<?x8xf32>
}
