//===- VerifyWeights.cpp - digest of a library's weights ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyWeights.h"

#include "posenc/runtime/Library.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir::posenc;
using llvm::StringRef;

/// Returns the name of the file with the weights; empty if the library has
/// none.
static std::string findFile(const ::posenc::runtime::Library &library) {
  llvm::Expected<llvm::json::Value> metadata =
      llvm::json::parse(posenc_library_metadata(library.get()));
  if (!metadata) {
    llvm::consumeError(metadata.takeError());
    return "";
  }
  const llvm::json::Object *root = metadata->getAsObject();
  const llvm::json::Object *weights =
      root ? root->getObject("weights") : nullptr;
  return weights ? weights->getString("file").value_or("").str() : "";
}

llvm::Expected<int64_t> mlir::posenc::verifyWeights(StringRef path) {
  std::string error;
  // This compares the header.
  auto library = ::posenc::runtime::Library::open(path.str(), error);
  if (!library)
    return llvm::createStringError(error);
  std::string name = findFile(library);
  if (name.empty())
    return llvm::createStringError("'" + path + "' has no weights in a file");
  llvm::SmallString<128> file;
  if (std::error_code code = llvm::sys::fs::real_path(path, file))
    return llvm::createStringError("'" + path + "': " + code.message());
  llvm::sys::path::remove_filename(file);
  llvm::sys::path::append(file, name);
  auto fail = [&](const llvm::Twine &text) {
    return llvm::createStringError("'" + file + "': " + text);
  };
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(buffer.getError().message());
  StringRef rest = (*buffer)->getBuffer();
  uint64_t size =
      rest.size() < 8 ? 0 : llvm::support::endian::read64le(rest.data());
  rest = rest.drop_front(std::min<size_t>(rest.size(), 8));
  if (size == 0 || size > rest.size())
    return fail("has no header");
  llvm::Expected<llvm::json::Value> header =
      llvm::json::parse(rest.take_front(size));
  if (!header)
    return fail("the header is no JSON: " + llvm::toString(header.takeError()));
  const llvm::json::Object *root = header->getAsObject();
  const llvm::json::Object *metadata =
      root ? root->getObject("__metadata__") : nullptr;
  StringRef digest =
      metadata ? metadata->getString("posenc.digest").value_or("") : "";
  if (!digest.consume_front("blake3:"))
    return fail("the header has no digest");
  rest = rest.drop_front(size);
  std::string found =
      llvm::toHex(llvm::BLAKE3::hash<32>(llvm::arrayRefFromStringRef(rest)),
                  /*LowerCase=*/true);
  if (found != digest)
    return fail("the weights are damaged: their digest is " + found +
                ", expected " + digest);
  return static_cast<int64_t>(rest.size());
}
