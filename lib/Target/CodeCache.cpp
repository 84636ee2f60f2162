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
#include "llvm/Support/Endian.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace mlir;
using namespace mlir::posenc;

/// Maximum size of the cache. The oldest entries are removed first.
static constexpr uint64_t kMaxBytes = uint64_t(256) << 20;

/// The names of all files of the cache. The folder may have others.
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
      reinterpret_cast<uintptr_t>(&llvm::errorToErrorCode)};
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
  if (options.weights)
    add("weights " + llvm::itostr(options.weights->maxEmbeddedBytes));
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

//===----------------------------------------------------------------------===//
// Files
//
// The code of an entry is executed, so an entry and the folder must be files of
// the user or of root that nobody else can write. They are checked by their
// open descriptors, and names within the folder are relative to its descriptor,
// so that no other file can take their place after the check. Symbolic links
// are not followed.
//===----------------------------------------------------------------------===//

namespace {
/// An open file or folder; -1 if it could not be opened.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) : number(std::exchange(other.number, -1)) {}
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
  operator int() const { return number; }

private:
  int number;
};
} // namespace

static llvm::Error makeError(const Twine &file, StringRef text) {
  return llvm::createStringError("'" + file + "' " + text);
}

static llvm::Error makeWriteError(const Twine &file, std::error_code code) {
  return llvm::createStringError("cannot write '" + file +
                                 "': " + code.message());
}

static std::error_code getErrno() { return {errno, std::generic_category()}; }

/// Checks that only the user and root can have written a file or folder.
static llvm::Error checkTrust(int descriptor, const Twine &file) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0)
    return makeError(file, "has no status");
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return makeError(file, "belongs to another user");
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return makeError(file, "can be written by other users");
  return llvm::Error::success();
}

/// Returns the open folder, -1 if there is none or it cannot be read, or an
/// error if others may have written it.
static llvm::Expected<Descriptor> openFolder(const std::string &folder) {
  Descriptor result(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (result >= 0) {
    if (llvm::Error error = checkTrust(result, folder))
      return error;
  } else if (llvm::sys::fs::is_symlink_file(folder)) {
    return makeError(folder, "is a symbolic link");
  }
  return result;
}

llvm::Expected<std::optional<KernelCode>> CodeCache::load(StringRef key) const {
  if (key.empty())
    return std::nullopt;
  llvm::Expected<Descriptor> directory = openFolder(folder);
  if (!directory)
    return directory.takeError();
  std::string name = (kFilePrefix + key).str(), path = folder + "/" + name;
  // O_NONBLOCK: a pipe would wait for its other end.
  Descriptor file(::openat(*directory, name.c_str(),
                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file < 0 && errno == ELOOP)
    return makeError(path, "is a symbolic link");
  struct stat status;
  if (file < 0 || ::fstat(file, &status) != 0)
    return std::nullopt;
  if (!S_ISREG(status.st_mode))
    return makeError(path, "is not a regular file");
  if (llvm::Error error = checkTrust(file, path))
    return error;
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      file, path, status.st_size, /*RequiresNullTerminator=*/false,
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

/// Writes a new file and gives it its name.
static llvm::Error writeFile(int directory, const std::string &name,
                             StringRef content, const std::string &path) {
  std::string temporary = llvm::formatv("{0}.{1:x-}.tmp", name,
                                        llvm::sys::Process::GetRandomNumber())
                              .str();
  Descriptor file(::openat(directory, temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
  if (file < 0)
    return makeWriteError(path, getErrno());
  llvm::raw_fd_ostream os(file, /*shouldClose=*/false, /*unbuffered=*/true);
  os << content;
  std::error_code code = os.error();
  os.clear_error();
  if (!code &&
      ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
    code = getErrno();
  if (!code)
    return llvm::Error::success();
  ::unlinkat(directory, temporary.c_str(), 0);
  return makeWriteError(path, code);
}

/// Removes the files that were used longest ago while there are too many bytes,
/// but not the one that was just written.
static void prune(int directory, StringRef newest) {
  struct File {
    timespec time;
    std::string name;
    uint64_t size;
  };
  int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!listing)
    return;
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  auto isBefore = [](const timespec &a, const timespec &b) {
    return std::tie(a.tv_sec, a.tv_nsec) < std::tie(b.tv_sec, b.tv_nsec);
  };
  std::vector<File> files;
  uint64_t total = 0;
  while (const dirent *entry = ::readdir(listing)) {
    StringRef name = entry->d_name;
    struct stat status;
    if (!name.starts_with(kFilePrefix) ||
        ::fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(status.st_mode))
      continue;
    total += status.st_size;
    if (name == newest)
      continue;
    // A date in the future is wrong. It would keep the file forever.
    bool isWrong = isBefore(now, status.st_atim);
    files.push_back({isWrong ? timespec() : status.st_atim, name.str(),
                     static_cast<uint64_t>(status.st_size)});
  }
  ::closedir(listing);
  llvm::sort(files, [&](const File &a, const File &b) {
    return isBefore(a.time, b.time) ||
           (!isBefore(b.time, a.time) && a.name < b.name);
  });
  for (const File &file : files) {
    if (total <= kMaxBytes)
      return;
    if (::unlinkat(directory, file.name.c_str(), 0) == 0)
      total -= file.size;
  }
}

llvm::Error CodeCache::store(StringRef key, const KernelCode &code) const {
  if (key.empty())
    return llvm::Error::success();
  if (std::error_code error = llvm::sys::fs::create_directories(
          folder, /*IgnoreExisting=*/true, llvm::sys::fs::owner_all))
    return makeWriteError(folder, error);
  llvm::Expected<Descriptor> directory = openFolder(folder);
  if (!directory)
    return directory.takeError();
  std::string name = (kFilePrefix + key).str(), path = folder + "/" + name;
  if (*directory < 0)
    return makeWriteError(path, getErrno());
  std::string content(8, 0);
  llvm::support::endian::write64le(content.data(), code.header.size());
  content += code.header;
  content += code.code;
  if (llvm::Error error =
          writeFile(*directory, name, getChecksum(content) + content, path))
    return error;
  prune(*directory, name);
  return llvm::Error::success();
}
