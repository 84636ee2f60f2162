//===- Weights.cpp - weights of a module that are in a file ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Weights.h"

#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::posenc;

std::optional<int64_t> mlir::posenc::getNumBytes(ShapedType type) {
  Type element = type.getElementType();
  if (!element.isIntOrIndexOrFloat())
    return std::nullopt;
  std::optional<int64_t> bytes =
      element.isIndex() ? 8
                        : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  if (llvm::is_contained(type.getShape(), 0))
    return 0;
  for (int64_t size : type.getShape())
    if (bytes)
      bytes = llvm::checkedMul(*bytes, size);
  return bytes;
}

StringRef mlir::posenc::getSafetensorsType(Type type) {
  return TypeSwitch<Type, StringRef>(type)
      .Case<Float64Type>([](auto) { return "F64"; })
      .Case<Float32Type>([](auto) { return "F32"; })
      .Case<Float16Type>([](auto) { return "F16"; })
      .Case<BFloat16Type>([](auto) { return "BF16"; })
      .Case<Float8E4M3FNType>([](auto) { return "F8_E4M3"; })
      .Case<Float8E5M2Type>([](auto) { return "F8_E5M2"; })
      .Case<IndexType>([](auto) { return "I64"; })
      .Case<IntegerType>([](IntegerType integer) -> StringRef {
        switch (integer.getWidth()) {
        case 8:
          return "I8";
        case 16:
          return "I16";
        case 32:
          return "I32";
        case 64:
          return "I64";
        default:
          return "";
        }
      })
      .Default([](Type) { return ""; });
}

std::optional<ArrayRef<char>>
mlir::posenc::getStoredBytes(ElementsAttr elements) {
  // The elements of i1 are bits.
  if (elements.getElementType().isInteger(1))
    return std::nullopt;
  ArrayRef<char> bytes;
  if (auto dense = dyn_cast<DenseElementsAttr>(elements)) {
    bytes = dense.getRawData();
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return std::nullopt;
    bytes = blob->getData();
  } else {
    return std::nullopt;
  }
  std::optional<int64_t> numBytes = getNumBytes(elements.getShapedType());
  bool isSplat = isa<SplatElementsAttr>(elements);
  if (!numBytes || (!isSplat && bytes.size() != static_cast<size_t>(*numBytes)))
    return std::nullopt;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Elements in temporary files
//===----------------------------------------------------------------------===//

/// Maps a temporary file of that many bytes, which has no name any more.
/// Returns null if there is no space for it.
static void *mapTemporaryFile(size_t bytes) {
  llvm::SmallString<128> path;
  // The other folder for temporary files may be in memory.
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/false, path);
  llvm::sys::path::append(path, "posenc-weights-%%%%%%%%");
  int file;
  if (llvm::sys::fs::createUniqueFile(path, file, path))
    return nullptr;
  ::unlink(path.c_str());
  // Without space, writing to the memory would be a signal.
  void *memory =
      ::posix_fallocate(file, 0, bytes)
          ? MAP_FAILED
          : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Returns memory of that many bytes, all zero.
static AsmResourceBlob allocate(size_t bytes) {
  constexpr size_t kMinFile = 1 << 20, kAlignment = 64;
  if (bytes >= kMinFile)
    if (void *memory = mapTemporaryFile(bytes))
      return AsmResourceBlob(
          ArrayRef(static_cast<char *>(memory), bytes), kAlignment,
          [](void *data, size_t size, size_t) { ::munmap(data, size); },
          /*dataIsMutable=*/true);
  AsmResourceBlob blob =
      HeapAsmResourceBlob::allocate(bytes, kAlignment, /*dataIsMutable=*/true);
  llvm::fill(blob.getMutableData(), 0);
  return blob;
}

DenseResourceElementsAttr mlir::posenc::lookupWeights(RankedTensorType type,
                                                      StringRef key) {
  auto &manager =
      DenseResourceElementsHandle::getManagerInterface(type.getContext());
  auto *entry = manager.getBlobManager().lookup(key);
  if (!entry)
    return nullptr;
  auto known = DenseResourceElementsAttr::get(
      type, DenseResourceElementsHandle(
                entry, cast<BuiltinDialect>(manager.getDialect())));
  return getStoredBytes(known) ? known : nullptr;
}

DenseResourceElementsAttr mlir::posenc::getOrCreateWeights(
    RankedTensorType type, StringRef key,
    llvm::function_ref<void(MutableArrayRef<char>)> fill) {
  if (DenseResourceElementsAttr known = lookupWeights(type, key))
    return known;
  AsmResourceBlob blob = allocate(*getNumBytes(type));
  fill(blob.getMutableData());
  return DenseResourceElementsAttr::get(type, key, std::move(blob));
}

//===----------------------------------------------------------------------===//
// Packed elements
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kPanels = "panels", kPairs = "pairs",
                               kCodes = "codes";

std::string PanelPacking::getLayout() const {
  StringRef name = bits ? kCodes : hasPairs ? kPairs : kPanels;
  return (name + Twine(columns)).str();
}

std::string mlir::posenc::getPackedKey(StringRef key, PanelPacking packing,
                                       unsigned columnsDim) {
  std::string text = llvm::formatv("{0}.{1}.{2}x{3}.", key, packing.getLayout(),
                                   packing.rows, packing.matrixColumns);
  text += packing.bits
              ? llvm::formatv("{0}x{1}", packing.bits, packing.blockSize).str()
              : std::to_string(columnsDim);
  return text;
}

std::optional<PanelPacking> mlir::posenc::parsePackedKey(StringRef key,
                                                         StringRef *matrix) {
  // The last packing is that of the elements.
  StringRef before, layout;
  for (StringRef name : {kPanels, kPairs, kCodes})
    if (size_t at = key.rfind(("." + name).str());
        at != StringRef::npos && (layout.empty() || at > before.size())) {
      before = key.take_front(at);
      layout = name;
    }
  if (layout.empty())
    return std::nullopt;
  StringRef rest = key.substr(before.size() + 1 + layout.size());
  PanelPacking packing;
  if (rest.consumeInteger(10, packing.columns) || !rest.consume_front(".") ||
      rest.consumeInteger(10, packing.rows) || !rest.consume_front("x") ||
      rest.consumeInteger(10, packing.matrixColumns) ||
      !rest.consume_front("."))
    return std::nullopt;
  packing.hasPairs = layout == kPairs;
  if (layout == kCodes &&
      (rest.consumeInteger(10, packing.bits) || !rest.consume_front("x") ||
       rest.consumeInteger(10, packing.blockSize)))
    return std::nullopt;
  if (matrix)
    *matrix = before;
  return packing;
}

StringRef mlir::posenc::getWeightsKey(StringRef name) {
  // A key is a name in files and diagnostics.
  constexpr size_t kMaxBytes = 200;
  StringRef key = name.take_front(kMaxBytes);
  return key.empty() || parsePackedKey(key) ? "weights" : key;
}
