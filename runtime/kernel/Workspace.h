//===- Workspace.h - workspaces of callers ------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_WORKSPACE_H
#define POSENC_KERNEL_WORKSPACE_H

#include "Report.h"
#include "View.h"

/* Returns the bytes of memory that all phases of a call share (kMeasuredWord),
 * or a negative number if they overflow. */
static int64_t measure(const struct Description *description,
                       const struct Kernel *kernel, int64_t *words) {
  int64_t *phase = getLastWord(description, words, kPhaseWord);
  if (!kernel->isMeasured)
    return 0;
  *phase = -1;
  kernel->packed(words, 0, 1);
  return *phase;
}

/* Returns the bytes of workspace for `numTasks` tasks and `measured` shared
 * bytes, including padding for the alignment. */
static int64_t getWorkspaceBytes(const struct Description *description,
                                 int64_t numTasks, int64_t measured) {
  int64_t bytes = description->sharedBytes +
                  numTasks * description->scratchBytes + measured;
  return bytes ? bytes + kWorkspaceAlignment - 1 : 0;
}

/* Checks that the workspace, whose address is in its word, has `bytes` bytes
 * and overlaps no tensor. */
static int32_t checkWorkspace(struct Call *call, int64_t bytes) {
  const struct Description *description = call->description;
  uint64_t begin =
      (uint64_t)*getLastWord(description, call->words, kScratchWord);
  if (bytes == 0)
    return kEntryOk;
  if (call->workspaceBytes && *call->workspaceBytes < bytes)
    return fail(call, kEntrySize, "the workspace has %d bytes, expected %d",
                VALUES(*call->workspaceBytes, bytes));
  if (!begin)
    return fail(call, kEntryNull, "the workspace is NULL, expected %d bytes",
                VALUES(bytes));
  if (begin > UINTPTR_MAX - (uint64_t)bytes)
    return fail(call, kEntrySize,
                "the size of the workspace exceeds the address space", NULL);
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    struct View view;
    if (!hasElements(&description->arguments[i]))
      continue;
    createView(description, i, call->words, &view);
    if (!view.isEmpty && view.low < begin + (uint64_t)bytes &&
        begin < view.low + view.span)
      return fail(call, kEntryOverlap, "the workspace overlaps %n", VALUES(i));
  }
  return kEntryOk;
}

/* Checks the workspace of `bytes` bytes and sets the words of its three parts:
 * the memory shared by the tasks of a phase, that shared by all phases, and the
 * scratch of the tasks. */
static int32_t bindWorkspace(struct Call *call, int64_t bytes,
                             int64_t measured) {
  const struct Description *description = call->description;
  int64_t *scratch = getLastWord(description, call->words, kScratchWord);
  uint64_t begin = (uint64_t)*scratch;
  int32_t code = checkWorkspace(call, bytes);
  if (code || bytes == 0)
    return code;
  begin = (begin + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
          kWorkspaceAlignment;
  *getLastWord(description, call->words, kSharedWord) = (int64_t)begin;
  begin += (uint64_t)description->sharedBytes;
  *getLastWord(description, call->words, kMeasuredWord) = (int64_t)begin;
  *scratch = (int64_t)begin + measured;
  return kEntryOk;
}

#endif
