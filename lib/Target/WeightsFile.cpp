//===- WeightsFile.cpp - file of a library's weights ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/WeightsFile.h"

#include "DefineGlobal.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/IR/Remarks.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace mlir::posenc;

/// The bytes of the size of the header.
static constexpr int64_t kSizeBytes = 8;

llvm::Error WeightsFile::addTensor(StringRef symbol, ElementsAttr elements) {
  int64_t end = getDataBytes();
  // The elements were extracted, so their size is known.
  int64_t bytes = *getNumBytes(elements.getShapedType());
  std::optional<int64_t> begin = llvm::checkedAdd(end, kAlignment - 1);
  if (begin)
    begin = llvm::alignDown(*begin, kAlignment);
  // Leaves room for a header.
  if (!begin || bytes > INT64_MAX / 2 - *begin)
    return llvm::createStringError("the weights have more than 2^62 bytes");
  if (*begin != end)
    parts.push_back({"posenc.padding." + std::to_string(tensors.size()),
                     ElementsAttr(), std::nullopt, *begin - end, end});
  std::optional<PanelPacking> packing;
  std::string name = symbol.str();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    name = resource.getRawHandle().getKey().str();
    packing = parsePackedKey(name);
  }
  // Another module may have other elements under the same symbol.
  name = llvm::json::fixUTF8(name);
  for (size_t number = 1; !names.insert(name).second; ++number)
    name += "." + std::to_string(number);
  tensors[elements] = parts.size();
  parts.push_back({std::move(name), elements, packing, bytes, *begin});
  return llvm::Error::success();
}

llvm::Error WeightsFile::add(ModuleOp module) {
  auto weights = module->getAttrOfType<DictionaryAttr>(kWeightsAttrName);
  if (!weights)
    return llvm::Error::success();
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> numbers;
  // Globals are in the order of their first use.
  for (auto global : module.getOps<memref::GlobalOp>()) {
    auto elements = weights.getAs<ElementsAttr>(global.getSymName());
    if (!elements)
      continue;
    if (getSafetensorsType(elements.getElementType()).empty() ||
        !getStoredBytes(elements))
      return llvm::createStringError("the elements of '" + global.getSymName() +
                                     "' cannot be weights in a file");
    if (!tensors.contains(elements)) {
      if (llvm::Error error = addTensor(global.getSymName(), elements))
        return error;
      reportOtherPacking(global);
    }
    auto number = std::distance(tensors.begin(), tensors.find(elements));
    numbers.emplace_back(global.getSymNameAttr(),
                         builder.getI64IntegerAttr(number));
  }
  module->setAttr(kWeightsAttrName, builder.getDictionaryAttr(numbers));
  return llvm::Error::success();
}

void WeightsFile::reportOtherPacking(Operation *global) {
  const Tensor &part = parts.back();
  StringRef matrix;
  if (!parsePackedKey(part.name, &matrix))
    return;
  std::string layout = part.packing->getLayout();
  std::string known = layouts.try_emplace(matrix, layout).first->second;
  if (known != layout)
    reportMissed(global, "posenc-extract-weights",
                 llvm::formatv("'{0}' is stored as {1} for another target, and "
                               "again as {2}, which takes {3} bytes",
                               matrix, known, layout, part.bytes));
}

std::string WeightsFile::describePacking() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    for (const Tensor &part : parts)
      if (part.packing)
        json.attributeObject(part.name, [&] {
          json.attribute("layout", part.packing->getLayout());
          if (int64_t bits = part.packing->bits) {
            json.attribute("bits", bits);
            json.attribute("block", part.packing->blockSize);
          }
          json.attributeArray("shape", [&] {
            json.value(part.packing->rows);
            json.value(part.packing->matrixColumns);
          });
        });
  });
  return text;
}

std::string WeightsFile::createHeader(StringRef targets,
                                      StringRef digest) const {
  std::string text(kSizeBytes, '\0');
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attributeObject("__metadata__", [&] {
      json.attribute("posenc.format", "1");
      json.attribute("posenc.version", POSENC_VERSION);
      json.attribute("posenc.targets", targets);
      json.attribute("posenc.packing", describePacking());
      json.attribute("posenc.digest", "blake3:" + digest.str());
    });
    for (const Tensor &part : parts)
      json.attributeObject(part.name, [&] {
        ShapedType type =
            part.elements ? part.elements.getShapedType() : ShapedType();
        json.attribute("dtype", type ? getSafetensorsType(type.getElementType())
                                     : StringRef("U8"));
        json.attributeArray("shape", [&] {
          for (int64_t size : type ? type.getShape() : ArrayRef(part.bytes))
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(part.begin);
          json.value(part.begin + part.bytes);
        });
      });
  });
  text.append(llvm::alignTo(text.size(), kHeaderAlignment) - text.size(), ' ');
  llvm::support::endian::write64le(text.data(), text.size() - kSizeBytes);
  return text;
}

llvm::Error WeightsFile::write(StringRef path, StringRef targets) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::CD_OpenExisting);
  if (code)
    return llvm::createStringError("cannot write '" + path +
                                   "': " + code.message());
  llvm::BLAKE3 data;
  auto hash = [](llvm::BLAKE3 &data) {
    return llvm::toHex(data.final<32>(), /*LowerCase=*/true);
  };
  // The digest is written last. It has the same size for any data.
  std::string header = createHeader(targets, hash(data));
  headerBytes = header.size();
  os << header;
  // Chunks are still in the cache when they are written.
  constexpr int64_t kChunk = 1 << 20;
  for (const Tensor &part : parts) {
    ArrayRef<char> bytes =
        part.elements ? *getStoredBytes(part.elements) : ArrayRef<char>();
    bool isRepeated = static_cast<int64_t>(bytes.size()) != part.bytes;
    std::string repeated;
    for (int64_t at = 0; isRepeated && at < std::min(kChunk, part.bytes); ++at)
      repeated.push_back(bytes.empty() ? 0 : bytes[at % bytes.size()]);
    for (int64_t at = 0; at < part.bytes; at += kChunk) {
      size_t count = std::min(kChunk, part.bytes - at);
      StringRef chunk(isRepeated ? repeated.data() : bytes.data() + at, count);
      data.update(chunk);
      os << chunk;
    }
  }
  header = createHeader(targets, hash(data));
  headerHash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(header));
  os.seek(0);
  os << header;
  os.close();
  code = os.error();
  os.clear_error();
  return code ? llvm::createStringError("cannot write '" + path +
                                        "': " + code.message())
              : llvm::Error::success();
}

void WeightsFile::define(llvm::Module &module, StringRef name) const {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  auto createConstant = [&](llvm::Constant *value) {
    return new llvm::GlobalVariable(module, value->getType(),
                                    /*isConstant=*/true,
                                    llvm::GlobalValue::PrivateLinkage, value);
  };
  std::vector<uint64_t> positions;
  for (int64_t part : llvm::make_second_range(tensors))
    positions.push_back(headerBytes + parts[part].begin);
  llvm::GlobalVariable *table =
      defineGlobal(module, kWeightsSymbol,
                   llvm::ConstantAggregateZero::get(
                       llvm::ArrayType::get(pointer, tensors.size())),
                   /*isConstant=*/false);
  llvm::Constant *fields[] = {
      createConstant(llvm::ConstantDataArray::getString(context, name)),
      createConstant(
          llvm::ConstantDataArray::get(context, ArrayRef(headerHash))),
      createConstant(
          llvm::ConstantDataArray::get(context, ArrayRef(positions))),
      table,
      llvm::ConstantInt::get(i64, headerBytes),
      llvm::ConstantInt::get(i64, headerBytes + getDataBytes()),
      llvm::ConstantInt::get(i64, tensors.size())};
  defineGlobal(module, kWeightsFileSymbol,
               llvm::ConstantStruct::getAnon(context, fields));
  llvm::appendToGlobalDtors(module, module.getFunction(kCloseWeightsSymbol),
                            /*Priority=*/65535);
}
