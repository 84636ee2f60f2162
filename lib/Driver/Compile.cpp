//===- Compile.cpp - posenc-compile ---------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Compile.h"

#include "Linker.h"
#include "ListFunctions.h"
#include "OutputFiles.h"
#include "SlowOperations.h"
#include "posenc/Driver/CompileReport.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Guard.h"
#include "posenc/Driver/Input.h"
#include "posenc/Driver/Options.h"
#include "posenc/Driver/TuningFile.h"
#include "posenc/Registration/Registration.h"
#include "posenc/Target/CodeCache.h"
#include "posenc/Target/KernelCode.h"
#include "posenc/Target/SpirvCode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

enum class Emit {
  Posenc,
  Linalg,
  Tiled,
  Vector,
  Llvm,
  LlvmIR,
  Asm,
  Obj,
  Static,
  Shared,
  Ptx,
  Cubin,
  Spirv
};

/// Bytes of weights that stay in a library, unless --weights says otherwise. A
/// library of this size is loaded in milliseconds.
constexpr int64_t kMaxEmbeddedBytes = 16 << 20;

/// A parsed command line.
struct Request {
  std::string input, output, header;
  /// The file of the report, empty for none; and what it says.
  std::string report, command, warnings;
  Emit emit = Emit::Shared;
  CodeOptions code;
  bool saveTemps = false;
  bool remarks = false;
  /// Whether weights may stay in the model's files.
  bool keepsWeights = false;
  /// Whether to list the functions of the input instead of compiling.
  bool list = false;
  InputOptions inputOptions;
  std::optional<std::string> tuning;
};

} // namespace

static std::optional<Emit> parseEmit(StringRef name) {
  return llvm::StringSwitch<std::optional<Emit>>(name)
      .Case("posenc", Emit::Posenc)
      .Case("linalg", Emit::Linalg)
      .Case("tiled", Emit::Tiled)
      .Case("vector", Emit::Vector)
      .Case("llvm", Emit::Llvm)
      .Case("llvm-ir", Emit::LlvmIR)
      .Case("asm", Emit::Asm)
      .Case("obj", Emit::Obj)
      .Case("static", Emit::Static)
      .Case("shared", Emit::Shared)
      .Case("ptx", Emit::Ptx)
      .Case("cubin", Emit::Cubin)
      .Case("spirv", Emit::Spirv)
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
      .Case(".ptx", Emit::Ptx)
      .Case(".cubin", Emit::Cubin)
      .Case(".spv", Emit::Spirv)
      .Default(std::nullopt);
}

/// Whether a C header is written for the output.
static bool hasHeader(Emit emit) {
  return emit == Emit::Obj || emit == Emit::Static || emit == Emit::Shared ||
         emit == Emit::Spirv;
}

/// Derives the prefix of a library's symbols from its file name.
static std::string getPrefix(StringRef output) {
  if (output == "-")
    return "posenc";
  StringRef stem = llvm::sys::path::stem(output);
  stem.consume_front("lib");
  std::string prefix = stem.str();
  for (char &c : prefix)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  // A C identifier cannot begin with a digit.
  if (!prefix.empty() && llvm::isDigit(prefix.front()))
    prefix.insert(prefix.begin(), '_');
  return prefix;
}

static int fail(llvm::Error error) {
  getErrorStream() << "error: " << llvm::toString(std::move(error)) << "\n";
  return kExitError;
}

/// Writes the text to standard output if `path` is `-`; otherwise adds a file.
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
  return linkShared(*scratchName, *library, name,
                    request.code.targets.front().triple,
                    request.code.threads == Threads::OpenMP);
}

/// The intermediate files that --save-temps keeps next to the output.
class StageFiles {
public:
  StageFiles(const Request &request, OutputFiles &files)
      : output(request.output), files(files) {
    llvm::SmallString<128> path(request.output);
    llvm::sys::path::replace_extension(path, "");
    stem = std::string(path);
  }

  void add(StringRef suffix, StringRef text) {
    std::string path = stem + suffix.str();
    if (path == output || !error.empty())
      return;
    if (llvm::Error failure = files.add(path, text).takeError())
      error = llvm::toString(std::move(failure));
  }
  void add(StringRef suffix, ModuleOp module) {
    add(suffix, printModule(module));
  }
  /// Returns the first error; no file is added after it.
  llvm::Error getError() const {
    return error.empty() ? llvm::Error::success()
                         : llvm::createStringError(error);
  }

private:
  std::string output, stem, error;
  OutputFiles &files;
};

static llvm::Error writeHeader(const Request &request, OutputFiles &files,
                               StringRef header) {
  if (request.output == "-" && request.header.empty())
    return llvm::Error::success();
  llvm::SmallString<128> path(request.header);
  if (path.empty()) {
    // The header of libX.so is X.h, as its entry points are X_<function>.
    StringRef name = llvm::sys::path::stem(request.output);
    name.consume_front("lib");
    path = llvm::sys::path::parent_path(request.output);
    llvm::sys::path::append(path, name + ".h");
  }
  return write(files, path, header);
}

/// Returns the path of the weights of an output, which are beside it under the
/// name of its header.
static std::string getWeightsPath(StringRef output) {
  StringRef name = llvm::sys::path::stem(output);
  name.consume_front("lib");
  llvm::SmallString<128> path = llvm::sys::path::parent_path(output);
  llvm::sys::path::append(path, name + ".safetensors");
  return std::string(path);
}

/// Reserves the file of the weights, whose name the user did not choose: it
/// replaces none of the inputs.
static llvm::Expected<std::string>
reserveWeights(OutputFiles &files, StringRef path,
               ArrayRef<std::string> inputs) {
  for (StringRef input : inputs)
    if (llvm::sys::fs::equivalent(input, path))
      return llvm::createStringError(
          "'" + path +
          "' is an input, which the library's weights would replace: choose "
          "another name for the output");
  return files.reserve(path);
}

/// Names the files of the model by their paths below the folder of the output,
/// where the library looks for them. `files` have their paths without links.
static llvm::Error addModelFiles(Request &request,
                                 std::vector<ModelFile> files) {
  StringRef folder = llvm::sys::path::parent_path(request.output);
  llvm::SmallString<256> root;
  if (std::error_code code =
          llvm::sys::fs::real_path(folder.empty() ? "." : folder, root))
    return llvm::createStringError("'" + folder + "': " + code.message());
  if (!root.ends_with("/"))
    root += '/';
  for (ModelFile &file : files) {
    StringRef name = file.name;
    if (!name.consume_front(root))
      return llvm::createStringError(
          "--weights=model: '" + file.name +
          "' is not below the folder of the output, '" + root +
          "': write the library to a folder of the model, or pass "
          "--weights=file");
    if (!llvm::json::isUTF8(name))
      return llvm::createStringError(
          "--weights=model: the path of '" + llvm::json::fixUTF8(name) +
          "' is not UTF-8, as the header of the weights is: pass "
          "--weights=file");
    file.name = name.str();
  }
  request.code.weights->modelFiles = std::move(files);
  return llvm::Error::success();
}

/// Returns the stage that the module is lowered to if the output is MLIR.
static std::optional<Stage> getStage(Emit emit) {
  switch (emit) {
  case Emit::Posenc:
    return Stage::Posenc;
  case Emit::Linalg:
    return Stage::Linalg;
  case Emit::Tiled:
    return Stage::Tiled;
  case Emit::Vector:
    return Stage::Vector;
  case Emit::Llvm:
    return Stage::Llvm;
  default:
    return std::nullopt;
  }
}

static CodeKind getCodeKind(Emit emit) {
  return emit == Emit::LlvmIR  ? CodeKind::LlvmIR
         : emit == Emit::Asm   ? CodeKind::Asm
         : emit == Emit::Ptx   ? CodeKind::Ptx
         : emit == Emit::Cubin ? CodeKind::Cubin
                               : CodeKind::Object;
}

/// Whether the output contains code for CPUs.
static bool isCpuCode(const Request &request) {
  switch (request.emit) {
  case Emit::Posenc:
  case Emit::Linalg:
  case Emit::Tiled:
  case Emit::Ptx:
  case Emit::Cubin:
  case Emit::Spirv:
    return false;
  default:
    return request.code.hasCpuCode;
  }
}

/// Returns the last stage that the output's code passes through and that a
/// report shows.
static Stage getLastReportedStage(Emit emit) {
  return std::min(getStage(emit).value_or(Stage::Vector), Stage::Vector);
}

/// Compiles the input; `report` may be null.
static int compile(Request &request, CompileReport *report) {
  if (request.tuning &&
      failed(applyTuningFile(*request.tuning, request.code.targets)))
    return kExitError;
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  DiagnosticPrinter diagnostics(context);
  if (report)
    report->watch(context, diagnostics, request.remarks);
  else if (request.remarks)
    diagnostics.printRemarks();
  LoadHooks hooks = report ? report->getLoadHooks() : LoadHooks();
  std::vector<ModelFile> modelFiles;
  std::vector<std::string> inputs{request.input};
  if (request.inputOptions.constants)
    inputs.push_back(*request.inputOptions.constants);
  hooks.onExternalData = [&](StringRef path,
                             std::shared_ptr<llvm::MemoryBuffer> memory) {
    inputs.push_back(path.str());
    if (request.keepsWeights)
      modelFiles.push_back({path.str(), std::move(memory)});
  };
  OwningOpRef<ModuleOp> module =
      loadModule(request.input, request.inputOptions, context, hooks);
  if (!module)
    return kExitError;
  if (request.keepsWeights)
    if (llvm::Error error = addModelFiles(request, std::move(modelFiles)))
      return fail(std::move(error));
  if (request.list) {
    std::string text;
    llvm::raw_string_ostream os(text);
    listFunctions(os, *module);
    printEscaped(llvm::outs(), text);
    return kExitSuccess;
  }
  if (isCpuCode(request) && !request.inputOptions.noWarnings)
    warnOfSlowOperations(*module);
  if (report)
    report->addStages(*module, getLastReportedStage(request.emit),
                      request.code);

  OutputFiles files;
  StageFiles stages(request, files);
  auto finish = [&](llvm::Error error) {
    error = llvm::joinErrors(std::move(error), stages.getError());
    if (!error)
      error = files.commit();
    return error ? fail(std::move(error)) : kExitSuccess;
  };
  if (request.saveTemps)
    stages.add(".posenc.mlir", *module);
  if (std::optional<Stage> stage = getStage(request.emit)) {
    const TargetSpec &target = request.code.targets.front();
    Stage reached = Stage::Posenc;
    if (request.saveTemps && *stage == Stage::Llvm) {
      reached = Stage::Vector;
      if (failed(lowerModule(*module, reached, target)))
        return kExitError;
      stages.add(".vector.mlir", *module);
    }
    if (failed(lowerModule(*module, *stage, target, reached)))
      return kExitError;
    if (report && *stage == Stage::Llvm)
      report->addOutput(printModule(*module));
    return finish(write(files, request.output, printModule(*module)));
  }
  if (request.emit == Emit::Spirv) {
    std::optional<SpirvCode> code =
        generateSpirvCode(*module, request.code.prefix);
    if (!code)
      return kExitError;
    llvm::Error error = write(files, request.output, code->binary);
    if (!error)
      error = writeHeader(request, files, code->header);
    return finish(std::move(error));
  }

  auto showStage = [&](StringRef suffix, StringRef text) {
    stages.add(suffix, text);
  };
  CodeKind kind = getCodeKind(request.emit);
  if (request.code.weights)
    request.code.weights->create = [&] {
      return reserveWeights(files, getWeightsPath(request.output), inputs);
    };
  std::optional<KernelCode> code =
      request.saveTemps
          ? generateKernelCode(*module, request.code, kind, showStage)
          // Cached code has no remarks.
          : generateKernelCode(*module, request.code, kind,
                               request.remarks || report
                                   ? CodeCache()
                                   : CodeCache::fromEnvironment());
  if (!code)
    return kExitError;
  if (request.keepsWeights && !code->refersToModel &&
      !request.inputOptions.noWarnings)
    getErrorStream() << "posenc-compile: warning: --weights=model: no weights "
                        "stay in files of the model: they are packed, not at "
                        "a multiple of 64 bytes, or in the model itself\n";
  if (report && kind == CodeKind::Object)
    report->addObject(code->code);
  else if (report && kind != CodeKind::Cubin)
    report->addOutput(code->code);
  if (!hasHeader(request.emit))
    return finish(write(files, request.output, code->code));
  llvm::Error error = writeLibrary(request, files, code->code);
  if (!error)
    error = writeHeader(request, files, code->header);
  return finish(std::move(error));
}

/// Compiles the input and writes the report, also after an error.
static int compileWithReport(Request &request) {
  // An unwritable path is noticed before anything is compiled.
  if (request.report != "-")
    if (llvm::Error error = OutputFiles().add(request.report, "").takeError())
      return fail(std::move(error));
  CompileReport report(request.input, request.command);
  report.setOutput(request.output, request.code);
  std::string messages = request.warnings;
  int code;
  {
    RedirectErrors copy(messages, /*alsoPrint=*/true);
    code = compile(request, &report);
  }
  bool isCompiled = code == kExitSuccess;
  if (request.report != "-")
    return succeeded(report.save(request.report, messages, isCompiled))
               ? code
               : kExitError;
  OutputFiles none;
  llvm::Error error = write(none, "-", report.write(messages, isCompiled));
  return error ? fail(std::move(error)) : code;
}

/// Whether an output can contain code for only one target.
static bool isForOneTarget(Emit emit) {
  return emit == Emit::Vector || emit == Emit::Llvm || emit == Emit::Ptx ||
         emit == Emit::Cubin || emit == Emit::Spirv;
}

/// Parses the names of targets and stores them as CPU and GPU targets. Returns
/// an error text if a name is unknown or the output cannot have these targets.
static std::optional<std::string> parseTargets(ArrayRef<std::string> names,
                                               Request &request) {
  CodeOptions &code = request.code;
  std::vector<std::string> ofCpus;
  for (StringRef name : names) {
    if (name == kVulkanTarget) {
      code.gpus.vulkan = true;
      continue;
    }
    if (!CudaTarget::isName(name)) {
      ofCpus.push_back(name.str());
      continue;
    }
    llvm::Expected<CudaTarget> target = CudaTarget::parse(name);
    if (!target)
      return llvm::toString(target.takeError());
    if (llvm::none_of(code.gpus.cuda, [&](const CudaTarget &other) {
          return other.chip == target->chip;
        }))
      code.gpus.cuda.push_back(std::move(*target));
  }
  std::vector<TargetSpec> unused;
  llvm::Expected<std::vector<TargetSpec>> specs =
      TargetSpec::parseAll(ofCpus, unused);
  if (!specs)
    return llvm::toString(specs.takeError());
  code.targets = std::move(*specs);
  code.hasCpuCode = !ofCpus.empty() || code.gpus.empty();
  for (const TargetSpec &spec : unused)
    if (llvm::count(ofCpus, spec.name) < 2)
      request.warnings += "posenc-compile: warning: target '" + spec.name +
                          "' is ignored: another target needs the same CPU "
                          "features\n";
  getErrorStream() << request.warnings;

  bool isSpirv = request.emit == Emit::Spirv;
  bool isCuda = request.emit == Emit::Ptx || request.emit == Emit::Cubin;
  bool isForGpu = isSpirv || isCuda;
  if (isSpirv && !code.gpus.vulkan)
    return "this kind of output needs --target=vulkan";
  if (isCuda && code.gpus.cuda.empty())
    return "this kind of output needs a GPU target, e.g. --target=cuda:sm_90";
  if (isForGpu && !ofCpus.empty())
    return "this kind of output has no CPU code; remove the CPU target";
  size_t numTargets =
      isForGpu ? code.gpus.cuda.size() + code.gpus.vulkan : code.targets.size();
  if (isForOneTarget(request.emit) && numTargets > 1)
    return "this kind of output is for one target; pass a single --target";
  if (!isForGpu && isForOneTarget(request.emit) && !code.gpus.empty())
    return "this kind of output shows CPU code; for GPU code pass --emit=ptx "
           "or --emit=spirv";
  code.neededOnGpu = request.inputOptions.kernels;
  return std::nullopt;
}

static std::optional<int> parseArguments(int argc, char **argv,
                                         Request &request) {
  OptionParser parser(
      "posenc-compile", "IN.{mlir,json,onnx} -o OUT [options]",
      "Compiles MLIR with posenc operations, at any stage of lowering, a "
      "model's\nconfig.json, or an ONNX model to kernels.\n\n"
      "Compiled code is cached in $XDG_CACHE_HOME/posenc, by default "
      "~/.cache/posenc,\nup to 256 MiB. Set POSENC_CACHE=DIR to use another "
      "directory, or POSENC_CACHE=off\nto disable the cache. No other user may "
      "be able to write the directory. One that\ncannot be written gives the "
      "code that it has.\n\n"
      "Machine code for NVIDIA GPUs is assembled by $POSENC_PTXAS, or else by "
      "the ptxas\nof $CUDA_HOME, $CUDA_PATH, PATH or the Python package "
      "nvidia-cuda-nvcc. Without\none, or with POSENC_PTXAS=off, a library has "
      "PTX, which the driver compiles\nwhen it loads the library.");
  std::optional<std::string> output, header, emit, threads, report, schedule,
      weights;
  std::vector<std::string> targets;
  parser.add("o", "OUT", "output file, - for standard output", output);
  parser.add(
      "emit", "KIND",
      "output kind: posenc, linalg, tiled, vector, llvm, llvm-ir, asm, obj, "
      "static, shared, ptx, cubin or spirv (default: from the suffix of OUT)",
      emit);
  parser.add("target", "TARGET",
             "host, [x86-64:|aarch64:]CPU[+feature...], cuda:sm_NN or vulkan; "
             "repeat it for a library that picks the best version at load time "
             "(default: host)",
             targets);
  addInputOptions(parser, request.inputOptions);
  addKernelsOption(parser, request.inputOptions);
  parser.add("threads", "none",
             "generate single-threaded code (default: OpenMP)", threads);
  std::optional<OptLevel> optLevel;
  addOptLevelOption(parser, optLevel);
  parser.add("weights", "file|model|embed",
             "whether constants of 4 KiB and more are in a file beside OUT, "
             "X.safetensors for libX.so, or in the code (default: in the code "
             "if they have at most 16 MiB together); 'model' is 'file', but "
             "those that need no packing stay in the ONNX model's external "
             "data, which must be below the folder of OUT",
             weights);
  parser.add("header", "FILE", "path of the C header (default: next to OUT)",
             header);
  parser.add("tuning", "FILE",
             "parameters measured by posenc-tune, for the targets with the CPU "
             "of the file (default: built-in parameters)",
             request.tuning);
  parser.add("schedule", "FILE",
             "transform-dialect module whose @__transform_main tiles linalg "
             "and posenc operations; the default tiling applies to the rest",
             schedule);
  parser.add("list",
             "print the signature of each function of the input, one per line, "
             "and exit without compiling",
             request.list);
  bool listsModels = false;
  parser.add("list-models",
             "print the model types of config.json that are known, with the "
             "pairing and the functions of each, and exit",
             listsModels);
  bool listsKeys = false;
  parser.add("list-keys",
             "print the keys of config.json that change a rotation, a "
             "position, a mask or the scores, with what each does, the values "
             "by which it changes nothing, and the model types for which it is "
             "read, and exit",
             listsKeys);
  parser.add("no-warnings", "suppress warnings",
             request.inputOptions.noWarnings);
  parser.add("remarks",
             "print what passes chose, and why they left operations alone",
             request.remarks);
  parser.add("save-temps", "keep the output of every stage next to OUT",
             request.saveTemps);
  parser.add("report", "FILE.html",
             "write a page about the compilation, also if it fails: what was "
             "found, what was left alone and why, all remarks, and the stages",
             report);

  std::vector<std::string> inputs;
  if (std::optional<int> code = parser.parse(argc, argv, inputs))
    return code;
  auto usage = [](const llvm::Twine &message) {
    getErrorStream() << "posenc-compile: error: " << message << "\n";
    return kExitUsage;
  };
  if (listsModels || listsKeys) {
    if (argc != 2)
      return usage((listsModels ? "--list-models" : "--list-keys") +
                   llvm::Twine(" takes no input and no other flags"));
    listsModels ? listModels(llvm::outs()) : listKeys(llvm::outs());
    return kExitSuccess;
  }
  if (inputs.size() != 1)
    return usage("expected one input, got " + llvm::Twine(inputs.size()));
  request.input = inputs.front();
  request.output = output.value_or("");
  request.header = header.value_or("");
  request.report = report.value_or("");
  if (request.list && (output || emit || header || report || request.saveTemps))
    return usage("--list writes no output: remove -o, --emit, --header, "
                 "--report and --save-temps");
  if (request.list)
    return std::nullopt;
  if (request.output.empty())
    return usage("expected an output file: pass -o OUT");
  std::optional<Emit> kind =
      emit ? parseEmit(*emit) : getEmitOfSuffix(request.output);
  if (!kind)
    return usage(emit ? "unknown output kind '" + *emit + "'; see --help"
                      : "cannot infer the output kind from '" + request.output +
                            "'; pass --emit=<kind>");
  request.emit = *kind;
  if (request.emit == Emit::Shared && request.output == "-")
    return usage("cannot write a shared library to standard output; pass -o "
                 "OUT");
  bool hasSymbols =
      !getStage(*kind) && *kind != Emit::Ptx && *kind != Emit::Cubin;
  if (hasSymbols && getPrefix(request.output).empty())
    return usage("expected a name before the suffix in '" + request.output +
                 "': it is the prefix of the library's symbols");
  if (threads && *threads != "none")
    return usage("unknown threads '" + *threads + "': expected none");
  if (threads)
    request.code.threads = Threads::None;
  request.code.optLevel = optLevel.value_or(OptLevel::O3);
  request.code.prefix = getPrefix(request.output);
  bool canHaveWeights =
      hasHeader(*kind) && *kind != Emit::Spirv && request.output != "-";
  request.keepsWeights = weights == "model";
  bool isFile = weights == "file" || request.keepsWeights;
  if (weights && !isFile && *weights != "embed")
    return usage("unknown weights '" + *weights +
                 "': expected file, model or embed");
  if (isFile && !canHaveWeights)
    return usage("this output has no file of weights; remove --weights");
  if (canHaveWeights && weights != "embed")
    request.code.weights = {
        llvm::sys::path::filename(getWeightsPath(request.output)).str(),
        isFile ? 0 : kMaxEmbeddedBytes};
  if (header && !hasHeader(*kind))
    return usage("this kind of output has no C header; remove --header");
  if (report && request.report.empty())
    return usage("--report needs the name of a file");
  if (report && request.report == request.output)
    return usage("--report and -o write to the same place");
  if (request.saveTemps && request.output == "-")
    return usage("--save-temps needs an output file, not standard output");

  if (std::optional<std::string> error = parseTargets(targets, request))
    return usage(*error);
  for (TargetSpec &target : request.code.targets)
    target.schedule = schedule.value_or("");
  return std::nullopt;
}

/// Returns a command line as a shell takes it.
static std::string quote(ArrayRef<const char *> arguments) {
  std::string text = "posenc-compile";
  for (StringRef argument : arguments) {
    bool isPlain = !argument.empty() && llvm::all_of(argument, [](char c) {
      return llvm::isAlnum(c) || StringRef("-_=+,./:@%").contains(c);
    });
    text += ' ';
    if (isPlain) {
      text += argument;
      continue;
    }
    text += '\'';
    for (char c : argument)
      text += c == '\'' ? StringRef("'\\''") : StringRef(&c, 1);
    text += '\'';
  }
  return text;
}

int mlir::posenc::compileMain(int argc, char **argv) {
  Request request;
  if (std::optional<int> code = parseArguments(argc, argv, request))
    return *code;
  request.command = quote(ArrayRef(argv + 1, argv + argc));
  return runGuarded([&] {
    return request.report.empty() ? compile(request, nullptr)
                                  : compileWithReport(request);
  });
}
