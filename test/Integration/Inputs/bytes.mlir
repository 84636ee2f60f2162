// Conversions of i8 and f8 elements to f32.
#map = affine_map<(d0) -> (d0)>

func.func @e4m3(%x: tensor<?xf8E4M3FN> {posenc.name = "x"}) -> tensor<?xf32> {
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

func.func @e5m2(%x: tensor<?xf8E5M2> {posenc.name = "x"}) -> tensor<?xf32> {
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

func.func @i8(%x: tensor<?xi8> {posenc.name = "x"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi8>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%x : tensor<?xi8>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: i8, %b: f32):
    %w = arith.sitofp %a : i8 to f32
    linalg.yield %w : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
