//===- CompileReport.cpp - records a compilation for its report -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages are those of copies of the module, so that the compilation itself runs
// as it does without a report. Remarks are recorded while the copy for a CPU is
// lowered, which tells the CPU that they are about.
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/CompileReport.h"

#include "OutputFiles.h"
#include "TimeShares.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/IR/KernelConfig.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::posenc;

/// Elements of a constant beyond which its text is left out.
static constexpr int64_t kMaxElements = 16;

CompileReport::CompileReport(StringRef input, StringRef command)
    : input(input), command(command),
      inputKind(input.ends_with(".json")   ? "config.json of a model"
                : input.ends_with(".onnx") ? "ONNX model"
                                           : "") {}

void CompileReport::watch(MLIRContext &context, DiagnosticPrinter &diagnostics,
                          bool print) {
  diagnostics.handleRemarks(
      [this](const remark::detail::Remark &remark) { record(remark); }, print);
}

/// Returns the line of a location in a file; 0 if it is none.
static unsigned findLine(Location loc, StringRef file) {
  unsigned line = 0;
  loc->walk([&](Location nested) {
    auto found = dyn_cast<FileLineColLoc>(nested);
    if (!found || found.getFilename().getValue() != file)
      return WalkResult::advance();
    line = found.getLine();
    return WalkResult::interrupt();
  });
  return line;
}

void CompileReport::record(const remark::detail::Remark &remark) {
  if (recording == Recording::None)
    return;
  ReportRemark result;
  switch (remark.getRemarkType()) {
  case llvm::remarks::Type::Passed:
    result.kind = "passed";
    break;
  case llvm::remarks::Type::Missed:
    result.kind = "missed";
    break;
  case llvm::remarks::Type::Failure:
    result.kind = "failure";
    break;
  default:
    result.kind = "analysis";
  }
  result.pass = remark.getRemarkName().str();
  result.function = remark.getFunction().str();
  for (const remark::detail::Remark::Arg &argument : remark.getArgs())
    result.text += (result.text.empty() ? "" : "; ") + argument.val;
  result.location = describeLocation(remark.getLocation());
  result.sourceLine =
      findLine(remark.getLocation(), input == "-" ? "<stdin>" : input);
  result.target = currentTarget;
  auto isEqual = [&](const ReportRemark &other) {
    return std::tie(result.kind, result.pass, result.function, result.location,
                    result.text) == std::tie(other.kind, other.pass,
                                             other.function, other.location,
                                             other.text);
  };
  if (recording == Recording::New && llvm::any_of(remarks, isEqual))
    return;
  remarks.push_back(std::move(result));
}

LoadHooks CompileReport::getLoadHooks() {
  LoadHooks hooks;
  hooks.onRead = [this](StringRef bytes) {
    bool isText = !StringRef(input).ends_with(".onnx") &&
                  !isBytecode(llvm::MemoryBufferRef(bytes, input));
    if (inputKind.empty())
      inputKind = isText ? "MLIR" : "MLIR bytecode";
    if (isText)
      stages.push_back({"source", "Input", bytes.str(), {}});
  };
  hooks.onBuilt = [this](ModuleOp module) {
    // Dialects that the input is in, besides those that all modules have.
    llvm::SetVector<StringRef> dialects;
    module.walk([&](Operation *op) {
      StringRef name = op->getName().getDialectNamespace();
      if (name != "builtin" && name != "func")
        dialects.insert(name);
    });
    if (StringRef(inputKind).starts_with("MLIR") && !dialects.empty())
      inputKind += " (" + llvm::join(dialects, ", ") + ")";
  };
  hooks.onImported = [this](ModuleOp module) {
    module.walk([&](Operation *op) {
      if (isa_and_present<PosencDialect>(op->getDialect()) &&
          op->getNumResults() != 0)
        ++numOps[op->getName().stripDialect().str()].first;
    });
    addStage("imported", "Imported", module);
  };
  return hooks;
}

void CompileReport::addStage(StringRef name, const Twine &title,
                             ModuleOp module) {
  ReportStage stage{name.str(), title.str(), "", {}};
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(kMaxElements);
  flags.elideLargeResourceString(kMaxElements);
  AsmState::LocationMap places;
  AsmState state(module, flags, &places);
  llvm::raw_string_ostream os(stage.text);
  module->print(os, state);
  // One operation of the input becomes several: a link is to a posenc operation
  // among them, or else to the first.
  llvm::StringMap<unsigned> others;
  for (auto [op, place] : places) {
    std::string location = describeLocation(op->getLoc());
    if (location.empty() || isa<ModuleOp>(op))
      continue;
    bool isOwn = isa_and_present<PosencDialect>(op->getDialect()) &&
                 op->getNumResults() != 0;
    llvm::StringMap<unsigned> &lines = isOwn ? stage.lines : others;
    auto [entry, isNew] = lines.try_emplace(location, place.first);
    entry->second = std::min(entry->second, place.first);
  }
  for (auto &entry : others)
    stage.lines.try_emplace(entry.first(), entry.second);
  stages.push_back(std::move(stage));
}

void CompileReport::setOutput(StringRef kind, const CodeOptions &options) {
  outputKind = kind.str();
  if (options.hasCpuCode)
    for (const TargetSpec &target : options.targets)
      targets.push_back(target.name);
  for (const CudaTarget &target : options.gpus.cuda)
    targets.push_back(target.name);
  if (options.gpus.vulkan)
    targets.push_back(kVulkanTarget.str());
}

void CompileReport::addFunctions(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    llvm::raw_string_ostream(functions[function.getName().str()].type)
        << function.getFunctionType();
  }
}

void CompileReport::addMemory(ModuleOp module, StringRef target) {
  std::map<std::string, std::pair<bool, KernelMemory>> memories;
  for (auto [function, abi] : getKernels(module)) {
    auto &[hasWorkspace, memory] = memories[function.getName().str()];
    hasWorkspace |= getKernelConfig(function).hasWorkspace;
    KernelMemory own = getKernelMemory(function);
    memory.sharedBytes = std::max(memory.sharedBytes, own.sharedBytes);
    memory.scratchBytes = std::max(memory.scratchBytes, own.scratchBytes);
  }
  for (auto &[name, found] : memories) {
    auto function = functions.find(name);
    if (function == functions.end())
      continue;
    std::string text = target.empty() ? "" : (target + ": ").str();
    llvm::raw_string_ostream os(text);
    os << (found.first ? "takes a workspace" : "no workspace");
    if (found.second.sharedBytes != 0)
      os << ", " << found.second.sharedBytes << " bytes shared by all tasks";
    if (found.second.scratchBytes != 0)
      os << ", " << found.second.scratchBytes << " bytes of scratch per task";
    function->second.memory.push_back(std::move(text));
  }
}

void CompileReport::addStages(ModuleOp module, Stage last,
                              const CodeOptions &options) {
  module.walk([&](Operation *op) {
    if (isa_and_present<PosencDialect>(op->getDialect()) &&
        op->getNumResults() != 0)
      ++numOps[op->getName().stripDialect().str()].second;
  });
  addFunctions(module);
  addStage("posenc", "Raised (posenc)", module);
  if (options.hasCpuCode)
    times = estimateTimes(module, options.targets.front().vectorBytes);
  ScopedDiagnosticHandler silence(module.getContext(),
                                  [](Diagnostic &) { return success(); });
  if (last >= Stage::Linalg) {
    // No CPU kernel passes through linalg as a whole.
    OwningOpRef<ModuleOp> copy = module.clone();
    llvm::SaveAndRestore pause(
        recording, last == Stage::Linalg ? Recording::All : Recording::None);
    if (succeeded(lowerModule(*copy, Stage::Linalg, options.targets.front())))
      addStage("linalg", "linalg", *copy);
  }
  // The compilation has these remarks again, and those about code for GPUs.
  llvm::scope_exit finish([&] {
    recording = options.gpus.empty() ? Recording::None : Recording::New;
  });
  if (last < Stage::Tiled || !options.hasCpuCode)
    return;
  bool hasSeveral = options.targets.size() > 1;
  for (auto [number, target] : llvm::enumerate(options.targets)) {
    std::string suffix = hasSeveral ? llvm::utostr(number) : "";
    std::string title = hasSeveral ? ", " + target.name : "";
    llvm::SaveAndRestore current(currentTarget,
                                 hasSeveral ? target.name : std::string());
    OwningOpRef<ModuleOp> copy = module.clone();
    if (failed(lowerModule(*copy, Stage::Tiled, target)))
      continue;
    addStage("tiled" + suffix, "tiled" + title, *copy);
    if (last < Stage::Vector ||
        failed(lowerModule(*copy, Stage::Vector, target, Stage::Tiled)))
      continue;
    addStage("vector" + suffix, "vector" + title, *copy);
    if (succeeded(lowerModule(*copy, Stage::Llvm, target, Stage::Vector)))
      addMemory(*copy, currentTarget);
  }
}

void CompileReport::addOutput(StringRef text) {
  stages.push_back({"output", "Output", text.str(), {}});
}

void CompileReport::addObject(StringRef object) {
  using namespace llvm::object;
  llvm::Expected<std::unique_ptr<ObjectFile>> file =
      ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "object"));
  if (!file)
    return llvm::consumeError(file.takeError());
  for (ELFSymbolRef symbol : (*file)->symbols()) {
    llvm::Expected<StringRef> name = symbol.getName();
    llvm::Expected<section_iterator> section = symbol.getSection();
    if (!name || !section) {
      llvm::consumeError(name.takeError());
      llvm::consumeError(section.takeError());
      continue;
    }
    if (*name == kMetadataSymbol && *section != (*file)->section_end()) {
      llvm::Expected<StringRef> bytes = (*section)->getContents();
      llvm::Expected<uint64_t> address = symbol.getAddress();
      if (bytes && address)
        addMetadata(
            bytes->substr(*address - (*section)->getAddress(), symbol.getSize())
                .rtrim('\0'));
      llvm::consumeError(bytes.takeError());
      llvm::consumeError(address.takeError());
    }
    if (symbol.getELFType() != llvm::ELF::STT_FUNC)
      continue;
    if (ReportFunction *function = findOwner(*name))
      function->codeBytes += symbol.getSize();
  }
}

/// Returns the function that a symbol is a part of: `function.part`, or
/// `__part_of_function_number.part` for outlined loops.
ReportFunction *CompileReport::findOwner(StringRef symbol) {
  StringRef separators = symbol.consume_front("__part_of_") ? "._" : ".";
  // A function's own name may have dots and underscores.
  while (true) {
    auto function = functions.find(symbol.str());
    if (function != functions.end())
      return &function->second;
    size_t end = symbol.find_last_of(separators);
    if (end == StringRef::npos)
      return nullptr;
    symbol = symbol.take_front(end);
  }
}

void CompileReport::addMetadata(StringRef json) {
  llvm::Expected<llvm::json::Value> root = llvm::json::parse(json);
  if (!root)
    return llvm::consumeError(root.takeError());
  const llvm::json::Array *list =
      root->getAsObject() ? root->getAsObject()->getArray("functions")
                          : nullptr;
  if (!list)
    return;
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Object *object = value.getAsObject();
    if (!object)
      continue;
    auto function =
        functions.find(object->getString("name").value_or("").str());
    if (function != functions.end())
      function->second.stackBytes = object->getInteger("stack_bytes");
  }
}

LogicalResult CompileReport::save(StringRef path, StringRef messages,
                                  bool isCompiled) const {
  OutputFiles files;
  llvm::Error error = files.add(path, write(messages, isCompiled)).takeError();
  if (!error)
    error = files.commit();
  if (!error)
    return success();
  getErrorStream() << "error: " << llvm::toString(std::move(error)) << "\n";
  return failure();
}
