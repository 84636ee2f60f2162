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

/// Returns the digest of bytes as files of weights have it.
static std::string getDigest(StringRef bytes) {
  return "blake3:" +
         llvm::toHex(llvm::BLAKE3::hash<32>(llvm::arrayRefFromStringRef(bytes)),
                     /*LowerCase=*/true);
}

static llvm::Error failDigest(const llvm::Twine &what, StringRef found,
                              StringRef expected) {
  return llvm::createStringError(what + " are damaged: their digest is " +
                                 found + ", expected " + expected);
}

/// Compares the tensors that stay in a file of the model, as `posenc.model`
/// describes it. Returns the number of their bytes.
static llvm::Expected<int64_t> verifyModelFile(StringRef path,
                                               const llvm::json::Value &file) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createStringError("'" + path +
                                   "': " + buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  const llvm::json::Object *object = file.getAsObject();
  const llvm::json::Object *tensors =
      object ? object->getObject("tensors") : nullptr;
  int64_t count = 0;
  for (const auto &[name, value] : tensors ? *tensors : llvm::json::Object()) {
    const llvm::json::Object *tensor = value.getAsObject();
    const llvm::json::Array *offsets =
        tensor ? tensor->getArray("data_offsets") : nullptr;
    std::optional<StringRef> digest =
        tensor ? tensor->getString("digest") : std::nullopt;
    std::optional<uint64_t> begin, end;
    if (offsets && offsets->size() == 2) {
      begin = (*offsets)[0].getAsUINT64();
      end = (*offsets)[1].getAsUINT64();
    }
    if (!digest || !begin || !end || *begin > *end || *end > bytes.size())
      return llvm::createStringError("'" + path + "': the description of '" +
                                     StringRef(name) + "' is malformed");
    std::string found = getDigest(bytes.slice(*begin, *end));
    if (found != *digest)
      return failDigest("'" + path + "': the weights '" + StringRef(name) + "'",
                        found, *digest);
    count += *end - *begin;
  }
  return count;
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
  if (!digest.starts_with("blake3:"))
    return fail("the header has no digest");
  rest = rest.drop_front(size);
  std::string found = getDigest(rest);
  if (found != digest)
    return failDigest("'" + file + "': the weights", found, digest);
  int64_t count = rest.size();
  std::optional<StringRef> text = metadata->getString("posenc.model");
  if (!text)
    return count;
  llvm::Expected<llvm::json::Value> model = llvm::json::parse(*text);
  if (!model)
    return fail("'posenc.model' is no JSON: " +
                llvm::toString(model.takeError()));
  const llvm::json::Object *files = model->getAsObject();
  if (!files)
    return fail("'posenc.model' is no object");
  // To open the library has checked that the paths stay below the folder.
  StringRef folder = llvm::sys::path::parent_path(file);
  for (const auto &[relative, description] : *files) {
    llvm::SmallString<128> full(folder);
    llvm::sys::path::append(full, StringRef(relative));
    llvm::Expected<int64_t> bytes = verifyModelFile(full, description);
    if (!bytes)
      return bytes.takeError();
    count += *bytes;
  }
  return count;
}
