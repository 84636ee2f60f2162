//===- Constants.cpp - arguments that a file has the values of ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Constants.h"

#include "ReadFile.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Frontend/Json.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::posenc;
namespace json = ::posenc::frontend::json;

namespace {
/// A mapped file of the safetensors format.
struct TensorFile {
  std::string path;
  std::shared_ptr<llvm::MemoryBuffer> memory;
  StringRef data;
  std::unique_ptr<json::Document> header;
  /// The entries of the header, by the names of the tensors.
  llvm::StringMap<const json::Value *> tensors;
  /// Elements by their type and their first byte: names of the same bytes are
  /// one constant.
  llvm::DenseMap<std::pair<Type, int64_t>, DenseResourceElementsAttr> elements;
};
} // namespace

static llvm::Error fail(const TensorFile &file, const Twine &reason) {
  return llvm::createStringError("cannot read constants of '" + file.path +
                                 "': " + reason);
}

static llvm::Error open(TensorFile &file) {
  StringRef content = file.memory->getBuffer();
  constexpr size_t kSizeBytes = 8;
  if (content.size() < kSizeBytes)
    return fail(file, "it has no header");
  uint64_t size = llvm::support::endian::read64le(content.data());
  content = content.drop_front(kSizeBytes);
  if (size > content.size())
    return fail(file, "its header is longer than the file");
  json::ParseOptions options;
  // The limit of the format.
  options.maxBytes = 100'000'000;
  json::ParseError error;
  file.header = json::Document::parse(content.take_front(size), error, options);
  if (!file.header)
    return fail(file, "its header: " + error.message);
  const json::Value &root = file.header->root();
  if (!root.isObject())
    return fail(file, "its header is no object");
  file.data = content.drop_front(size);
  for (const json::Member &member : root.members())
    if (!file.tensors.try_emplace(member.name(), &member.value).second)
      return fail(file, "'" + member.name() + "' is given twice");
  file.tensors.erase("__metadata__");
  return llvm::Error::success();
}

/// Returns the value of a key of an object if it is of that kind, or null.
static const json::Value *find(const json::Value &object, StringRef key,
                               json::Value::Kind kind) {
  const json::Member *member = object.find(key);
  return member && member->value.kind() == kind ? &member->value : nullptr;
}

/// Returns the elements of a tensor of the file, which stay in its memory.
static llvm::Expected<DenseResourceElementsAttr>
createElements(TensorFile &file, StringRef name, Type argument) {
  auto failOf = [&](const Twine &reason) {
    return fail(file, "'" + name + "' " + reason);
  };
  auto type = dyn_cast<RankedTensorType>(argument);
  std::optional<int64_t> bytes;
  if (type && type.hasStaticShape())
    bytes = getNumBytes(type);
  StringRef dtype = type ? getSafetensorsType(type.getElementType()) : "";
  if (!bytes || *bytes == 0 || dtype.empty())
    return failOf("belongs to an argument that cannot be a constant: expected "
                  "a tensor of numbers with static sizes");
  const json::Value &fields = *file.tensors.lookup(name);
  const json::Value *shape = find(fields, "shape", json::Value::Kind::Array);
  const json::Value *range =
      find(fields, "data_offsets", json::Value::Kind::Array);
  const json::Value *given = find(fields, "dtype", json::Value::Kind::String);
  if (!shape || !range || range->elements().size() != 2 || !given)
    return failOf("has no dtype, shape or data_offsets");
  bool isEqual = given->string() == dtype &&
                 shape->elements().size() == type.getShape().size();
  for (auto [size, value] : llvm::zip(type.getShape(), shape->elements()))
    isEqual &= value.integer() == size;
  if (!isEqual) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return failOf("has another type or shape than its argument, " + text);
  }
  std::optional<int64_t> begin = range->elements()[0].integer(),
                         end = range->elements()[1].integer();
  auto total = static_cast<int64_t>(file.data.size());
  if (!begin || !end || *begin < 0 || *end > total || *begin > *end ||
      *end - *begin != *bytes)
    return failOf("has a wrong range of bytes");
  DenseResourceElementsAttr &elements = file.elements[{type, *begin}];
  if (elements)
    return elements;
  AsmResourceBlob blob(
      ArrayRef<char>(file.data.data() + *begin, static_cast<size_t>(*bytes)),
      /*dataAlignment=*/1, [memory = file.memory](void *, size_t, size_t) {},
      /*dataIsMutable=*/false);
  elements = DenseResourceElementsAttr::get(type, getWeightsKey(name),
                                            std::move(blob));
  return elements;
}

static llvm::Error replaceArguments(func::FuncOp function, TensorFile &file,
                                    llvm::StringSet<> &used) {
  OpBuilder builder(function.getContext());
  builder.setInsertionPointToStart(&function.front());
  llvm::BitVector replaced(function.getNumArguments());
  for (BlockArgument argument : function.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), PosencDialect::kNameAttrName);
    if (!name || !file.tensors.contains(name.getValue()))
      continue;
    auto elements = createElements(file, name, argument.getType());
    if (!elements)
      return elements.takeError();
    used.insert(name.getValue());
    argument.replaceAllUsesWith(
        arith::ConstantOp::create(builder, argument.getLoc(), *elements));
    replaced.set(argument.getArgNumber());
  }
  if (replaced.none())
    return llvm::Error::success();
  if (!SymbolTable::symbolKnownUseEmpty(function,
                                        function->getParentOfType<ModuleOp>()))
    return fail(file, "'" + function.getSymName() +
                          "' is called in the module, so its arguments cannot "
                          "be constants");
  if (failed(function.eraseArguments(replaced)))
    return fail(file, "the arguments of '" + function.getSymName() +
                          "' cannot be removed");
  return llvm::Error::success();
}

LogicalResult mlir::posenc::replaceArguments(ModuleOp module, StringRef path) {
  TensorFile file;
  file.path = path.str();
  file.memory = readFile(path, /*limit=*/0, /*isBinary=*/true);
  if (!file.memory)
    return failure();
  llvm::Error error = open(file);
  llvm::StringSet<> used;
  for (auto function : module.getOps<func::FuncOp>())
    if (!error && function.isPublic() && !function.isExternal())
      error = ::replaceArguments(function, file, used);
  if (!error)
    for (const json::Member &member : file.header->root().members())
      if (file.tensors.contains(member.name()) &&
          !used.contains(member.name())) {
        error = fail(file, "there is no argument '" + member.name() + "'");
        break;
      }
  if (!error)
    return success();
  getErrorStream() << "error: " << llvm::toString(std::move(error)) << "\n";
  return failure();
}
