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
#include "BulkCopy.h"
#include "InFlight.h"
#include "LoadTrips.h"
#include "MBarrier.h"
#include "Module.h"
#include "ProxyFences.h"
#include "ReadSets.h"
#include "Wgmma.h"

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
  /// The distance between the numbers of the first threads of two blocks. The
  /// last 32 numbers of a block belong to its bulk copies.
  uint64_t getThreadStride() const {
    return (threads + warpSize - 1) / warpSize * warpSize + warpSize;
  }

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
  uint32_t misalignDynamic();
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
  bool isPolling = false; // a wait has failed; other subwarps run first
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
  /// Notes that a wait for an mbarrier has failed, so that others run first.
  void failWait(const Instruction &instruction, unsigned lane,
                const MBarrier &barrier);
  /// Whether the warp only repeats waits that have failed since the last
  /// progress of the block.
  bool isPolling() const;
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
  /// The lanes that have written a register; setWritten() adds all of them.
  LaneMask getWritten(uint32_t reg) const { return written[reg]; }
  void setWritten(uint32_t reg) { written[reg] = ~LaneMask(0); }
  /// Reports the races of all pending reads, which a barrier would hide.
  /// Returns false after a fault.
  bool commitReads();

  Block &block;
  const uint32_t index;
  /// The queues of a lane. Those of all lanes exist from the first copy on.
  CopyQueue &getCopies(unsigned lane) {
    copies.resize(warpSize);
    return copies[lane];
  }
  StoreQueue &getBulkStores(unsigned lane) {
    bulkStores.resize(warpSize);
    return bulkStores[lane];
  }
  WgmmaQueue wgmma;
  LoadTrips loadTrips;
  LaneMask carry = 0, carryDefined = 0;
  /// Local memory and .param variables, `laneBytes` per lane, and for each byte
  /// whether it has been written.
  std::vector<uint8_t> laneMemory, laneValid;
  uint32_t laneBytes;

private:
  void step(const Instruction &instruction, LaneMask mask);
  void flow(const Instruction &instruction, LaneMask mask);
  bool checkUniform(const Instruction &instruction, LaneMask mask);
  bool checkReads(const Instruction &instruction, LaneMask mask);
  /// Checks that no wgmma in flight uses the registers of an instruction.
  bool checkWgmmaRegisters(const Instruction &instruction);
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
  std::vector<CopyQueue> copies;
  std::vector<StoreQueue> bulkStores;
  uint8_t *banks[2]; // by Operand::bank
  /// The last wait for an mbarrier that failed, how often it has, and the
  /// progress of the block at that time.
  struct {
    const Instruction *instruction = nullptr;
    unsigned lane = 0, count = 0;
    uint64_t progress = 0;
    std::string state;
  } poll;
  bool isYielding = false; // ends run()
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
  /// Make the accesses of a warp, and those it has seen, precede a later wait
  /// for the mbarrier, and make those before its completed phases precede the
  /// next accesses of the warp.
  void release(const Warp &warp, MBarrier &barrier);
  void acquire(const Warp &warp, const MBarrier &barrier);
  void nextTick() { ++tick; }
  /// Counts the events that may end a wait.
  void noteProgress() { ++progress; }
  uint64_t getProgress() const { return progress; }

  /// Starts a bulk copy, whose instruction has been checked.
  void startLoad(BulkLoad load);
  /// Checks that an operation of the async proxy may read shared bytes: that
  /// they are inside and written, that no write is in flight or races, and that
  /// a proxy fence follows ordinary stores. Returns false after a fault.
  bool checkAsyncRead(Warp &warp, unsigned lane, const Instruction &instruction,
                      uint64_t begin, uint64_t end);
  /// Ends a read that InFlightBytes has. It counts as one of the lane now, or
  /// as one of all lanes together.
  void endAsyncRead(const Warp &warp, std::optional<unsigned> lane,
                    ByteRange range);
  /// Checks that the warps of a warpgroup execute the same operations in the
  /// same order. Returns false after a fault.
  bool joinWarpgroup(Warp &warp, const Instruction &instruction,
                     const Warpgroup::Operation &operation);
  /// "name at line n"
  std::string describe(const Instruction &instruction) const;

  // For the order of accesses; see Shadow.h.
  /// The index of a thread in the grid.
  uint32_t getThread(const Warp &warp, unsigned lane) const {
    return getFirstThread() + warp.index * warpSize + lane;
  }
  uint32_t getTick() const { return tick; }
  uint32_t getLinear() const { return linear; }
  uint32_t getFirstThread() const {
    return linear * execution.getThreadStride();
  }
  /// The last tick of warp `other` whose accesses precede the next ones of
  /// `warp`. Bulk copies are the warp `numWarps`.
  uint32_t getSeen(uint32_t warp, uint32_t other) const {
    return seen[warp * (numWarps + 1) + other];
  }

  Execution &execution;
  std::array<uint32_t, 3> index{};
  std::vector<uint8_t> shared;
  std::vector<ShadowCell> sharedCells;
  ReadSets readSets; // of bytes that several warps have read
  InFlightBytes inFlight;
  MBarriers mbarriers;
  /// fence.proxy.async, and all fences that cover the initialization of
  /// mbarriers.
  FenceHistory proxyFences, initFences;
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
  void checkEnd();
  /// Merges `ticks` into what a warp has seen.
  void see(uint32_t warp, const std::vector<uint32_t> &ticks);
  bool runLoads(bool isStuck);
  void completeLoad(size_t index);

  uint32_t linear = 0;
  uint32_t tick = 1;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<uint32_t> seen; // numWarps x (numWarps + 1); see getSeen()
  uint64_t progress = 0;
  std::vector<Warpgroup> warpgroups;
  std::vector<BulkLoad> loads; // in flight, in the order of their start
  std::array<BarrierState, 16> barriers;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MACHINE_H
