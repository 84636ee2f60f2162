//===- gpu-tensor-maps.mlir - bulk copies of tiles by tensor maps ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The stage that `posenc-lower-launches` takes, for sm_90 and newer.
//
//===----------------------------------------------------------------------===//

#shared = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x64xbf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_128b, oob = zero, interleave = none>
!tensor = memref<?x?x64xbf16, strided<[?, ?, 1]>>

module attributes {gpu.container_module} {
  // Copies a tensor in tiles of 8 rows, one per block, through shared memory.
  func.func @copy(%in: !tensor, %out: !tensor) attributes {posenc.abi = #posenc.abi<inputs = [#posenc.arg<"x", tensor<?x?x64xbf16>, [0, 1]>], outputs = [#posenc.arg<"y", tensor<?x?x64xbf16>, [0, 1]>], sizes = [-1, -1], in_place = [-1], size_names = ["x_dim0", "x_dim1"]>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %bytes = arith.constant 2304 : i32
    %groups = memref.dim %in, %c0 : !tensor
    %rows = memref.dim %in, %c1 : !tensor
    %tiles = arith.ceildivui %rows, %c8 : index
    %blocks = arith.muli %groups, %tiles : index
    %from = memref.cast %in : !tensor to memref<*xbf16>
    %to = memref.cast %out : !tensor to memref<*xbf16>
    %source = nvgpu.tma.create.descriptor %from box[%c1, %c8, %c64] : memref<*xbf16> -> !map
    %target = nvgpu.tma.create.descriptor %to box[%c1, %c8, %c64] : memref<*xbf16> -> !map
    gpu.launch_func @kernels::@copy_tile blocks in (%blocks, %c1, %c1) threads in (%c32, %c1, %c1)
      dynamic_shared_memory_size %bytes args(%source : !map, %tiles : index, %target : !map)
    return
  }
  gpu.module @kernels {
    gpu.func @copy_tile(%source: !map, %tiles: index, %target: !map) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c8 = arith.constant 8 : index
      %block = gpu.block_id x
      %group = arith.divui %block, %tiles : index
      %tile = arith.remui %block, %tiles : index
      %row = arith.muli %tile, %c8 : index
      %z = arith.index_cast %group : index to i32
      %y = arith.index_cast %row : index to i32
      %thread = gpu.thread_id x
      %t = arith.index_cast %thread : index to i32
      %bytes = gpu.dynamic_shared_memory : memref<?xi8, #shared>
      %at = memref.extract_aligned_pointer_as_index %bytes : memref<?xi8, #shared> -> index
      %shared = arith.index_cast %at : index to i32
      %from = builtin.unrealized_conversion_cast %source : !map to !llvm.ptr
      %to = builtin.unrealized_conversion_cast %target : !map to !llvm.ptr
      llvm.inline_asm has_side_effects "{ .reg .pred first, done; .reg .b32 tile, bar; add.u32 tile, $0, 1023; and.b32 tile, tile, 0xfffffc00; add.u32 bar, tile, 1024; setp.eq.u32 first, $1, 0; @first mbarrier.init.shared.b64 [bar], 1; @first fence.mbarrier_init.release.cluster; bar.sync 0; @first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024; @first cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [$2, {0, $4, $5}], [bar]; WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [bar], 0; @!done bra WAIT; @first cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$3, {0, $4, $5}], [tile]; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; }", "r,r,l,l,r,r" %shared, %t, %from, %to, %y, %z : (i32, i32, !llvm.ptr, !llvm.ptr, i32, i32) -> ()
      gpu.return
    }
  }
}
