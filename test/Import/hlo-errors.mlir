// What the import of StableHLO does not know is an error that names it.
//
// RUN: posenc-opt %s --posenc-import-hlo --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.erf_inv' is not supported}}
  %y = "stablehlo.erf_inv"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @order(%x: tensor<4xf32>) -> tensor<4xi1> {
  // expected-error @+1 {{'stablehlo.compare' by the total order of floats is not supported}}
  %y = stablehlo.compare LT, %x, %x, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %y : tensor<4xi1>
}

// -----

func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.custom_call' calls 'cu_threefry2x32', which is not supported}}
  %y = stablehlo.custom_call @cu_threefry2x32(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'ttir.sin' is supported on tensors of static shapes only, got 'tensor<?xf32>'}}
  %y = "ttir.sin"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @sizes(%x: tensor<f32>, %n: tensor<1xi32>) -> tensor<?xf32> {
  // expected-error @+1 {{'stablehlo.dynamic_broadcast_in_dim' has a size that does not follow from the sizes of arguments}}
  %y = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @assertion(%x: tensor<i1>) {
  // expected-error @+1 {{'stablehlo.custom_call' asserts a condition that does not follow from sizes}}
  stablehlo.custom_call @shape_assertion(%x) {error_message = "never", has_side_effect = true} : (tensor<i1>) -> ()
  return
}

// -----

func.func @contradiction(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.add' has operands of other shapes or types}}
  %z = "stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

func.func @result(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{'stablehlo.sine' has a result of tensor<5xf32>, expected tensor<4xf32>}}
  %z = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return %z : tensor<5xf32>
}

// -----

func.func @scatter(%x: tensor<4xf32>, %i: tensor<1xi32>, %u: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{'stablehlo.scatter' has dimension numbers that do not fit its operands}}
  %z = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [3], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4xf32>, tensor<1xi32>, tensor<f32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

func.func @dilated(%x: tensor<1x4x4x1xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x6x6x1xf32> {
  // expected-error @+1 {{'stablehlo.convolution' with dilated operands, groups of the batch or reversed kernels is not supported}}
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x6x6x1xf32>
  return %y : tensor<1x6x6x1xf32>
}

// -----

func.func @random(%x: tensor<2xi64>) -> tensor<2xi64> {
  // expected-error @+1 {{'stablehlo.rng_bit_generator' is not supported}}
  %y:2 = "stablehlo.rng_bit_generator"(%x) : (tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
  return %y#0 : tensor<2xi64>
}

// -----

func.func @region(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'stablehlo.reduce' has a region that is not supported}}
  %y = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %c = stablehlo.add %a, %b : tensor<f32>
      %d = "stablehlo.erf_inv"(%c) : (tensor<f32>) -> tensor<f32>
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

// -----

func.func @offset(%cache: tensor<2x1x4x2xf32>, %rows: tensor<1x1x2x2xf32>, %at: tensor<1xi64>) -> tensor<1x1x2x2xf32> {
  // expected-error @+1 {{'ttir.update_cache' is supported for a batch offset of 0 only}}
  "ttir.update_cache"(%cache, %rows, %at) <{batch_offset = 1 : i32}> : (tensor<2x1x4x2xf32>, tensor<1x1x2x2xf32>, tensor<1xi64>) -> ()
  return %rows : tensor<1x1x2x2xf32>
}

// -----

func.func @shift(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @+1 {{'stablehlo.shift_left' expected at least 2 operands, got 1}}
  %y = "stablehlo.shift_left"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// -----

func.func @scan(%x: memref<2x5xi64>, %y: memref<2x5xi64>, %s: memref<2xi64>) -> memref<2x5xi64> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported in this form}}
  %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : memref<2x5xi64>) outs(%y, %s : memref<2x5xi64>, memref<2xi64>) {
  ^bb0(%a: i64, %b: i64):
    %1 = arith.addi %a, %b : i64
    tm_tensor.yield %1 : i64
  } -> memref<2x5xi64>, memref<2xi64>
  return %0#0 : memref<2x5xi64>
}

// -----

func.func @scan_of_nothing(%x: tensor<2x5xi64>, %y: tensor<2x5xi64>, %s: tensor<2xi64>) -> tensor<2x5xi64> {
  // expected-error @+1 {{'tm_tensor.scan' is not supported in this form}}
  %0:2 = "tm_tensor.scan"(%x, %y, %s) <{dimension = 1 : i64, inclusive = true}> ({
  ^bb0(%a: i64, %b: i64):
    "tm_tensor.yield"() : () -> ()
  }) : (tensor<2x5xi64>, tensor<2x5xi64>, tensor<2xi64>) -> (tensor<2x5xi64>, tensor<2xi64>)
  return %0#0 : tensor<2x5xi64>
}

// -----

func.func @largest_index(%x: tensor<2x4xindex>) -> tensor<2xi32> {
  // expected-error @+1 {{'ttir.argmax' has operands or a result of types that it does not support}}
  %y = "ttir.argmax"(%x) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<2x4xindex>) -> tensor<2xi32>
  return %y : tensor<2xi32>
}

// -----

func.func @count(%x: tensor<4xf32>) -> tensor<index> {
  %zero = stablehlo.constant dense<0> : tensor<index>
  %three = stablehlo.constant dense<3> : tensor<index>
  %0 = stablehlo.while(%i = %zero) : tensor<index>
  cond {
    // expected-error @+1 {{'stablehlo.compare' has operands of types that it cannot compare}}
    %less = stablehlo.compare LT, %i, %three, SIGNED : (tensor<index>, tensor<index>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<index>
    %next = stablehlo.add %i, %one : tensor<index>
    stablehlo.return %next : tensor<index>
  }
  return %0 : tensor<index>
}
