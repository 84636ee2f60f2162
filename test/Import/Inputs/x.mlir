module {
  func.func @main(%arg0: tensor<?x4xf32> {posenc.name = "x", posenc.sizes = ["n"]}) -> (tensor<?x1xf32> {posenc.name = "y"}) {
    %c0 = arith.constant 0 : index
    %dim = tensor.dim %arg0, %c0 : tensor<?x4xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%dim) : tensor<?x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x1xf32>) -> tensor<?x1xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<4x1xf32>
    %2 = linalg.matmul ins(%arg0, %cst_0 : tensor<?x4xf32>, tensor<4x1xf32>) outs(%1 : tensor<?x1xf32>) -> tensor<?x1xf32>
    return %2 : tensor<?x1xf32>
  }
}

