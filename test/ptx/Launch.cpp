//===- Launch.cpp - checks and runs the launch of a kernel ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace posenc::ptx {

char Fault::ID = 0;

void Fault::log(raw_ostream &os) const {
  if (line) {
    os << "line " << line << ", block (" << block[0] << ", " << block[1] << ", "
       << block[2] << "), thread (" << thread[0] << ", " << thread[1] << ", "
       << thread[2] << "): ";
  }
  os << message;
}

std::error_code Fault::convertToErrorCode() const {
  return inconvertibleErrorCode();
}

uint64_t Statistics::countThreads(StringRef prefix) const {
  uint64_t total = 0;
  for (const auto &[name, count] : instructions)
    if (StringRef(name).starts_with(prefix))
      total += count.threads;
  return total;
}

Execution::Execution(const Program &program, const Function &kernel,
                     const LaunchShape &shape, Memory &memory,
                     const RunOptions &options, Statistics &statistics)
    : program(program), kernel(kernel), shape(shape), memory(memory),
      options(options), statistics(statistics), launch(memory.nextLaunch()),
      constants(program.constants), counts(program.code.size()),
      threadCounts(program.code.size()), random(options.seed) {}

void Execution::fault(FaultKind kind, const Warp *warp, unsigned lane,
                      const Instruction *instruction, const Twine &message) {
  if (error)
    return;
  std::string text = message.str();
  if (instruction)
    text = program.names[instruction->name] + ": " + text;
  error = std::make_unique<Fault>(kind, std::move(text));
  if (instruction)
    error->line = instruction->line;
  if (warp) {
    uint32_t thread = warp->index * warpSize + lane;
    error->block = warp->block.index;
    error->thread = {thread % shape.block[0],
                     thread / shape.block[0] % shape.block[1],
                     thread / shape.block[0] / shape.block[1]};
  }
}

static Error makeFault(const Twine &message) {
  return make_error<Fault>(FaultKind::Launch, message.str());
}

static std::string describe(const std::array<uint32_t, 3> &shape) {
  return utostr(shape[0]) + " x " + utostr(shape[1]) + " x " + utostr(shape[2]);
}

static uint64_t getVolume(const std::array<uint32_t, 3> &shape) {
  return uint64_t(shape[0]) * shape[1] * shape[2];
}

Error Execution::check(ArrayRef<Argument> arguments) {
  const std::string name = "'" + kernel.name + "'";
  const std::array<uint32_t, 3> &grid = shape.grid, &block = shape.block;
  for (unsigned i = 0; i < 3; ++i)
    if (!grid[i] || !block[i])
      return makeFault(name + ": the grid or the block is empty");
  if (grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
    return makeFault(name + ": a grid of " + describe(grid) +
                     " exceeds the limits of CUDA");
  if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 ||
      getVolume(block) > 1024)
    return makeFault(name + ": a block of " + describe(block) +
                     " exceeds the limits of CUDA");
  threads = getVolume(block);
  if (getVolume(grid) * getThreadStride() >= uint64_t(1) << 32)
    return makeFault(name + ": 2^32 threads or more are not supported");
  if (kernel.requiredThreads[0] && block != kernel.requiredThreads)
    return makeFault(name + " requires blocks of " +
                     describe(kernel.requiredThreads) + ", not " +
                     describe(block));
  // The CUDA driver also compares only the products.
  if (kernel.maxThreads[0] && getVolume(block) > getVolume(kernel.maxThreads))
    return makeFault(name + " takes blocks of at most " +
                     describe(kernel.maxThreads) + ", not " + describe(block));
  if (kernel.requiredCluster[0] && getVolume(kernel.requiredCluster) > 1)
    return makeFault(name + " requires clusters, which are not supported");
  if (arguments.size() != kernel.params.size())
    return makeFault(name + " has " + Twine(kernel.params.size()) +
                     " parameters, not " + Twine(arguments.size()));
  params.resize(kernel.paramBytes);
  for (auto [argument, param] : zip(arguments, kernel.params)) {
    if (argument.bytes.size() != param.size)
      return makeFault("parameter '" + param.name + "' has " +
                       Twine(param.size) + " bytes, not " +
                       Twine(argument.bytes.size()));
    std::copy(argument.bytes.begin(), argument.bytes.end(),
              params.begin() + param.offset);
  }
  return Error::success();
}

uint32_t placeShared(const Program &program, const Function &kernel,
                     std::vector<uint64_t> &addresses) {
  uint64_t end = 0;
  auto place = [&](ArrayRef<uint32_t> variables, bool isDynamic) {
    uint64_t begin = end;
    for (uint32_t index : variables) {
      const Variable &variable = program.variables[index];
      if ((variable.isExtern && !variable.size) != isDynamic)
        continue;
      // All dynamic variables have the same address.
      uint64_t address =
          alignTo(isDynamic ? begin : end, std::max(variable.align, 1u));
      addresses[index] = address;
      end = std::max(end, address + variable.size);
    }
  };
  place(program.moduleShared, /*isDynamic=*/false);
  place(kernel.sharedVariables, /*isDynamic=*/false);
  uint32_t bytes = end;
  std::vector<uint32_t> all(program.moduleShared);
  all.insert(all.end(), kernel.sharedVariables.begin(),
             kernel.sharedVariables.end());
  place(all, /*isDynamic=*/true);
  return std::max(bytes, uint32_t(end));
}

Expected<std::vector<uint64_t>> placeGlobals(const Program &program,
                                             Memory &memory) {
  std::vector<uint64_t> &known = memory.getVariables(program.id);
  if (!known.empty() || program.variables.empty())
    return known;
  std::vector<uint64_t> addresses(program.variables.size());
  for (auto [variable, address] : zip(program.variables, addresses))
    if (variable.space != Space::Shared)
      address = memory.allocate(variable.size, variable.name);
  for (auto [variable, address] : zip(program.variables, addresses)) {
    if (variable.space == Space::Shared)
      continue;
    // Memory without an initializer is zero.
    std::vector<uint8_t> bytes = variable.bytes;
    for (const Variable::Address &element : variable.addresses) {
      const Variable &target = program.variables[element.variable];
      if (target.space == Space::Shared)
        return makeFault("'" + variable.name +
                         "' holds an address in shared memory");
      uint64_t value = addresses[element.variable] + element.addend;
      value = (value & element.mask) >>
              (element.mask ? countr_zero(element.mask) : 0);
      for (unsigned i = 0; i < element.bytes; ++i)
        bytes[element.offset + i] = value >> (8 * i);
    }
    memory.write(address, bytes.data(), bytes.size());
    Region *region = memory.find(address, variable.size);
    region->valid.clear();
    region->isConst = variable.space == Space::Const;
    if (region->isConst)
      region->access = Access::ReadOnly;
  }
  known = addresses;
  return addresses;
}

// Moves dynamic shared memory so that its alignment is no more than declared,
// and returns the distance: the hardware also places it behind memory that the
// kernel does not see.
uint32_t Execution::misalignDynamic() {
  std::vector<uint32_t> dynamic;
  uint32_t align = 1;
  for (ArrayRef<uint32_t> variables :
       {ArrayRef(program.moduleShared), ArrayRef(kernel.sharedVariables)}) {
    for (uint32_t index : variables) {
      const Variable &variable = program.variables[index];
      if (!variable.isExtern || variable.size || is_contained(dynamic, index))
        continue;
      dynamic.push_back(index);
      align = std::max(align, variable.align);
    }
  }
  if (dynamic.empty() || addresses[dynamic.front()] % (2 * align))
    return 0;
  for (uint32_t index : dynamic)
    addresses[index] += align;
  return align;
}

Error Execution::placeVariables() {
  Expected<std::vector<uint64_t>> globals = placeGlobals(program, memory);
  if (!globals)
    return globals.takeError();
  addresses = std::move(*globals);
  statistics.staticShared = placeShared(program, kernel, addresses);
  uint64_t bytes = uint64_t(statistics.staticShared) + shape.dynamicShared;
  if (bytes > options.sharedLimit)
    return makeFault("'" + kernel.name + "' needs " + Twine(bytes) +
                     " bytes of shared memory; the limit is " +
                     Twine(options.sharedLimit));
  sharedBytes = bytes + misalignDynamic();
  for (const Relocation &relocation : program.relocations) {
    uint64_t address = addresses[relocation.variable] + relocation.addend;
    for (unsigned lane = 0; lane < warpSize; ++lane)
      std::memcpy(constants.data() + relocation.offset +
                      lane * relocation.bytes,
                  &address, relocation.bytes);
  }
  return Error::success();
}

void Execution::collect() {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i])
      continue;
    Statistics::Count &count =
        statistics.instructions[program.names[program.code[i].name]];
    count.warps += counts[i];
    count.threads += threadCounts[i];
    statistics.warpInstructions += counts[i];
    statistics.threadInstructions += threadCounts[i];
  }
}

Error Execution::run(ArrayRef<Argument> arguments) {
  if (Error failure = check(arguments))
    return failure;
  if (Error failure = placeVariables())
    return failure;
  Block block(*this);
  uint64_t blocks = getVolume(shape.grid);
  for (uint64_t i = 0; i < blocks && !error; ++i)
    block.run(i);
  collect();
  if (error)
    return Error(std::move(error));
  return Error::success();
}

} // namespace posenc::ptx
