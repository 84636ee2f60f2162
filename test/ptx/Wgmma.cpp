//===- Wgmma.cpp - products of matrices by warpgroups ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fragments.h"
#include "MatrixDescriptor.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// A product is computed when its instruction runs, since nothing that it reads
// may change before the wait. Its result reaches the registers at the wait;
// until then, every other access to them, and to registers with A, is an error.
//
// Each warp computes its 16 of the 64 rows, when it executes the instruction;
// the warpgroup checks that all four execute the same ones.

// A decoded wgmma.mma_async, kept in Instruction::extra. Operands: the
// accumulator, A (registers or a descriptor), the descriptor of B, the
// predicate that adds to the accumulator.
struct WgmmaInfo {
  unsigned columns; // N
  bool isBFloat;
  bool isARegisters;
  bool isATransposed = false, isBTransposed = false;
  bool isNegative = false; // the product is subtracted

  unsigned getResults() const { return columns / 2; }
  unsigned getSources() const { return isARegisters ? 4 : 0; }
};

const WgmmaInfo &getInfo(const Instruction &instruction) {
  return *static_cast<const WgmmaInfo *>(instruction.extra);
}
ArrayRef<Operand> getResults(const Instruction &instruction) {
  return instruction.operands.take_front(getInfo(instruction).getResults());
}
ArrayRef<Operand> getSources(const Instruction &instruction) {
  const WgmmaInfo &info = getInfo(instruction);
  return instruction.operands.slice(info.getResults(), info.getSources());
}

// The row and the column of accumulator register `i` of a lane.
unsigned getRow(unsigned lane, unsigned i) { return lane / 4 + i / 2 % 2 * 8; }
unsigned getColumn(unsigned lane, unsigned i) {
  return i / 4 * 8 + 2 * (lane % 4) + i % 2;
}

// One wgmma.mma_async of a warp.
class Product {
public:
  Product(Warp &warp, const Instruction &instruction)
      : warp(warp), instruction(instruction), info(getInfo(instruction)),
        queue(warp.wgmma) {
    pending.instruction = &instruction;
  }

  void run();

private:
  bool fail(FaultKind kind, const Twine &message) {
    warp.fault(kind, 0, instruction, message);
    return false;
  }
  bool checkUniform();
  bool checkRegisters();
  Accumulator *getAccumulator();
  const uint8_t *readChunk(uint32_t address);
  bool readMatrix(const MatrixDescriptor &matrix, bool isTransposed,
                  unsigned firstRow, unsigned rows, float *to,
                  unsigned rowStride, unsigned columnStride);

  Warp &warp;
  const Instruction &instruction;
  const WgmmaInfo &info;
  WgmmaQueue &queue;
  PendingWgmma pending;
  uint64_t descriptorA = 0, descriptorB = 0;
  bool isAdded = false;
};

// The descriptors and the predicate must be the same for all lanes.
bool Product::checkUniform() {
  const Operand *rest = instruction.operands.data() + info.getResults();
  auto read = [&](const Operand &operand, uint64_t &value) {
    value = warp.get<uint64_t>(operand, 0);
    for (unsigned lane = 1; lane < warpSize; ++lane)
      if (warp.get<uint64_t>(operand, lane) != value)
        return false;
    return true;
  };
  if ((!info.isARegisters && !read(rest[0], descriptorA)) ||
      !read(rest[info.isARegisters ? 4 : 1], descriptorB))
    return fail(FaultKind::Undefined,
                "the lanes disagree on a matrix descriptor");
  LaneMask added = warp.getPred(rest[info.isARegisters ? 5 : 2]);
  isAdded = added;
  if (added && added != ~LaneMask(0))
    return fail(FaultKind::Undefined, "the lanes disagree on scale-d");
  return warp.block.joinWarpgroup(
      warp, instruction, {&instruction, descriptorA, descriptorB, isAdded});
}

bool Product::checkRegisters() {
  ArrayRef<Operand> results = getResults(instruction);
  auto chain = queue.accumulators.find(results[0].reg);
  bool isChained = chain != queue.accumulators.end();
  // The operation in flight must have the same registers and the same shape.
  if (isChained)
    isChained =
        all_of(zip_longest(results, getResults(*chain->second.instruction)),
               [](const auto &pair) {
                 const auto &[a, b] = pair;
                 return a && b && a->reg == b->reg;
               });
  auto check = [&](const Operand &operand, bool isResult) {
    const WgmmaQueue::Register &reg = queue.registers[operand.reg];
    bool isUsed =
        isResult ? reg.sources || (reg.results && !isChained) : reg.results;
    if (isUsed)
      return fail(FaultKind::Race, Twine(isResult ? "an accumulator" : "an A") +
                                       " register is in use by " +
                                       warp.block.describe(*reg.instruction) +
                                       ", which has not been waited for");
    if (reg.lastWrite == queue.fences)
      return fail(FaultKind::Race,
                  Twine(isResult ? "an accumulator" : "an A") +
                      " register was written without wgmma.fence in between");
    return true;
  };
  for (const Operand &operand : results) {
    if (!check(operand, /*isResult=*/true))
      return false;
    if (isAdded && !isChained && warp.getWritten(operand.reg) != ~LaneMask(0))
      return fail(FaultKind::Uninitialized,
                  "reads an accumulator register that has not been written");
  }
  return all_of(getSources(instruction), [&](const Operand &operand) {
    return check(operand, /*isResult=*/false);
  });
}

// Returns 16 bytes that the operation reads, or null after a fault.
const uint8_t *Product::readChunk(uint32_t address) {
  if (!warp.block.checkAsyncRead(warp, 0, instruction, address, address + 16))
    return nullptr;
  pending.chunks.push_back(address);
  return warp.block.shared.data() + address;
}

// Reads rows of a matrix as f32: to[row * rowStride + column * columnStride].
bool Product::readMatrix(const MatrixDescriptor &matrix, bool isTransposed,
                         unsigned firstRow, unsigned rows, float *to,
                         unsigned rowStride, unsigned columnStride) {
  if (matrix.baseOffset)
    return fail(FaultKind::Undefined,
                "a base offset in a matrix descriptor is not supported");
  unsigned rowStep = isTransposed ? 8 : 1, columnStep = isTransposed ? 1 : 8;
  unsigned elementStride = isTransposed ? rowStride : columnStride;
  for (unsigned row = 0; row < rows; row += rowStep) {
    for (unsigned column = 0; column < 16; column += columnStep) {
      const uint8_t *from =
          readChunk(isTransposed ? matrix.getRows(firstRow + row, column)
                                 : matrix.getColumns(firstRow + row, column));
      if (!from)
        return false;
      float *at = to + row * rowStride + column * columnStride;
      for (unsigned i = 0; i < 8; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + 2 * i, 2);
        at[i * elementStride] = widen(bits, info.isBFloat);
      }
    }
  }
  return true;
}

Accumulator *Product::getAccumulator() {
  ArrayRef<Operand> results = getResults(instruction);
  Accumulator &accumulator = queue.accumulators[results[0].reg];
  if (!accumulator.instruction) {
    accumulator.instruction = &instruction;
    accumulator.values.assign(16 * info.columns, 0);
    for (unsigned i = 0; isAdded && i < results.size(); ++i)
      for (unsigned lane = 0; lane < warpSize; ++lane)
        accumulator
            .values[getRow(lane, i) * info.columns + getColumn(lane, i)] =
            warp.get<float>(results[i], lane);
  }
  return &accumulator;
}

void Product::run() {
  if (!checkUniform() || !checkRegisters())
    return;
  float a[16 * 16], b[16 * 256];
  if (info.isARegisters) {
    ArrayRef<Operand> sources = getSources(instruction);
    for (unsigned i = 0; i < 4; ++i)
      forHalves(warp, sources[i], info.isBFloat,
                [&](unsigned row, unsigned k, float value) {
                  a[(row + i % 2 * 8) * 16 + k + i / 2 * 8] = value;
                });
  } else if (!readMatrix(MatrixDescriptor(descriptorA), info.isATransposed,
                         warp.index % 4 * 16, 16, a, 16, 1)) {
    return;
  }
  if (!readMatrix(MatrixDescriptor(descriptorB), info.isBTransposed, 0,
                  info.columns, b, 1, info.columns))
    return;
  if (info.isNegative)
    for (float &value : a)
      value = -value;
  Accumulator *accumulator = getAccumulator();
  std::vector<float> &values = accumulator->values;
  std::vector<double> sums(values.size());
  if (isAdded)
    std::copy(values.begin(), values.end(), sums.begin());
  addProducts(sums.data(), a, b, 16, info.columns);
  std::transform(sums.begin(), sums.end(), values.begin(), roundSum);
  // Marks what the operation uses.
  ++accumulator->pending;
  ++queue.inFlight;
  for (const Operand &operand : getResults(instruction)) {
    ++queue.registers[operand.reg].results;
    queue.registers[operand.reg].instruction = &instruction;
  }
  for (const Operand &operand : getSources(instruction)) {
    ++queue.registers[operand.reg].sources;
    queue.registers[operand.reg].instruction = &instruction;
  }
  for (uint32_t chunk : pending.chunks)
    warp.block.inFlight.beginRead(chunk, chunk + 16, &instruction);
  queue.uncommitted.push_back(std::move(pending));
}

void runProduct(Warp &warp, const Instruction &instruction, LaneMask) {
  Product(warp, instruction).run();
}

// Ends an operation. The last one on an accumulator writes its registers.
void retire(Warp &warp, const PendingWgmma &pending) {
  WgmmaQueue &queue = warp.wgmma;
  const Instruction &instruction = *pending.instruction;
  for (uint32_t chunk : pending.chunks)
    warp.block.endAsyncRead(warp, std::nullopt, {chunk, chunk + 16});
  for (const Operand &operand : getSources(instruction))
    --queue.registers[operand.reg].sources;
  ArrayRef<Operand> results = getResults(instruction);
  for (const Operand &operand : results)
    --queue.registers[operand.reg].results;
  --queue.inFlight;
  auto it = queue.accumulators.find(results[0].reg);
  if (--it->second.pending)
    return;
  unsigned columns = getInfo(instruction).columns;
  for (unsigned i = 0; i < results.size(); ++i) {
    for (unsigned lane = 0; lane < warpSize; ++lane)
      warp.set<float>(
          results[i], lane,
          it->second.values[getRow(lane, i) * columns + getColumn(lane, i)]);
    warp.setWritten(results[i].reg);
  }
  queue.accumulators.erase(it);
}

void runFence(Warp &warp, const Instruction &, LaneMask) {
  ++warp.wgmma.fences;
}

void runCommit(Warp &warp, const Instruction &, LaneMask) {
  warp.wgmma.groups.push_back(std::move(warp.wgmma.uncommitted));
  warp.wgmma.uncommitted.clear();
}

// Waits until at most instruction.offset groups are pending.
void runWait(Warp &warp, const Instruction &instruction, LaneMask) {
  auto &groups = warp.wgmma.groups;
  for (; groups.size() > uint64_t(instruction.offset); groups.pop_front())
    for (const PendingWgmma &pending : groups.front())
      retire(warp, pending);
}

bool takeConstant(Decoder &d, unsigned index, int64_t low, int64_t high,
                  int64_t &value) {
  const OperandSyntax &operand = d.getSyntax().operands[index];
  value = operand.value;
  if (operand.kind == OperandSyntax::Integer && (value == low || value == high))
    return true;
  return d.fail("operand " + Twine(index + 1) + " of wgmma.mma_async must be " +
                Twine(low) + " or " + Twine(high));
}

bool decodeProduct(Decoder &d) {
  WgmmaInfo info;
  StringRef shape = d.takePrefixed(".m64n"), digits = shape;
  bool isShape = digits.consume_front(".m64n") &&
                 !digits.consumeInteger(10, info.columns) && digits == "k16" &&
                 info.columns % 8 == 0 && info.columns >= 8 &&
                 info.columns <= 256;
  if (!isShape)
    return d.fail("expected a shape .m64n<N>k16, N a multiple of 8 up to 256");
  Type types[3];
  for (Type &type : types)
    if (!d.takeType(type))
      return false;
  info.isBFloat = types[1] == Type::BF16;
  if (types[0] != Type::F32 || types[1] != types[2] ||
      (!info.isBFloat && types[1] != Type::F16))
    return d.fail("expected '.f32.bf16.bf16' or '.f32.f16.f16' on "
                  "wgmma.mma_async");
  if (d.getNumOperands() < 2)
    return d.fail("too few operands of wgmma.mma_async");
  info.isARegisters = d.getSyntax().operands[1].kind == OperandSyntax::Vector;
  int64_t scaleA, scaleB, isATransposed = 0, isBTransposed;
  unsigned count = info.isARegisters ? 7 : 8;
  if (!d.expectOperands(count) || !d.vectorDest(0, info.getResults()) ||
      !(info.isARegisters ? d.vectorSource(1, 4) : d.source(1, 8)) ||
      !d.source(2, 8) || !d.predSource(d.getSyntax().operands[3]) ||
      !takeConstant(d, 4, -1, 1, scaleA) ||
      !takeConstant(d, 5, -1, 1, scaleB) ||
      (!info.isARegisters && !takeConstant(d, 6, 0, 1, isATransposed)) ||
      !takeConstant(d, count - 1, 0, 1, isBTransposed))
    return false;
  for (unsigned i = 0; i < info.getResults() + info.getSources(); ++i)
    if (d.getOperand(i).reg == noRegister)
      return d.fail(
          "the accumulator and A of wgmma.mma_async must be registers");
  info.isNegative = scaleA != scaleB;
  info.isATransposed = isATransposed;
  info.isBTransposed = isBTransposed;
  d.keepExtra(info);
  d.out.isAsync = true;
  return d.finishWholeWarp(runProduct);
}

bool decodeWgmma(Decoder &d) {
  if (!d.needTarget(90, /*isExact=*/true))
    return false;
  if (!d.has(".sync") || !d.has(".aligned"))
    return d.fail("expected .sync.aligned on wgmma");
  if (d.has(".mma_async"))
    return decodeProduct(d);
  if (d.has(".fence"))
    return d.expectOperands(0) && d.finishWholeWarp(runFence);
  if (d.has(".commit_group"))
    return d.expectOperands(0) && d.finishWholeWarp(runCommit);
  if (d.has(".wait_group"))
    return d.groupCount() && d.finishWholeWarp(runWait);
  return d.fail("expected .mma_async, .fence, .commit_group or .wait_group on "
                "wgmma");
}

} // namespace

bool Block::joinWarpgroup(Warp &warp, const Instruction &instruction,
                          const Warpgroup::Operation &operation) {
  auto fail = [&](const Twine &message) {
    warp.fault(FaultKind::Undefined, 0, instruction, message);
    return false;
  };
  if (warp.index / 4 * 4 + 4 > numWarps)
    return fail("the warpgroup has fewer than four warps");
  Warpgroup &group = warpgroups[warp.index / 4];
  uint64_t number = group.counts[warp.index % 4]++;
  uint64_t index = number - group.first;
  if (index == group.operations.size())
    group.operations.push_back(operation);
  else if (!(group.operations[index] == operation))
    return fail("another warp of the warpgroup executed " +
                describe(*group.operations[index].instruction) +
                " instead, or with other operands");
  uint64_t lowest = *std::min_element(group.counts.begin(), group.counts.end());
  for (; group.first < lowest; ++group.first)
    group.operations.pop_front();
  return true;
}

bool Warp::checkWgmmaRegisters(const Instruction &instruction) {
  for (ArrayRef<uint32_t> registers : {instruction.reads, instruction.writes}) {
    for (uint32_t reg : registers) {
      const WgmmaQueue::Register &use = wgmma.registers[reg];
      if (!use.results && !use.sources)
        continue;
      fault(FaultKind::Race, 0, instruction,
            "uses a register of " + block.describe(*use.instruction) +
                ", which has not been waited for");
      return false;
    }
  }
  return true;
}

void addWgmmaInstructions(OpcodeTable &table) { table["wgmma"] = decodeWgmma; }

} // namespace posenc::ptx
