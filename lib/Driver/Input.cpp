//===- Input.cpp - loading of input modules -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Input.h"

#include "ArgumentNames.h"
#include "ConfigOptions.h"
#include "Constants.h"
#include "ReadFile.h"
#include "TextDepth.h"
#include "posenc/ABI/Passes.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Frontend/ModuleBuilder.h"
#include "posenc/IR/CheckReshapes.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Import/Hlo.h"
#include "posenc/Import/Onnx.h"
#include "posenc/Import/Passes.h"
#include "posenc/Raise/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::posenc;
namespace frontend = ::posenc::frontend;

static std::nullptr_t failWith(const Twine &message) {
  getErrorStream() << "error: " << message << "\n";
  return nullptr;
}

/// Says what to do if a path that cannot be read may be the id of a model, such
/// as `owner/model`.
static std::string adviseModelId(StringRef path) {
  auto [owner, model] = path.split('/');
  auto isPart = [](StringRef part) {
    return !part.empty() && part.front() != '.' &&
           llvm::all_of(part, [](char c) {
             return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.';
           });
  };
  StringRef suffix = llvm::sys::path::extension(path);
  bool isFileName = llvm::is_contained(
      {".json", ".mlir", ".mlirbc", ".npy", ".onnx", ".safetensors", ".so"},
      suffix);
  if (!isPart(owner) || !isPart(model) || isFileName)
    return "";
  return ("; if it is the id of a model on Hugging Face, download its "
          "config.json, as by `hf download " +
          path + " config.json`, and pass the path of that file")
      .str();
}

std::unique_ptr<llvm::MemoryBuffer>
mlir::posenc::readFile(StringRef path, uint64_t limit, bool isBinary) {
  // Checks the file type first: reading a directory yields an obscure errno,
  // and reading a device may never reach end of file.
  llvm::sys::fs::file_status status;
  if (path != "-" && !llvm::sys::fs::status(path, status)) {
    if (status.type() == llvm::sys::fs::file_type::directory_file)
      return failWith("cannot read '" + path + "': it is a directory");
    if (status.type() == llvm::sys::fs::file_type::character_file ||
        status.type() == llvm::sys::fs::file_type::block_file)
      return failWith("cannot read '" + path + "': it is a device");
    if (limit && status.getSize() > limit)
      return failWith("cannot read '" + path + "': it is larger than " +
                      Twine(limit >> 20) + " MiB");
  }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/false,
                                         /*RequiresNullTerminator=*/!isBinary);
  if (!buffer)
    return failWith("cannot read '" + path +
                    "': " + buffer.getError().message() + adviseModelId(path));
  if (limit && (*buffer)->getBufferSize() > limit)
    return failWith("cannot read '" + path + "': it is larger than " +
                    Twine(limit >> 20) + " MiB");
  return std::move(*buffer);
}

//===----------------------------------------------------------------------===//
// config.json
//===----------------------------------------------------------------------===//

/// Whether a function needs no attention. If only such functions are requested,
/// keys of the config that concern attention are not diagnosed.
static bool isRotation(StringRef function) {
  return function.starts_with("sincos") || function.starts_with("rope");
}

/// The value of --kernels for all functions that a server calls.
static constexpr StringLiteral kServingSet = "serving";

static bool isServing(StringRef kernel);

/// Returns the content of an input, of at most that many bytes unless the limit
/// is 0; null after an error.
using ContentReader =
    function_ref<std::unique_ptr<llvm::MemoryBuffer>(uint64_t limit)>;

static OwningOpRef<ModuleOp> loadConfig(StringRef path, ContentReader read,
                                        const InputOptions &options,
                                        MLIRContext &context) {
  frontend::ReadOptions readOptions;
  ModuleBuilderOptions builderOptions;
  if (!parseConfigOptions(options, readOptions, builderOptions))
    return nullptr;
  if (!builderOptions.rotates)
    for (const std::string &kernel : options.kernels)
      if (isRotation(kernel))
        return failWith(
            "--rotation=none leaves out the functions sincos and rope: "
            "remove '" +
            kernel + "' from --kernels");
  constexpr uint64_t limit = uint64_t(64) << 20;
  std::unique_ptr<llvm::MemoryBuffer> buffer = read(limit);
  if (!buffer)
    return nullptr;
  builderOptions.location =
      FileLineColLoc::get(StringAttr::get(&context, path), 1, 1);

  SmallVector<frontend::Diagnostic> diagnostics;
  bool isRead = true;
  // Whether functions remain if the attention cannot be built. With several
  // position axes, a flag asks for raw keys, and ignoring it would be wrong.
  bool hasOtherFunctions = true;
  auto build = [&](bool attention) -> OwningOpRef<ModuleOp> {
    readOptions.attention = attention;
    diagnostics.clear();
    std::optional<frontend::ModelConfig> config = frontend::readModelConfig(
        context, buffer->getBuffer(), path, diagnostics, readOptions);
    isRead = config.has_value();
    if (!isRead)
      return nullptr;
    hasOtherFunctions =
        builderOptions.rotates && config->hasRotation() &&
        !(config->axes && builderOptions.keyCache == KeyCache::Raw);
    ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        diagnostics.push_back(
            {frontend::Severity::Error, path.str(), 1, 1, diagnostic.str()});
      return success();
    });
    return buildModule(context, *config, builderOptions);
  };
  builderOptions.serving = llvm::any_of(
      options.kernels, [](const std::string &name) { return isServing(name); });
  bool isNamed = !options.kernels.empty();
  bool namesAttention = !llvm::all_of(options.kernels, isRotation);
  bool wantsAttention = !isNamed || options.qkNorm || namesAttention;
  readOptions.rotation = llvm::any_of(options.kernels, isRotation);
  // Without rotations there is nothing else.
  readOptions.assumeAttention =
      namesAttention || options.qkNorm || !builderOptions.rotates;
  OwningOpRef<ModuleOp> module = build(wantsAttention);
  // If attention is not supported and was not requested explicitly, builds the
  // other functions and turns the errors into warnings. An invalid value in the
  // config is an error whenever a function depends on it.
  SmallVector<frontend::Diagnostic> reasons;
  if (!module && isRead && hasOtherFunctions && wantsAttention && !isNamed &&
      !options.qkNorm) {
    for (frontend::Diagnostic &diagnostic : diagnostics)
      if (diagnostic.severity == frontend::Severity::Error)
        reasons.push_back(diagnostic);
    module = build(/*attention=*/false);
  }
  if (options.noWarnings) {
    llvm::erase_if(diagnostics, [](const frontend::Diagnostic &diagnostic) {
      return diagnostic.severity == frontend::Severity::Warning;
    });
    if (module)
      reasons.clear();
  }
  frontend::printDiagnostics(getErrorStream(), diagnostics);
  if (module) {
    for (frontend::Diagnostic &reason : reasons) {
      reason.severity = frontend::Severity::Warning;
      reason.message = "no attention functions: " + reason.message;
    }
    frontend::printDiagnostics(getErrorStream(), reasons);
  }
  return module;
}

//===----------------------------------------------------------------------===//
// ONNX
//===----------------------------------------------------------------------===//

static OwningOpRef<ModuleOp> loadOnnx(StringRef path, ContentReader read,
                                      MLIRContext &context,
                                      const LoadHooks &hooks) {
  std::unique_ptr<llvm::MemoryBuffer> buffer = read(kMaxOnnxBytes);
  if (!buffer)
    return nullptr;
  OnnxImportOptions options;
  // External data is next to a file. Bytes in memory have none.
  if (llvm::sys::fs::is_regular_file(path)) {
    StringRef folder = llvm::sys::path::parent_path(path);
    options.folders.push_back(folder.empty() ? "." : folder.str());
    // Caches have links to files, with their external data in either folder.
    SmallString<256> file;
    if (llvm::sys::fs::is_symlink_file(path) &&
        !llvm::sys::fs::real_path(path, file))
      options.folders.push_back(llvm::sys::path::parent_path(file).str());
  }
  options.memory = std::move(buffer);
  options.onExternalData = hooks.onExternalData;
  return importOnnx(context, options.memory->getBuffer(), path, options);
}

//===----------------------------------------------------------------------===//
// MLIR
//===----------------------------------------------------------------------===//

/// Describes the format of a binary file, and what to do with it; empty for
/// text.
static StringRef findBinaryFormat(StringRef bytes) {
  static constexpr std::pair<StringLiteral, StringLiteral> formats[] = {
      {"\x7f"
       "ELF",
       "an ELF file, such as a library or an object file"},
      {"\x93NUMPY", "an array in NumPy's .npy format"},
      {"\x1f\x8b", "a gzip archive: decompress it first"},
      {"(\xb5/\xfd", "a Zstandard archive: decompress it first"},
      {"\xfd"
       "7zXZ",
       "an xz archive: decompress it first"},
      {"BZh", "a bzip2 archive: decompress it first"},
      {"PK\x03\x04", "a zip archive: unpack it first"},
      {"BC\xc0\xde", "LLVM bitcode"},
      {"!<arch>\n", "a static library"},
      {"\x03\x02#\x07", "a SPIR-V module"},
      {"\xff\xfe", "UTF-16 text: convert it to UTF-8"},
      {"\xfe\xff", "UTF-16 text: convert it to UTF-8"}};
  for (auto [magic, name] : formats)
    if (bytes.starts_with(magic))
      return name;
  // Text has no control characters other than white space.
  constexpr size_t inspected = 4096;
  for (unsigned char c : bytes.take_front(inspected))
    if (c < ' ' && !llvm::isSpace(c))
      return "binary data";
  return "";
}

/// Returns the text with the booleans of LLVM 24's `dense<"0x...">`, a byte for
/// each, as bits, as LLVM 22 reads them; nullopt if there are none.
static std::optional<std::string> packBooleans(StringRef text) {
  std::optional<std::string> packed;
  size_t copied = 0;
  constexpr StringLiteral begin = "dense<\"0x";
  for (size_t at = text.find(begin); at != StringRef::npos;
       at = text.find(begin, at + begin.size())) {
    size_t first = at + begin.size(), end = text.find('"', first);
    StringRef type = text.substr(end);
    if (end == StringRef::npos || !type.consume_front("\"> : tensor<"))
      continue;
    uint64_t count = 1, size;
    while (count <= text.size() && !type.consumeInteger(10, size) &&
           type.consume_front("x"))
      count *= size;
    if (!type.starts_with("i1>") || count < 2 || end - first != 2 * count)
      continue;
    if (!packed)
      packed.emplace();
    packed->append(text.data() + copied, first - copied);
    for (uint64_t byte = 0; byte < count; byte += 8) {
      unsigned bits = 0;
      for (uint64_t bit = 0; bit < 8 && byte + bit < count; ++bit)
        bits |= (text[first + 2 * (byte + bit) + 1] != '0') << bit;
      packed->push_back(llvm::hexdigit(bits / 16));
      packed->push_back(llvm::hexdigit(bits % 16));
    }
    copied = end;
  }
  if (packed)
    packed->append(text.data() + copied, text.size() - copied);
  return packed;
}

static OwningOpRef<ModuleOp> loadMLIR(StringRef path, ContentReader read,
                                      MLIRContext &context) {
  std::unique_ptr<llvm::MemoryBuffer> buffer = read(/*limit=*/0);
  if (!buffer)
    return nullptr;
  StringRef text = buffer->getBuffer();
  bool isText = !isBytecode(buffer->getMemBufferRef());
  if (isText) {
    if (StringRef format = findBinaryFormat(text); !format.empty()) {
      getErrorStream()
          << (path == "-" ? "<stdin>" : path)
          << ":1:1: error: expected MLIR, as text or bytecode, or a "
             "config.json, got "
          << format << "\n";
      return nullptr;
    }
    constexpr unsigned maxDepth = 256;
    if (std::optional<TextPosition> deep = findTooDeep(text, maxDepth)) {
      getErrorStream() << (path == "-" ? "<stdin>" : path) << ':' << deep->line
                       << ':' << deep->column << ": error: nested deeper than "
                       << maxDepth << " levels\n";
      return nullptr;
    }
    if (std::optional<std::string> packed = packBooleans(text))
      buffer = llvm::MemoryBuffer::getMemBufferCopy(
          *packed, buffer->getBufferIdentifier());
  }
  DialectRegistry foreign;
  registerHloSyntax(foreign);
  context.appendDialectRegistry(foreign);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), SMLoc());
  Location start = FileLineColLoc::get(
      &context, sources.getMemoryBuffer(1)->getBufferIdentifier(), 0, 0);
  // The bytecode reader can fail without a diagnostic.
  bool anyError = false;
  ScopedDiagnosticHandler watch(&context, [&](Diagnostic &diagnostic) {
    anyError |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure();
  });
  Block block;
  AsmParserState names;
  OwningOpRef<ModuleOp> module;
  if (isText ? succeeded(parseAsmSourceFile(sources, &block, &context, &names))
             : succeeded(parseSourceFile(sources, &block, &context)))
    module = ::mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
        &block, &context, start);
  if (!module && anyError && !isText)
    getErrorStream() << "note: bytecode of a newer LLVM than 22 cannot be "
                        "read: give the module as text\n";
  if (!module && !anyError)
    return failWith("cannot read '" + path + "': the bytecode is damaged");
  if (module && failed(checkReshapes(*module)))
    return nullptr;
  if (module && isText)
    nameArguments(*module, names);
  return module;
}

//===----------------------------------------------------------------------===//
// Functions to keep
//===----------------------------------------------------------------------===//

/// Names of function families of a config. Functions of one layer type add its
/// name.
static SmallVector<StringRef> getFamilies() {
  SmallVector<StringRef> families{"sincos", "rope", "attention", "decode"};
  families.append(std::begin(kServingFamilies), std::end(kServingFamilies));
  return families;
}

/// Returns the family of a function: the longest name that fits.
static StringRef getFamily(StringRef function) {
  StringRef found;
  for (StringRef family : getFamilies())
    if ((function == family || function.starts_with((family + "_").str())) &&
        family.size() > found.size())
      found = family;
  return found;
}

static bool isServing(StringRef kernel) {
  return kernel == kServingSet ||
         llvm::is_contained(kServingFamilies, getFamily(kernel));
}

/// Expands the names of function families. If a config has several layer types,
/// there may be no function `decode`, only `decode_<type>`; the name `decode`
/// then stands for the functions of all types. The name `serving` stands for
/// the families of a server.
static std::vector<std::string> expandFamilies(ModuleOp module,
                                               const InputOptions &options) {
  std::vector<std::string> names;
  for (const std::string &kernel : options.kernels) {
    if (kernel != kServingSet) {
      names.push_back(kernel);
      continue;
    }
    names.insert(names.end(), std::begin(kServingFamilies),
                 std::end(kServingFamilies));
    names.push_back("decode");
  }
  std::vector<std::string> expanded;
  for (const std::string &kernel : names) {
    size_t before = expanded.size();
    bool isFamily = llvm::is_contained(getFamilies(), StringRef(kernel));
    if (isFamily && !module.lookupSymbol(kernel))
      for (auto function : module.getOps<FunctionOpInterface>())
        if (getFamily(function.getName()) == kernel)
          expanded.push_back(function.getName().str());
    if (expanded.size() == before)
      expanded.push_back(kernel);
    // Layers without rotation have a function of their own, `<family>_nope`.
    std::string unrotated = kernel + "_nope";
    if (isFamily && !options.namesOneFunction && module.lookupSymbol(kernel) &&
        module.lookupSymbol(unrotated))
      expanded.push_back(unrotated);
  }
  return expanded;
}

/// Removes the public functions that are not in `kernels`. Those that others
/// still call become private instead.
static LogicalResult keepKernels(ModuleOp module,
                                 ArrayRef<std::string> kernels) {
  SmallVector<FunctionOpInterface> others;
  SmallVector<StringRef> known;
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (!function.isPublic())
      continue;
    known.push_back(function.getName());
    if (!llvm::is_contained(kernels, function.getName()))
      others.push_back(function);
  }
  for (const std::string &kernel : kernels)
    if (!llvm::is_contained(known, kernel)) {
      getErrorStream() << "error: no function '" << kernel
                       << "'; the input has ";
      llvm::interleaveComma(known, getErrorStream());
      getErrorStream() << (known.empty() ? "none\n" : "\n");
      return failure();
    }
  for (FunctionOpInterface function : others) {
    function.setPrivate();
    function->removeAttr(PosencDialect::kAbiAttrName);
  }
  // Removing a function can leave others without callers.
  auto isUnused = [&](FunctionOpInterface function) {
    return SymbolTable::symbolKnownUseEmpty(function, module);
  };
  while (true) {
    auto unused = llvm::find_if(others, isUnused);
    if (unused == others.end())
      return success();
    (*unused)->erase();
    others.erase(unused);
  }
}

/// Stores the value of --stack-limit as an attribute of the module, where the
/// passes look it up.
static LogicalResult setStackLimit(ModuleOp module,
                                   const InputOptions &options) {
  if (!options.stackLimit)
    return success();
  int64_t bytes;
  if (StringRef(*options.stackLimit).getAsInteger(10, bytes) || bytes <= 0) {
    failWith("--stack-limit needs a positive number of bytes, got '" +
             StringRef(*options.stackLimit).take_front(24) + "'");
    return failure();
  }
  module->setAttr(PosencDialect::kStackLimitAttrName,
                  Builder(module.getContext()).getI64IntegerAttr(bytes));
  return success();
}

static OwningOpRef<ModuleOp> load(StringRef path, ContentReader readInput,
                                  const InputOptions &options,
                                  MLIRContext &context,
                                  const LoadHooks &hooks) {
  auto read = [&](uint64_t limit) {
    std::unique_ptr<llvm::MemoryBuffer> buffer = readInput(limit);
    if (buffer && hooks.onRead)
      hooks.onRead(buffer->getBuffer());
    return buffer;
  };
  bool isConfig = path.ends_with(".json");
  StringRef flag = findConfigFlag(options);
  if (!isConfig && !flag.empty())
    return failWith(flag + " applies only to a config.json, and '" + path +
                    "' is not one");
  OwningOpRef<ModuleOp> module =
      isConfig                  ? loadConfig(path, read, options, context)
      : path.ends_with(".onnx") ? loadOnnx(path, read, context, hooks)
                                : loadMLIR(path, read, context);
  if (!module || failed(setStackLimit(*module, options)))
    return nullptr;
  if (options.constants && isConfig)
    return failWith("--constants applies only to a module, and '" + path +
                    "' is not one");
  if (options.constants &&
      failed(replaceArguments(*module, *options.constants)))
    return nullptr;
  if (options.raise && *options.raise != "yes" && *options.raise != "no")
    return failWith("unknown raise '" + *options.raise +
                    "'; expected yes or no");
  if (!isConfig && options.precision) {
    if (!symbolizePrecision(*options.precision))
      return failWith("unknown precision '" + *options.precision +
                      "': expected exact or hf_f32");
    if (options.raise == "no")
      return failWith("--precision is that of raised rotations, which "
                      "--raise=no leaves out");
  }
  if (options.assertions && *options.assertions != "check" &&
      *options.assertions != "drop")
    return failWith("unknown assert '" + *options.assertions +
                    "'; expected check or drop");
  if (hooks.onBuilt)
    hooks.onBuilt(*module);
  if (!isConfig) {
    PassManager importer(&context);
    importer.addPass(createPosencImportHloPass());
    if (failed(importer.run(*module)))
      return nullptr;
  }
  // Some of them are written by an importer.
  if (options.assertions == "drop")
    module->walk([](cf::AssertOp assertion) { assertion.erase(); });
  if (!isConfig) {
    PassManager simplifier(&context);
    simplifier.addPass(createPosencSimplifySizesPass());
    if (failed(simplifier.run(*module)))
      return nullptr;
  }
  if (hooks.onImported)
    hooks.onImported(*module);
  PassManager manager(&context);
  if (!isConfig && options.raise != "no")
    manager.addPass(createPosencRaisePass(
        {/*precision=*/options.precision.value_or("tables")}));
  // Runs before others, as it changes the signatures that users of the module
  // see.
  manager.addPass(createPosencPackArgumentsPass());
  if (failed(manager.run(*module)))
    return nullptr;
  if (options.kernels.empty())
    return module;
  std::vector<std::string> kernels = options.kernels;
  if (isConfig)
    kernels = expandFamilies(*module, options);
  if (failed(keepKernels(*module, kernels)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> mlir::posenc::loadModule(StringRef path,
                                               const InputOptions &options,
                                               MLIRContext &context,
                                               const LoadHooks &hooks) {
  return load(
      path,
      [&](uint64_t limit) {
        return readFile(path, limit, /*isBinary=*/path.ends_with(".onnx"));
      },
      options, context, hooks);
}

OwningOpRef<ModuleOp>
mlir::posenc::loadModuleFromText(StringRef name, StringRef text,
                                 const InputOptions &options,
                                 MLIRContext &context, const LoadHooks &hooks) {
  auto read = [&](uint64_t limit) -> std::unique_ptr<llvm::MemoryBuffer> {
    if (limit && text.size() > limit)
      return failWith("'" + name + "' is larger than " + Twine(limit >> 20) +
                      " MiB");
    return llvm::MemoryBuffer::getMemBufferCopy(text, name);
  };
  return load(name, read, options, context, hooks);
}
