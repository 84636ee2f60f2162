// Functions that nothing in C can be called as.
func.func @"../../outside"(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
func.func @"one,two"(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
func.func @one(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
