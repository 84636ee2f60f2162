//===- Compile.cpp - posenc-compile -----------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Tools/Compile.h"

#include "Linker.h"
#include "OutputFiles.h"
#include "posenc/Codegen/CInterface.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/KernelModule.h"
#include "posenc/Target/LLVMErrors.h"
#include "posenc/Tools/Diagnostics.h"
#include "posenc/Tools/Guard.h"
#include "posenc/Tools/Input.h"
#include "posenc/Tools/Options.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

enum class Emit {
  Posenc,
  Linalg,
  Vector,
  Llvm,
  LlvmIR,
  Asm,
  Obj,
  Static,
  Shared
};

/// What the command line asks for.
struct Request {
  std::string input, output, header;
  Emit emit = Emit::Shared;
  TargetSpec target;
  Threads threads = Threads::OpenMP;
  bool saveTemps = false;
  InputOptions inputOptions;
};

} // namespace

static std::optional<Emit> parseEmit(StringRef name) {
  return llvm::StringSwitch<std::optional<Emit>>(name)
      .Case("posenc", Emit::Posenc)
      .Case("linalg", Emit::Linalg)
      .Case("vector", Emit::Vector)
      .Case("llvm", Emit::Llvm)
      .Case("llvm-ir", Emit::LlvmIR)
      .Case("asm", Emit::Asm)
      .Case("obj", Emit::Obj)
      .Case("static", Emit::Static)
      .Case("shared", Emit::Shared)
      .Default(std::nullopt);
}

static std::optional<Emit> getEmitOfSuffix(StringRef path) {
  return llvm::StringSwitch<std::optional<Emit>>(
             llvm::sys::path::extension(path))
      .Case(".mlir", Emit::Posenc)
      .Case(".ll", Emit::LlvmIR)
      .Case(".s", Emit::Asm)
      .Case(".o", Emit::Obj)
      .Case(".a", Emit::Static)
      .Case(".so", Emit::Shared)
      .Default(std::nullopt);
}

/// The prefix of a library's symbols, from its file's name.
static std::string getPrefix(StringRef output) {
  if (output == "-")
    return "posenc";
  StringRef stem = llvm::sys::path::stem(output);
  stem.consume_front("lib");
  std::string prefix = stem.str();
  for (char &c : prefix)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  return prefix;
}

/// Whether symbols can begin so.
static bool isValidPrefix(StringRef prefix) {
  return !prefix.empty() && !llvm::isDigit(prefix.front());
}

static int fail(llvm::Error error) {
  llvm::errs() << "error: " << llvm::toString(std::move(error)) << "\n";
  return kExitError;
}

static std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  os << "\n";
  return text;
}

/// Assembly, or an object file's bytes; nothing after an error at `loc`.
static std::optional<std::string> generateCode(llvm::Module &module,
                                               const TargetSpec &target,
                                               llvm::CodeGenFileType type,
                                               Location loc) {
  LLVMErrors errors(module.getContext(), loc);
  llvm::SmallString<0> buffer;
  llvm::raw_svector_ostream os(buffer);
  llvm::legacy::PassManager manager;
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  // It fails only for a kind of file that no CPU target lacks.
  machine->addPassesToEmitFile(manager, os, nullptr, type);
  manager.run(module);
  if (errors.any())
    return std::nullopt;
  return std::string(buffer);
}

/// Writes the text to standard output, or adds it to the files.
static llvm::Error write(OutputFiles &files, StringRef path, StringRef text) {
  if (path != "-")
    return files.add(path, text).takeError();
  llvm::outs() << text;
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error ? llvm::createStringError("cannot write to standard output: " +
                                         error.message())
               : llvm::Error::success();
}

static llvm::Error writeLibrary(const Request &request, OutputFiles &files,
                                StringRef object) {
  StringRef name = llvm::sys::path::filename(request.output);
  if (request.emit == Emit::Obj)
    return write(files, request.output, object);
  if (request.emit == Emit::Static) {
    llvm::Expected<std::string> archive =
        createArchive(object, (llvm::sys::path::stem(name) + ".o").str());
    if (!archive)
      return archive.takeError();
    return write(files, request.output, *archive);
  }
  llvm::Expected<std::string> library = files.reserve(request.output);
  if (!library)
    return library.takeError();
  OutputFiles scratch;
  llvm::Expected<std::string> scratchName =
      scratch.add(request.output + ".o", object);
  if (!scratchName)
    return scratchName.takeError();
  return linkShared(*scratchName, *library, name, request.target.triple,
                    request.threads == Threads::OpenMP);
}

static int compile(const Request &request) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  DiagnosticPrinter diagnostics(context);
  OwningOpRef<ModuleOp> module =
      loadModule(request.input, request.inputOptions, context);
  if (!module)
    return kExitError;

  OutputFiles files;
  std::string stem = request.output;
  if (request.saveTemps && stem != "-") {
    llvm::SmallString<128> path(request.output);
    llvm::sys::path::replace_extension(path, "");
    stem = std::string(path);
  }
  auto save = [&](StringRef suffix, StringRef text) -> llvm::Error {
    if (!request.saveTemps || request.output == "-" ||
        stem + suffix.str() == request.output)
      return llvm::Error::success();
    return files.add(stem + suffix.str(), text).takeError();
  };
  // Not printed for nothing: the types of a small module can be vast text.
  auto saveModule = [&](StringRef suffix) -> llvm::Error {
    return request.saveTemps ? save(suffix, printModule(*module))
                             : llvm::Error::success();
  };
  auto finish = [&](llvm::Error error) {
    if (!error)
      error = files.commit();
    return error ? fail(std::move(error)) : kExitSuccess;
  };

  // Each stage goes on from the one before, but linalg, which no CPU kernel
  // passes through as a whole, stands beside.
  if (request.emit == Emit::Posenc)
    return finish(write(files, request.output, printModule(*module)));
  if (llvm::Error error = saveModule(".posenc.mlir"))
    return fail(std::move(error));
  if (request.emit == Emit::Linalg) {
    if (failed(lowerModule(*module, Stage::Linalg, request.target)))
      return kExitError;
    return finish(write(files, request.output, printModule(*module)));
  }
  if (failed(lowerModule(*module, Stage::Vector, request.target)))
    return kExitError;
  if (request.emit == Emit::Vector)
    return finish(write(files, request.output, printModule(*module)));
  if (llvm::Error error = saveModule(".vector.mlir"))
    return fail(std::move(error));
  if (failed(lowerModule(*module, Stage::Llvm, request.target)))
    return kExitError;
  if (request.emit == Emit::Llvm)
    return finish(write(files, request.output, printModule(*module)));
  if (llvm::Error error = saveModule(".llvm.mlir"))
    return fail(std::move(error));

  std::string prefix = getPrefix(request.output);
  std::string header = createHeader(getKernels(*module), prefix);
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> code = translateModule(
      *module, llvmContext, request.target, prefix, request.threads);
  if (!code)
    return kExitError;
  std::string ir;
  llvm::raw_string_ostream(ir) << *code;
  if (request.emit == Emit::LlvmIR)
    return finish(write(files, request.output, ir));
  if (llvm::Error error = save(".ll", ir))
    return fail(std::move(error));
  if (request.emit == Emit::Asm || request.saveTemps) {
    // Code generation changes the module: the object needs its own copy.
    std::optional<std::string> assembly =
        generateCode(*llvm::CloneModule(*code), request.target,
                     llvm::CodeGenFileType::AssemblyFile, module->getLoc());
    if (!assembly)
      return kExitError;
    if (request.emit == Emit::Asm)
      return finish(write(files, request.output, *assembly));
    if (llvm::Error error = save(".s", *assembly))
      return fail(std::move(error));
  }
  std::optional<std::string> object =
      generateCode(*code, request.target, llvm::CodeGenFileType::ObjectFile,
                   module->getLoc());
  if (!object)
    return kExitError;
  if (llvm::Error error = save(".o", *object))
    return fail(std::move(error));
  if (llvm::Error error = writeLibrary(request, files, *object))
    return fail(std::move(error));
  if (request.output == "-" && request.header.empty())
    return finish(llvm::Error::success());
  llvm::SmallString<128> headerPath(request.header);
  if (headerPath.empty()) {
    // libX.so has X.h beside it, as its entries are X_<function>.
    StringRef name = llvm::sys::path::stem(request.output);
    name.consume_front("lib");
    headerPath = llvm::sys::path::parent_path(request.output);
    llvm::sys::path::append(headerPath, name + ".h");
  }
  return finish(write(files, headerPath, header));
}

static std::optional<int> parseArguments(int argc, char **argv,
                                         Request &request) {
  OptionParser parser("posenc-compile", "IN.{mlir,json} -o OUT [options]",
                      "Compiles positional encodings to kernels: MLIR with "
                      "posenc operations at any stage,\nor a model's "
                      "config.json.");
  std::optional<std::string> output, header, emit, threads;
  std::vector<std::string> targets;
  parser.add("o", "OUT", "output file; - is standard output", output);
  parser.add("emit", "KIND",
             "posenc, linalg, vector, llvm, llvm-ir, asm, obj, static or "
             "shared (default: by OUT)",
             emit);
  parser.add("target", "CPU",
             "host, or [x86-64:|aarch64:]CPU[+feature...] (default: host)",
             targets);
  parser.add("dtype", "TYPE", "f32, bf16, f16 or f64 (default: the config's)",
             request.inputOptions.dtype);
  parser.add("pairing", "PAIRING", "half or interleaved (default: the model's)",
             request.inputOptions.pairing);
  parser.add("kernels", "NAME,...", "functions to compile (default: all)",
             [&](StringRef text) -> std::optional<std::string> {
               SmallVector<StringRef> names;
               text.split(names, ',');
               for (StringRef name : names) {
                 if (name.empty())
                   return "has an empty name";
                 request.inputOptions.kernels.push_back(name.str());
               }
               return std::nullopt;
             });
  parser.add("threads", "none", "compile without threads (default: OpenMP)",
             threads);
  parser.add("header", "FILE", "where the C header goes (default: beside OUT)",
             header);
  parser.add("save-temps", "keep the file of every stage beside OUT",
             request.saveTemps);

  std::vector<std::string> inputs;
  if (std::optional<int> code =
          parser.parse(ArrayRef(argv + 1, argv + argc), inputs))
    return code;
  auto usage = [](const llvm::Twine &message) {
    llvm::errs() << "posenc-compile: error: " << message << "\n";
    return kExitUsage;
  };
  if (inputs.size() != 1)
    return usage("expected one input, got " + llvm::Twine(inputs.size()));
  request.input = inputs.front();
  request.output = output.value_or("");
  request.header = header.value_or("");
  if (request.output.empty())
    return usage("no output: give -o OUT");
  if (emit && (*emit == "ptx" || *emit == "cubin" || *emit == "spirv"))
    return usage("--emit=" + *emit + " needs a GPU target, and there is none");
  std::optional<Emit> kind =
      emit ? parseEmit(*emit) : getEmitOfSuffix(request.output);
  if (!kind)
    return usage(emit ? "unknown kind '" + *emit + "' of output"
                      : "the suffix of '" + request.output +
                            "' says no kind of output: give --emit");
  request.emit = *kind;
  if (request.emit == Emit::Shared && request.output == "-")
    return usage("a shared library cannot go to standard output");
  bool hasSymbols = *kind != Emit::Posenc && *kind != Emit::Linalg &&
                    *kind != Emit::Vector && *kind != Emit::Llvm;
  if (hasSymbols && !isValidPrefix(getPrefix(request.output)))
    return usage("no symbol can begin as the name of '" + request.output +
                 "' says: it is empty or begins with a digit");
  if (threads && *threads != "none")
    return usage("unknown threads '" + *threads + "': expected none");
  if (threads)
    request.threads = Threads::None;
  std::vector<TargetSpec> unused;
  llvm::Expected<std::vector<TargetSpec>> specs =
      TargetSpec::parseAll(targets, unused);
  if (!specs)
    return usage(llvm::toString(specs.takeError()));
  if (specs->size() > 1)
    return usage("several targets in one library are not supported");
  request.target = specs->front();
  return std::nullopt;
}

int mlir::posenc::compileMain(int argc, char **argv) {
  Request request;
  if (std::optional<int> code = parseArguments(argc, argv, request))
    return *code;
  return runGuarded([&] { return compile(request); });
}
