//===- attention-to-gpu.mlir - attention kernels --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DEFINE: %{lower} = posenc-opt %s -o %t --pass-pipeline='builtin.module(posenc-attach-gpu{warpgroups=true},posenc-nest-attention,convert-posenc-attention-to-gpu,canonicalize,cse)'
// RUN: %{lower}
// RUN: FileCheck %s --input-file=%t --check-prefix=LAUNCH
// RUN: FileCheck %s --input-file=%t --check-prefix=MMA
// RUN: FileCheck %s --input-file=%t --check-prefix=COPY
// RUN: FileCheck %s --input-file=%t --check-prefix=GROUPS
// RUN: FileCheck %s --input-file=%t --check-prefix=RING
// RUN: FileCheck %s --input-file=%t --check-prefix=PAGES

// Three kernels: of warpgroups, for rows aligned to 16 bytes, and for others.
// LAUNCH-LABEL: func.func @causal
// LAUNCH: call @posenc_runs_on
// LAUNCH: arith.cmpi ule, %{{.*}}, %c1024
// LAUNCH: arith.cmpi ule, %[[TILES:.*]], %c2147483647
// LAUNCH: call @posenc_multiprocessors() : () -> i64
// LAUNCH: %[[FEW:.*]] = arith.minui %[[TILES]],
// LAUNCH-NEXT: %[[BLOCKS:.*]] = arith.select %{{.*}}, %[[FEW]], %[[TILES]]
// LAUNCH-NEXT: gpu.launch_func @kernels::@causal_attention_sm_90a blocks in (%[[BLOCKS]], %c1, %c1) threads in (%c512, %c1, %c1) dynamic_shared_memory_size %c124012_i32
// LAUNCH: gpu.launch_func @kernels::@causal_attention blocks in (%{{.*}}, %c1, %c1) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %c55296_i32
// LAUNCH: gpu.launch_func @kernels::@causal_attention_narrow blocks
// LAUNCH-NOT: gpu.launch_func
// LAUNCH-LABEL: func.func @few
// LAUNCH: gpu.launch_func @kernels::@few_attention_decode_sm_90a_0 blocks in (%{{.*}}, %c1, %c1) threads in (%c128, %c1, %c1) dynamic_shared_memory_size %c149568_i32
// LAUNCH: gpu.launch_func @kernels::@few_attention_decode_0 blocks
// LAUNCH: gpu.launch_func @kernels::@few_attention_decode_narrow_0 blocks
// LAUNCH: gpu.launch_func @kernels::@few_merge_splits blocks
// LAUNCH-NOT: gpu.launch_func
// LAUNCH-LABEL: func.func @pages
// LAUNCH-NOT: posenc.online_attention

// A warp has 2 x 8 fragments of scores, each of 4 products, and of results.
// MMA-LABEL: gpu.func @causal_attention(
// MMA: iter_args
// MMA-NOT: nvvm.mma.sync
// MMA: gpu.barrier
// MMA-COUNT-64: nvvm.mma.sync
// MMA-NOT: nvvm.mma.sync
// MMA: llvm.nvvm.ex2.approx.ftz.f32
// MMA: nvvm.mma.sync
// MMA-LABEL: gpu.func @causal_attention_narrow(

// While a tile is multiplied, the next one is copied: waited for, then one barrier.
// COPY-LABEL: gpu.func @causal_attention(
// COPY-COUNT-2: nvvm.cp.async.shared.global
// COPY: nvvm.cp.async.commit.group
// COPY: iter_args
// COPY-NEXT: nvvm.cp.async.wait.group 0
// COPY-NEXT: gpu.barrier
// COPY-COUNT-2: nvvm.cp.async.shared.global
// COPY: nvvm.cp.async.commit.group
// COPY-COUNT-24: nvvm.ldmatrix
// COPY-NOT: nvvm.cp.async
// COPY: llvm.nvvm.ex2.approx.ftz.f32
// COPY: gpu.barrier
// COPY-NOT: gpu.barrier
// COPY-LABEL: gpu.func @causal_attention_narrow(
// COPY-NOT: nvvm.cp.async.shared.global
// COPY-LABEL: gpu.func @few_attention_decode_sm_90a(

// The producer has few registers; scores of the next tile are multiplied before
// the results of the last one.
// GROUPS-LABEL: gpu.func @causal_attention_sm_90a(
// GROUPS: mbarrier.init.shared.b64
// GROUPS: fence.mbarrier_init.release.cluster
// GROUPS: setmaxnreg.dec.sync.aligned.u32 32;
// GROUPS: setmaxnreg.inc.sync.aligned.u32 160;
// GROUPS: scf.for {{.*}} iter_args
// GROUPS: wgmma.fence
// GROUPS-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// GROUPS-NOT: wgmma.mma_async
// GROUPS: wgmma.commit_group
// GROUPS: wgmma.fence
// GROUPS-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// GROUPS-NOT: wgmma.mma_async
// GROUPS: wgmma.commit_group
// GROUPS: wgmma.wait_group.sync.aligned 1;
// GROUPS: mbarrier.arrive.shared.b64
// GROUPS: wgmma.wait_group.sync.aligned 0;
// GROUPS: mbarrier.arrive.shared.b64
// GROUPS-LABEL: gpu.func @causal_attention(
func.func @causal(%q: memref<?x?x4x64xbf16>, %k: memref<?x?x2x64xbf16>, %v: memref<?x?x2x64xbf16>, %o: memref<?x?x4x64xbf16>) {
  posenc.attention causal
    ins(%q, %k, %v : memref<?x?x4x64xbf16>, memref<?x?x2x64xbf16>, memref<?x?x2x64xbf16>)
    outs(%o : memref<?x?x4x64xbf16>)
  return
}

// A warp finds its splits by the sum of those of 32 tasks. Two tiles of keys and values, of
// two columns each, are copied before the queries are loaded. After the tile has been read by
// all lanes, the first lane copies the next one, that of the next split after the last one.
// Of 8 rows, 4 stand for queries, so a lane has one row's maximum. No warp waits for others.
// RING-LABEL: gpu.func @few_attention_decode_sm_90a_0(
// RING-COUNT-2: mbarrier.init.shared.b64
// RING: fence.mbarrier_init.release.cluster
// RING: nvvm.bar.warp.sync
// RING-NOT: gpu.barrier
// RING-COUNT-5: nvvm.shfl.sync bfly
// RING-COUNT-5: nvvm.shfl.sync idx
// RING: nvvm.vote.sync ballot
// RING: mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1
// RING-COUNT-4: cp.async.bulk.tensor.4d
// RING: mbarrier.arrive.expect_tx
// RING-COUNT-4: cp.async.bulk.tensor.4d
// RING-NOT: cp.async
// RING: nvvm.bar.warp.sync
// RING-COUNT-8: nvvm.ldmatrix
// RING: scf.for {{.*}} iter_args
// RING: scf.for {{.*}} iter_args
// RING-NOT: nvvm.ldmatrix
// RING: mbarrier.try_wait.parity
// RING-COUNT-32: nvvm.mma.sync
// RING-NOT: nvvm.mma.sync
// RING-COUNT-2: nvvm.shfl.sync bfly
// RING-NOT: nvvm.shfl.sync
// RING-COUNT-32: nvvm.mma.sync
// RING: nvvm.bar.warp.sync
// RING: scf.if
// RING: mbarrier.arrive.expect_tx
// RING-COUNT-4: cp.async.bulk.tensor.4d
// RING: scf.yield
// RING-NOT: gpu.barrier
// RING-LABEL: gpu.func @few_attention_decode_0(
func.func @few(%q: memref<?x1x8x128xbf16>, %k: memref<?x2x1024x128xbf16>, %v: memref<?x2x1024x128xbf16>, %o: memref<?x1x8x128xbf16>) {
  posenc.attention key_layout = head_major
    ins(%q, %k, %v : memref<?x1x8x128xbf16>, memref<?x2x1024x128xbf16>, memref<?x2x1024x128xbf16>)
    outs(%o : memref<?x1x8x128xbf16>)
  return
}

// The host chooses the rows of a box. Each lane of the producer loads the number of a page
// before the first one waits and copies all boxes, which move to it.
// PAGES-LABEL: func.func @pages(
// PAGES: %[[ROWS:.*]] = arith.select %{{.*}}, %c128, %{{.*}} : index
// PAGES: nvgpu.tma.create.descriptor %{{.*}} box[%c1, %c1, %[[ROWS]], %c64]
// PAGES: gpu.launch_func @kernels::@pages_attention_sm_90a {{.*}}%[[ROWS]] : index
// PAGES-LABEL: gpu.func @pages_attention_sm_90a(
// PAGES: setmaxnreg.dec
// PAGES: scf.for
// PAGES: %[[NUMBER:.*]] = arith.divui %{{.*}} : i32
// PAGES: memref.load
// PAGES: arith.remui %{{.*}} : i32
// PAGES: mbarrier.try_wait
// PAGES: expect_tx
// PAGES: scf.for {{.*}} iter_args
// PAGES: scf.if
// PAGES: llvm.inline_asm {{.*}}cp.async.bulk.tensor.4d
// PAGES-COUNT-3: nvvm.shfl.sync down
// PAGES-NEXT: scf.yield
func.func @pages(%q: memref<?x?x4x64xbf16>, %k: memref<?x2x?x64xbf16>, %t: memref<?x?xi32>, %n: memref<?xi64>, %o: memref<?x?x4x64xbf16>) {
  posenc.attention causal key_layout = head_major
    ins(%q, %k, %k : memref<?x?x4x64xbf16>, memref<?x2x?x64xbf16>, memref<?x2x?x64xbf16>)
    lengths(%n : memref<?xi64>)
    block_table(%t : memref<?x?xi32>)
    outs(%o : memref<?x?x4x64xbf16>)
  return
}
