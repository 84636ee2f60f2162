//===- tensor-maps-invalid.mlir - tensor maps that cannot be encoded ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: sed 's/STRIDES/[?, 1]/g; s/ELEMENT/bf16/g; s/ROWS/80/g; s/MORE/160/; s/SWIZZLE/swizzle_128b/; s/OOB/zero/' %s > %t.mlir
// RUN: posenc-opt %t.mlir --posenc-lower-launches -o /dev/null
// RUN: sed 's/STRIDES/[1, ?]/g; s/ELEMENT/bf16/g; s/ROWS/80/g; s/MORE/160/; s/SWIZZLE/swizzle_128b/; s/OOB/zero/' %s > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=STRIDE
// STRIDE: [[#]]:12: error: 'nvgpu.tma.create.descriptor' op expected a tensor of 1 to 5 dimensions, the last of which is contiguous, found 'memref<?x?xbf16, strided<[1, ?]>>'
// RUN: sed 's/STRIDES/[?, 1]/g; s/ELEMENT/bf16/g; s/ROWS/257/g; s/MORE/160/; s/SWIZZLE/swizzle_128b/; s/OOB/zero/' %s > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=BOX
// BOX: error: 'nvgpu.tma.create.descriptor' op expected a box of one constant from 1 to 256 for each of the 2 dimensions
// RUN: sed 's/STRIDES/[?, 1]/g; s/ELEMENT/bf16/g; s/ROWS/72/g; s/MORE/160/; s/SWIZZLE/swizzle_128b/; s/OOB/zero/' %s > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=TILE
// TILE: error: 'nvgpu.tma.create.descriptor' op expected a box with the shape of the tile 'memref<80x64xbf16, 3>'
// RUN: sed 's/STRIDES/[?, 1]/g; s/ELEMENT/bf16/g; s/ROWS/80/g; s/MORE/160/; s/SWIZZLE/swizzle_128b/; s/OOB/nan/' %s > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=OOB
// OOB: error: 'nvgpu.tma.create.descriptor' op expected a map without interleaving that reads zeros out of bounds

// The host may choose a box that is a multiple of the smallest one, which is the tile.
// DEFINE: %{choose} = sed 's/STRIDES/[?, 1]/g; s/ELEMENT/bf16/g; s/ROWS/80/g; s/SWIZZLE/swizzle_128b/; s/OOB/zero/' %s
// RUN: %{choose} | sed 's/box\[%rows,/box[%choice,/; s/MORE/160/' > %t.mlir
// RUN: posenc-opt %t.mlir --posenc-lower-launches -o /dev/null
// RUN: %{choose} | sed 's/box\[%rows,/box[%choice,/; s/MORE/120/' > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// MULTIPLE: error: 'nvgpu.tma.create.descriptor' op expected sizes of a box that are multiples of the smallest one
// RUN: %{choose} | sed 's/box\[%rows,/box[%choice,/; s/MORE/320/' > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=BOX
// RUN: %{choose} | sed 's/box\[%rows,/box[%extent,/; s/MORE/160/' > %t.mlir
// RUN: not posenc-opt %t.mlir --posenc-lower-launches 2>&1 | FileCheck %s --check-prefix=BOX

!map = !nvgpu.tensormap.descriptor<tensor = memref<80x64xELEMENT, 3>, swizzle = SWIZZLE, l2promo = l2promo_128b, oob = OOB, interleave = none>

module attributes {gpu.container_module} {
  func.func @f(%x: memref<?x?xELEMENT, strided<STRIDES>>) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?xELEMENT>, [0, 1]>], outputs = [], sizes = [-1, -1], in_place = []>} {
    %c1 = arith.constant 1 : index
    %rows = arith.constant ROWS : index
    %c64 = arith.constant 64 : index
    %more = arith.constant MORE : index
    %extent = memref.dim %x, %c1 : memref<?x?xELEMENT, strided<STRIDES>>
    %isLarge = arith.cmpi ugt, %extent, %c64 : index
    %choice = arith.select %isLarge, %more, %rows : index
    %tensor = memref.cast %x : memref<?x?xELEMENT, strided<STRIDES>> to memref<*xELEMENT>
    %map = nvgpu.tma.create.descriptor %tensor box[%rows, %c64] : memref<*xELEMENT> -> !map
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%map : !map)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%map: !map) kernel {
      gpu.return
    }
  }
}
