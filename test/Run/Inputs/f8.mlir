// Conversions from and to f8, which CPUs have no instructions for.
#map = affine_map<(d0) -> (d0)>

func.func @from_e4m3(%x: tensor<?xf8E4M3FN>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf8E4M3FN>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf8E4M3FN>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f8E4M3FN, %b: f32):
    %w = arith.extf %a : f8E4M3FN to f32
    linalg.yield %w : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

func.func @from_e5m2(%x: tensor<?xf8E5M2>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf8E5M2>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf8E5M2>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f8E5M2, %b: f32):
    %w = arith.extf %a : f8E5M2 to f32
    linalg.yield %w : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

func.func @to_e4m3(%x: tensor<?xf32>) -> tensor<?xf8E4M3FN> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf8E4M3FN>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%e : tensor<?xf8E4M3FN>) {
  ^bb0(%a: f32, %b: f8E4M3FN):
    %w = arith.truncf %a : f32 to f8E4M3FN
    linalg.yield %w : f8E4M3FN
  } -> tensor<?xf8E4M3FN>
  return %r : tensor<?xf8E4M3FN>
}

func.func @to_e5m2(%x: tensor<?xf32>) -> tensor<?xf8E5M2> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf8E5M2>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%e : tensor<?xf8E5M2>) {
  ^bb0(%a: f32, %b: f8E5M2):
    %w = arith.truncf %a : f32 to f8E5M2
    linalg.yield %w : f8E5M2
  } -> tensor<?xf8E5M2>
  return %r : tensor<?xf8E5M2>
}
