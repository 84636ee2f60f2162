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

/// Fills in the numbers of heads, the head's size and the rotary dimension.
/// `dicts` are the rope dictionaries, where the fraction may stand too.
void readHeadShape(ConfigReader &reader, const json::Value &config,
                   llvm::ArrayRef<const json::Value *> dicts,
                   const ModelRow &row, ModelConfig &result);

/// The places in `object` for the names of one quantity.
llvm::SmallVector<Place, 4> places(const json::Value &object,
                                   const Names &names);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_HEADSHAPE_H
