//===- HeadShape.h - heads and their sizes ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_HEADSHAPE_H
#define POSENC_LIB_FRONTEND_HEADSHAPE_H

#include "ConfigReader.h"
#include "ModelTable.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Fills in the numbers of heads and the head's size. Returns the value to
/// blame for a head that is too small or odd.
const json::Value &readHeadShape(ConfigReader &reader,
                                 const json::Value &config, const ModelRow &row,
                                 ModelConfig &result);

/// A head's size, which is 0 after an error, and the value to blame for it.
struct HeadSize {
  int64_t size;
  const json::Value *at;
};

/// The rotary dimension, or 0 after an error. `dicts` are the rope
/// dictionaries, some of them null, where the fraction may stand too.
int64_t readRotaryDim(ConfigReader &reader, const json::Value &config,
                      llvm::ArrayRef<const json::Value *> dicts,
                      const ModelRow &row, HeadSize head);

/// The places in `object` for the names of one quantity.
llvm::SmallVector<Place, 4> places(const json::Value &object,
                                   const Names &names);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_HEADSHAPE_H
