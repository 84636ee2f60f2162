// Rotations by tables with an element for each lane: compiled code against the
// reference, for both pairings and directions.
//
// DEFINE: %{inputs} = --input=5x3x8xf32=random --input=5x6xf32=random:seed=2 --input=5x6xf32=random:seed=3
// RUN: posenc-run %s --function=half %{inputs} --reference
// RUN: posenc-run %s --function=interleaved %{inputs} --reference
//
// The two differ: the checks can fail.
// RUN: posenc-run %s --function=half %{inputs} --output=@%t.npy
// RUN: not posenc-run %s --function=interleaved %{inputs} --expected_output=@%t.npy
//
// With equal elements for both lanes of a pair, the bits are those of a table
// with one lane for a pair.
// RUN: posenc-run %s --function=repeated --input=5x3x8xf32=random --input=5x3xf32=random:seed=2 --input=5x3xf32=random:seed=3 --output=@%t.full.npy
// RUN: posenc-run %s --function=pairs --input=5x3x8xf32=random --input=5x3xf32=random:seed=2 --input=5x3xf32=random:seed=3 --output=@%t.pairs.npy
// RUN: cmp %t.full.npy %t.pairs.npy

func.func @half(%x: tensor<?x3x8xf32>, %cos: tensor<?x6xf32>, %sin: tensor<?x6xf32>) -> tensor<?x3x8xf32> {
  %r = posenc.rotate half full_tables ins(%x : tensor<?x3x8xf32>) tables(%cos, %sin : tensor<?x6xf32>) dims = [0] offset = 1 outs(%x : tensor<?x3x8xf32>)
  return %r : tensor<?x3x8xf32>
}

func.func @interleaved(%x: tensor<?x3x8xf32>, %cos: tensor<?x6xf32>, %sin: tensor<?x6xf32>) -> tensor<?x3x8xf32> {
  %r = posenc.rotate interleaved inverse full_tables ins(%x : tensor<?x3x8xf32>) tables(%cos, %sin : tensor<?x6xf32>) dims = [0] outs(%x : tensor<?x3x8xf32>)
  return %r : tensor<?x3x8xf32>
}

func.func @repeated(%x: tensor<?x3x8xf32>, %c: tensor<?x3xf32>, %s: tensor<?x3xf32>) -> tensor<?x3x8xf32> {
  %cos = tensor.concat dim(1) %c, %c : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
  %sin = tensor.concat dim(1) %s, %s : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
  %r = posenc.rotate half full_tables ins(%x : tensor<?x3x8xf32>) tables(%cos, %sin : tensor<?x6xf32>) dims = [0] outs(%x : tensor<?x3x8xf32>)
  return %r : tensor<?x3x8xf32>
}

func.func @pairs(%x: tensor<?x3x8xf32>, %c: tensor<?x3xf32>, %s: tensor<?x3xf32>) -> tensor<?x3x8xf32> {
  %r = posenc.rotate half ins(%x : tensor<?x3x8xf32>) tables(%c, %s : tensor<?x3xf32>) dims = [0] outs(%x : tensor<?x3x8xf32>)
  return %r : tensor<?x3x8xf32>
}
