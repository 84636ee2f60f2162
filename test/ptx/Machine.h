//===- Machine.h - execution of a launch, its blocks and warps --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MACHINE_H
#define POSENC_TEST_PTX_MACHINE_H

#include "AsyncCopy.h"
#include "Module.h"

#include <random>

namespace posenc::ptx {

class Block;

/// One launch of a kernel; the state that its blocks share.
class Execution {
public:
  Execution(const Program &program, const Function &kernel,
            const LaunchShape &shape, Memory &memory, const RunOptions &options,
            Statistics &statistics);

  /// Runs all blocks, or up to the first fault, which is returned.
  llvm::Error run(llvm::ArrayRef<Argument> arguments);

  /// Records a fault, unless there is one already. `warp` and `instruction` may
  /// be null.
  void fault(FaultKind kind, const Warp *warp, unsigned lane,
             const Instruction *instruction, const llvm::Twine &message);
  bool hasFault() const { return bool(error); }
  /// The number of threads per block.
  uint64_t getThreads() const { return threads; }

  const Program &program;
  const Function &kernel;
  const LaunchShape &shape;
  Memory &memory;
  const RunOptions &options;
  Statistics &statistics;
  uint32_t launch;                // number of the launch in `memory`
  std::vector<uint8_t> constants; // Program::constants, relocated
  std::vector<uint8_t> params;    // bytes of the arguments
  std::vector<uint64_t> counts, threadCounts; // per instruction of the program
  uint64_t instructions = 0;                  // executed by all warps
  uint32_t sharedBytes = 0;
  std::mt19937 random;

private:
  llvm::Error check(llvm::ArrayRef<Argument> arguments);
  llvm::Error placeVariables();
  void collect();

  uint32_t threads = 0;
  std::vector<uint64_t> addresses; // per variable of the program
  std::unique_ptr<Fault> error;
};

/// Lays out the shared variables of a kernel and sets their elements of
/// `addresses`. Returns the bytes of static shared memory.
uint32_t placeShared(const Program &program, const Function &kernel,
                     std::vector<uint64_t> &addresses);
/// Allocates and initializes the global and constant variables of a program in
/// `memory`, unless that was done before, and returns the addresses of all
/// variables, 0 for shared ones.
llvm::Expected<std::vector<uint64_t>> placeGlobals(const Program &program,
                                                   Memory &memory);

/// The lanes of a diverged warp that have the same program counter.
struct Subwarp {
  enum State : uint8_t { Ready, Blocked, AtBarrier };
  uint32_t pc = 0;
  LaneMask mask = 0;
  State state = Ready;
  uint8_t barrier = 0;
  llvm::SmallVector<uint32_t, 4> frames; // call instructions to return to
};

/// A loaded register that has not been used. A race of the load is reported
/// when the register is used.
struct PendingRead {
  LaneMask mask = 0;
  LaneMask raced = 0; // lanes whose load raced with an earlier write
  uint8_t bytes = 0;
  const Instruction *instruction = nullptr;
  struct Lane {
    Region *region; // null: shared memory
    uint64_t offset;
    uint32_t tick;
  } lanes[warpSize];
};

/// A warp: the registers and the program counters of 32 threads.
class Warp {
public:
  Warp(Block &block, uint32_t index);

  void start();
  /// Runs until all lanes wait or have ended, at most `limit` instructions.
  void run(uint64_t limit);
  bool isRunnable() const;
  bool hasEnded() const { return subwarps.empty(); }

  uint8_t *at(const Operand &operand) const {
    return banks[operand.bank] + operand.offset;
  }
  template <typename T> T get(const Operand &operand, unsigned lane) const {
    T value;
    std::memcpy(&value, at(operand) + lane * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void set(const Operand &operand, unsigned lane, T value) {
    std::memcpy(at(operand) + lane * sizeof(T), &value, sizeof(T));
  }
  LaneMask getPred(const Operand &operand) const {
    LaneMask mask = get<LaneMask>(operand, 0);
    return operand.isNegated ? ~mask : mask;
  }
  void setPred(const Operand &operand, LaneMask lanes, LaneMask value) {
    set<LaneMask>(operand, 0,
                  (get<LaneMask>(operand, 0) & ~lanes) | (value & lanes));
  }

  void fault(FaultKind kind, unsigned lane, const Instruction &instruction,
             const llvm::Twine &message);

  /// Resumes the lanes at a barrier. `value` is the result of bar.red.
  void release(uint8_t barrier, uint32_t value);
  /// Blocks the running subwarp until the barrier releases it.
  void blockAtBarrier(uint8_t barrier);
  /// Advances the running subwarp to the next instruction.
  void pass() { branch(0, 0); }
  /// The lanes that have not ended.
  LaneMask getLive() const { return live; }
  /// Describe what the warp waits for, and at which instruction; empty or null
  /// if it does not wait.
  std::string describeWait() const;
  const Instruction *getWaiting(unsigned &lane) const;

  /// Records a load whose races are reported when the register is used.
  void addPendingRead(uint32_t reg, unsigned lane,
                      const Instruction &instruction, Region *region,
                      uint64_t offset, bool hasRaced);
  /// Reports the races of all pending reads, which a barrier would hide.
  /// Returns false after a fault.
  bool commitReads();

  Block &block;
  const uint32_t index;
  std::array<CopyQueue, warpSize> copies; // cp.async of each lane
  LaneMask carry = 0, carryDefined = 0;
  /// Local memory and .param variables, `laneBytes` per lane, and for each byte
  /// whether it has been written.
  std::vector<uint8_t> laneMemory, laneValid;
  uint32_t laneBytes;

private:
  void step(const Instruction &instruction, LaneMask mask);
  void flow(const Instruction &instruction, LaneMask mask);
  bool checkReads(const Instruction &instruction, LaneMask mask);
  bool useReads(const Instruction &instruction, LaneMask mask);
  bool commitRead(uint32_t reg, LaneMask mask);
  /// Merges subwarps at the same instruction and selects the one to run.
  void reconverge();
  void branch(LaneMask taken, uint32_t target);
  void branchTable(const Instruction &instruction, LaneMask mask);
  void call(const Instruction &instruction, LaneMask mask);
  void leave(LaneMask mask, bool isExit);
  void copyLanes(llvm::ArrayRef<Instruction::Copy> copies, LaneMask mask);
  bool waitForLanes(const Instruction &instruction, LaneMask wanted,
                    LaneMask mask);
  void setSpecials();

  Execution &execution;
  uint8_t *banks[2]; // by Operand::bank
  std::vector<uint8_t> registers;
  std::vector<LaneMask> written; // per register: the lanes that are defined
  std::vector<std::unique_ptr<PendingRead>> pending; // per register
  llvm::SmallVector<uint32_t, 16> pendingRegisters;
  llvm::SmallVector<Subwarp, 4> subwarps; // the last one runs
  LaneMask live = 0;
};

/// A block: its warps, shared memory and barriers.
class Block {
public:
  explicit Block(Execution &execution);

  /// Runs the block with the linear index `linear`.
  void run(uint32_t linear);

  /// Lets lanes arrive at a barrier, which may complete it.
  void arrive(Warp &warp, const Instruction &instruction, LaneMask mask);
  /// Completes barriers that waited only for threads that have ended.
  void checkBarriers();
  /// Orders all accesses of the lanes of a warp before its later ones.
  void syncWarp(uint32_t warp);

  // For the order of accesses; see Shadow.h.
  /// The index of a thread in the grid.
  uint32_t getThread(const Warp &warp, unsigned lane) const {
    return linear * execution.getThreads() + warp.index * warpSize + lane;
  }
  uint32_t getTick() const { return tick; }
  uint32_t getLinear() const { return linear; }
  uint32_t getFirstThread() const { return linear * execution.getThreads(); }
  /// The last tick of warp `other` whose accesses precede the next ones of
  /// `warp`.
  uint32_t getSeen(uint32_t warp, uint32_t other) const {
    return seen[warp * numWarps + other];
  }

  Execution &execution;
  std::array<uint32_t, 3> index{};
  std::vector<uint8_t> shared;
  std::vector<ShadowCell> sharedCells;
  /// The bytes of shared memory that copies are still writing.
  InFlightBytes inFlight;
  uint32_t numWarps;

private:
  struct BarrierState {
    uint32_t arrived = 0;  // threads
    uint32_t expected = 0; // threads, with hasCount
    LaneMask warps = 0;    // mask of the waiting warps
    bool hasCount = false; // otherwise all live threads are expected
    const Instruction *first = nullptr; // of the first arrival; null: unused
    uint32_t value = 0;                 // result of a reduction
    std::vector<uint32_t> seen;         // per warp, its last tick that is seen
  };
  void complete(uint8_t id);
  uint32_t countLive() const;
  void reportDeadlock();

  uint32_t linear = 0;
  uint32_t tick = 1;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint32_t> seen; // numWarps x numWarps; see getSeen()
  std::array<BarrierState, 16> barriers;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MACHINE_H
