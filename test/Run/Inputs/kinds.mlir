// One result for each kind of limit, with inputs of several types.
func.func @tables(%p: tensor<3xi32>, %first: i64, %count: index)
    -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<?x8xf64>) {
  %e = tensor.empty() : tensor<3x4xf32>
  %cos, %sin = posenc.sincos #posenc.frequencies<dim = 8>
    positions(%p : tensor<3xi32>)
    outs(%e, %e : tensor<3x4xf32>, tensor<3x4xf32>)
  %d = tensor.empty(%count) : tensor<?x8xf64>
  %t = posenc.sinusoidal sin_cos #posenc.frequencies<dim = 8>
    positions(%first : i64) outs(%d : tensor<?x8xf64>)
  return %cos, %sin, %t : tensor<3x4xf32>, tensor<3x4xf32>, tensor<?x8xf64>
}
