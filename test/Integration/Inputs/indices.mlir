//===- indices.mlir - functions with index operands -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

func.func @decode(%q: tensor<?x1x4x8xf32> {posenc.name = "q"}, %k: tensor<?x2x?x8xf32> {posenc.name = "k"},
                  %n: tensor<?xi64> {posenc.name = "n"}) -> (tensor<?x1x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %k : tensor<?x1x4x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
    lengths(%n : tensor<?xi64>) outs(%q : tensor<?x1x4x8xf32>)
  return %r : tensor<?x1x4x8xf32>
}

func.func @paged(%q: tensor<?x1x4x8xf32> {posenc.name = "q"}, %k: tensor<?x4x2x8xf32> {posenc.name = "k"},
                 %n: tensor<?xi64> {posenc.name = "n"}, %t: tensor<?x?xi32> {posenc.name = "t"})
    -> (tensor<?x1x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x1x4x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) outs(%q : tensor<?x1x4x8xf32>)
  return %r : tensor<?x1x4x8xf32>
}

// A page table may be wide enough for more keys than the mask or the positions.
func.func @masked(%q: tensor<?x1x4x8xf32> {posenc.name = "q"}, %k: tensor<?x4x2x8xf32> {posenc.name = "k"},
                  %n: tensor<?xi64> {posenc.name = "n"}, %t: tensor<?x?xi32> {posenc.name = "t"},
                  %m: tensor<1x1x1x?xf32> {posenc.name = "m"}) -> (tensor<?x1x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x1x4x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) mask(%m : tensor<1x1x1x?xf32>)
    outs(%q : tensor<?x1x4x8xf32>)
  return %r : tensor<?x1x4x8xf32>
}

#rotation = #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 8>>
func.func @positioned(%q: tensor<?x1x4x8xf32> {posenc.name = "q"}, %k: tensor<?x4x2x8xf32> {posenc.name = "k"},
                      %n: tensor<?xi64> {posenc.name = "n"}, %t: tensor<?x?xi32> {posenc.name = "t"},
                      %p: tensor<?x5xi32> {posenc.name = "p"}) -> (tensor<?x1x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention key_rotation = #rotation
    ins(%q, %k, %k : tensor<?x1x4x8xf32>, tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
    key_positions(%p : tensor<?x5xi32>)
    lengths(%n : tensor<?xi64>) block_table(%t : tensor<?x?xi32>) outs(%q : tensor<?x1x4x8xf32>)
  return %r : tensor<?x1x4x8xf32>
}

func.func @ragged(%q: tensor<?x4x8xf32> {posenc.name = "q"}, %k: tensor<?x2x8xf32> {posenc.name = "k"},
                  %a: tensor<?xi32> {posenc.name = "a"}, %b: tensor<?xi32> {posenc.name = "b"})
    -> (tensor<?x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention causal ins(%q, %k, %k : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>)
    cu_seqlens(%a, %b : tensor<?xi32>, tensor<?xi32>) outs(%q : tensor<?x4x8xf32>)
  return %r : tensor<?x4x8xf32>
}

func.func @mixed(%q: tensor<?x4x8xf32> {posenc.name = "q"}, %k: tensor<?x?x2x8xf32> {posenc.name = "k"},
                 %a: tensor<?xi64> {posenc.name = "a"}, %n: tensor<?xi32> {posenc.name = "n"})
    -> (tensor<?x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention causal ins(%q, %k, %k : tensor<?x4x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
    lengths(%n : tensor<?xi32>) cu_seqlens(%a : tensor<?xi64>) outs(%q : tensor<?x4x8xf32>)
  return %r : tensor<?x4x8xf32>
}

func.func @append(%x: tensor<?x?x2x8xf32> {posenc.name = "x"}, %n: tensor<?xi64> {posenc.name = "n"},
                  %k: tensor<?x?x2x8xf32> {posenc.name = "k"}, %v: tensor<?x?x2x8xf32> {posenc.name = "v"})
    -> (tensor<?x?x2x8xf32> {posenc.name = "k_out"}, tensor<?x?x2x8xf32> {posenc.name = "v_out"}) {
  %r:2 = posenc.kv_append ins(%x, %x : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) lengths(%n : tensor<?xi64>)
    outs(%k, %v : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
  return %r#0, %r#1 : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>
}

func.func @scatter(%x: tensor<?x?x2x8xf32> {posenc.name = "x"}, %s: tensor<?x?xi32> {posenc.name = "s"},
                   %k: tensor<?x4x2x8xf32> {posenc.name = "k"}, %v: tensor<?x4x2x8xf32> {posenc.name = "v"})
    -> (tensor<?x4x2x8xf32> {posenc.name = "k_out"}, tensor<?x4x2x8xf32> {posenc.name = "v_out"}) {
  %r:2 = posenc.kv_append ins(%x, %x : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>) slots(%s : tensor<?x?xi32>)
    outs(%k, %v : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
  return %r#0, %r#1 : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
}

func.func @scatter_packed(%x: tensor<?x2x8xf32> {posenc.name = "x"}, %s: tensor<?xi64> {posenc.name = "s"},
                          %k: tensor<?x4x2x8xf32> {posenc.name = "k"}, %v: tensor<?x4x2x8xf32> {posenc.name = "v"})
    -> (tensor<?x4x2x8xf32> {posenc.name = "k_out"}, tensor<?x4x2x8xf32> {posenc.name = "v_out"}) {
  %r:2 = posenc.kv_append ins(%x, %x : tensor<?x2x8xf32>, tensor<?x2x8xf32>) slots(%s : tensor<?xi64>)
    outs(%k, %v : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>)
  return %r#0, %r#1 : tensor<?x4x2x8xf32>, tensor<?x4x2x8xf32>
}

func.func @heads(%q: tensor<?x?x?x8xf32> {posenc.name = "q"}, %k: tensor<?x?x?x8xf32> {posenc.name = "k"})
    -> (tensor<?x?x?x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>)
    outs(%q : tensor<?x?x?x8xf32>)
  return %r : tensor<?x?x?x8xf32>
}

func.func @sizes(%q: tensor<?x?x4x8xf32> {posenc.name = "q"}, %k: tensor<3x?x2x8xf32> {posenc.name = "k"},
                 %s: tensor<?xf32> {posenc.name = "s"}) -> (tensor<?x?x4x8xf32> {posenc.name = "o"}) {
  %r = posenc.attention ins(%q, %k, %k : tensor<?x?x4x8xf32>, tensor<3x?x2x8xf32>, tensor<3x?x2x8xf32>)
    sinks(%s : tensor<?xf32>) outs(%q : tensor<?x?x4x8xf32>)
  return %r : tensor<?x?x4x8xf32>
}
