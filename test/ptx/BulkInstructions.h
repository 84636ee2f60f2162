//===- BulkInstructions.h - decodes cp.async.bulk ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_BULKINSTRUCTIONS_H
#define POSENC_TEST_PTX_BULKINSTRUCTIONS_H

#include "Decoder.h"

namespace posenc::ptx {

/// Decodes cp.async.bulk, whose modifiers .async and .bulk have been removed.
bool decodeBulkCopy(Decoder &decoder);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_BULKINSTRUCTIONS_H
