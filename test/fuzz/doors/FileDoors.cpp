//===- FileDoors.cpp - files that tools and the runtime read --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Doors.h"

#include "ElfCheck.h"
#include "Signature.h"

#include "posenc/Driver/TuningFile.h"
#include "posenc/Target/CodeCache.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/runtime/npy.h"

#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <memory>
#include <unistd.h>

using namespace posenc::fuzz;
using namespace posenc::runtime;
using llvm::StringRef;

/// The outcome of a reader that sets `error` if it refuses the input.
static Outcome judge(bool isRead, const std::string &error) {
  if (isRead)
    return {"", Read};
  return {error.empty() ? "refused without an error" : "", Refused};
}

/// The bytes of a safetensors file with this header.
static std::string makeSafetensors(StringRef header, size_t dataBytes) {
  std::string bytes(8, 0);
  llvm::support::endian::write64le(bytes.data(), header.size());
  return bytes + header.str() + std::string(dataBytes, 1);
}

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

/// An array that is read is written and read again.
static Outcome runNpy(StringRef input) {
  AnonymousFile file(input);
  Array array, copy;
  std::string error, header;
  if (!file.isWhole() || !readNpy(file.getPath(), array, error))
    return judge(false, error);
  if (!makeNpyHeader(array.tensor(), header, error))
    return {"an array that was read cannot be written: " + error, Read};
  StringRef data(array.dataAs<char>(), array.sizeInBytes());
  AnonymousFile written(header + data.str());
  if (!readNpy(written.getPath(), copy, error))
    return {"an array that was written cannot be read: " + error, Read};
  bool isEqual = copy.shape() == array.shape() &&
                 StringRef(copy.dataAs<char>(), copy.sizeInBytes()) == data;
  return {isEqual ? "" : "the array that was written is another one", Read};
}

RunInput posenc::fuzz::openNpy() { return runNpy; }

std::vector<std::string> posenc::fuzz::getNpySeeds() {
  std::vector<std::string> seeds;
  for (const char *type : {"<f2", "<f4", ">f4", "<f8", "|i1", "<i4", ">i8",
                           "|b1", "<u2", "|V2", "|u1"})
    for (const char *rest : {"'fortran_order': False, 'shape': (2, 3), }",
                             "'fortran_order': True, 'shape': (3, 2), }",
                             "'fortran_order': False, 'shape': (), }",
                             "'fortran_order': False, 'shape': (0, 5), }"}) {
      std::string header =
          "{'descr': '" + std::string(type) + "', " + rest + "\n";
      std::string bytes("\x93NUMPY\1\0", 8);
      bytes += static_cast<char>(header.size());
      bytes += '\0';
      seeds.push_back(bytes + header + std::string(48, 2));
    }
  return seeds;
}

//===----------------------------------------------------------------------===//
// Files of the safetensors format, tuning files
//===----------------------------------------------------------------------===//

RunInput posenc::fuzz::openSafetensors() {
  auto targets = std::make_shared<Targets>();
  return [targets](StringRef input) -> Outcome {
    AnonymousFile file(input);
    if (!file.isWhole())
      return {"", Refused};
    return targets->readConstants(
        "func.func @f(%a: tensor<2x3xf32>, %b: tensor<4xbf16>, "
        "%c: tensor<2xi64>, %d: tensor<0x7xf32>, %x: tensor<2x3xf32>) "
        "-> tensor<2x3xf32> { return %x : tensor<2x3xf32> }",
        file.getPath());
  };
}

std::vector<std::string> posenc::fuzz::getSafetensorsSeeds() {
  return {
      makeSafetensors(
          R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
      makeSafetensors(
          R"({"b":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},)"
          R"("c":{"dtype":"I64","shape":[2],"data_offsets":[8,24]}})",
          24),
      makeSafetensors(
          R"({"__metadata__":{"format":"pt"},)"
          R"("d":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}})",
          0),
      makeSafetensors("{}", 0)};
}

RunInput posenc::fuzz::openTuning() {
  return [](StringRef input) -> Outcome {
    std::vector<mlir::posenc::TargetSpec> targets;
    for (const char *name : {"x86-64:x86-64-v3", "x86-64:znver4"})
      targets.push_back(llvm::cantFail(mlir::posenc::TargetSpec::parse(name)));
    AnonymousFile file(input);
    off_t logged = lseek(STDERR_FILENO, 0, SEEK_CUR);
    bool isRead =
        succeeded(mlir::posenc::applyTuningFile(file.getPath(), targets));
    bool isPrinted = lseek(STDERR_FILENO, 0, SEEK_CUR) != logged;
    return judge(isRead, isPrinted ? "printed" : "");
  };
}

std::vector<std::string> posenc::fuzz::getTuningSeeds() {
  std::vector<std::string> seeds;
  for (const char *name : {"x86-64:x86-64-v3", "x86-64:znver4"})
    seeds.push_back(mlir::posenc::formatTuningFile(
        llvm::cantFail(mlir::posenc::TargetSpec::parse(name))));
  return seeds;
}

//===----------------------------------------------------------------------===//
// Entries of the cache
//===----------------------------------------------------------------------===//

namespace {
/// A cache with one entry, in a folder that all processes share.
class OwnCache {
public:
  OwnCache() : name("entry-" + std::to_string(getpid())) {
    llvm::SmallString<64> folder;
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
    llvm::sys::path::append(folder, "posenc-fuzz-" + std::to_string(getuid()));
    llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true,
                                      llvm::sys::fs::owner_all);
    setenv("POSENC_CACHE", folder.c_str(), /*overwrite=*/1);
    cache = mlir::posenc::CodeCache::fromEnvironment();
    path = (folder + "/llvmcache-" + name).str();
  }

  /// Loads an entry with this content, whose checksum is right unless the first
  /// byte is odd: a wrong one ends each reading at once.
  Outcome run(StringRef input) {
    write(input);
    Outcome outcome = load(input);
    llvm::sys::fs::remove(path);
    return outcome;
  }

private:
  void write(StringRef input) {
    std::string checksum(32, 0);
    if (input.empty() || input.front() % 2 == 0) {
      llvm::BLAKE3 hash;
      hash.update(input);
      auto bytes = hash.final<32>();
      checksum.assign(bytes.begin(), bytes.end());
    }
    std::error_code code;
    llvm::raw_fd_ostream os(path, code);
    os << checksum << input;
  }

  Outcome load(StringRef input) {
    auto entry = cache.load(name);
    if (!entry)
      return judge(false, llvm::toString(entry.takeError()));
    if (!*entry)
      return {"", Refused};
    if ((*entry)->header.size() + (*entry)->code.size() + 8 != input.size())
      return {"an entry lost bytes", Read};
    return {"", Read};
  }

  std::string name, path;
  mlir::posenc::CodeCache cache;
};
} // namespace

RunInput posenc::fuzz::openCache() {
  auto cache = std::make_shared<OwnCache>();
  return [cache](StringRef input) { return cache->run(input); };
}

std::vector<std::string> posenc::fuzz::getCacheSeeds() {
  std::string bytes(8, 0);
  llvm::support::endian::write64le(bytes.data(), 6);
  return {bytes + "headercode", bytes, std::string(8, '\xff') + "code"};
}

//===----------------------------------------------------------------------===//
// Libraries and their metadata
//===----------------------------------------------------------------------===//

RunInput posenc::fuzz::openLibrary() {
  return [](StringRef input) {
    ElfSummary summary;
    std::string error;
    bool isRead = checkElf(input.data(), input.size(), summary, error);
    return judge(isRead, error);
  };
}

RunInput posenc::fuzz::openMetadata() {
  return [](StringRef input) {
    Metadata metadata;
    std::string error;
    bool isRead = parseMetadata(input.data(), input.size(), metadata, error);
    return judge(isRead, error);
  };
}

std::vector<std::string> posenc::fuzz::getMetadataSeeds() {
  std::string head =
      R"({"posenc":"1","abi":1,"prefix":"p","targets":["host"],)";
  auto tensor = [](const char *name, const char *type, const char *shape) {
    return R"({"name":")" + std::string(name) +
           R"(","kind":"tensor","dtype":")" + type + R"(","shape":[)" + shape +
           "]}";
  };
  std::string function = R"({"name":"f","symbol":"p_f","inputs":[)" +
                         tensor("q", "bf16", R"("n0",4)") + "," +
                         tensor("k", "i64", R"("n0")") + R"(],"outputs":[)" +
                         tensor("o", "f32", R"("n0",2)") +
                         R"(],"sizes":["n0"]})";
  return {head + R"("functions":[]})",
          head + R"("functions":[)" + function + "]}",
          head + R"("weights":{"symbol":"p_weights_open"},"functions":[]})"};
}
