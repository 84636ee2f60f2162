//===- Workspace.h - scratch memory that the caller brings ------*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_PRELUDE_WORKSPACE_H
#define POSENC_PRELUDE_WORKSPACE_H

#include "Report.h"
#include "View.h"

/* What so many chunks need, with room to align it. */
static int64_t getWorkspaceBytes(const struct Description *description,
                                 int64_t numChunks) {
  int64_t bytes =
      description->sharedBytes + numChunks * description->scratchBytes;
  return bytes ? bytes + kWorkspaceAlign - 1 : 0;
}

/* Checks the workspace, of which a call needs so many bytes, and divides it
 * into what chunks share and what each has. */
static int32_t bindWorkspace(struct Call *call, int64_t bytes) {
  const struct Description *description = call->description;
  int64_t *scratch = &call->words[description->numWords - 1];
  uint64_t begin = (uint64_t)*scratch;
  if (bytes == 0)
    return kOk;
  if (call->workspaceBytes && *call->workspaceBytes < bytes)
    return fail(call, kSize, "the workspace has %d bytes, expected %d",
                VALUES(*call->workspaceBytes, bytes));
  if (!begin)
    return fail(call, kNull, "the workspace is NULL, expected %d bytes",
                VALUES(bytes));
  if (begin > UINTPTR_MAX - (uint64_t)bytes)
    return fail(call, kSize, "the workspace is larger than any memory", NULL);
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    struct View view;
    if (!hasElements(&description->arguments[i]))
      continue;
    createView(description, i, call->words, &view);
    if (!view.isEmpty && view.low < begin + (uint64_t)bytes &&
        begin < view.low + view.span)
      return fail(call, kOverlap, "the workspace overlaps %n", VALUES(i));
  }
  begin = (begin + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
  call->words[description->numWords - 2] = (int64_t)begin;
  *scratch = (int64_t)begin + description->sharedBytes;
  return kOk;
}

#endif
