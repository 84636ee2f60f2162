//===- CallDoor.cpp - calls of the C interface ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call is derived from a function's metadata: sizes that agree, tensors with
// these sizes, and then a few changes, most of which make the call wrong. Data
// end at inaccessible pages. A refused call has a message and writes nothing.
//
//===----------------------------------------------------------------------===//

#include "Doors.h"

#include "Guarded.h"

#include "Dispatch.h"
#include "DlTensor.h"

#include "posenc/Driver/Input.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/kernel/EntryStatus.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <memory>

using namespace posenc::fuzz;
using namespace posenc::runtime;
using llvm::StringRef;

namespace {
/// A model whose caches are small enough for many calls a second.
constexpr llvm::StringLiteral kConfig = R"({
  "model_type": "llama", "hidden_size": 32, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 8, "rope_theta": 10000.0,
  "max_position_embeddings": 2048, "num_hidden_layers": 1,
  "dtype": "float32"})";

/// Bytes of memory for a tensor.
constexpr size_t kArena = size_t(1) << 16;

/// Takes numbers from the bytes of an input; zeros after its end.
class Reader {
public:
  explicit Reader(StringRef bytes) : bytes(bytes) {}
  bool isAtEnd() const { return bytes.empty(); }
  uint8_t next() {
    if (bytes.empty())
      return 0;
    uint8_t byte = bytes.front();
    bytes = bytes.drop_front();
    return byte;
  }
  size_t below(size_t bound) { return next() % bound; }

private:
  StringRef bytes;
};

/// An argument of a call, which `tensor` points into.
struct Argument {
  const posenc_argument *declared;
  bool isOutput;
  std::vector<int64_t> shape, strides;
  bool hasStrides = false;
  PosencDlTensor tensor;
  Guarded memory{kArena, /*atEnd=*/true};
  bool isNull = false, hasNullData = false, hasNullShape = false;
  /// The argument whose data this one has, if it is another one.
  const Argument *alias = nullptr;

  size_t elementBytes() const { return posenc_dtype_size(declared->dtype); }
};

class Calls {
public:
  Calls();
  Outcome run(StringRef input);

private:
  using Arguments = std::vector<std::unique_ptr<Argument>>;
  Arguments makeArguments(const posenc_function &function, Reader &reader);
  void change(Arguments &arguments, Reader &reader);
  void fill(Argument &argument, Reader &reader);
  Outcome call(const posenc_function &function, Arguments &arguments,
               Reader &reader);
  Outcome computeSizes(const posenc_function &function,
                       const Arguments &arguments);

  mlir::MLIRContext context;
  std::unique_ptr<mlir::posenc::JitLibrary> jit;
  Metadata metadata;
};
} // namespace

Calls::Calls() : context(mlir::MLIRContext::Threading::DISABLED) {
  mlir::DialectRegistry registry;
  mlir::posenc::registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  mlir::posenc::InputOptions options;
  options.kernels = {"sincos", "rope", "decode", "serving"};
  auto module = mlir::posenc::loadModuleFromText("config.json", kConfig,
                                                 options, context);
  mlir::posenc::JitOptions jitOptions;
  jitOptions.optLevel = mlir::posenc::OptLevel::O0;
  if (module)
    jit = mlir::posenc::JitLibrary::create(*module, {}, jitOptions);
  std::string error;
  if (!jit || !parseMetadata(jit->getMetadata(),
                             std::strlen(jit->getMetadata()), metadata, error))
    llvm::report_fatal_error("cannot compile the library of the calls");
}

static bool isKnownStatus(int32_t status) {
  switch (status) {
#define POSENC_ENTRY_STATUS(name, number, meaning) case number:
    POSENC_ENTRY_STATUSES(POSENC_ENTRY_STATUS)
#undef POSENC_ENTRY_STATUS
    return true;
  default:
    return false;
  }
}

/// A size of a valid call.
static int64_t makeSize(Reader &reader) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 0, 4, 5, 7, 16};
  return kSizes[reader.below(std::size(kSizes))];
}

static int64_t makeNumber(Reader &reader) {
  static constexpr int64_t kNumbers[] = {0,
                                         1,
                                         2,
                                         3,
                                         4,
                                         8,
                                         16,
                                         17,
                                         -1,
                                         -2,
                                         127,
                                         2048,
                                         INT32_MAX,
                                         INT32_MIN,
                                         INT64_MAX,
                                         INT64_MIN,
                                         int64_t(1) << 32,
                                         int64_t(1) << 61,
                                         (int64_t(1) << 62) + 1};
  return kNumbers[reader.below(std::size(kNumbers))];
}

/// Fills a tensor: floating-point numbers by bytes, integers by numbers that
/// are often valid indices.
void Calls::fill(Argument &argument, Reader &reader) {
  size_t bytes = argument.elementBytes();
  bool isInteger = argument.declared->dtype == POSENC_I64 ||
                   argument.declared->dtype == POSENC_I32 ||
                   argument.declared->dtype == POSENC_INDEX;
  char *data = argument.memory.as<char>();
  for (size_t i = 0; i < kArena; ++i)
    data[i] = static_cast<char>(i * 37 % 61);
  if (!isInteger || argument.isOutput)
    return;
  // The last elements of the arena are the first ones of a small tensor.
  for (size_t i = 0; i < kArena / bytes; ++i) {
    int64_t value = static_cast<int64_t>(i % 3);
    if (i >= kArena / bytes - 32)
      value = reader.next() % 4 ? static_cast<int64_t>(reader.below(6))
                                : makeNumber(reader);
    std::memcpy(data + i * bytes, &value, bytes);
  }
}

Calls::Arguments Calls::makeArguments(const posenc_function &function,
                                      Reader &reader) {
  Arguments arguments;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < function.sizes.size(); ++i)
    sizes.push_back(makeSize(reader));
  auto add = [&](const posenc_argument &declared, bool isOutput) {
    auto argument = std::make_unique<Argument>();
    argument->declared = &declared;
    argument->isOutput = isOutput;
    for (const Dim &dim : declared.shape)
      argument->shape.push_back(dim.kind == Dim::Kind::Static ? dim.value
                                : dim.kind == Dim::Kind::Size
                                    ? sizes[dim.value]
                                    : makeSize(reader));
    posenc_tensor tensor{nullptr, declared.dtype,
                         static_cast<int32_t>(declared.shape.size()), nullptr};
    argument->tensor = toDlTensor(declared, tensor);
    argument->strides.assign(argument->shape.size(), 1);
    for (size_t i = argument->shape.size(); i-- > 1;)
      argument->strides[i - 1] = argument->strides[i] * argument->shape[i];
    fill(*argument, reader);
    arguments.push_back(std::move(argument));
  };
  for (const posenc_argument &input : function.inputs)
    add(input, /*isOutput=*/false);
  for (const posenc_argument &output : function.outputs)
    add(output, /*isOutput=*/true);
  return arguments;
}

/// Sets the range of elements of a tensor, relative to its first one. Returns
/// false if it does not fit into the arena.
static bool getRange(const Argument &argument, int64_t &lowest,
                     int64_t &highest) {
  lowest = highest = 0;
  if (llvm::any_of(argument.shape, [](int64_t size) { return size <= 0; }))
    return true;
  // The stride of a contiguous tensor.
  int64_t dense = 1;
  for (size_t i = argument.shape.size(); i-- > 0;) {
    int64_t stride = argument.hasStrides ? argument.strides[i] : dense, extent;
    if (__builtin_mul_overflow(argument.shape[i] - 1, stride, &extent) ||
        (!argument.hasStrides &&
         __builtin_mul_overflow(dense, argument.shape[i], &dense)))
      return false;
    int64_t &end = extent < 0 ? lowest : highest;
    if (__builtin_add_overflow(end, extent, &end))
      return false;
  }
  auto capacity = static_cast<int64_t>(kArena / argument.elementBytes());
  return lowest > -capacity && highest < capacity &&
         highest - lowest < capacity;
}

/// Changes an argument.
void Calls::change(Arguments &arguments, Reader &reader) {
  Argument &argument = *arguments[reader.below(arguments.size())];
  PosencDlTensor &tensor = argument.tensor;
  size_t rank = argument.shape.size();
  switch (reader.below(14)) {
  case 0:
    if (rank)
      argument.shape[reader.below(rank)] = makeNumber(reader);
    break;
  case 1:
    argument.hasStrides = true;
    if (rank)
      argument.strides[reader.below(rank)] = makeNumber(reader);
    break;
  case 2:
    argument.hasStrides = true;
    break;
  case 3: {
    static constexpr int32_t kRanks[] = {0, 1, 2, 3, 4, 5, 64, -1, INT32_MAX};
    // More dimensions than there are would be read by the entry point.
    int32_t wanted = kRanks[reader.below(std::size(kRanks))];
    if (wanted <= static_cast<int32_t>(rank) || wanted > 5)
      tensor.ndim = wanted;
    break;
  }
  case 4:
    tensor.code = reader.next();
    break;
  case 5:
    tensor.bits = reader.next();
    break;
  case 6:
    tensor.lanes = static_cast<uint16_t>(makeNumber(reader));
    break;
  case 7:
    tensor.deviceType = static_cast<int32_t>(reader.below(20));
    break;
  case 8:
    tensor.byteOffset = static_cast<uint64_t>(makeNumber(reader));
    break;
  case 9:
    argument.hasNullData = true;
    break;
  case 10:
    argument.hasNullShape = true;
    break;
  case 11:
    argument.isNull = true;
    break;
  case 12:
    argument.alias = arguments[reader.below(arguments.size())].get();
    break;
  case 13:
    if (rank > 1) {
      // A transposed view.
      argument.hasStrides = true;
      size_t at = reader.below(rank - 1);
      std::swap(argument.strides[at], argument.strides[at + 1]);
    }
    break;
  }
}

/// Whether the entry point must find that this argument is wrong, so that what
/// its pointer and sizes say is never followed.
static bool isSurelyRefused(const Argument &argument) {
  return argument.isNull || argument.hasNullData || argument.hasNullShape ||
         argument.tensor.ndim != static_cast<int32_t>(argument.shape.size());
}

/// Points the tensors at their data. Returns false for a call that may be right
/// but whose data are not in the arena.
static bool place(std::vector<std::unique_ptr<Argument>> &arguments) {
  for (const auto &argument : arguments) {
    int64_t lowest, highest;
    bool fits = getRange(*argument, lowest, highest);
    if (!fits && !isSurelyRefused(*argument))
      return false;
    const Argument &owner = argument->alias ? *argument->alias : *argument;
    char *end = owner.memory.as<char>() + kArena;
    size_t bytes = argument->elementBytes();
    PosencDlTensor &tensor = argument->tensor;
    tensor.data = argument->hasNullData || !fits
                      ? nullptr
                      : end - (highest + 1) * static_cast<int64_t>(bytes);
    // An offset within the arena leads to the same data.
    if (tensor.byteOffset <= kArena / 2)
      tensor.data = tensor.data
                        ? static_cast<char *>(tensor.data) - tensor.byteOffset
                        : nullptr;
    else if (tensor.data)
      return false;
    tensor.shape = argument->hasNullShape ? nullptr : argument->shape.data();
    tensor.strides = argument->hasStrides ? argument->strides.data() : nullptr;
  }
  return true;
}

std::string posenc::fuzz::judgeCall(int32_t status, StringRef message,
                                    bool isWrongWrite) {
  if (isWrongWrite)
    return status ? "a refused call wrote to memory"
                  : "a call wrote to memory that is not of its outputs";
  if (status == 0)
    return "";
  if (!isKnownStatus(status))
    return "unknown status " + std::to_string(status);
  // A buffer of one byte has the end of the message only.
  if (!message.empty() && !message.contains('\0'))
    return "the message does not end";
  if (message.size() > 1 && message.front() == '\0')
    return "no message with status " + std::to_string(status);
  return "";
}

Outcome Calls::call(const posenc_function &function, Arguments &arguments,
                    Reader &reader) {
  void *entry = jit->lookup(function.symbol + "_dl");
  if (!entry)
    return {"no checked entry point", Refused};
  if (!place(arguments))
    return {"", Refused};
  std::vector<std::string> before;
  CallArguments words;
  for (const auto &argument : arguments) {
    words.add(argument->isNull ? 0 : toWord(&argument->tensor));
    before.emplace_back(argument->memory.as<char>(), kArena);
  }
  constexpr size_t kMessage = 256;
  size_t length = reader.next() % 4 ? kMessage : reader.below(8);
  Guarded message(length, /*atEnd=*/true);
  words.add(length ? toWord(message.as<char>()) : 0);
  words.add(static_cast<int64_t>(length));
  auto status = dispatch<int32_t>(entry, words);
  // An accepted call may write to the memory of its outputs.
  auto mayWrite = [&](const Argument &owner) {
    return llvm::any_of(arguments, [&](const auto &argument) {
      return argument->isOutput &&
             (argument->alias ? argument->alias : argument.get()) == &owner;
    });
  };
  bool isWrongWrite = false;
  for (auto [argument, bytes] : llvm::zip(arguments, before))
    if (status || !mayWrite(*argument))
      isWrongWrite |= StringRef(argument->memory.as<char>(), kArena) != bytes;
  std::string wrong =
      judgeCall(status, StringRef(message.as<char>(), length), isWrongWrite);
  return {wrong, status ? Read : Code};
}

Outcome Calls::computeSizes(const posenc_function &function,
                            const Arguments &arguments) {
  void *entry = jit->lookup(function.symbol + "_output_sizes");
  if (!entry)
    return {"no function of output sizes", Refused};
  std::vector<int64_t> shapes;
  size_t numResults = 0;
  for (const auto &argument : arguments) {
    if (argument->isOutput)
      numResults += argument->shape.size();
    else
      shapes.insert(shapes.end(), argument->shape.begin(),
                    argument->shape.end());
  }
  Guarded in(shapes.size() * sizeof(int64_t), /*atEnd=*/true);
  Guarded out(numResults * sizeof(int64_t), /*atEnd=*/true);
  std::memcpy(in.as<char>(), shapes.data(), shapes.size() * sizeof(int64_t));
  CallArguments words;
  words.add(toWord(in.as<char>()));
  words.add(toWord(out.as<char>()));
  auto status = dispatch<int32_t>(entry, words);
  return {isKnownStatus(status) ? "" : "unknown status of output sizes", Read};
}

Outcome Calls::run(StringRef input) {
  Reader reader(input);
  const posenc_function &function =
      metadata.functions[reader.below(metadata.functions.size())];
  Arguments arguments = makeArguments(function, reader);
  for (size_t i = 0, changes = reader.below(4); i < changes; ++i)
    change(arguments, reader);
  Outcome outcome = computeSizes(function, arguments);
  return outcome.wrong.empty() ? call(function, arguments, reader) : outcome;
}

RunInput posenc::fuzz::openCalls() {
  auto calls = std::make_shared<Calls>();
  return [calls](StringRef input) { return calls->run(input); };
}
