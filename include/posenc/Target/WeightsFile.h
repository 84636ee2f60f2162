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
//   posenc.model     JSON: the files of the model that have other weights of
//                    the library, by their paths below the folder of this
//                    file, with "bytes" and "tensors"; each of these has
//                    "dtype", "shape", "data_offsets" in its file and
//                    "digest". Absent if there are none
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
#include "llvm/Support/MemoryBuffer.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::posenc {

/// A file of the model, whose tensors may stay in it.
struct ModelFile {
  /// The path below the folder of the library's weights, without links.
  std::string name;
  /// The memory that the file is mapped to.
  std::shared_ptr<llvm::MemoryBuffer> memory;
};

/// The weights of a library, which several modules share.
class WeightsFile {
public:
  /// Tensors of `modelFiles` stay there if they are not packed, and aligned as
  /// those in the file.
  explicit WeightsFile(ArrayRef<ModelFile> modelFiles = {});

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
  /// Whether a tensor stays in a file of the model.
  bool refersToModel() const;

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
    /// Bytes, and the position behind the header, or in the model's file.
    int64_t bytes, begin;
  };
  /// A file of the model and the tensors that stay in it.
  struct Source {
    ModelFile file;
    std::vector<Tensor> tensors;
  };
  /// The place of a tensor: in `parts` for file 0, or in sources[file - 1].
  struct Place {
    int64_t file, index;
  };
  llvm::Error addTensor(Operation *global, llvm::StringRef symbol,
                        ElementsAttr elements);
  /// Leaves a tensor in the file of the model that has it. False if none has,
  /// or it is not aligned, which a remark says.
  bool addToSource(Operation *global, DenseResourceElementsAttr elements);
  const Tensor &getTensor(Place place) const;
  std::string createName(llvm::StringRef name);
  std::string describePacking() const;
  std::string describeSources() const;
  /// Reports that the last tensor is a matrix that is stored in another form,
  /// too.
  void reportOtherPacking(Operation *global);
  std::string createHeader(llvm::StringRef targets, llvm::StringRef digest,
                           llvm::StringRef model) const;
  int64_t getDataBytes() const {
    return parts.empty() ? 0 : parts.back().begin + parts.back().bytes;
  }

  /// Tensors by their elements, in the order of their numbers.
  llvm::MapVector<Attribute, Place> tensors;
  /// The names of tensors.
  llvm::StringSet<> names;
  /// The layouts of packed matrices by their keys.
  llvm::StringMap<std::string> layouts;
  /// Tensors and padding in order.
  std::vector<Tensor> parts;
  std::vector<Source> sources;
  /// The size and the SHA-256 hash of the header, which write() sets.
  int64_t headerBytes = 0;
  std::array<uint8_t, 32> headerHash{};
};

} // namespace mlir::posenc

#endif // POSENC_TARGET_WEIGHTSFILE_H
