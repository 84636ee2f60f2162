//===- Sections.h - multimodal rotations ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_SECTIONS_H
#define POSENC_LIB_FRONTEND_SECTIONS_H

#include "ConfigReader.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Reads `mrope_section`, the number of pairs of each position axis, and
/// `mrope_interleaved`. The sections must add up to the pairs of `rotaryDim`,
/// which is 0 after an error.
Sections readSections(ConfigReader &reader, const json::Value &dict,
                      int64_t rotaryDim);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_SECTIONS_H
