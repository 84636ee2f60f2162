func.func @wide(%x: tensor<?x32x128xf32>, %p: tensor<?xi64>)
    -> tensor<?x32x128xf32> {
  %y = posenc.rope half #posenc.frequencies<dim = 128>
    ins(%x : tensor<?x32x128xf32>) positions(%p : tensor<?xi64>) dims = [0]
    outs(%x : tensor<?x32x128xf32>)
  return %y : tensor<?x32x128xf32>
}

func.func @apart(%x: tensor<7x?x128xf32>, %p: tensor<?xi64>)
    -> tensor<7x?x128xf32> {
  %y = posenc.rope half #posenc.frequencies<dim = 128>
    ins(%x : tensor<7x?x128xf32>) positions(%p : tensor<?xi64>) dims = [1]
    outs(%x : tensor<7x?x128xf32>)
  return %y : tensor<7x?x128xf32>
}
