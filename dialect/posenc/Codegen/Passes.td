//===- Passes.td - code generation -------------------------*- tablegen -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_PASSES_TD
#define POSENC_CODEGEN_PASSES_TD

include "posenc/Codegen/GpuPasses.td"
include "posenc/Codegen/KernelPasses.td"
include "posenc/Codegen/LinalgPasses.td"
include "posenc/Codegen/MathPasses.td"
include "posenc/Codegen/VectorPasses.td"

// Set by the build if POSENC_ENABLE_VULKAN is off.
#ifndef POSENC_NO_VULKAN
include "posenc/Codegen/SpirvPasses.td"
#endif

#endif // POSENC_CODEGEN_PASSES_TD
