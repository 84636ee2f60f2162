//===- CHeader.cpp - the C header of a kernel library ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/CInterface.h"
#include "posenc/kernel/EntryStatus.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::posenc;

/// Parts of the comment at the top of each header; `LIB` stands for the prefix.
static constexpr llvm::StringLiteral kTitle =
    R"(/* Kernels of LIB, made by posenc VERSION.
 *
)";

/// Used if the library has CPU code.
static constexpr llvm::StringLiteral kCpuForms =
    R"( * A function f has two forms with the same result:
 * - LIB_f
 *   takes the data of contiguous, row-major tensors, and their sizes.
 * - LIB_f_dl
 *   takes DLPack tensors on the CPU, and checks all of them.
 *
)";

static constexpr llvm::StringLiteral kTensors =
    R"( * DLPack tensors whose strides are NULL are contiguous. Otherwise the stride of
 * the last dimension must be 1; other strides may have any value and sign.
 * Views of one buffer may be rotated in place, such as q and k of rows
 * [q | k | v].
 * Element types are passed as
 *   f16, bf16: their bits in uint16_t; in DLPack (kDLFloat, 16) and
 *      (kDLBfloat, 16)
 *   f8E4M3FN, f8E5M2: their bits in uint8_t; in DLPack (kDLFloat8_e4m3fn, 8)
 *      and (kDLFloat8_e5m2, 8), or (kDLUInt, 8)
 *   i1: a byte that is 0 for false; in DLPack (kDLBool, 8) or (kDLUInt, 8)
 *   u8: uint8_t; in DLPack (kDLUInt, 8)
 * Scalars are passed by value.
 *
 * An output must not overlap another tensor. If the comment of a function says
 * that it may be an input (in place), both must be the same view of the same
 * memory. Any number of threads may call kernels at the same time.
 *
)";

static constexpr llvm::StringLiteral kCodes =
    R"( * Functions that consist of posenc operations allocate no memory on the CPU.
 * Others may allocate intermediate tensors. A function returns 0, or one of
 * these codes if it did nothing at all:
)";

static constexpr llvm::StringLiteral kTensorCodes =
    R"( * Forms with DLPack tensors also write a message to err, a buffer of errlen
 * bytes including the final 0 (or NULL and 0), and may also return:
)";

static constexpr llvm::StringLiteral kFfiForm =
    R"( *
 * __tvm_ffi_LIB_f
 *   takes tensors through the C ABI of TVM FFI, inputs before outputs. It
 *   returns 0, or -1 after an error. The error is set only if the symbols of
 *   TVM FFI are global (its library was not opened with RTLD_LOCAL).
)";

static constexpr llvm::StringLiteral kOutputSizes =
    R"( *
 * LIB_f_output_sizes
 *   computes the shapes of the outputs before a call: it reads all dimensions
 *   of the inputs that are tensors, in their order, and writes those of the
 *   outputs. If sizes of outputs follow from others, there is also
 *   LIB_f_output_sizes_by_values, which has a message and takes the addresses
 *   of the values that its comment names: int64_t for scalars, NULL for one
 *   that is unknown, or for all. Both return 0, or write nothing and return
 *   one of the codes above, or, with -1 for dimensions that are unknown,
)";

/// Used if the library has code for CUDA.
static constexpr llvm::StringLiteral kFfiCudaForm =
    R"( *   Tensors on a CUDA device run there, in the stream that TVM FFI has for it.
)";

static constexpr llvm::StringLiteral kCudaIntroduction =
    R"(
/* On NVIDIA GPUs:
 * - LIB_f_cuda
 *   takes DLPack tensors in the memory of one CUDA device (kDLCUDA,
 *   kDLCUDAManaged) and a stream (CUstream; NULL is the default stream). It
 *   enqueues its work without waiting for it, and may be captured into a graph.
 *   It allocates no memory: functions with intermediate tensors take a
 *   workspace on the device of at least LIB_f_cuda_workspace(sizes...) bytes
 *   with any alignment. No other work may use it until that of the call is
 *   done, but calls in the same stream may share it. The size is -1 if calls
 *   with these sizes fail. It is independent of the workspace on the CPU.
 *   The first call loads the driver, which must support CUDA 12, and the first
 *   call on a device loads the kernels. If no context of the tensors' device is
 *   current, its primary context is used.
 * It returns the same codes, or
)";

static constexpr llvm::StringLiteral kVulkanIntroduction =
    R"(
/* On Vulkan devices posenc_vulkan_call() and posenc_vulkan_launch() of Posenc's
 * runtime (posenc/runtime/vulkan.h) run the functions of this library.
 */
)";

/// The definition of DLTensor for programs without the header of DLPack.
static constexpr llvm::StringLiteral kTensorType =
    R"(/* DLTensor is the type of DLPack. If its header is not <dlpack/dlpack.h>,
 * include it before this file. */
#ifdef __has_include
#if !defined(DLPACK_DLPACK_H_) && __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif
#if !defined(DLPACK_DLPACK_H_) && !defined(POSENC_DLTENSOR)
#define POSENC_DLTENSOR
typedef struct {
  int32_t device_type; /* 1: the CPU, 2: CUDA */
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code; /* 0: integer, 1: unsigned, 2: float, 4: bfloat, 6: bool,
                   10: f8E4M3FN, 12: f8E5M2 */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements, or NULL */
  uint64_t byte_offset;
} DLTensor;
#endif

)";

static constexpr llvm::StringLiteral kMetadataFunction =
    R"(/* The functions, their signatures and targets, as JSON. */
const char *LIB_metadata(void);

)";

static constexpr llvm::StringLiteral kParallelFunction =
    R"(/* Sets the function that distributes tasks: it must call body(arg, i) for every
 * i in [0, n), in any order and on any threads, and return when all calls have
 * returned. NULL restores the default, which uses a single thread in the child
 * of a fork if the parent has used several. Must not be called while a kernel
 * runs. */
void LIB_set_parallel_for(
    void (*pf)(void *ctx, void (*body)(void *arg, int64_t i), void *arg,
               int64_t n),
    void *ctx);

)";

/// Used if the library has weights in a file; `FILE` stands for its name.
static constexpr llvm::StringLiteral kWeightsFunction =
    R"(/* Maps the file of the library's weights for reading, which is called
 * FILE
 * The path is that of the file, or that of its folder with a final slash. NULL
 * stands for the folder of the file that this code is in, or for the file that
 * is open already; to open another one then is an error. Files of the model
 * that have other weights (--weights=model) are found by their paths from the
 * folder of that file. Returns 0, or 15 and a message in err, a buffer of
 * errlen bytes (or NULL and 0). Any threads may call it, before they call
 * functions that read weights. The files must not change while the library is
 * in use: replace them by renaming others. */
int32_t LIB_weights_open(const char *path, char *err, size_t errlen);

)";

static void print(raw_ostream &os, StringRef text, StringRef prefix) {
  std::string result = text.str();
  auto replace = [&](StringRef from, StringRef to) {
    for (size_t at = 0; (at = result.find(from, at)) != std::string::npos;
         at += to.size())
      result.replace(at, from.size(), to);
  };
  replace("VERSION", POSENC_VERSION);
  replace("LIB", prefix);
  os << result;
}

static StringRef getCType(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isIndex())
    return "int64_t";
  if (type.isF64())
    return "double";
  if (type.isF32())
    return "float";
  if (type.isF16() || type.isBF16())
    return "uint16_t";
  if (type.isSignlessInteger(8))
    return "int8_t";
  if (type.getIntOrFloatBitWidth() <= 8)
    return "uint8_t";
  return type.isInteger(32) ? "int32_t" : "int64_t";
}

/// Prints a text inside a comment. Lines are wrapped at 80 columns.
static void printComment(raw_ostream &os, StringRef text) {
  constexpr size_t width = 80;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    size_t column = 0;
    SmallVector<StringRef> words;
    line.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef word : words) {
      if (column == 0 || column + 1 + word.size() > width) {
        os << (column == 0 ? " *" : "\n *");
        column = 2;
      }
      os << ' ' << word;
      column += 1 + word.size();
    }
    if (column != 0)
      os << '\n';
    text = rest;
  }
}

/// Returns the documentation of a function, without character sequences that
/// would end a C comment.
static std::string getDoc(FunctionOpInterface function) {
  auto doc = function->getAttrOfType<StringAttr>(PosencDialect::kDocAttrName);
  std::string text = doc ? doc.str() : "";
  for (size_t at = 0; (at = text.find("*/", at)) != std::string::npos;)
    text.replace(at, 2, "* /");
  return text;
}

static void describeArg(raw_ostream &os, AbiAttr abi, ArgAttr arg,
                        const llvm::Twine &use) {
  os << " *   " << arg.getName() << ": ";
  if (auto tensor = dyn_cast<RankedTensorType>(arg.getType())) {
    ArrayRef<int64_t> sizes = arg.getSizes();
    for (int64_t size : tensor.getShape()) {
      os << '[';
      if (ShapedType::isDynamic(size)) {
        os << getSizeName(abi, sizes.front());
        sizes = sizes.drop_front();
      } else {
        os << size;
      }
      os << ']';
    }
    os << ' ';
  }
  os << getElementTypeInfo(arg.getType()).name << ", " << use << "\n";
}

static void declare(raw_ostream &os, StringRef symbol,
                    ArrayRef<std::string> parameters) {
  os << "int32_t " << symbol << '('
     << (parameters.empty() ? "void" : llvm::join(parameters, ", ")) << ");\n";
}

/// Declares the functions that compute the shapes of outputs; `entry` is the
/// symbol of the function.
static void declareOutputSizes(raw_ostream &os, AbiAttr abi,
                               const std::string &entry) {
  declare(os, entry + kOutputSizesSuffix.str(),
          {"const int64_t *input_shapes", "int64_t *output_shapes"});
  if (!hasComputedShapes(abi))
    return;
  SmallVector<std::string> values;
  for (auto [number, input] : llvm::enumerate(abi.getInputs()))
    if (hasSizeValue(abi, number))
      values.push_back(input.getName().str() +
                       (isa<RankedTensorType>(input.getType()) ? "[0]" : ""));
  os << "/* The values: "
     << (values.empty() ? "none" : llvm::join(values, ", ")) << ". */\n";
  declare(os, entry + kOutputSizesByValuesSuffix.str(),
          {"const int64_t *input_shapes", "const void *const *values",
           "int64_t *output_shapes", "char *err", "size_t errlen"});
}

static void declareKernel(raw_ostream &os, LibraryKernel kernel,
                          StringRef prefix) {
  AbiAttr abi = kernel.abi;
  StringRef name = kernel.function.getName();
  os << "/* " << name << "\n";
  printComment(os, getDoc(kernel.function));
  for (auto [number, arg] : llvm::enumerate(abi.getInputs())) {
    std::string use = "read";
    if (arg.getLayout())
      use += ", packed by " +
             getEntrySymbol(prefix, (name + kPackInfix + arg.getName()).str());
    else if (llvm::is_contained(abi.getShapeOnly(), number))
      use = "only its shape is read; data may be NULL or an output";
    describeArg(os, abi, arg, use);
  }
  for (auto [arg, partner] :
       llvm::zip_equal(abi.getOutputs(), abi.getInPlace()))
    if (partner < 0)
      describeArg(os, abi, arg, "written, must not overlap an input");
    else
      describeArg(os, abi, arg,
                  "written, may be " + abi.getInputs()[partner].getName() +
                      " (in place)");
  SmallVector<std::string> plain, tensors, sizes;
  for (ArgAttr arg : abi.getInputs()) {
    std::string name = arg.getName().str();
    std::string type = getCType(arg.getType()).str();
    bool isTensor = isa<RankedTensorType>(arg.getType());
    plain.push_back(isTensor ? "const " + type + " *" + name
                             : type + " " + name);
    tensors.push_back(isTensor ? "const DLTensor *" + name : plain.back());
  }
  for (ArgAttr arg : abi.getOutputs()) {
    plain.push_back((getCType(arg.getType()) + " *" + arg.getName()).str());
    tensors.push_back(("const DLTensor *" + arg.getName()).str());
  }
  for (auto [number, size] : llvm::enumerate(abi.getSizes()))
    if (size == -1)
      sizes.push_back("int64_t " + getSizeName(abi, number));
  plain.append(sizes);
  if (kernel.stackBytes)
    os << " *   needs " << *kernel.stackBytes
       << " bytes of stack on each thread that runs it\n";
  if (kernel.hasWeights)
    os << " *   reads weights, which "
       << getEntrySymbol(prefix, kWeightsOpenName) << " opens\n";
  if (kernel.hasWorkspace)
    os << " *   takes a workspace of at least " << prefix << "_" << name
       << kWorkspaceSuffix
       << "(...)\n *   bytes with any alignment, which no other call may use "
          "at the same time\n";
  if (kernel.hasCudaWorkspace)
    os << " *   takes a workspace of at least " << prefix << "_" << name
       << kCudaWorkspaceSuffix << "(...)\n *   bytes on the device, on GPUs\n";
  os << " */\n";
  // The names of further parameters must differ from those of the module.
  llvm::StringSet<> names;
  for (ArgAttr arg :
       llvm::concat<const ArgAttr>(abi.getInputs(), abi.getOutputs()))
    names.insert(arg.getName());
  for (auto [number, size] : llvm::enumerate(abi.getSizes()))
    if (size == -1)
      names.insert(getSizeName(abi, number));
  auto addUnique = [&](SmallVector<std::string> &list, StringRef type,
                       StringRef own) {
    std::string unique = own.str();
    while (names.contains(unique))
      unique += "_";
    list.push_back(type.str() + unique);
  };
  SmallVector<std::string> cuda = tensors;
  if (kernel.hasWorkspace) {
    addUnique(plain, "void *", "workspace");
    addUnique(tensors, "void *", "workspace");
  }
  if (kernel.hasCudaWorkspace)
    addUnique(cuda, "void *", "workspace");
  addUnique(cuda, "void *", "stream");
  for (SmallVector<std::string> *list : {&tensors, &cuda}) {
    addUnique(*list, "char *", "err");
    addUnique(*list, "size_t ", "errlen");
  }
  auto declareWorkspace = [&](StringRef symbol) {
    os << "int64_t " << symbol << '('
       << (sizes.empty() ? "void" : llvm::join(sizes, ", ")) << ");\n";
  };
  if (kernel.onCpu) {
    if (kernel.hasWorkspace)
      declareWorkspace(getEntrySymbol(prefix, name, kWorkspaceSuffix));
    declare(os, getEntrySymbol(prefix, name), plain);
    declare(os, getEntrySymbol(prefix, name, kTensorSuffix), tensors);
  }
  if (kernel.hasCudaWorkspace)
    declareWorkspace(getEntrySymbol(prefix, name, kCudaWorkspaceSuffix));
  if (kernel.onCuda)
    declare(os, getEntrySymbol(prefix, name, kCudaSuffix), cuda);
  declareOutputSizes(os, abi, getEntrySymbol(prefix, name));
  os << "\n";
}

/// Declares the function that opens the weights.
static void printWeightsFunction(raw_ostream &os, StringRef prefix,
                                 StringRef weights) {
  auto [before, after] = StringRef(kWeightsFunction).split("FILE");
  print(os, before, prefix);
  // A name may have any characters.
  for (char c : weights)
    os << (llvm::isPrint(c) && c != '*' ? c : '?');
  print(os, after, prefix);
}

/// Lists status codes with their meaning, as lines of a comment.
static void printStatuses(raw_ostream &os, ArrayRef<int> statuses) {
  for (int status : statuses) {
    StringRef meaning;
    switch (status) {
#define POSENC_ENTRY_STATUS(name, number, text)                                \
  case number:                                                                 \
    meaning = text;                                                            \
    break;
      POSENC_ENTRY_STATUSES(POSENC_ENTRY_STATUS)
#undef POSENC_ENTRY_STATUS
    }
    auto [first, rest] = meaning.split('\n');
    os << llvm::formatv(" * {0,3}  {1}\n", status, first);
    if (!rest.empty())
      os << " *      " << rest << "\n";
  }
}

std::string mlir::posenc::createHeader(ArrayRef<LibraryKernel> kernels,
                                       StringRef prefix, StringRef weights) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // No argument has such a name.
  std::string guard = ("POSENC_" + prefix + "_H").str();
  bool hasCuda = llvm::any_of(
      kernels, [](const LibraryKernel &kernel) { return kernel.onCuda; });
  bool hasCpu = llvm::any_of(
      kernels, [](const LibraryKernel &kernel) { return kernel.onCpu; });
  print(os, kTitle, prefix);
  if (hasCpu)
    print(os, kCpuForms, prefix);
  print(os, kTensors, prefix);
  print(os, kCodes, prefix);
  printStatuses(os, {kEntryNull, kEntrySize, kEntryOverlap, kEntryCpu,
                     kEntryShape, kEntryIndex});
  if (!weights.empty())
    printStatuses(os, {kEntryWeights});
  print(os, kTensorCodes, prefix);
  printStatuses(os, {kEntryDevice, kEntryType, kEntryRank, kEntryStride,
                     kEntryAlignment});
  if (hasCpu || hasCuda)
    print(os, kFfiForm, prefix);
  if (hasCuda)
    print(os, kFfiCudaForm, prefix);
  print(os, kOutputSizes, prefix);
  printStatuses(os, {kEntryUnknown});
  os << " */\n";
  if (hasCuda) {
    print(os, kCudaIntroduction, prefix);
    printStatuses(os, {kEntryNoGpu, kEntryGpuFailed});
    os << " */\n";
  }
  if (llvm::any_of(kernels,
                   [](const LibraryKernel &kernel) { return kernel.onVulkan; }))
    print(os, kVulkanIntroduction, prefix);
  os << "#ifndef " << guard << "\n#define " << guard
     << "\n\n#include <stddef.h>\n#include <stdint.h>\n\n";
  print(os, kTensorType, prefix);
  os << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  for (const LibraryKernel &kernel : kernels)
    declareKernel(os, kernel, prefix);
  print(os, kMetadataFunction, prefix);
  if (!weights.empty())
    printWeightsFunction(os, prefix, weights);
  if (hasCpu)
    print(os, kParallelFunction, prefix);
  os << "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return text;
}
