//===- Run.cpp - posenc-run -----------------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-run/Run.h"

#include "DType.h"
#include "OutputFiles.h"
#include "Request.h"
#include "VerifyWeights.h"
#include "posenc-run/Kernels.h"
#include "posenc/Driver/Diagnostics.h"
#include "posenc/Driver/Guard.h"
#include "posenc/Driver/Options.h"
#include "posenc/runtime/npy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::posenc;
namespace runtime = ::posenc::runtime;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(message);
}

/// Allocates the results and calls the function.
static llvm::Error call(const Kernel &kernel, ArrayRef<Input> inputs,
                        std::vector<runtime::Array> &results) {
  runtime::Function function = kernel.getFunction();
  std::vector<posenc_value> inputValues, resultValues;
  for (const Input &input : inputs)
    inputValues.push_back(input.value());
  std::string error;
  for (size_t i = 0; i < function.numOutputs(); ++i) {
    std::vector<int64_t> shape;
    if (!function.outputShape(inputValues, i, shape, error))
      return makeError(error);
    llvm::Expected<runtime::Array> result =
        allocateArray(function.output(i).dtype(), std::move(shape));
    if (!result)
      return makeError("result #" + Twine(i) + ": " +
                       llvm::toString(result.takeError()));
    results.push_back(std::move(*result));
  }
  for (const runtime::Array &result : results)
    resultValues.push_back(result.value());
  return kernel.call(inputValues, resultValues);
}

/// Evaluates the function with the oracle. If it cannot, it emits diagnostics
/// before the error is returned.
static llvm::Expected<std::vector<ReferenceValue>>
evaluate(const Kernel &kernel, ArrayRef<Input> inputs) {
  std::vector<ReferenceValue> arguments;
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (input.isReal) {
      arguments.push_back(convertToReference(
          input.real, kernel.getFunction().input(number).dtype()));
      continue;
    }
    if (input.isScalar) {
      arguments.push_back(convertToReference(
          input.scalar, kernel.getFunction().input(number).dtype()));
      continue;
    }
    llvm::Expected<ReferenceValue> argument = convertToReference(input.array);
    if (!argument)
      return argument.takeError();
    arguments.push_back(std::move(*argument));
  }
  FailureOr<std::vector<ReferenceValue>> results =
      interpret(kernel.getSource(), std::move(arguments));
  if (failed(results))
    return makeError("the reference cannot evaluate the function");
  return std::move(*results);
}

/// Evaluates the function with the oracle. Returns an empty list, and prints
/// nothing, if it cannot.
static std::vector<ReferenceValue> tryEvaluate(const Kernel &kernel,
                                               ArrayRef<Input> inputs) {
  if (!kernel.getSource())
    return {};
  ScopedDiagnosticHandler silence(kernel.getSource().getContext(),
                                  [](Diagnostic &) { return success(); });
  llvm::Expected<std::vector<ReferenceValue>> results =
      evaluate(kernel, inputs);
  if (results)
    return std::move(*results);
  llvm::consumeError(results.takeError());
  return {};
}

/// Reads the files of expected results. `oracle` has the results of the oracle,
/// whose magnitudes and limits apply, or is empty.
static llvm::Error readExpected(const RunRequest &request, const Kernel &kernel,
                                ArrayRef<runtime::Array> results,
                                ArrayRef<ReferenceValue> oracle,
                                std::vector<ReferenceValue> &expected) {
  for (auto [number, path] : llvm::enumerate(request.expectedOutputs)) {
    runtime::Array array;
    std::string error;
    if (!runtime::readNpy(path, array, error))
      return makeError(error);
    posenc_dtype dtype = results[number].dtype();
    interpretBytes(array, dtype);
    llvm::Expected<ReferenceValue> value = convertToReference(array);
    if (!value)
      return value.takeError();
    if (!isSameType(array.dtype(), dtype))
      return makeError(path + ": expected " + posenc_dtype_name(dtype) +
                       ", got " + posenc_dtype_name(array.dtype()));
    setMeasure(*value, number < oracle.size() ? &oracle[number] : nullptr,
               kernel.getFunction());
    expected.push_back(std::move(*value));
  }
  return llvm::Error::success();
}

static void printSummary(runtime::Function function,
                         ArrayRef<runtime::Array> results) {
  for (auto [number, result] : llvm::enumerate(results)) {
    llvm::outs() << "result #" << number << ": "
                 << function.output(number).name() << " ";
    for (int64_t size : result.shape())
      llvm::outs() << size << "x";
    ArrayRef<uint8_t> bits(result.dataAs<uint8_t>(), result.sizeInBytes());
    llvm::outs() << posenc_dtype_name(result.dtype()) << " hash "
                 << llvm::format_hex_no_prefix(llvm::xxh3_64bits(bits), 16)
                 << "\n";
  }
}

/// Adds an array as a `.npy` file. The array must live until the files are
/// committed.
static llvm::Error addArray(OutputFiles &files, StringRef path,
                            const runtime::Array &array) {
  std::string header, error;
  if (!runtime::makeNpyHeader(array.tensor(), header, error))
    return makeError(path + ": " + error);
  return files
      .add(path,
           [header, &array](raw_ostream &stream) {
             stream << header;
             stream.write(array.dataAs<char>(), array.sizeInBytes());
           })
      .takeError();
}

static llvm::Expected<ExitCode> run(const RunRequest &request,
                                    const Kernel &kernel) {
  runtime::Function function = kernel.getFunction();
  for (const std::vector<std::string> *list :
       {&request.outputs, &request.expectedOutputs})
    if (list->size() > function.numOutputs())
      return makeError(function.name() + " has " +
                       Twine(function.numOutputs()) + " results, but " +
                       Twine(list->size()) + " files are given");
  llvm::Expected<std::vector<Input>> inputs =
      createInputs(function, request.inputs);
  if (!inputs)
    return inputs.takeError();
  std::vector<runtime::Array> results;
  if (llvm::Error error = call(kernel, *inputs, results))
    return std::move(error);

  std::vector<ReferenceValue> oracle, expected;
  if (request.reference) {
    llvm::Expected<std::vector<ReferenceValue>> values =
        evaluate(kernel, *inputs);
    if (!values)
      return values.takeError();
    oracle = std::move(*values);
    // If elements are asserted, the last result says what failed, which is an
    // error of the call.
    assert(oracle.size() >= results.size() && "the oracle has each result");
    oracle.erase(oracle.begin() + results.size(), oracle.end());
  } else if (request.needsMeasure()) {
    oracle = tryEvaluate(kernel, *inputs);
  }
  if (llvm::Error error =
          readExpected(request, kernel, results, oracle, expected))
    return std::move(error);

  OutputFiles outputs;
  for (auto [number, path] : llvm::enumerate(request.outputs))
    if (llvm::Error error = addArray(outputs, path, results[number]))
      return std::move(error);
  if (llvm::Error error = outputs.commit())
    return std::move(error);

  bool within = true;
  // With two comparisons, each gets a heading, as both count results from 0.
  bool areBoth = request.reference && !expected.empty();
  auto printHeading = [&](StringRef against) {
    if (areBoth)
      llvm::outs() << "compared with " << against << ":\n";
  };
  printHeading("the reference");
  if (request.reference)
    for (auto [number, result] : llvm::enumerate(results))
      within &= compareResult(number, result, oracle[number], request.limits,
                              areBoth ? ", compared with the reference" : "");
  printHeading("the expected outputs");
  StringRef note = areBoth ? ", compared with the expected output" : "";
  for (auto [number, value] : llvm::enumerate(expected))
    within &= request.tolerance
                  ? compareWithTolerance(number, results[number], value,
                                         *request.tolerance, note)
                  : compareResult(number, results[number], value,
                                  request.limits, note);
  if (!request.reference && expected.empty() && request.outputs.empty())
    printSummary(function, results);
  return within ? kExitSuccess : kExitMismatch;
}

int mlir::posenc::runMain(int argc, char **argv) {
  RunRequest request;
  if (std::optional<int> code = parseRunRequest(argc, argv, request))
    return *code;
  return runGuarded([&]() -> int {
    auto fail = [](const Twine &message) {
      getErrorStream() << "error: " << message << "\n";
      return kExitError;
    };
    if (isLibraryPath(request.path)) {
      if (request.reference)
        return fail("--reference needs a module or config.json, and '" +
                    request.path + "' is a compiled library");
      if (!getInputFlags(request.inputOptions).empty())
        return fail(
            "--dtype, --pairing, --k-cache, --cache-dtype, --cache-scales, "
            "--decode-tokens, --qk-norm, --index-type, --lse, --rotation, "
            "--causal, "
            "--rope-length, --precision and --stack-limit need a module or "
            "config.json, and '" +
            request.path + "' is a compiled library");
      if (!request.tuning.empty())
        return fail("--tuning needs a module or config.json, and '" +
                    request.path + "' is a compiled library");
      if (request.optLevel)
        return fail("--opt-level needs a module or config.json, and '" +
                    request.path + "' is a compiled library");
    }
    if (request.verifyWeights) {
      if (!isLibraryPath(request.path))
        return fail("--verify-weights needs a compiled library, and '" +
                    request.path + "' is none");
      llvm::Expected<int64_t> bytes = verifyWeights(request.path);
      if (!bytes)
        return fail(llvm::toString(bytes.takeError()));
      llvm::outs() << "weights: " << *bytes << " bytes have the digest\n";
      return kExitSuccess;
    }
    std::unique_ptr<Kernel> kernel = Kernel::open(
        request.path, request.function,
        {request.inputOptions, request.reference || request.needsMeasure(),
         request.tuning, request.optLevel.value_or(OptLevel::O3),
         request.device});
    if (!kernel)
      return kExitError;
    llvm::Expected<ExitCode> code = run(request, *kernel);
    llvm::outs().flush();
    std::error_code error = llvm::outs().error();
    llvm::outs().clear_error();
    if (!code)
      return fail(llvm::toString(code.takeError()));
    if (error)
      return fail("cannot write to standard output: " + error.message());
    return *code;
  });
}
