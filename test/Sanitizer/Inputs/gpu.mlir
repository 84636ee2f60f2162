// A function with an entry point for CUDA.
func.func @sincos(%positions: tensor<?xi64>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %positions, %c0 : tensor<?xi64>
  %empty = tensor.empty(%n) : tensor<?x32xf32>
  %table:2 = posenc.sincos #posenc.frequencies<dim = 64>
    positions(%positions : tensor<?xi64>)
    outs(%empty, %empty : tensor<?x32xf32>, tensor<?x32xf32>)
  return %table#0, %table#1 : tensor<?x32xf32>, tensor<?x32xf32>
}
