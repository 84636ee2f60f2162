//===- CodeCache.cpp - cache of compiled code -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/CodeCache.h"

#include "posenc/Target/Ptxas.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <elf.h>
#include <link.h>

using namespace mlir;
using namespace mlir::posenc;

/// Maximum size of the cache. The oldest entries are removed first.
static constexpr uint64_t kMaxBytes = uint64_t(256) << 20;

/// llvm::pruneCache() removes only files with this prefix.
static constexpr StringRef kFilePrefix = "llvmcache-";

/// Returns the user's cache folder; empty if the environment does not name one.
static std::string getDefaultFolder(StringRef cacheHome, StringRef home) {
  llvm::SmallString<128> path(cacheHome);
  // The XDG standard requires relative paths to be ignored.
  if (!llvm::sys::path::is_absolute(path)) {
    path = home;
    llvm::sys::path::append(path, ".cache");
  }
  llvm::sys::path::append(path, "posenc");
  return llvm::sys::path::is_absolute(path) ? std::string(path) : "";
}

CodeCache CodeCache::fromEnvironment() {
  auto get = [](const char *name) {
    return llvm::sys::Process::GetEnv(name).value_or("");
  };
  CodeCache cache;
  cache.folder = get("POSENC_CACHE");
  if (cache.folder == "off")
    cache.folder.clear();
  else if (cache.folder.empty())
    cache.folder = getDefaultFolder(get("XDG_CACHE_HOME"), get("HOME"));
  return cache;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Returns the build id of a loaded file; empty if it has none.
static StringRef getBuildId(const dl_phdr_info &file) {
  for (const ElfW(Phdr) &segment : ArrayRef(file.dlpi_phdr, file.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE)
      continue;
    StringRef notes(
        reinterpret_cast<const char *>(file.dlpi_addr + segment.p_vaddr),
        segment.p_memsz);
    ElfW(Nhdr) note;
    while (notes.size() >= sizeof(note)) {
      std::memcpy(&note, notes.data(), sizeof(note));
      notes = notes.drop_front(sizeof(note));
      size_t begin = llvm::alignTo(note.n_namesz, 4);
      size_t end = begin + llvm::alignTo(note.n_descsz, 4);
      if (end > notes.size())
        break;
      if (note.n_type == NT_GNU_BUILD_ID && notes.starts_with("GNU"))
        return notes.substr(begin, note.n_descsz);
      notes = notes.drop_front(end);
    }
  }
  return "";
}

/// Whether the code at the address is in a loaded file.
static bool contains(const dl_phdr_info &file, uintptr_t address) {
  return llvm::any_of(ArrayRef(file.dlpi_phdr, file.dlpi_phnum),
                      [&](const ElfW(Phdr) & part) {
                        uintptr_t begin = file.dlpi_addr + part.p_vaddr;
                        return part.p_type == PT_LOAD && address >= begin &&
                               address - begin < part.p_memsz;
                      });
}

/// Returns the build ids of the libraries that make the code: this one, MLIR
/// and LLVM. A process has many others, some without a build id, such as the
/// modules of Python's packages. Empty if one of the three has none.
static std::string getCompilerBuild() {
  // A function of MLIR and one of LLVM, each defined out of line.
  SmallVector<uintptr_t, 3> addresses{
      reinterpret_cast<uintptr_t>(&getBuildId),
      reinterpret_cast<uintptr_t>(&writeBytecodeToFile),
      reinterpret_cast<uintptr_t>(&llvm::pruneCache)};
  struct Search {
    ArrayRef<uintptr_t> addresses;
    std::string build;
    size_t numFound;
  } search{addresses, "", 0};
  dl_iterate_phdr(
      [](dl_phdr_info *file, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        size_t found = llvm::count_if(search.addresses, [&](uintptr_t at) {
          return contains(*file, at);
        });
        StringRef id = getBuildId(*file);
        if (found && !id.empty()) {
          search.numFound += found;
          search.build += id;
        }
        return 0;
      },
      &search);
  return search.numFound == addresses.size() ? search.build : "";
}

/// Returns the module without locations; empty if locations affect the code.
static std::string getCanonicalBytes(ModuleOp module) {
  auto isDebugInfo = [](Location loc) {
    return isa<FusedLoc>(loc) && cast<FusedLoc>(loc).getMetadata()
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  bool hasDebugInfo =
      module
          ->walk([&](Operation *op) { return op->getLoc()->walk(isDebugInfo); })
          .wasInterrupted();
  if (hasDebugInfo)
    return "";
  OwningOpRef<ModuleOp> copy = module.clone();
  Location unknown = UnknownLoc::get(module.getContext());
  copy.get()->walk([&](Operation *op) {
    op->setLoc(unknown);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(unknown);
  });
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  return failed(writeBytecodeToFile(*copy, os)) ? "" : bytes;
}

/// Identifies the assembler by the file's path, size and modification time.
static std::string getPtxasBuild() {
  std::optional<Ptxas> ptxas = findPtxas();
  llvm::sys::fs::file_status status;
  if (!ptxas || llvm::sys::fs::status(ptxas->path, status))
    return ptxas ? ptxas->path : "";
  return llvm::formatv(
             "{0} {1} {2}", ptxas->path, status.getSize(),
             status.getLastModificationTime().time_since_epoch().count())
      .str();
}

std::string CodeCache::getKey(ModuleOp module, const CodeOptions &options,
                              CodeKind kind) const {
  if (folder.empty())
    return "";
  std::string build = getCompilerBuild();
  std::string input = getCanonicalBytes(module);
  if (build.empty() || input.empty())
    return "";
  llvm::BLAKE3 hash;
  auto add = [&](StringRef part) {
    std::array<uint8_t, 8> size;
    llvm::support::endian::write64le(size.data(), part.size());
    hash.update(size);
    hash.update(part);
  };
  add(build);
  add(input);
  add(options.prefix);
  add(options.threads == Threads::OpenMP ? "openmp" : "none");
  add(options.optLevel == OptLevel::O0 ? "O0" : "O3");
  add(llvm::utostr(static_cast<unsigned>(kind)));
  // All else about a target follows from its name and its schedule.
  for (const TargetSpec &target : options.targets) {
    add(target.name);
    for (const TuningChoice &choice : getTuningChoices())
      add(llvm::utostr(target.tuning.*choice.value));
    if (target.schedule.empty())
      continue;
    auto schedule = llvm::MemoryBuffer::getFile(target.schedule);
    if (!schedule)
      return "";
    add((*schedule)->getBuffer());
  }
  add(options.hasCpuCode ? "cpu" : "");
  for (const CudaTarget &target : options.gpus.cuda)
    add(target.name);
  add(options.gpus.vulkan ? kVulkanTarget : "");
  for (const std::string &name : options.neededOnGpu)
    add("needs " + name);
  if (!options.gpus.cuda.empty())
    add(getPtxasBuild());
  return llvm::toHex(hash.final<20>(), /*LowerCase=*/true);
}

//===----------------------------------------------------------------------===//
// Entries
//
// A file consists of a checksum of the rest, the size of the header, the header
// and the code. It is written under a temporary name and renamed, so it is
// never seen incomplete; the checksum detects later corruption.
//===----------------------------------------------------------------------===//

static constexpr size_t kChecksumSize = 32, kPrologSize = kChecksumSize + 8;

static std::string getChecksum(StringRef content) {
  llvm::BLAKE3 hash;
  hash.update(content);
  auto result = hash.final<kChecksumSize>();
  return std::string(result.begin(), result.end());
}

static std::string getPath(StringRef folder, StringRef key) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, kFilePrefix + key);
  return std::string(path);
}

std::optional<KernelCode> CodeCache::load(StringRef key) const {
  std::string path = getPath(folder, key);
  if (key.empty() || !llvm::sys::fs::is_regular_file(path))
    return std::nullopt;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  if (!buffer)
    return std::nullopt;
  StringRef content = (*buffer)->getBuffer();
  if (content.size() < kPrologSize ||
      getChecksum(content.drop_front(kChecksumSize)) !=
          content.take_front(kChecksumSize))
    return std::nullopt;
  uint64_t headerSize =
      llvm::support::endian::read64le(content.drop_front(kChecksumSize).data());
  StringRef rest = content.drop_front(kPrologSize);
  KernelCode code;
  code.header = rest.take_front(headerSize).str();
  code.code =
      rest.drop_front(std::min<uint64_t>(headerSize, rest.size())).str();
  return code;
}

void CodeCache::store(StringRef key, const KernelCode &code) const {
  if (key.empty() ||
      llvm::sys::fs::create_directories(folder, /*IgnoreExisting=*/true,
                                        llvm::sys::fs::owner_all))
    return;
  std::string content(8, 0);
  llvm::support::endian::write64le(content.data(), code.header.size());
  content += code.header;
  content += code.code;
  std::string path = getPath(folder, key);
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(path + ".%%%%%%%%.tmp");
  if (!file)
    return llvm::consumeError(file.takeError());
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << getChecksum(content) << content;
  os.flush();
  bool isWhole = !os.has_error();
  os.clear_error();
  llvm::consumeError(isWhole ? file->keep(path) : file->discard());
  llvm::CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(0);
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = kMaxBytes;
  llvm::pruneCache(folder, policy);
}
