//===- CInterface.h - metadata and header of a kernel library ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_ABI_CINTERFACE_H
#define POSENC_ABI_CINTERFACE_H

#include "posenc/IR/Posenc.h"
#include "posenc/kernel/CallLayout.h"
#include "posenc/kernel/DlTensor.h"
#include "posenc/kernel/Symbols.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {

/// Symbols of the kernel support library that entry points call. A dot keeps
/// them apart from any C identifier.
inline constexpr llvm::StringLiteral kLaunchSymbol = "posenc.launch";
inline constexpr llvm::StringLiteral kLaunchTensorsSymbol =
    "posenc.launch_tensors";
inline constexpr llvm::StringLiteral kLaunchFfiSymbol = "posenc.launch_ffi";
inline constexpr llvm::StringLiteral kGetWorkspaceSymbol =
    "posenc.get_workspace";
inline constexpr llvm::StringLiteral kGetOutputSizesSymbol =
    "posenc.get_output_sizes";
inline constexpr llvm::StringLiteral kRunSharedSymbol = "posenc.run_shared";
inline constexpr llvm::StringLiteral kRunSmallSharedSymbol =
    "posenc.run_small_shared";
inline constexpr llvm::StringLiteral kSetParallelForSymbol =
    "posenc.set_parallel_for";
inline constexpr llvm::StringLiteral kEnqueueSymbol = "posenc.enqueue";
inline constexpr llvm::StringLiteral kEncodeTensorMapSymbol =
    "posenc.encode_tensor_map";
inline constexpr llvm::StringLiteral kRunsOnSymbol = "posenc.runs_on";
inline constexpr llvm::StringLiteral kMultiprocessorsSymbol =
    "posenc.multiprocessors";
inline constexpr llvm::StringLiteral kAllocateSymbol = "posenc.allocate";
inline constexpr llvm::StringLiteral kLaunchCudaSymbol = "posenc.launch_cuda";
inline constexpr llvm::StringLiteral kLaunchVulkanSymbol =
    "posenc.launch_vulkan";
inline constexpr llvm::StringLiteral kLaunchFfiCudaSymbol =
    "posenc.launch_ffi_cuda";
inline constexpr llvm::StringLiteral kGetDeviceWorkspaceSymbol =
    "posenc.get_device_workspace";

/// The table of a library's CUDA images (`struct CudaImage` of the kernel
/// support library) and their number.
inline constexpr llvm::StringLiteral kCudaImagesSymbol = "posenc.cuda_images";
inline constexpr llvm::StringLiteral kNumCudaImagesSymbol =
    "posenc.num_cuda_images";

/// The table of the addresses of weights that are in a file, the constant that
/// describes the file (`struct WeightsFile` of the kernel support library), and
/// the functions that map it and that run when a library is unloaded.
inline constexpr llvm::StringLiteral kWeightsSymbol = "posenc.weights.tensors";
inline constexpr llvm::StringLiteral kWeightsFileSymbol = "posenc.weights.file";
inline constexpr llvm::StringLiteral kOpenWeightsSymbol = "posenc.open_weights";
inline constexpr llvm::StringLiteral kCloseWeightsSymbol =
    "posenc.close_weights";

/// Return the symbol of the description (`struct Kernel` of the kernel support
/// library) of a function's variant, and of its variant that launches GPU
/// kernels.
std::string getKernelSymbol(StringRef function, unsigned variant);
std::string getGpuKernelSymbol(StringRef function);

/// The suffixes of entry points that take DLPack tensors, on the CPU and on
/// GPUs.
inline constexpr llvm::StringLiteral kTensorSuffix = POSENC_TENSOR_SUFFIX;
inline constexpr llvm::StringLiteral kCudaSuffix = POSENC_CUDA_SUFFIX;
inline constexpr llvm::StringLiteral kVulkanSuffix = POSENC_VULKAN_SUFFIX;
/// The suffixes of the entry points that return the sizes of a function's
/// workspaces, on the CPU and on CUDA devices.
inline constexpr llvm::StringLiteral kWorkspaceSuffix = POSENC_WORKSPACE_SUFFIX;
inline constexpr llvm::StringLiteral kCudaWorkspaceSuffix =
    POSENC_CUDA_WORKSPACE_SUFFIX;
/// The suffixes of the entry points that compute the shapes of a function's
/// outputs: from those of its inputs, and from values of inputs, too.
inline constexpr llvm::StringLiteral kOutputSizesSuffix =
    POSENC_OUTPUT_SIZES_SUFFIX;
inline constexpr llvm::StringLiteral kOutputSizesByValuesSuffix =
    POSENC_OUTPUT_SIZES_BY_VALUES_SUFFIX;

/// Separates the names of a function and of an argument in the name of the
/// function that packs the argument.
inline constexpr llvm::StringLiteral kPackInfix = "_pack_";

/// Returns the symbol of a function's entry point with this suffix; without
/// one, of that for plain C.
std::string getEntrySymbol(StringRef prefix, StringRef function,
                           StringRef suffix = "");
/// Returns the symbol of a function's entry point for TVM FFI.
std::string getFfiEntrySymbol(StringRef prefix, StringRef function);

/// Returns the symbol of the function that runs a function's GPU code for
/// arguments of TVM FFI.
std::string getFfiCudaSymbol(StringRef function);

/// The constant that holds the metadata of a library.
inline constexpr llvm::StringLiteral kMetadataSymbol = "metadata.text";

/// Names that a library reserves; functions cannot have them.
inline constexpr llvm::StringLiteral kMetadataName = "metadata";
inline constexpr llvm::StringLiteral kSetParallelForName = "set_parallel_for";
inline constexpr llvm::StringLiteral kVulkanCodeName = "vulkan_code";
inline constexpr llvm::StringLiteral kWeightsOpenName = "weights_open";

/// Returns the symbol of a library's Vulkan kernels, a constant in the format
/// of SpirvCode.h.
std::string getVulkanCodeSymbol(StringRef prefix);

/// Whether a library with this prefix exports the symbol, if it has it.
bool isExportedSymbol(StringRef prefix, StringRef symbol);

/// Returns the bytes of an element times the static sizes; nullopt on overflow.
std::optional<int64_t> getStaticBytes(RankedTensorType tensor);

using KernelFunction = std::pair<FunctionOpInterface, AbiAttr>;

/// Returns the functions of a module that have a signature, in order.
SmallVector<KernelFunction> getKernels(ModuleOp module);

/// The memory of a kernel call besides its arguments, in bytes: the memory that
/// all tasks share, and the scratch memory of each task in the workspace. Both
/// are multiples of 64.
struct KernelMemory {
  int64_t sharedBytes = 0, scratchBytes = 0;
};

/// Returns the memory of a lowered function, which is one variant of a kernel.
KernelMemory getKernelMemory(FunctionOpInterface function);

/// Returns the memref type of a kernel's tensor argument. The last dimension is
/// contiguous; the others have dynamic strides.
MemRefType getKernelMemRefType(RankedTensorType tensor);

/// Returns the name of size `number` of a signature, in headers and metadata. A
/// derived size is an expression of names, integers and the elements t[0] of
/// tensors t that have one: +, -, *, / and % rounded towards minus infinity,
/// min(a, b), max(a, b), (a < b ? c : d) and (a == b ? c : d).
std::string getSizeName(AbiAttr abi, int64_t number);

/// Whether a dimension of an output is computed: a term, or a scalar input.
bool hasComputedShapes(AbiAttr abi);

/// Whether the entry point that computes shapes takes the value of an input: an
/// integer, or the element of a tensor that sizes depend on.
bool hasSizeValue(AbiAttr abi, int64_t input);

/// Returns the text of an expression of a signature's symbols for diagnostics,
/// in which sizes are dimensions of arguments.
std::string describeSize(AbiAttr abi, AffineExpr expr);

/// The description of an element type in headers, metadata and DLPack.
struct ElementTypeInfo {
  llvm::StringLiteral name;
  int64_t bytes;
  int64_t dlpackCode;
};

/// Returns the description of a scalar type or of a tensor's element type.
ElementTypeInfo getElementTypeInfo(Type type);

/// A function of a library, and the kinds of devices that it has code for.
struct LibraryKernel {
  FunctionOpInterface function;
  AbiAttr abi;
  bool onCpu, onCuda, onVulkan;
  /// Whether its entry points take a workspace, on the CPU and on CUDA devices.
  bool hasWorkspace = false, hasCudaWorkspace = false;
  /// Whether it reads weights that are in a file.
  bool hasWeights = false;
  /// The bytes of stack that its CPU entry points need, if known.
  std::optional<int64_t> stackBytes = std::nullopt;
};

/// Creates the JSON text that `<prefix>_metadata` returns. `targets` is a
/// comma-separated list; `vulkanBytes` is the size of the Vulkan kernels, or 0;
/// `weights` is the name of the file with the library's weights, or empty.
std::string createMetadata(ArrayRef<LibraryKernel> kernels, StringRef prefix,
                           StringRef targets, uint64_t vulkanBytes,
                           StringRef weights);

/// Creates the C header of a library; `weights` as above.
std::string createHeader(ArrayRef<LibraryKernel> kernels, StringRef prefix,
                         StringRef weights);

} // namespace mlir::posenc

#endif // POSENC_ABI_CINTERFACE_H
