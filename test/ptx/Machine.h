//===- Machine.h - a launch, its blocks and its warps -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MACHINE_H
#define POSENC_TEST_PTX_MACHINE_H

#include "Module.h"

#include <random>

namespace posenc::ptx {

class Block;

/// All that the blocks of a launch share.
class Execution {
public:
  Execution(const Program &program, const Function &kernel,
            const LaunchShape &shape, Memory &memory, const RunOptions &options,
            Statistics &statistics);

  llvm::Error run(llvm::ArrayRef<Argument> arguments);

  void fault(FaultKind kind, const Warp *warp, unsigned lane,
             const Instruction *instruction, const llvm::Twine &message);
  bool hasFault() const { return bool(error); }
  uint64_t getThreads() const { return threads; }

  const Program &program;
  const Function &kernel;
  const LaunchShape &shape;
  Memory &memory;
  const RunOptions &options;
  Statistics &statistics;
  uint32_t launch;
  std::vector<uint8_t> constants; // with addresses
  std::vector<uint8_t> params;
  std::vector<uint64_t> counts, threadCounts; // by instruction
  uint64_t instructions = 0;
  uint32_t sharedBytes = 0;
  std::mt19937 random;

private:
  llvm::Error check(llvm::ArrayRef<Argument> arguments);
  llvm::Error placeVariables();
  void collect();

  uint32_t threads = 0;
  std::vector<uint64_t> addresses; // by variable
  std::unique_ptr<Fault> error;
};

/// Puts the variables of shared memory behind one another; `addresses` of
/// others are left alone. Returns the bytes without dynamic memory.
uint32_t placeShared(const Program &program, const Function &kernel,
                     std::vector<uint64_t> &addresses);
/// Gives a program's variables memory, once, and returns their addresses.
llvm::Expected<std::vector<uint64_t>> placeGlobals(const Program &program,
                                                   Memory &memory);

/// Lanes of a warp that are at the same place.
struct Group {
  enum State : uint8_t { Ready, Blocked, AtBarrier };
  uint32_t pc = 0;
  LaneMask mask = 0;
  State state = Ready;
  uint8_t barrier = 0;
  llvm::SmallVector<uint32_t, 4> frames; // of the calls that it is in
};

/// What the lanes of a register hold of memory, and nothing has used yet.
struct PendingRead {
  LaneMask mask = 0;
  LaneMask raced = 0; // when it was loaded
  uint8_t bytes = 0;
  const Instruction *instruction = nullptr;
  struct Lane {
    Region *region; // null: shared memory
    uint64_t offset;
    uint32_t tick;
  } lanes[warpSize];
};

/// 32 threads: their registers, and where they are.
class Warp {
public:
  Warp(Block &block, uint32_t index);

  void start();
  /// Runs until its groups wait or have ended, or for so many instructions.
  void run(uint64_t limit);
  bool isRunnable() const;
  bool hasEnded() const { return groups.empty(); }

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

  /// Lets a barrier's lanes go on; `value` is what bar.red gives them.
  void release(uint8_t barrier, uint32_t value);
  /// The running group stays where it is until the barrier releases it.
  void blockAtBarrier(uint8_t barrier);
  /// The running group goes on at once.
  void pass() { branch(0, 0); }
  LaneMask getLive() const { return live; }
  /// What it waits for, in words, and where; empty or null if nothing.
  std::string describeWait() const;
  const Instruction *getWaiting(unsigned &lane) const;

  /// A read that counts once the register's value is used.
  void addPendingRead(uint32_t reg, unsigned lane,
                      const Instruction &instruction, Region *region,
                      uint64_t offset, bool hasRaced);
  /// What was read until here counts.
  bool commitReads();

  Block &block;
  const uint32_t index;
  LaneMask carry = 0, carryDefined = 0;
  std::vector<uint8_t> laneMemory, laneValid;
  uint32_t laneBytes;

private:
  void step(const Instruction &instruction, LaneMask mask);
  void flow(const Instruction &instruction, LaneMask mask);
  bool checkReads(const Instruction &instruction, LaneMask mask);
  bool useReads(const Instruction &instruction, LaneMask mask);
  bool commitRead(uint32_t reg, LaneMask mask);
  void regroup();
  void branch(LaneMask taken, uint32_t target);
  void branchTable(const Instruction &instruction, LaneMask mask);
  void call(const Instruction &instruction, LaneMask mask);
  void leave(LaneMask mask, bool isExit);
  void copyLanes(llvm::ArrayRef<Instruction::Copy> copies, LaneMask mask);
  bool waitForLanes(const Instruction &instruction, LaneMask wanted,
                    LaneMask mask);
  void setSpecials();

  Execution &execution;
  uint8_t *banks[2];
  std::vector<uint8_t> registers;
  std::vector<LaneMask> written;
  std::vector<std::unique_ptr<PendingRead>> pending; // by register
  llvm::SmallVector<uint32_t, 16> pendingRegisters;
  llvm::SmallVector<Group, 4> groups; // the last one runs
  LaneMask live = 0;
};

/// A block's threads, shared memory and barriers.
class Block {
public:
  explicit Block(Execution &execution);

  void run(uint32_t linear);

  /// Lanes arrive; the barrier may release them at once.
  void arrive(Warp &warp, const Instruction &instruction, LaneMask mask);
  /// Threads have ended: a barrier may have waited for them only.
  void checkBarriers();
  void syncWarp(uint32_t warp);

  // Order of accesses. See Shadow.h.
  uint32_t getThread(const Warp &warp, unsigned lane) const {
    return linear * execution.getThreads() + warp.index * warpSize + lane;
  }
  uint32_t getTick() const { return tick; }
  uint32_t getLinear() const { return linear; }
  uint32_t getFirstThread() const { return linear * execution.getThreads(); }
  /// The last tick of `other` that `warp` knows to be over.
  uint32_t getSeen(uint32_t warp, uint32_t other) const {
    return seen[warp * numWarps + other];
  }

  Execution &execution;
  std::array<uint32_t, 3> index{};
  std::vector<uint8_t> shared;
  std::vector<ShadowCell> sharedCells;
  uint32_t numWarps;

private:
  struct BarrierState {
    uint32_t arrived = 0;  // threads
    uint32_t expected = 0; // 0: all that have not ended
    LaneMask warps = 0;    // that wait
    bool hasCount = false;
    const Instruction *first = nullptr;
    uint32_t value = 0;
    std::vector<uint32_t> seen;
  };
  void complete(uint8_t id);
  uint32_t countLive() const;
  void reportDeadlock();

  uint32_t linear = 0;
  uint32_t tick = 1;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint32_t> seen;
  std::array<BarrierState, 16> barriers;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MACHINE_H
