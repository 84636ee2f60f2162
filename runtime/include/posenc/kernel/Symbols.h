//===- Symbols.h - symbols of kernel libraries --------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_SYMBOLS_H
#define POSENC_KERNEL_SYMBOLS_H

/* The names of a library's exported symbols: PREFIX_function and these
 * suffixes; POSENC_FFI_PREFIX PREFIX_function for TVM FFI; and PREFIX with the
 * suffixes of the library's own symbols. */
#define POSENC_TENSOR_SUFFIX "_dl"
#define POSENC_CUDA_SUFFIX "_cuda"
#define POSENC_VULKAN_SUFFIX "_vulkan"
#define POSENC_WORKSPACE_SUFFIX "_workspace"
#define POSENC_CUDA_WORKSPACE_SUFFIX "_cuda_workspace"
#define POSENC_OUTPUT_SIZES_SUFFIX "_output_sizes"
#define POSENC_OUTPUT_SIZES_BY_VALUES_SUFFIX "_output_sizes_by_values"
#define POSENC_FFI_PREFIX "__tvm_ffi_"
#define POSENC_METADATA_SUFFIX "_metadata"
#define POSENC_SET_PARALLEL_FOR_SUFFIX "_set_parallel_for"
#define POSENC_VULKAN_CODE_SUFFIX "_vulkan_code"
#define POSENC_WEIGHTS_OPEN_SUFFIX "_weights_open"

#endif
