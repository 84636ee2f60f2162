// What the import of StableHLO does not know is an error that names it.
//
// RUN: posenc-opt %s --posenc-import-hlo --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.erf_inv' is not supported}}
  %y = "stablehlo.erf_inv"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.custom_call' calls 'cu_threefry2x32', which is not supported}}
  %y = stablehlo.custom_call @cu_threefry2x32(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'stablehlo.sine' is supported on tensors of static shapes only, got 'tensor<?xf32>'}}
  %y = stablehlo.sine %x : tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @region(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'stablehlo.reduce' with a region of more than one operation is not supported}}
  %y = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %c = stablehlo.add %a, %b : tensor<f32>
      %d = stablehlo.add %c, %b : tensor<f32>
      stablehlo.return %d : tensor<f32>
    }
  return %y : tensor<f32>
}

// -----

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.slice' has a range outside of its operand}}
  %y = stablehlo.slice %x [1:5] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A cache that is written in place becomes a result, so that the write is not
// lost.
func.func @cache(%cache: tensor<2x1x4x2xf32>, %rows: tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32> {
  "ttir.fill_cache"(%cache, %rows) <{batch_offset = 1 : i32}> : (tensor<2x1x4x2xf32>, tensor<1x1x3x2xf32>) -> ()
  // expected-error @+1 {{'ttir.unknown' is not supported}}
  %y = "ttir.unknown"(%rows) : (tensor<1x1x3x2xf32>) -> tensor<1x1x3x2xf32>
  return %y : tensor<1x1x3x2xf32>
}

// -----

func.func @few(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error @+1 {{'stablehlo.select' expected at least 3 operands, got 1}}
  %y = "stablehlo.select"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return %y : tensor<4xi1>
}
