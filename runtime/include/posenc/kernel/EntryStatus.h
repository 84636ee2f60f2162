//===- EntryStatus.h - status codes of entry points ---------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_ENTRYSTATUS_H
#define POSENC_KERNEL_ENTRYSTATUS_H

/* The status codes of the entry points of kernel libraries, as
 * X(name, number, meaning). The kernel support library returns them, the header
 * of each library lists them with their meaning, and the runtime maps them to
 * posenc_status. A line break in a meaning is one in the header. */
#define POSENC_ENTRY_STATUSES(X)                                               \
  X(Ok, 0, "the function ran")                                                 \
  X(Null, 1, "a pointer is NULL, and its tensor is not empty")                 \
  X(Size, 2, "a size is negative, or sizes multiply beyond 63 bits")           \
  X(Overlap, 3,                                                                \
    "an output overlaps another tensor and is not the input it may be, or "    \
    "its\nown elements share memory")                                          \
  X(Cpu, 4,                                                                    \
    "the CPU lacks an instruction set that the library was compiled for")      \
  X(Device, 5, "a tensor is on another device")                                \
  X(Type, 6, "a tensor has another element type")                              \
  X(Rank, 7, "a tensor has another number of dimensions")                      \
  X(Shape, 8,                                                                  \
    "a dimension is not what the function or another tensor asks for")         \
  X(Stride, 9, "the last dimension is not contiguous")                         \
  X(Alignment, 10, "the data is not aligned to its elements")                  \
  X(Arguments, 11, "the arguments of a TVM FFI call have the wrong types")     \
  X(Index, 12,                                                                 \
    "a length, a start, a page or a slot lies outside of its "                 \
    "tensor,\nor an assertion of the function fails")                          \
  X(NoGpu, 13, "there is no driver, no GPU, or no code for this one")          \
  X(GpuFailed, 14, "the driver reports an error, which err has")               \
  X(Weights, 15,                                                               \
    "the weights are not open, or their file is not the one that was\n"        \
    "compiled with the library")                                               \
  X(Unknown, 16,                                                               \
    "the shapes of the inputs do not determine those of the outputs")

enum PosencEntryStatus {
#define POSENC_ENTRY_STATUS(name, number, meaning) kEntry##name = number,
  POSENC_ENTRY_STATUSES(POSENC_ENTRY_STATUS)
#undef POSENC_ENTRY_STATUS
};

#endif
