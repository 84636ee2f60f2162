//===- WeightsFileTest.cpp - large weights in files -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/WeightsFile.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {
constexpr int64_t kGiB = int64_t{1} << 30;

/// A module whose weights have these bytes and are never read.
OwningOpRef<ModuleOp> createModule(MLIRContext &context,
                                   ArrayRef<int64_t> sizes) {
  context.loadDialect<memref::MemRefDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  static const char place = 0;
  SmallVector<NamedAttribute> weights;
  for (auto [number, bytes] : llvm::enumerate(sizes)) {
    std::string name = "w" + std::to_string(number);
    auto type = RankedTensorType::get({bytes}, builder.getI8Type());
    AsmResourceBlob blob(
        ArrayRef(&place, static_cast<size_t>(bytes)),
        /*dataAlignment=*/1, [](void *, size_t, size_t) {},
        /*dataIsMutable=*/false);
    weights.emplace_back(
        builder.getStringAttr(name),
        DenseResourceElementsAttr::get(type, name, std::move(blob)));
    memref::GlobalOp::create(
        builder, loc, name, builder.getStringAttr("private"),
        MemRefType::get(type.getShape(), type.getElementType()), Attribute(),
        /*constant=*/true, IntegerAttr());
  }
  (*module)->setAttr(kWeightsAttrName, builder.getDictionaryAttr(weights));
  return module;
}

TEST(WeightsFile, LargeTensors) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module =
      createModule(context, {5 * kGiB + 1, 3, 7 * kGiB});
  WeightsFile file;
  ASSERT_FALSE(llvm::errorToBool(file.add(*module)));
  auto numbers = (*module)->getAttrOfType<DictionaryAttr>(kWeightsAttrName);
  EXPECT_EQ(numbers.getAs<IntegerAttr>("w2").getInt(), 2);

  // The positions behind a header that was not written.
  llvm::LLVMContext llvmContext;
  llvm::Module code("code", llvmContext);
  llvm::Type *pointer = llvm::PointerType::get(llvmContext, 0);
  for (StringRef name : {kWeightsSymbol, kWeightsFileSymbol})
    code.getOrInsertGlobal(name, pointer);
  code.getOrInsertFunction(kCloseWeightsSymbol,
                           llvm::Type::getVoidTy(llvmContext));
  file.define(code, "x.safetensors");
  auto *fields = cast<llvm::ConstantStruct>(
      code.getNamedGlobal(kWeightsFileSymbol)->getInitializer());
  auto *positions = cast<llvm::ConstantDataArray>(
      cast<llvm::GlobalVariable>(fields->getOperand(3))->getInitializer());
  ASSERT_EQ(positions->getNumElements(), 3u);
  EXPECT_EQ(positions->getElementAsInteger(0), 0u);
  EXPECT_EQ(positions->getElementAsInteger(1), uint64_t(5 * kGiB + 64));
  EXPECT_EQ(positions->getElementAsInteger(2), uint64_t(5 * kGiB + 128));
  EXPECT_EQ(cast<llvm::ConstantInt>(fields->getOperand(8))->getZExtValue(),
            uint64_t(12 * kGiB + 128));
}

TEST(WeightsFile, Overflow) {
  MLIRContext context;
  constexpr int64_t huge = INT64_MAX / 4;
  OwningOpRef<ModuleOp> module = createModule(context, {huge, huge, huge});
  WeightsFile file;
  EXPECT_EQ(llvm::toString(file.add(*module)),
            "the weights have more than 2^62 bytes");
}

TEST(WeightsFile, PackedKeys) {
  std::string key = getPackedKey("a.panels2.w", {4096, 128256, 32}, 0);
  EXPECT_EQ(key, "a.panels2.w.panels32.4096x128256.0");
  std::optional<PanelPacking> packing = parsePackedKey(key);
  ASSERT_TRUE(packing);
  EXPECT_EQ(packing->rows, 4096);
  EXPECT_EQ(packing->matrixColumns, 128256);
  EXPECT_EQ(packing->columns, 32);
  key = getPackedKey("w", {2048, 100, 64, 4, 32}, 0);
  EXPECT_EQ(key, "w.codes64.2048x100.4x32");
  packing = parsePackedKey(key);
  ASSERT_TRUE(packing);
  EXPECT_EQ(packing->rows, 2048);
  EXPECT_EQ(packing->matrixColumns, 100);
  EXPECT_EQ(packing->columns, 64);
  EXPECT_EQ(packing->bits, 4);
  EXPECT_EQ(packing->blockSize, 32);
  for (const char *other :
       {"w", "w.panels", "w.panelsx", "w.panels32", "w.panels32.4x",
        "w.panels32.x4.0", "w.codes64.4x4.0", "w.codes64.4x4.4x"})
    EXPECT_FALSE(parsePackedKey(other)) << other;
}
} // namespace

/// `struct ModelFile` and `struct WeightsFile` of the kernel support library.
struct MappedModelFile {
  const char *name;
  const uint8_t *hash;
  int64_t bytes;
  void *data;
};
struct MappedFile {
  const char *name;
  const uint8_t *hash;
  const char **tensors;
  const int64_t *positions, *sizes, *files;
  MappedModelFile *modelFiles;
  int64_t headerBytes, bytes, numTensors, numModelFiles;
};
extern "C" int32_t mapWeightsOf(const MappedFile *file, const char *path,
                                char *message, size_t size);

/// A file of 9 GiB, of which the disk has some pages only.
TEST(WeightsFile, LargeFiles) {
  llvm::SmallString<128> path;
  int descriptor;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("weights", "safetensors",
                                                  descriptor, path));
  constexpr int64_t headerBytes = 4096, bytes = 9 * kGiB;
  const int64_t positions[] = {headerBytes, 3 * kGiB, bytes - 64};
  std::string header(headerBytes, ' ');
  {
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/false);
    os << header;
    for (int64_t position : positions) {
      os.seek(position);
      os << char('a' + position / kGiB);
    }
  }
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(header));
  const char *tensors[3] = {};
  const int64_t sizes[3] = {1, 1, 1}, files[3] = {};
  MappedFile file{"x",     hash.data(), tensors, positions, sizes, files,
                  nullptr, headerBytes, bytes,   3,         0};
  char message[300];
  // Files of the model whose names lead out of the folder, or nowhere.
  MappedFile other = file;
  other.bytes = positions[2] + 1;
  other.numModelFiles = 1;
  for (const char *name : {"/etc/hostname", "../hostname", "a/../../b", ".", "",
                           "./a", "a//b", "a/"}) {
    MappedModelFile model{name, hash.data(), 5, nullptr};
    other.modelFiles = &model;
    EXPECT_NE(mapWeightsOf(&other, path.c_str(), message, sizeof(message)), 0);
    EXPECT_NE(StringRef(message).find(": cannot be opened: "), StringRef::npos)
        << message;
    EXPECT_EQ(model.data, nullptr);
  }
  std::string longName(5000, 'a');
  MappedModelFile model{longName.c_str(), hash.data(), 5, nullptr};
  other.modelFiles = &model;
  EXPECT_NE(mapWeightsOf(&other, path.c_str(), message, sizeof(message)), 0);
  EXPECT_STREQ(message, "the path of the model's data is too long");
  // The last position needs more than 33 bits.
  EXPECT_NE(mapWeightsOf(&file, path.c_str(), message, sizeof(message)), 0);
  EXPECT_NE(
      StringRef(message).find("but the library's weights have 9663676416"),
      StringRef::npos)
      << message;
  ASSERT_FALSE(llvm::sys::fs::resize_file_sparse(descriptor, bytes));
  EXPECT_EQ(mapWeightsOf(&file, path.c_str(), message, sizeof(message)), 0)
      << message;
  for (auto [position, tensor] : llvm::zip(positions, tensors))
    if (tensor)
      EXPECT_EQ(*tensor, char('a' + position / kGiB));
  EXPECT_EQ(tensors[2] - tensors[1], bytes - 64 - 3 * kGiB);
  llvm::sys::fs::closeFile(descriptor);
  llvm::sys::fs::remove(path);
}
