//===- WeightsFile.h - file of a library's weights --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file has the safetensors format: the size of the header in 8 bytes, the
// header, which is JSON, and the tensors without holes, little-endian. Here the
// header is padded with spaces to whole pages, and each tensor begins at a
// multiple of 64 bytes behind tensors of zeros, `posenc.padding.<n>`. Its
// metadata has these keys:
//
//   posenc.format    "1"
//   posenc.version   the version of the compiler
//   posenc.targets   the names of the targets, separated by commas
//   posenc.packing   JSON: the layout of each tensor that is not stored in the
//                    order of its dimensions, and the shape of the matrix;
//                    "panels16" and "codes64" are PanelPacking with 16 or 64
//                    columns, the latter of a quantized matrix, with the keys
//                    "bits" and "block"
//   posenc.digest    "blake3:" and the BLAKE3 hash of all bytes behind the
//                    header
//
// The library knows the SHA-256 hash of the file's bytes up to the tensors,
// which thus identifies all of the file.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_WEIGHTSFILE_H
#define POSENC_TARGET_WEIGHTSFILE_H

#include "posenc/IR/Weights.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

#include <array>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::posenc {

/// The weights of a library, which several modules share.
class WeightsFile {
public:
  /// The bytes that the addresses of tensors are multiples of.
  static constexpr int64_t kAlignment = 64;
  /// The bytes that the size of the header is a multiple of.
  static constexpr int64_t kHeaderAlignment = 4096;

  /// Adds the weights that posenc-extract-weights left in the attributes of a
  /// module, and replaces them by their numbers. Equal weights are stored once;
  /// a remark names those that another target reads in another form.
  /// Fails if the size of the file overflows.
  llvm::Error add(ModuleOp module);
  bool empty() const { return tensors.empty(); }

  /// Writes the file, which exists. It is read by tensor, and not kept in
  /// memory.
  llvm::Error write(llvm::StringRef path, llvm::StringRef targets);

  /// Defines the table and the description of the file, which must be written.
  /// `name` is the file's name beside the library.
  void define(llvm::Module &module, llvm::StringRef name) const;

private:
  struct Tensor {
    std::string name;
    /// Null for padding.
    ElementsAttr elements;
    std::optional<PanelPacking> packing;
    /// Bytes, and the position behind the header.
    int64_t bytes, begin;
  };
  llvm::Error addTensor(llvm::StringRef symbol, ElementsAttr elements);
  std::string describePacking() const;
  /// Reports that the last tensor is a matrix that is stored in another form,
  /// too.
  void reportOtherPacking(Operation *global);
  std::string createHeader(llvm::StringRef targets,
                           llvm::StringRef digest) const;
  int64_t getDataBytes() const {
    return parts.empty() ? 0 : parts.back().begin + parts.back().bytes;
  }

  /// Numbers of tensors by their elements.
  llvm::MapVector<Attribute, int64_t> tensors;
  /// The names of tensors.
  llvm::StringSet<> names;
  /// The layouts of packed matrices by their keys.
  llvm::StringMap<std::string> layouts;
  /// Tensors and padding in order.
  std::vector<Tensor> parts;
  /// The size and the SHA-256 hash of the header, which write() sets.
  int64_t headerBytes = 0;
  std::array<uint8_t, 32> headerHash{};
};

} // namespace mlir::posenc

#endif // POSENC_TARGET_WEIGHTSFILE_H
