//===- CallLayout.h - limits and the layout of a call -------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CALLLAYOUT_H
#define POSENC_KERNEL_CALLLAYOUT_H

/* The alignment, in bytes, of each buffer in a workspace, and in one on a
 * device. */
enum { kWorkspaceAlignment = 64, kDeviceAlignment = 256 };

/* The memory, in bytes, that the tasks of one call share on the caller's stack:
 * at most kSharedBytes. Calls that need at most kSmallSharedBytes use a smaller
 * stack frame. */
enum { kSharedBytes = 144 << 10, kSmallSharedBytes = 64 << 10 };

/* The largest number of 32-bit argument words that a Vulkan kernel takes as
 * push constants, which every device supports. Kernels with more words read
 * them from a buffer. */
enum { kMaxPushWords = 32 };

/* What determines the number of tasks of a kernel's parallel loop: nothing
 * (one task), the bytes of its outputs, of its inputs, or of both. */
enum PosencTaskCount { kOneTask, kTasksByOutputs, kTasksByInputs, kTasksByAll };

/* Instructions of a size polynomial in postfix order, each with one operand. */
enum PosencSizeCode {
  kSizeEnd,
  kSizeConstant, /* pushes the operand */
  kSizeWord,     /* pushes the word of the call with the operand as its index */
  kSizeElement,  /* pushes the only element of the tensor with that index */
  kSizeAdd,
  kSizeMultiply
};

/* The last words of a call, counted from the end. */
enum PosencLastWord {
  /* The address of the stack buffers or the workspace of the first task; until
   * the kernel runs, of the call's workspace as the caller passed it. */
  kScratchWord = 1,
  /* The address of the memory that tasks share. */
  kSharedWord,
  /* The address of the memory that all phases share, whose size the kernel
   * computes. */
  kMeasuredWord,
  /* The number of the phase to run. For phase -1 the kernel stores the size of
   * the memory of kMeasuredWord here, negative if it overflows. */
  kPhaseWord,
  /* The number of the first assertion that fails, or that of all; absent if
   * there are none. */
  kStatusWord
};

#endif
