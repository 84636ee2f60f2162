//===- Module.h - an interpreter of PTX -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MODULE_H
#define POSENC_TEST_PTX_MODULE_H

#include "Decoder.h"
#include "Memory.h"

#include <cstring>
#include <memory>

namespace posenc::ptx {

/// The grid and block sizes, and the bytes of dynamic shared memory per block.
struct LaunchShape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t dynamicShared = 0;
};

/// The bytes of a kernel argument.
struct Argument {
  llvm::SmallVector<uint8_t, 16> bytes;

  template <typename T, typename = std::enable_if_t<
                            std::is_trivially_copyable_v<T> &&
                            !std::is_same_v<std::decay_t<T>, Argument>>>
  Argument(const T &value) : bytes(sizeof(T)) {
    std::memcpy(bytes.data(), &value, sizeof(T));
  }
  explicit Argument(llvm::ArrayRef<uint8_t> bytes)
      : bytes(bytes.begin(), bytes.end()) {}
};

struct RunOptions {
  /// 0: the warps of a block run one after the other, each until it waits, and
  /// tensor copies complete when all of them wait. Otherwise the seed of a
  /// random schedule, in which copies complete at once (the seed is 1 modulo
  /// 3), as late as possible (2), or at random and out of order (0).
  uint32_t seed = 0;
  /// The largest number of warp instructions of a launch.
  uint64_t instructionLimit = uint64_t(1) << 32;
  /// The largest shared memory of a block in bytes, static and dynamic.
  uint32_t sharedLimit = 48 * 1024;
  bool checkRaces = true;
  /// How much results of ex2.approx differ at most from the nearest number, in
  /// units in the last place: by a number that depends on the operand.
  uint32_t ex2Ulps = 0;
};

/// Counters of one launch, or the sums of several.
struct Statistics {
  struct Count {
    uint64_t warps = 0, threads = 0;
  };
  /// Executed instructions by mnemonic with modifiers: "ld.global.v4.b32".
  std::map<std::string, Count> instructions;
  uint64_t warpInstructions = 0, threadInstructions = 0;
  /// Bytes of global memory, including constants.
  uint64_t loadedBytes = 0, storedBytes = 0;
  /// Warp instructions that access global memory, and the 32-byte sectors and
  /// 128-byte lines that each of them touches.
  uint64_t loads = 0, stores = 0;
  uint64_t loadSectors = 0, storeSectors = 0, loadLines = 0, storeLines = 0;
  /// Bytes of global memory that were stored more than once.
  uint64_t rewrittenBytes = 0;
  /// Warp instructions that access shared memory, and their passes including
  /// bank conflicts.
  uint64_t sharedAccesses = 0, sharedPasses = 0;
  uint64_t localAccesses = 0;
  uint64_t barriers = 0, divergentBranches = 0;
  /// The maximum number of round trips to global memory of a thread; see
  /// LoadTrips.h.
  uint32_t roundTrips = 0;
  uint32_t staticShared = 0; // bytes per block

  /// Returns the thread instructions whose mnemonic starts with `prefix`.
  uint64_t countThreads(llvm::StringRef prefix) const;
};

enum class FaultKind : uint8_t {
  Launch, // invalid shape or arguments
  OutOfBounds,
  Misaligned,
  Uninitialized,
  ReadOnly,
  Race,
  Barrier,
  Limit,
  Trap,
  Undefined, // undefined behavior of PTX
};

/// The error of a launch, with its position.
class Fault : public llvm::ErrorInfo<Fault> {
public:
  static char ID;
  FaultKind kind = FaultKind::Launch;
  std::string message;
  unsigned line = 0; // line of the PTX; 0 if unknown
  std::array<uint32_t, 3> block{}, thread{};

  Fault(FaultKind kind, std::string message)
      : kind(kind), message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;
};

/// A parsed PTX module.
class Module {
public:
  static llvm::Expected<Module> parse(llvm::StringRef text,
                                      const ParseOptions &options = {});

  const std::string &getTarget() const { return program->target; }
  const std::string &getVersion() const { return program->version; }
  std::vector<std::string> getKernels() const;
  /// Returns the kernel called `name`, or null.
  const Function *getKernel(llvm::StringRef name) const;
  /// Returns the bytes of static shared memory per block.
  uint32_t getStaticShared(const Function &kernel) const;
  /// Returns the address of a global or constant variable; 0 if there is none.
  uint64_t getVariable(llvm::StringRef name, Memory &memory,
                       uint64_t *size = nullptr) const;

  /// Runs a kernel to its end, or to its first fault.
  llvm::Error launch(llvm::StringRef kernel, const LaunchShape &shape,
                     llvm::ArrayRef<Argument> arguments, Memory &memory,
                     const RunOptions &options = {},
                     Statistics *statistics = nullptr) const;

private:
  explicit Module(std::shared_ptr<const Program> program)
      : program(std::move(program)) {}

  std::shared_ptr<const Program> program;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MODULE_H
