//===- attention-forms.mlir - forms of attention --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each form of attention once, for tests that run all of them. Each line of INPUTS
// has the arguments of one call, as options of posenc-run, where =random is left
// out; `i64[1,2]` is a tensor of these numbers, and `=iota/2` is 0, 0, 1, 1, ...
//
//===----------------------------------------------------------------------===//

#dynamic = #posenc.rotation<pairing = half, frequencies = #posenc.frequencies<dim = 64, scaling = #posenc.dynamic<factor = 4, max_position = 8192>>>

// Whole rows of scores; also without sequences, queries or keys.
// INPUTS: 2x5x4x128xbf16 2x70x4x128xbf16 2x70x4x128xbf16
// INPUTS: 1x130x4x128xbf16 1x200x4x128xbf16 1x200x4x128xbf16
// INPUTS: 0x5x4x128xbf16 0x7x4x128xbf16 0x7x4x128xbf16
// INPUTS: 2x0x4x128xbf16 2x7x4x128xbf16 2x7x4x128xbf16
// INPUTS: 2x5x4x128xbf16 2x0x4x128xbf16 2x0x4x128xbf16
func.func @full_bf16(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x4x128xbf16>, %v: tensor<?x?x4x128xbf16>) -> tensor<?x?x4x128xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x4x128xbf16>, tensor<?x?x4x128xbf16>, tensor<?x?x4x128xbf16>)
    outs(%q : tensor<?x?x4x128xbf16>)
  return %r : tensor<?x?x4x128xbf16>
}

// Four query heads of a key head.
// INPUTS: 1x129x4x64xf16 1x192x1x64xf16 1x192x1x64xf16
// INPUTS: 3x1x4x64xf16 3x65x1x64xf16 3x65x1x64xf16
func.func @full_f16(%q: tensor<?x?x4x64xf16>, %k: tensor<?x?x1x64xf16>, %v: tensor<?x?x1x64xf16>) -> tensor<?x?x4x64xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x4x64xf16>, tensor<?x?x1x64xf16>, tensor<?x?x1x64xf16>)
    outs(%q : tensor<?x?x4x64xf16>)
  return %r : tensor<?x?x4x64xf16>
}

// Eight query heads of a key head.
// INPUTS: 1x33x8x64xf32 1x130x1x64xf32 1x130x1x64xf32
// INPUTS: 2x1x8x64xf32 2x64x1x64xf32 2x64x1x64xf32
func.func @full_f32(%q: tensor<?x?x8x64xf32>, %k: tensor<?x?x1x64xf32>, %v: tensor<?x?x1x64xf32>) -> tensor<?x?x8x64xf32> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x8x64xf32>, tensor<?x?x1x64xf32>, tensor<?x?x1x64xf32>)
    outs(%q : tensor<?x?x8x64xf32>)
  return %r : tensor<?x?x8x64xf32>
}

// INPUTS: 1x17x2x64xf64 1x40x1x64xf64 1x40x1x64xf64
func.func @full_f64(%q: tensor<?x?x2x64xf64>, %k: tensor<?x?x1x64xf64>, %v: tensor<?x?x1x64xf64>) -> tensor<?x?x2x64xf64> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x64xf64>, tensor<?x?x1x64xf64>, tensor<?x?x1x64xf64>)
    outs(%q : tensor<?x?x2x64xf64>)
  return %r : tensor<?x?x2x64xf64>
}

// INPUTS: 2x9x4x32xf16 2x40x2x32xf16 2x40x2x32xf16
func.func @dynamic_heads(%q: tensor<?x?x?x32xf16>, %k: tensor<?x?x?x32xf16>, %v: tensor<?x?x?x32xf16>) -> tensor<?x?x?x32xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>, tensor<?x?x?x32xf16>)
    outs(%q : tensor<?x?x?x32xf16>)
  return %r : tensor<?x?x?x32xf16>
}

// INPUTS: 2x24x4x64xbf16 2x40x2x64xbf16 2x40x2x64xbf16
func.func @static_sizes(%q: tensor<2x24x4x64xbf16>, %k: tensor<2x40x2x64xbf16>, %v: tensor<2x40x2x64xbf16>) -> tensor<2x24x4x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<2x24x4x64xbf16>, tensor<2x40x2x64xbf16>, tensor<2x40x2x64xbf16>)
    outs(%q : tensor<2x24x4x64xbf16>)
  return %r : tensor<2x24x4x64xbf16>
}

// INPUTS: 1x70x2x8xf32 1x131x2x8xf32 1x131x2x8xf32
func.func @head_8(%q: tensor<?x?x2x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x2x8xf32>) -> tensor<?x?x2x8xf32> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>)
    outs(%q : tensor<?x?x2x8xf32>)
  return %r : tensor<?x?x2x8xf32>
}

// INPUTS: 1x70x4x72xbf16 1x131x2x72xbf16 1x131x2x72xbf16
func.func @head_72(%q: tensor<?x?x4x72xbf16>, %k: tensor<?x?x2x72xbf16>, %v: tensor<?x?x2x72xbf16>) -> tensor<?x?x4x72xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x72xbf16>, tensor<?x?x2x72xbf16>, tensor<?x?x2x72xbf16>)
    outs(%q : tensor<?x?x4x72xbf16>)
  return %r : tensor<?x?x4x72xbf16>
}

// INPUTS: 1x70x2x80xf16 1x131x1x80xf16 1x131x1x80xf16
func.func @head_80(%q: tensor<?x?x2x80xf16>, %k: tensor<?x?x1x80xf16>, %v: tensor<?x?x1x80xf16>) -> tensor<?x?x2x80xf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x80xf16>, tensor<?x?x1x80xf16>, tensor<?x?x1x80xf16>)
    outs(%q : tensor<?x?x2x80xf16>)
  return %r : tensor<?x?x2x80xf16>
}

// INPUTS: 1x70x4x96xbf16 1x131x4x96xbf16 1x131x4x96xbf16
func.func @head_96(%q: tensor<?x?x4x96xbf16>, %k: tensor<?x?x4x96xbf16>, %v: tensor<?x?x4x96xbf16>) -> tensor<?x?x4x96xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x96xbf16>, tensor<?x?x4x96xbf16>, tensor<?x?x4x96xbf16>)
    outs(%q : tensor<?x?x4x96xbf16>)
  return %r : tensor<?x?x4x96xbf16>
}

// INPUTS: 1x70x2x192xf16 1x131x1x192xf16 1x131x1x192xf16
func.func @head_192(%q: tensor<?x?x2x192xf16>, %k: tensor<?x?x1x192xf16>, %v: tensor<?x?x1x192xf16>) -> tensor<?x?x2x192xf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x2x192xf16>, tensor<?x?x1x192xf16>, tensor<?x?x1x192xf16>)
    outs(%q : tensor<?x?x2x192xf16>)
  return %r : tensor<?x?x2x192xf16>
}

// Values of another width than keys.
// INPUTS: 1x20x2x64xbf16 1x75x1x64xbf16 1x75x1x96xbf16 1x20x2x96xbf16=0
func.func @values_wider(%q: tensor<?x?x2x64xbf16>, %k: tensor<?x?x1x64xbf16>, %v: tensor<?x?x1x96xbf16>, %o: tensor<?x?x2x96xbf16>) -> tensor<?x?x2x96xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x1x96xbf16>)
    outs(%o : tensor<?x?x2x96xbf16>)
  return %r : tensor<?x?x2x96xbf16>
}

// INPUTS: 2x4x130x64xbf16 2x2x150x64xbf16 2x2x150x64xbf16
func.func @head_major(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %r = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    outs(%q : tensor<?x4x?x64xbf16>)
  return %r : tensor<?x4x?x64xbf16>
}

// INPUTS: 2x40x4x64xf16 2x2x70x64xf16 2x2x70x64xf16
func.func @mixed_layouts(%q: tensor<?x?x4x64xf16>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>) -> tensor<?x?x4x64xf16> {
  %r = posenc.attention key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x4x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
    outs(%q : tensor<?x?x4x64xf16>)
  return %r : tensor<?x?x4x64xf16>
}

// Queries, keys and values of one projection: strided views.
// INPUTS: 2x37x8x64xbf16 2x37x4x64xbf16=0
func.func @slices(%x: tensor<?x?x8x64xbf16>, %o: tensor<?x?x4x64xbf16>) -> tensor<?x?x4x64xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x8x64xbf16>
  %n = tensor.dim %x, %c1 : tensor<?x?x8x64xbf16>
  %q = tensor.extract_slice %x[0, 0, 0, 0] [%b, %n, 4, 64] [1, 1, 1, 1] : tensor<?x?x8x64xbf16> to tensor<?x?x4x64xbf16>
  %k = tensor.extract_slice %x[0, 0, 4, 0] [%b, %n, 2, 64] [1, 1, 1, 1] : tensor<?x?x8x64xbf16> to tensor<?x?x2x64xbf16>
  %v = tensor.extract_slice %x[0, 0, 6, 0] [%b, %n, 2, 64] [1, 1, 1, 1] : tensor<?x?x8x64xbf16> to tensor<?x?x2x64xbf16>
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    outs(%o : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// Rows that begin at no multiple of 16 bytes.
// INPUTS: 1x37x2x191xf16 1x37x2x60xf16=0
func.func @unaligned_slices(%x: tensor<?x?x2x191xf16>, %o: tensor<?x?x2x60xf16>) -> tensor<?x?x2x60xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x2x191xf16>
  %n = tensor.dim %x, %c1 : tensor<?x?x2x191xf16>
  %q = tensor.extract_slice %x[0, 0, 0, 1] [%b, %n, 2, 60] [1, 1, 1, 1] : tensor<?x?x2x191xf16> to tensor<?x?x2x60xf16>
  %k = tensor.extract_slice %x[0, 0, 0, 66] [%b, %n, 2, 60] [1, 1, 1, 1] : tensor<?x?x2x191xf16> to tensor<?x?x2x60xf16>
  %v = tensor.extract_slice %x[0, 0, 0, 131] [%b, %n, 2, 60] [1, 1, 1, 1] : tensor<?x?x2x191xf16> to tensor<?x?x2x60xf16>
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x60xf16>, tensor<?x?x2x60xf16>, tensor<?x?x2x60xf16>)
    outs(%o : tensor<?x?x2x60xf16>)
  return %r : tensor<?x?x2x60xf16>
}

// As many keys as queries, more and fewer: the first queries then see none.
// INPUTS: 1x130x4x128xbf16 1x130x2x128xbf16 1x130x2x128xbf16
// INPUTS: 1x5x4x128xbf16 1x130x2x128xbf16 1x130x2x128xbf16
// INPUTS: 1x70x4x128xbf16 1x9x2x128xbf16 1x9x2x128xbf16
// INPUTS: 1x1x4x128xbf16 1x1x2x128xbf16 1x1x2x128xbf16
func.func @causal_bf16(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>) -> tensor<?x?x4x128xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x4x128xbf16>)
  return %r : tensor<?x?x4x128xbf16>
}

// INPUTS: 1x200x4x64xbf16 1x200x2x64xbf16 1x200x2x64xbf16
// INPUTS: 2x3x4x64xbf16 2x140x2x64xbf16 2x140x2x64xbf16
// INPUTS: 1x90x4x64xbf16 1x9x2x64xbf16 1x9x2x64xbf16
func.func @window(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal window_left = 30
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// A tile of more queries.
// INPUTS: 1x90x2x64xf16 1x150x2x64xf16 7
// INPUTS: 1x90x2x64xf16 1x150x2x64xf16 200
func.func @trailing(%q: tensor<1x?x2x64xf16>, %k: tensor<1x?x2x64xf16>, %n: index) -> tensor<1x?x2x64xf16> {
  %r = posenc.attention causal window_left = 9
    ins(%q, %k, %k : tensor<1x?x2x64xf16>, tensor<1x?x2x64xf16>, tensor<1x?x2x64xf16>)
    trailing_queries(%n)
    outs(%q : tensor<1x?x2x64xf16>)
  return %r : tensor<1x?x2x64xf16>
}

// INPUTS: 1x200x2x64xf16 1x300x2x64xf16 1x300x2x64xf16
func.func @wide_window(%q: tensor<?x?x2x64xf16>, %k: tensor<?x?x2x64xf16>, %v: tensor<?x?x2x64xf16>) -> tensor<?x?x2x64xf16> {
  %r = posenc.attention causal window_left = 9223372036854775807
    ins(%q, %k, %v : tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>)
    outs(%q : tensor<?x?x2x64xf16>)
  return %r : tensor<?x?x2x64xf16>
}

// Tiles before a window's first full one; maxima grow much from tile to tile.
// INPUTS: 1x64x1x64xbf16 1x520x1x64xbf16 1x520x1x64xbf16
func.func @window_rescaled(%q: tensor<?x?x1x64xbf16>, %k: tensor<?x?x1x64xbf16>, %v: tensor<?x?x1x64xbf16>) -> tensor<?x?x1x64xbf16> {
  %r = posenc.attention causal window_left = 300 scale = 2.0
    ins(%q, %k, %v : tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>)
    outs(%q : tensor<?x?x1x64xbf16>)
  return %r : tensor<?x?x1x64xbf16>
}

// INPUTS: 1x150x2x64xf16 1x190x2x64xf16 1x190x2x64xf16
// INPUTS: 1x150x2x64xf16 1x20x2x64xf16 1x20x2x64xf16
func.func @both_windows(%q: tensor<?x?x2x64xf16>, %k: tensor<?x?x2x64xf16>, %v: tensor<?x?x2x64xf16>) -> tensor<?x?x2x64xf16> {
  %r = posenc.attention window_left = 20 window_right = 10
    ins(%q, %k, %v : tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>)
    outs(%q : tensor<?x?x2x64xf16>)
  return %r : tensor<?x?x2x64xf16>
}

// Results are the values.
// INPUTS: 1x70x2x64xf32 1x70x2x64xf32 1x70x2x64xf32
func.func @only_itself(%q: tensor<?x?x2x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>) -> tensor<?x?x2x64xf32> {
  %r = posenc.attention causal window_left = 0
    ins(%q, %k, %v : tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    outs(%q : tensor<?x?x2x64xf32>)
  return %r : tensor<?x?x2x64xf32>
}

// INPUTS: 1x140x4x128xbf16 1x140x2x128xbf16 1x140x2x128xbf16
func.func @causal_region(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>) -> tensor<?x?x4x128xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x4x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    outs(%q : tensor<?x?x4x128xbf16>)
    where(%b, %h, %i, %j) {
      %y = arith.cmpi sle, %j, %i : index
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x4x128xbf16>
}

// A region that reads tensors.
// INPUTS: 1x150x2x64xbf16 1x150x2x64xbf16 1x150x2x64xbf16 150xi32=iota/40
func.func @documents(%q: tensor<1x?x2x64xbf16>, %k: tensor<1x?x2x64xbf16>, %v: tensor<1x?x2x64xbf16>, %d: tensor<?xi32>) -> tensor<1x?x2x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>)
    outs(%q : tensor<1x?x2x64xbf16>)
    where(%b, %h, %i, %j) {
      %x = tensor.extract %d[%i] : tensor<?xi32>
      %y = tensor.extract %d[%j] : tensor<?xi32>
      %same = arith.cmpi eq, %x, %y : i32
      posenc.yield %same : i1
    }
  return %r : tensor<1x?x2x64xbf16>
}

// All keys of a prefix are visible.
// INPUTS: 2x140x2x64xf16 2x140x2x64xf16 2x140x2x64xf16 i64[100,3]
func.func @prefix(%q: tensor<?x?x2x64xf16>, %k: tensor<?x?x2x64xf16>, %v: tensor<?x?x2x64xf16>, %n: tensor<?xi64>) -> tensor<?x?x2x64xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>)
    outs(%q : tensor<?x?x2x64xf16>)
    where(%b, %h, %i, %j) {
      %l = tensor.extract %n[%b] : tensor<?xi64>
      %p = arith.index_cast %l : i64 to index
      %in = arith.cmpi slt, %j, %p : index
      %before = arith.cmpi sle, %j, %i : index
      %y = arith.ori %in, %before : i1
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x2x64xf16>
}

// Tiles without visible pairs, tiles without masked pairs, and others, in turn;
// maxima grow much from tile to tile.
// INPUTS: 1x20x1x64xbf16 1x1030x1x64xbf16 1x1030x1x64xbf16
func.func @holes(%q: tensor<?x?x1x64xbf16>, %k: tensor<?x?x1x64xbf16>, %v: tensor<?x?x1x64xbf16>) -> tensor<?x?x1x64xbf16> {
  %r = posenc.attention scale = 2.0
    ins(%q, %k, %v : tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>, tensor<?x?x1x64xbf16>)
    outs(%q : tensor<?x?x1x64xbf16>)
    where(%b, %h, %i, %j) {
      %c140 = arith.constant 140 : index
      %c600 = arith.constant 600 : index
      %c800 = arith.constant 800 : index
      %from = arith.cmpi sge, %j, %c140 : index
      %to = arith.cmpi slt, %j, %c600 : index
      %first = arith.andi %from, %to : i1
      %second = arith.cmpi sge, %j, %c800 : index
      %y = arith.ori %first, %second : i1
      posenc.yield %y : i1
    }
  return %r : tensor<?x?x1x64xbf16>
}

// A mask of sequence, head and key.
// INPUTS: 2x40x4x64xf16 2x70x2x64xf16 2x70x2x64xf16
func.func @some_heads(%q: tensor<?x?x4x64xf16>, %k: tensor<?x?x2x64xf16>, %v: tensor<?x?x2x64xf16>) -> tensor<?x?x4x64xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x4x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>)
    outs(%q : tensor<?x?x4x64xf16>)
    where(%b, %h, %i, %j) {
      %c3 = arith.constant 3 : index
      %c0 = arith.constant 0 : index
      %x = arith.addi %h, %b : index
      %y = arith.addi %x, %j : index
      %z = arith.remui %y, %c3 : index
      %w = arith.cmpi ne, %z, %c0 : index
      posenc.yield %w : i1
    }
  return %r : tensor<?x?x4x64xf16>
}

// INPUTS: 2x20x4x64xbf16 2x75x2x64xbf16 2x75x2x64xbf16 2x1x20x75xi1
func.func @mask_i1(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>, %m: tensor<?x1x?x?xi1>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    mask(%m : tensor<?x1x?x?xi1>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// INPUTS: 2x20x4x64xbf16 2x75x2x64xbf16 2x75x2x64xbf16 1x4x20x75xf32
func.func @mask_f32(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>, %m: tensor<1x4x?x?xf32>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    mask(%m : tensor<1x4x?x?xf32>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// INPUTS: 2x20x4x64xbf16 2x75x2x64xbf16 2x75x2x64xbf16 2x1x1x75xbf16
func.func @mask_bf16(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>, %m: tensor<?x1x1x?xbf16>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    mask(%m : tensor<?x1x1x?xbf16>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// Keys and values that a query does not see have no effect, even if they are
// infinite or NaN; here those of token 100.
// INPUTS: 1x150x2x64xbf16 1x150x2x64xbf16 1x150x2x64xbf16
func.func @hidden_nan(%q: tensor<1x?x2x64xbf16>, %x: tensor<1x?x2x64xbf16>, %y: tensor<1x?x2x64xbf16>) -> tensor<1x?x2x64xbf16> {
  %nan = arith.constant dense<0x7FC0> : tensor<1x1x2x64xbf16>
  %infinity = arith.constant dense<0x7F80> : tensor<1x1x2x64xbf16>
  %k = tensor.insert_slice %infinity into %x[0, 100, 0, 0] [1, 1, 2, 64] [1, 1, 1, 1] : tensor<1x1x2x64xbf16> into tensor<1x?x2x64xbf16>
  %v = tensor.insert_slice %nan into %y[0, 100, 0, 0] [1, 1, 2, 64] [1, 1, 1, 1] : tensor<1x1x2x64xbf16> into tensor<1x?x2x64xbf16>
  %r = posenc.attention causal window_left = 30
    ins(%q, %k, %v : tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>, tensor<1x?x2x64xbf16>)
    outs(%q : tensor<1x?x2x64xbf16>)
  return %r : tensor<1x?x2x64xbf16>
}

// INPUTS: 1x70x2x256xbf16 1x140x1x256xbf16 1x140x1x256xbf16
func.func @soft_cap(%q: tensor<?x?x2x256xbf16>, %k: tensor<?x?x1x256xbf16>, %v: tensor<?x?x1x256xbf16>) -> tensor<?x?x2x256xbf16> {
  %r = posenc.attention causal scale = 0.0625
    ins(%q, %k, %v : tensor<?x?x2x256xbf16>, tensor<?x?x1x256xbf16>, tensor<?x?x1x256xbf16>)
    outs(%q : tensor<?x?x2x256xbf16>)
    score(%s, %b, %h, %i, %j) {
      %cap = arith.constant 50.0 : f32
      %x = arith.divf %s, %cap : f32
      %t = math.tanh %x : f32
      %y = arith.mulf %t, %cap : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x2x256xbf16>
}

// INPUTS: 1x150x6x64xbf16 1x150x2x64xbf16 1x150x2x64xbf16
// INPUTS: 2x1x6x64xbf16 2x90x2x64xbf16 2x90x2x64xbf16
func.func @alibi(%q: tensor<?x?x6x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>) -> tensor<?x?x6x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x6x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    outs(%q : tensor<?x?x6x64xbf16>)
    score(%s, %b, %h, %i, %j) {
      %a = posenc.alibi(%h, %i, %j) heads = 6 : f32
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x6x64xbf16>
}

// INPUTS: 1x50x4x64xf32 1x70x4x64xf32 1x70x4x64xf32 32x4xf32
func.func @t5(%q: tensor<?x?x4x64xf32>, %k: tensor<?x?x4x64xf32>, %v: tensor<?x?x4x64xf32>, %t: tensor<32x4xf32>) -> tensor<?x?x4x64xf32> {
  %r = posenc.attention scale = 1.0
    ins(%q, %k, %v : tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>, tensor<?x?x4x64xf32>)
    outs(%q : tensor<?x?x4x64xf32>)
    score(%s, %b, %h, %i, %j) {
      %x = arith.subi %j, %i : index
      %n = posenc.t5_bucket bidirectional %x : index
      %a = tensor.extract %t[%n, %h] : tensor<32x4xf32>
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<?x?x4x64xf32>
}

// A learned bias.
// INPUTS: 2x40x2x64xf16 2x70x2x64xf16 2x70x2x64xf16 2x2x40x70xf32
func.func @bias(%q: tensor<?x?x2x64xf16>, %k: tensor<?x?x2x64xf16>, %v: tensor<?x?x2x64xf16>, %t: tensor<?x2x?x?xf32>) -> tensor<?x?x2x64xf16> {
  %r = posenc.attention
    ins(%q, %k, %v : tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>)
    mask(%t : tensor<?x2x?x?xf32>)
    outs(%q : tensor<?x?x2x64xf16>)
  return %r : tensor<?x?x2x64xf16>
}

// A learned bias in a region.
// INPUTS: 1x70x2x64xf16 1x70x2x64xf16 1x70x2x64xf16 2x70x70xf32
func.func @bias_region(%q: tensor<1x?x2x64xf16>, %k: tensor<1x?x2x64xf16>, %v: tensor<1x?x2x64xf16>, %t: tensor<2x?x?xf32>) -> tensor<1x?x2x64xf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<1x?x2x64xf16>, tensor<1x?x2x64xf16>, tensor<1x?x2x64xf16>)
    outs(%q : tensor<1x?x2x64xf16>)
    score(%s, %b, %h, %i, %j) {
      %a = tensor.extract %t[%h, %i, %j] : tensor<2x?x?xf32>
      %y = arith.addf %s, %a : f32
      posenc.yield %y : f32
    }
  return %r : tensor<1x?x2x64xf16>
}

// INPUTS: 1x130x4x64xbf16 1x200x2x64xbf16 1x200x2x64xbf16 4xf32 1x130x4xf32=0
// INPUTS: 1x20x4x64xbf16 1x5x2x64xbf16 1x5x2x64xbf16 4xf32 1x20x4xf32=0
func.func @sinks(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>, %s: tensor<4xf32>, %l: tensor<?x?x4xf32>) -> (tensor<?x?x4x64xbf16>, tensor<?x?x4xf32>) {
  %r:2 = posenc.attention causal window_left = 63
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    sinks(%s : tensor<4xf32>)
    outs(%q, %l : tensor<?x?x4x64xbf16>, tensor<?x?x4xf32>)
  return %r#0, %r#1 : tensor<?x?x4x64xbf16>, tensor<?x?x4xf32>
}

// INPUTS: 2x4x66x80xf16 2x2x131x80xf16 2x2x131x80xf16 2x4x66xf32=0
// INPUTS: 1x4x9x80xf16 1x2x4x80xf16 1x2x4x80xf16 1x4x9xf32=0
func.func @log_sum(%q: tensor<?x4x?x80xf16>, %k: tensor<?x2x?x80xf16>, %v: tensor<?x2x?x80xf16>, %l: tensor<?x4x?xf32>) -> (tensor<?x4x?x80xf16>, tensor<?x4x?xf32>) {
  %r:2 = posenc.attention causal query_layout = head_major key_layout = head_major
    ins(%q, %k, %v : tensor<?x4x?x80xf16>, tensor<?x2x?x80xf16>, tensor<?x2x?x80xf16>)
    outs(%q, %l : tensor<?x4x?x80xf16>, tensor<?x4x?xf32>)
  return %r#0, %r#1 : tensor<?x4x?x80xf16>, tensor<?x4x?xf32>
}

// Keys are rotated already.
// INPUTS: 1x130x4x128xbf16 1x130x2x128xbf16 1x130x2x128xbf16 1x130xi64
func.func @rotated_queries(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>, %qp: tensor<?x?xi64>) -> tensor<?x?x4x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x?x4x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    query_positions(%qp : tensor<?x?xi64>)
    outs(%q : tensor<?x?x4x128xbf16>)
  return %r : tensor<?x?x4x128xbf16>
}

// Keys are rotated on load.
// INPUTS: 1x130x4x128xbf16 1x130x2x128xbf16 1x130x2x128xbf16 1x130xi64
// INPUTS: 2x1x4x128xbf16 2x1x2x128xbf16 2x1x2x128xbf16 2x1xi64
func.func @rotated_half(%q: tensor<?x?x4x128xbf16>, %k: tensor<?x?x2x128xbf16>, %v: tensor<?x?x2x128xbf16>, %qp: tensor<?x?xi64>) -> tensor<?x?x4x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 128>> key_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x?x4x128xbf16>, tensor<?x?x2x128xbf16>, tensor<?x?x2x128xbf16>)
    query_positions(%qp : tensor<?x?xi64>)
    key_positions(%qp : tensor<?x?xi64>)
    outs(%q : tensor<?x?x4x128xbf16>)
  return %r : tensor<?x?x4x128xbf16>
}

// By the positions of queries and keys.
// INPUTS: 2x40x4x64xf16 2x140x1x64xf16 2x140x1x64xf16
func.func @rotated_interleaved(%q: tensor<?x?x4x64xf16>, %k: tensor<?x?x1x64xf16>, %v: tensor<?x?x1x64xf16>) -> tensor<?x?x4x64xf16> {
  %r = posenc.attention query_rotation = <pairing = interleaved, frequencies = <dim = 64>> key_rotation = <pairing = interleaved, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x?x4x64xf16>, tensor<?x?x1x64xf16>, tensor<?x?x1x64xf16>)
    outs(%q : tensor<?x?x4x64xf16>)
  return %r : tensor<?x?x4x64xf16>
}

// The first lanes of a head.
// INPUTS: 1x70x4x80xbf16 1x140x4x80xbf16 1x140x4x80xbf16 1x70xi32 1x140xi32
func.func @rotated_part(%q: tensor<?x?x4x80xbf16>, %k: tensor<?x?x4x80xbf16>, %v: tensor<?x?x4x80xbf16>, %qp: tensor<?x?xi32>, %kp: tensor<?x?xi32>) -> tensor<?x?x4x80xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 32>> key_rotation = <pairing = half, frequencies = <dim = 32>>
    ins(%q, %k, %v : tensor<?x?x4x80xbf16>, tensor<?x?x4x80xbf16>, tensor<?x?x4x80xbf16>)
    query_positions(%qp : tensor<?x?xi32>)
    key_positions(%kp : tensor<?x?xi32>)
    outs(%q : tensor<?x?x4x80xbf16>)
  return %r : tensor<?x?x4x80xbf16>
}

// The last lanes of a head, and narrower values (DeepSeek).
// INPUTS: 1x70x2x192xbf16 1x140x2x192xbf16 1x140x2x128xbf16 1x70xi64 1x140xi64 1x70x2x128xbf16=0
func.func @rotated_last(%q: tensor<?x?x2x192xbf16>, %k: tensor<?x?x2x192xbf16>, %v: tensor<?x?x2x128xbf16>, %qp: tensor<?x?xi64>, %kp: tensor<?x?xi64>, %o: tensor<?x?x2x128xbf16>) -> tensor<?x?x2x128xbf16> {
  %r = posenc.attention causal query_rotation = <pairing = interleaved, frequencies = <dim = 64>, offset = 128> key_rotation = <pairing = interleaved, frequencies = <dim = 64>, offset = 128>
    ins(%q, %k, %v : tensor<?x?x2x192xbf16>, tensor<?x?x2x192xbf16>, tensor<?x?x2x128xbf16>)
    query_positions(%qp : tensor<?x?xi64>)
    key_positions(%kp : tensor<?x?xi64>)
    outs(%o : tensor<?x?x2x128xbf16>)
  return %r : tensor<?x?x2x128xbf16>
}

// INPUTS: 1x70x2x64xf16 1x70x2x64xf16 1x70x2x64xf16 3x1x70xi64
func.func @rotated_axes(%q: tensor<?x?x2x64xf16>, %k: tensor<?x?x2x64xf16>, %v: tensor<?x?x2x64xf16>, %qp: tensor<3x?x?xi64>) -> tensor<?x?x2x64xf16> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 64>, axes = <contiguous, [8, 12, 12]>> key_rotation = <pairing = half, frequencies = <dim = 64>, axes = <contiguous, [8, 12, 12]>>
    ins(%q, %k, %v : tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>, tensor<?x?x2x64xf16>)
    query_positions(%qp : tensor<3x?x?xi64>)
    key_positions(%qp : tensor<3x?x?xi64>)
    outs(%q : tensor<?x?x2x64xf16>)
  return %r : tensor<?x?x2x64xf16>
}

// INPUTS: 1x70x4x64xf32 1x140x2x64xf32 1x140x2x64xf32 1x70xi64 1x140xi64
func.func @rotated_f32(%q: tensor<?x?x4x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>, %qp: tensor<?x?xi64>, %kp: tensor<?x?xi64>) -> tensor<?x?x4x64xf32> {
  %r = posenc.attention causal query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    query_positions(%qp : tensor<?x?xi64>)
    key_positions(%kp : tensor<?x?xi64>)
    outs(%q : tensor<?x?x4x64xf32>)
  return %r : tensor<?x?x4x64xf32>
}

// Frequencies that are computed at run time.
// INPUTS: 131072 1x40x2x64xbf16 1x70x2x64xbf16 1x70x2x64xbf16 1x40xi64 1x70xi64
func.func @rotated_by_length(%n: i64, %q: tensor<?x?x2x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>, %qp: tensor<?x?xi64>, %kp: tensor<?x?xi64>) -> tensor<?x?x2x64xbf16> {
  %high, %low = posenc.turns #posenc.frequencies<dim = 64, scaling = #posenc.dynamic<factor = 4, max_position = 8192>>
  length(%n : i64)
  %r = posenc.attention causal query_rotation = #dynamic key_rotation = #dynamic
    ins(%q, %k, %v : tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    query_positions(%qp : tensor<?x?xi64>)
    key_positions(%kp : tensor<?x?xi64>)
    turns(%high, %low : tensor<32xi64>, tensor<32xi64>)
    outs(%q : tensor<?x?x2x64xbf16>)
  return %r : tensor<?x?x2x64xbf16>
}

// INPUTS: 1x70x4x64xbf16 1x140x2x64xbf16 1x140x2x64xbf16 1x70xi64 1x140xi64 64xbf16 64xbf16
func.func @normed(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x?x2x64xbf16>, %v: tensor<?x?x2x64xbf16>, %qp: tensor<?x?xi64>, %kp: tensor<?x?xi64>, %w: tensor<64xbf16>, %x: tensor<64xbf16>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal norm_eps = 1.0e-6 norm_offset = 0.5 query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x?x2x64xbf16>, tensor<?x?x2x64xbf16>)
    query_positions(%qp : tensor<?x?xi64>)
    key_positions(%kp : tensor<?x?xi64>)
    query_norm(%w : tensor<64xbf16>)
    key_norm(%x : tensor<64xbf16>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// A norm over all heads of a token.
// INPUTS: 1x70x4x64xf32 1x140x2x64xf32 1x140x2x64xf32 256xf32 128xf32
func.func @normed_heads(%q: tensor<?x?x4x64xf32>, %k: tensor<?x?x2x64xf32>, %v: tensor<?x?x2x64xf32>, %w: tensor<256xf32>, %x: tensor<128xf32>) -> tensor<?x?x4x64xf32> {
  %r = posenc.attention norm_eps = 1.0e-6
    ins(%q, %k, %v : tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>, tensor<?x?x2x64xf32>)
    query_norm(%w : tensor<256xf32>)
    key_norm(%x : tensor<128xf32>)
    outs(%q : tensor<?x?x4x64xf32>)
  return %r : tensor<?x?x4x64xf32>
}

// One list for queries and keys; tokens after the last sequence, and no tokens.
// INPUTS: 203x4x64xbf16 203x2x64xbf16 203x2x64xbf16 i64[0,3,3,133,203]
// INPUTS: 70x4x64xbf16 70x2x64xbf16 70x2x64xbf16 i64[0,1,66]
// INPUTS: 0x4x64xbf16 0x2x64xbf16 0x2x64xbf16 i64[0,0]
func.func @ragged(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x64xbf16>, %v: tensor<?x2x64xbf16>, %c: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x64xbf16>, tensor<?x2x64xbf16>)
    cu_seqlens(%c, %c : tensor<?xi64>, tensor<?xi64>)
    outs(%q : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

// Two lists.
// INPUTS: 70x4x64xf16 300x2x64xf16 300x2x64xf16 i32[0,5,70,70] i32[0,5,200,300]
func.func @ragged_both(%q: tensor<?x4x64xf16>, %k: tensor<?x2x64xf16>, %v: tensor<?x2x64xf16>, %c: tensor<?xi32>, %d: tensor<?xi32>) -> tensor<?x4x64xf16> {
  %r = posenc.attention causal window_left = 40
    ins(%q, %k, %v : tensor<?x4x64xf16>, tensor<?x2x64xf16>, tensor<?x2x64xf16>)
    cu_seqlens(%c, %d : tensor<?xi32>, tensor<?xi32>)
    outs(%q : tensor<?x4x64xf16>)
  return %r : tensor<?x4x64xf16>
}

// Ragged queries against caches.
// INPUTS: 12x4x64xbf16 3x2x150x64xbf16 3x2x150x64xbf16 i64[0,1,4,12] i64[150,3,77] 12xi64
func.func @ragged_cache(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %c: tensor<?xi64>, %n: tensor<?xi64>, %qp: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
    query_positions(%qp : tensor<?xi64>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    outs(%q : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

// Chunked prefill and decode in one batch.
// INPUTS: 140x4x64xbf16 20x2x16x64xbf16 20x2x16x64xbf16 3x9xi32=iota/2 i64[0,1,10,140] i64[17,144,131] 140xi64
func.func @ragged_pages(%q: tensor<?x4x64xbf16>, %k: tensor<?x2x16x64xbf16>, %v: tensor<?x2x16x64xbf16>, %t: tensor<?x?xi32>, %c: tensor<?xi64>, %n: tensor<?xi64>, %qp: tensor<?xi64>) -> tensor<?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x4x64xbf16>, tensor<?x2x16x64xbf16>, tensor<?x2x16x64xbf16>)
    query_positions(%qp : tensor<?xi64>)
    lengths(%n : tensor<?xi64>)
    cu_seqlens(%c : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x4x64xbf16>)
  return %r : tensor<?x4x64xbf16>
}

// INPUTS: 3x1x8x128xbf16 3x2x150x128xbf16 3x2x150x128xbf16 i64[150,1,0]
// INPUTS: 2x4x8x128xbf16 2x2x70x128xbf16 2x2x70x128xbf16 i64[70,4]
func.func @decode(%q: tensor<?x?x8x128xbf16>, %k: tensor<?x2x?x128xbf16>, %v: tensor<?x2x?x128xbf16>, %n: tensor<?xi64>) -> tensor<?x?x8x128xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x?x8x128xbf16>, tensor<?x2x?x128xbf16>, tensor<?x2x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x?x8x128xbf16>)
  return %r : tensor<?x?x8x128xbf16>
}

// Keys of the cache are not rotated.
// INPUTS: 3x1x8x128xbf16 3x2x150x128xbf16 3x2x150x128xbf16 i64[150,1,0]
func.func @decode_raw(%q: tensor<?x?x8x128xbf16>, %k: tensor<?x2x?x128xbf16>, %v: tensor<?x2x?x128xbf16>, %n: tensor<?xi64>) -> tensor<?x?x8x128xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 128>> key_rotation = <pairing = half, frequencies = <dim = 128>>
    ins(%q, %k, %v : tensor<?x?x8x128xbf16>, tensor<?x2x?x128xbf16>, tensor<?x2x?x128xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x?x8x128xbf16>)
  return %r : tensor<?x?x8x128xbf16>
}

// Absorbed latent attention (DeepSeek).
// INPUTS: 2x1x16x576xbf16 2x1x100x576xbf16 2x1x100x512xbf16 i64[100,67] 2x1x16x512xbf16=0
// INPUTS: 1x3x16x576xbf16 1x1x70x576xbf16 1x1x70x512xbf16 i64[70] 1x3x16x512xbf16=0
func.func @latent(%q: tensor<?x?x16x576xbf16>, %k: tensor<?x1x?x576xbf16>, %v: tensor<?x1x?x512xbf16>, %n: tensor<?xi64>, %o: tensor<?x?x16x512xbf16>) -> tensor<?x?x16x512xbf16> {
  %r = posenc.attention causal scale = 0.07216878 key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x16x576xbf16>, tensor<?x1x?x576xbf16>, tensor<?x1x?x512xbf16>)
    lengths(%n : tensor<?xi64>)
    outs(%o : tensor<?x?x16x512xbf16>)
  return %r : tensor<?x?x16x512xbf16>
}

// INPUTS: 2x3x4x64xf16 12x2x16x64xf16 12x2x16x64xf16 2x6xi32=iota i64[90,5]
func.func @paged(%q: tensor<?x?x4x64xf16>, %k: tensor<?x2x16x64xf16>, %v: tensor<?x2x16x64xf16>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x?x4x64xf16> {
  %r = posenc.attention causal window_left = 20 key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x4x64xf16>, tensor<?x2x16x64xf16>, tensor<?x2x16x64xf16>)
    lengths(%n : tensor<?xi64>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x?x4x64xf16>)
  return %r : tensor<?x?x4x64xf16>
}

// INPUTS: 2x70x4x64xbf16 12x16x2x64xbf16 12x16x2x64xbf16 2x6xi64=iota i32[96,70]
func.func @paged_token_major(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x16x2x64xbf16>, %v: tensor<?x16x2x64xbf16>, %t: tensor<?x?xi64>, %n: tensor<?xi32>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x64xbf16>)
    lengths(%n : tensor<?xi32>)
    block_table(%t : tensor<?x?xi64>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// INPUTS: 2x9x4x64xf32 2x2x70x64xf16 2x2x70x64xf16 i64[70,9]
func.func @cache_f16(%q: tensor<?x?x4x64xf32>, %k: tensor<?x2x?x64xf16>, %v: tensor<?x2x?x64xf16>, %n: tensor<?xi64>) -> tensor<?x?x4x64xf32> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x4x64xf32>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>)
    lengths(%n : tensor<?xi64>)
    outs(%q : tensor<?x?x4x64xf32>)
  return %r : tensor<?x?x4x64xf32>
}

// INPUTS: 2x9x4x64xbf16 2x2x70x64xi8 2x2x70x64xi8 2x2x70xf32=0.03 2x2x70xf32=0.02 i64[70,9]
func.func @cache_i8(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x2x?x64xi8>, %v: tensor<?x2x?x64xi8>, %s: tensor<?x2x?xf32>, %t: tensor<?x2x?xf32>, %n: tensor<?xi64>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x2x?x64xi8>, tensor<?x2x?x64xi8>)
    lengths(%n : tensor<?xi64>)
    key_scales(%s : tensor<?x2x?xf32>)
    value_scales(%t : tensor<?x2x?xf32>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// INPUTS: 2x9x4x64xbf16 2x2x70x64xf8E4M3FN 2x2x70x64xf8E4M3FN 2x2x70xf32=0.03 2x2x70xf32=0.02 i64[70,9]
func.func @cache_f8e4m3(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x2x?x64xf8E4M3FN>, %v: tensor<?x2x?x64xf8E4M3FN>, %s: tensor<?x2x?xf32>, %t: tensor<?x2x?xf32>, %n: tensor<?xi64>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x2x?x64xf8E4M3FN>, tensor<?x2x?x64xf8E4M3FN>)
    lengths(%n : tensor<?xi64>)
    key_scales(%s : tensor<?x2x?xf32>)
    value_scales(%t : tensor<?x2x?xf32>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// INPUTS: 2x9x4x64xbf16 2x2x70x64xf8E5M2 2x2x70x64xf8E5M2 2x2x70xf32=0.03 2x2x70xf32=0.02 i64[70,9]
func.func @cache_f8e5m2(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x2x?x64xf8E5M2>, %v: tensor<?x2x?x64xf8E5M2>, %s: tensor<?x2x?xf32>, %t: tensor<?x2x?xf32>, %n: tensor<?xi64>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major query_rotation = <pairing = half, frequencies = <dim = 64>> key_rotation = <pairing = half, frequencies = <dim = 64>>
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x2x?x64xf8E5M2>, tensor<?x2x?x64xf8E5M2>)
    lengths(%n : tensor<?xi64>)
    key_scales(%s : tensor<?x2x?xf32>)
    value_scales(%t : tensor<?x2x?xf32>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}

// INPUTS: 2x3x4x64xbf16 12x2x16x64xi8 12x2x16x64xi8 12x2x16xf32=0.03 12x2x16xf32=0.02 2x6xi32=iota i64[90,5]
func.func @pages_i8(%q: tensor<?x?x4x64xbf16>, %k: tensor<?x2x16x64xi8>, %v: tensor<?x2x16x64xi8>, %s: tensor<?x2x16xf32>, %u: tensor<?x2x16xf32>, %t: tensor<?x?xi32>, %n: tensor<?xi64>) -> tensor<?x?x4x64xbf16> {
  %r = posenc.attention causal key_layout = head_major
    ins(%q, %k, %v : tensor<?x?x4x64xbf16>, tensor<?x2x16x64xi8>, tensor<?x2x16x64xi8>)
    lengths(%n : tensor<?xi64>)
    key_scales(%s : tensor<?x2x16xf32>)
    value_scales(%u : tensor<?x2x16xf32>)
    block_table(%t : tensor<?x?xi32>)
    outs(%q : tensor<?x?x4x64xbf16>)
  return %r : tensor<?x?x4x64xbf16>
}
