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

/// Samples of a tensor that tell whether a file of the model is the same, as
/// `kSampleBytes` of the kernel support library.
static constexpr int64_t kSampleBytes = 512;

WeightsFile::WeightsFile(ArrayRef<ModelFile> modelFiles) {
  for (const ModelFile &file : modelFiles)
    sources.push_back({file, {}});
}

bool WeightsFile::refersToModel() const {
  return llvm::any_of(
      sources, [](const Source &source) { return !source.tensors.empty(); });
}

const WeightsFile::Tensor &WeightsFile::getTensor(Place place) const {
  return place.file ? sources[place.file - 1].tensors[place.index]
                    : parts[place.index];
}

std::string WeightsFile::createName(StringRef name) {
  // Another module may have other elements under the same symbol.
  std::string unique = llvm::json::fixUTF8(name);
  for (size_t number = 1; !names.insert(unique).second; ++number)
    unique += "." + std::to_string(number);
  return unique;
}

bool WeightsFile::addToSource(Operation *global,
                              DenseResourceElementsAttr elements) {
  StringRef name = elements.getRawHandle().getKey();
  ArrayRef<char> bytes = *getStoredBytes(elements);
  for (auto [number, source] : llvm::enumerate(sources)) {
    StringRef all = source.file.memory->getBuffer();
    // Addresses of different objects have an order as integers only.
    auto begin = reinterpret_cast<uintptr_t>(all.data());
    auto at = reinterpret_cast<uintptr_t>(bytes.data());
    if (at < begin || at - begin > all.size() ||
        bytes.size() > all.size() - (at - begin))
      continue;
    int64_t offset = at - begin;
    if (offset % kAlignment != 0) {
      reportMissed(
          global, "posenc-extract-weights",
          llvm::formatv("'{0}' is copied, as it begins at byte {1} of '{2}', "
                        "expected a multiple of {3}",
                        name, offset, source.file.name, kAlignment));
      return false;
    }
    tensors[elements] = {static_cast<int64_t>(number) + 1,
                         static_cast<int64_t>(source.tensors.size())};
    source.tensors.push_back({createName(name), elements, std::nullopt,
                              static_cast<int64_t>(bytes.size()), offset});
    return true;
  }
  return false;
}

llvm::Error WeightsFile::addTensor(Operation *global, StringRef symbol,
                                   ElementsAttr elements) {
  std::optional<PanelPacking> packing;
  StringRef name = symbol;
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    name = resource.getRawHandle().getKey();
    packing = parsePackedKey(name);
    if (!packing && addToSource(global, resource))
      return llvm::Error::success();
  }
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
  tensors[elements] = {0, static_cast<int64_t>(parts.size())};
  parts.push_back({createName(name), elements, packing, bytes, *begin});
  reportOtherPacking(global);
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
    if (!tensors.contains(elements))
      if (llvm::Error error = addTensor(global, global.getSymName(), elements))
        return error;
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

/// Writes the members of a tensor that the safetensors format has.
static void describeTensor(llvm::json::OStream &json, ShapedType type,
                           int64_t begin, int64_t bytes) {
  json.attribute("dtype", type ? getSafetensorsType(type.getElementType())
                               : StringRef("U8"));
  json.attributeArray("shape", [&] {
    for (int64_t size : type ? type.getShape() : ArrayRef(bytes))
      json.value(size);
  });
  json.attributeArray("data_offsets", [&] {
    json.value(begin);
    json.value(begin + bytes);
  });
}

static std::string printDigest(llvm::BLAKE3 data) {
  return "blake3:" + llvm::toHex(data.final<32>(), /*LowerCase=*/true);
}

std::string WeightsFile::describeSources() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    for (const Source &source : sources) {
      if (source.tensors.empty())
        continue;
      json.attributeObject(source.file.name, [&] {
        json.attribute(
            "bytes", static_cast<int64_t>(source.file.memory->getBufferSize()));
        json.attributeObject("tensors", [&] {
          for (const Tensor &tensor : source.tensors)
            json.attributeObject(tensor.name, [&] {
              describeTensor(json, tensor.elements.getShapedType(),
                             tensor.begin, tensor.bytes);
              ArrayRef<char> bytes = *getStoredBytes(tensor.elements);
              llvm::BLAKE3 data;
              data.update(StringRef(bytes.data(), bytes.size()));
              json.attribute("digest", printDigest(data));
            });
        });
      });
    }
  });
  return text;
}

std::string WeightsFile::createHeader(StringRef targets, StringRef digest,
                                      StringRef model) const {
  std::string text(kSizeBytes, '\0');
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attributeObject("__metadata__", [&] {
      json.attribute("posenc.format", "1");
      json.attribute("posenc.version", POSENC_VERSION);
      json.attribute("posenc.targets", targets);
      json.attribute("posenc.packing", describePacking());
      json.attribute("posenc.digest", digest);
      if (!model.empty())
        json.attribute("posenc.model", model);
    });
    for (const Tensor &part : parts)
      json.attributeObject(part.name, [&] {
        describeTensor(
            json, part.elements ? part.elements.getShapedType() : ShapedType(),
            part.begin, part.bytes);
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
  std::string model = refersToModel() ? describeSources() : "";
  // The digest is written last. It has the same size for any data.
  std::string header = createHeader(targets, printDigest(data), model);
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
  header = createHeader(targets, printDigest(data), model);
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

/// Returns the hash of samples of tensors in a model's file, as hashSamples()
/// of the kernel support library computes it.
template <typename Tensors>
static std::array<uint8_t, 32> hashSamples(const Tensors &tensors) {
  std::array<uint8_t, 32> hash{};
  for (const auto &tensor : tensors) {
    ArrayRef<char> bytes = *getStoredBytes(tensor.elements);
    size_t count = std::min<size_t>(bytes.size(), kSampleBytes);
    SmallVector<uint8_t> text(hash.begin(), hash.end());
    text.append(bytes.begin(), bytes.begin() + count);
    text.append(bytes.end() - count, bytes.end());
    hash = llvm::SHA256::hash(text);
  }
  return hash;
}

void WeightsFile::define(llvm::Module &module, StringRef name) const {
  llvm::LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i64 = llvm::Type::getInt64Ty(context);
  auto create = [&](llvm::Constant *value, bool isConstant = true) {
    return new llvm::GlobalVariable(module, value->getType(), isConstant,
                                    llvm::GlobalValue::PrivateLinkage, value);
  };
  auto createNumbers = [&](ArrayRef<uint64_t> values) {
    return create(llvm::ConstantDataArray::get(context, values));
  };
  auto createText = [&](StringRef text) {
    return create(llvm::ConstantDataArray::getString(context, text));
  };
  auto createHash = [&](const std::array<uint8_t, 32> &hash) {
    return create(llvm::ConstantDataArray::get(context, ArrayRef(hash)));
  };
  // Files of the model from which no tensor is read have no number.
  SmallVector<uint64_t> numbers(1, 0);
  SmallVector<llvm::Constant *> modelFiles;
  auto *modelFile =
      llvm::StructType::get(context, {pointer, pointer, i64, pointer});
  for (const Source &source : sources) {
    if (!source.tensors.empty())
      modelFiles.push_back(llvm::ConstantStruct::get(
          modelFile,
          {createText(source.file.name),
           createHash(hashSamples(source.tensors)),
           llvm::ConstantInt::get(i64, source.file.memory->getBufferSize()),
           llvm::ConstantPointerNull::get(pointer)}));
    numbers.push_back(modelFiles.size());
  }
  std::vector<uint64_t> positions, sizes, files;
  for (Place place : llvm::make_second_range(tensors)) {
    const Tensor &tensor = getTensor(place);
    positions.push_back((place.file ? 0 : headerBytes) + tensor.begin);
    sizes.push_back(tensor.bytes);
    files.push_back(numbers[place.file]);
  }
  llvm::GlobalVariable *table =
      defineGlobal(module, kWeightsSymbol,
                   llvm::ConstantAggregateZero::get(
                       llvm::ArrayType::get(pointer, tensors.size())),
                   /*isConstant=*/false);
  llvm::Constant *fields[] = {
      createText(name),
      createHash(headerHash),
      table,
      createNumbers(positions),
      createNumbers(sizes),
      createNumbers(files),
      create(
          llvm::ConstantArray::get(
              llvm::ArrayType::get(modelFile, modelFiles.size()), modelFiles),
          /*isConstant=*/false),
      llvm::ConstantInt::get(i64, headerBytes),
      llvm::ConstantInt::get(i64, headerBytes + getDataBytes()),
      llvm::ConstantInt::get(i64, tensors.size()),
      llvm::ConstantInt::get(i64, modelFiles.size())};
  defineGlobal(module, kWeightsFileSymbol,
               llvm::ConstantStruct::getAnon(context, fields));
  llvm::appendToGlobalDtors(module, module.getFunction(kCloseWeightsSymbol),
                            /*Priority=*/65535);
}
