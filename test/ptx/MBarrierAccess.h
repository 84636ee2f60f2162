//===- MBarrierAccess.h - mbarriers at the addresses of lanes ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MBARRIERACCESS_H
#define POSENC_TEST_PTX_MBARRIERACCESS_H

#include "LaneAccess.h"

namespace posenc::ptx {

/// Returns the mbarrier at the address of a lane, or null after a fault: there
/// is none, or its initialization does not precede the instruction.
MBarrier *findMBarrier(const LaneAccess &access, unsigned lane, Warp &warp,
                       const Instruction &instruction);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MBARRIERACCESS_H
