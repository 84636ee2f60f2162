// Functions whose names are not C identifiers, and one whose name is.
func.func @"../../outside"(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
func.func @"one,two"(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
func.func @one(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
