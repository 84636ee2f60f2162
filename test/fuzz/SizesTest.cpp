//===- SizesTest.cpp - random functions at valid and invalid sizes --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles random functions and calls their entry points, on buffers that end
// or begin at inaccessible pages. If the model accepts the sizes, the results
// must be the model's. Otherwise an entry point may accept or refuse the sizes
// (ops that are folded away require nothing), but must not access memory
// outside the buffers. POSENC_FUZZ_SEED selects other functions,
// POSENC_FUZZ_SCALE more.
//
//===----------------------------------------------------------------------===//

#include "Dispatch.h"
#include "Guarded.h"
#include "Sandbox.h"
#include "SizePrograms.h"

#include "posenc/Registration/Registration.h"
#include "posenc/Target/JitLibrary.h"
#include "posenc/runtime/Library.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace posenc::fuzz;
using Shape = std::vector<int64_t>;

namespace {

constexpr size_t kNumPrograms = 60, kCallsPerProgram = 24;

uint64_t readNumber(const char *name, uint64_t fallback) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

/// The layout of DLPack's DLTensor.
struct DlTensor {
  void *data;
  int32_t deviceType = 1, deviceId = 0;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes = 1;
  int64_t *shape;
  int64_t *strides = nullptr;
  uint64_t byteOffset = 0;
};

int64_t count(const Shape &shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

/// The values of a call, and whether the model accepts their sizes.
struct Trial {
  ModelCall call;
  bool isValid;
  Shape output;
};

/// A compiled function.
class Subject {
public:
  Subject(const SizeProgram &program, mlir::MLIRContext &context)
      : program(program) {
    module = mlir::parseSourceString<mlir::ModuleOp>(program.text, &context);
    if (!module)
      return;
    mlir::posenc::JitOptions options;
    options.optLevel = mlir::posenc::OptLevel::O0;
    jit = mlir::posenc::JitLibrary::create(*module, {}, options);
    if (!jit)
      return;
    std::string error;
    library = posenc::runtime::Library::fromSymbols(
        jit->getMetadata(),
        [](void *jit, const char *symbol) {
          return static_cast<mlir::posenc::JitLibrary *>(jit)->lookup(symbol);
        },
        jit.get(), error);
    if (library)
      function = library.find("f", error);
  }
  explicit operator bool() const { return static_cast<bool>(function); }

  /// Returns the output's shape as computed by the library; empty if the inputs
  /// contradict each other or the output is too large to allocate.
  Shape getOutputShape(const Trial &trial) const;

  /// Calls the plain or the checked entry point. Returns what is wrong, or an
  /// empty string, and counts refused calls.
  std::string run(const Trial &trial, bool atEnd, bool isPlain,
                  size_t &numRefused) const;

private:
  /// Returns the size arguments of the plain entry point, or nullopt if two
  /// tensors or a static size contradict each other.
  std::optional<Shape> getSizes(const Trial &trial) const;

  const SizeProgram &program;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<mlir::posenc::JitLibrary> jit;
  posenc::runtime::Library library;
  posenc::runtime::Function function;
};

} // namespace

std::optional<Shape> Subject::getSizes(const Trial &trial) const {
  const posenc_function *it = function.get();
  Shape sizes;
  for (size_t i = 0; i < posenc_function_num_sizes(it); ++i) {
    std::string name = posenc_function_size_name(it, i);
    std::optional<int64_t> value;
    for (size_t j = 0; j < program.inputs.size(); ++j)
      for (size_t dim = 0; dim < program.inputs[j].shape.size(); ++dim) {
        const char *own =
            posenc_argument_size_name(posenc_function_input(it, j), dim);
        int64_t size = trial.call.inputs[j].shape[dim];
        if (!own || own != name)
          continue;
        if (value && *value != size)
          return std::nullopt;
        value = size;
      }
    sizes.push_back(value.value_or(0));
  }
  // Static sizes are not arguments, so they must match.
  for (size_t j = 0; j < program.inputs.size(); ++j)
    for (size_t dim = 0; dim < program.inputs[j].shape.size(); ++dim)
      if (!program.inputs[j].isDynamic[dim] &&
          trial.call.inputs[j].shape[dim] != program.inputs[j].shape[dim])
        return std::nullopt;
  return sizes;
}

Shape Subject::getOutputShape(const Trial &trial) const {
  std::vector<posenc_value> values;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const SizeInput &input = program.inputs[i];
    const Shape &shape = trial.call.inputs[i].shape;
    posenc_value value = {};
    value.kind =
        input.kind == SizeInput::Kind::Scalar ? POSENC_SCALAR : POSENC_TENSOR;
    value.scalar = trial.call.scalars[i];
    // Sizes depend on no other data.
    value.tensor = {input.kind == SizeInput::Kind::Element
                        ? const_cast<int64_t *>(&trial.call.scalars[i])
                        : nullptr,
                    input.kind == SizeInput::Kind::Floats ? POSENC_F32
                                                          : POSENC_I64,
                    int32_t(shape.size()), shape.data()};
    values.push_back(value);
  }
  Shape shape;
  std::string error;
  function.outputShape(values, 0, shape, error);
  // The caller allocates the output even if the call is going to be refused.
  constexpr int64_t kMaxElements = int64_t(1) << 24;
  int64_t elements = 1;
  for (int64_t size : shape)
    elements = size > kMaxElements || elements > kMaxElements ? kMaxElements + 1
                                                              : elements * size;
  return elements > kMaxElements ? Shape() : shape;
}

std::string Subject::run(const Trial &trial, bool atEnd, bool isPlain,
                         size_t &numRefused) const {
  std::vector<Guarded> memory;
  std::vector<DlTensor> tensors(program.inputs.size() + 1);
  std::vector<Shape> shapes;
  std::vector<int64_t> arguments;
  for (const ModelTensor &tensor : trial.call.inputs)
    shapes.push_back(tensor.shape);
  shapes.push_back(trial.output);
  auto add = [&](size_t number, bool isFloat, bool isScalar, int64_t scalar) {
    memory.emplace_back(
        isScalar ? 0 : count(shapes[number]) * (isFloat ? 4 : 8), atEnd);
    if (isScalar) {
      arguments.push_back(scalar);
      return;
    }
    DlTensor &tensor = tensors[number];
    tensor.data = memory.back().as<void>();
    tensor.ndim = shapes[number].size();
    tensor.code = isFloat ? 2 : 0;
    tensor.bits = isFloat ? 32 : 64;
    tensor.shape = shapes[number].data();
    arguments.push_back(reinterpret_cast<int64_t>(
        isPlain ? tensor.data : static_cast<void *>(&tensor)));
  };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const SizeInput &input = program.inputs[i];
    bool isFloat = input.kind == SizeInput::Kind::Floats;
    add(i, isFloat, input.kind == SizeInput::Kind::Scalar,
        trial.call.scalars[i]);
    const ModelTensor &tensor = trial.call.inputs[i];
    if (input.kind == SizeInput::Kind::Element)
      *memory.back().as<int64_t>() = trial.call.scalars[i];
    for (size_t j = 0; j < tensor.data.size(); ++j)
      if (isFloat)
        memory.back().as<float>()[j] = float(tensor.data[j]);
      else
        memory.back().as<int64_t>()[j] = int64_t(tensor.data[j]);
  }
  add(program.inputs.size(), true, false, 0);
  float *output = memory.back().as<float>();
  char message[512] = "";
  // Large enough, since the tensors are small.
  static char workspace[1 << 24];
  bool hasWorkspace = jit->lookup("posenc_f_workspace");
  if (isPlain) {
    std::optional<Shape> sizes = getSizes(trial);
    if (!sizes)
      return "";
    arguments.insert(arguments.end(), sizes->begin(), sizes->end());
  }
  if (hasWorkspace)
    arguments.push_back(reinterpret_cast<int64_t>(workspace));
  if (!isPlain) {
    arguments.push_back(reinterpret_cast<int64_t>(message));
    arguments.push_back(sizeof(message));
  }
  if (arguments.size() > POSENC_MAX_ARGUMENTS)
    return "";
  auto code = posenc::runtime::dispatch<int32_t>(
      jit->lookup(isPlain ? "posenc_f" : "posenc_f_dl"), arguments.data(),
      arguments.size());
  numRefused += code != 0;
  std::string which =
      isPlain ? "the plain entry point" : "the checked entry point";
  if (!trial.isValid)
    return !isPlain && code != 0 && !*message
               ? which + " refuses invalid sizes without a message"
               : "";
  if (code != 0)
    return which + " refuses valid sizes with code " + std::to_string(code) +
           ": " + message;
  const ModelTensor &expected = trial.call.computed.back();
  for (size_t i = 0; i < expected.data.size(); ++i)
    if (!(std::abs(output[i] - expected.data[i]) <=
          1e-3 * (1 + std::abs(expected.data[i]))))
      return which + ": element " + std::to_string(i) + " is " +
             std::to_string(output[i]) + ", expected " +
             std::to_string(expected.data[i]);
  return "";
}

/// Changes up to two sizes of the call that the function was built for: a
/// single size, or all sizes of equal value.
static Trial makeTrial(const SizeProgram &program, Random &random,
                       bool isChanged) {
  Trial trial;
  std::vector<std::pair<size_t, size_t>> dims;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const SizeInput &input = program.inputs[i];
    trial.call.inputs.push_back({input.shape, {}});
    trial.call.scalars.push_back(input.scalar);
    if (input.hasScalar())
      dims.push_back({i, 0});
    for (size_t dim = 0; dim < input.shape.size() && !input.hasScalar(); ++dim)
      dims.push_back({i, dim});
  }
  auto valueAt = [&](std::pair<size_t, size_t> which) -> int64_t & {
    auto [input, dim] = which;
    return program.inputs[input].hasScalar()
               ? trial.call.scalars[input]
               : trial.call.inputs[input].shape[dim];
  };
  for (size_t change = isChanged ? 1 + random.below(2) : 0; change > 0;
       --change) {
    auto changed = dims[random.below(dims.size())];
    int64_t old = valueAt(changed);
    const int64_t choices[] = {0, 1, 2 * old, old + 1, old - 1, 3, 4, 6};
    int64_t value = choices[random.below(std::size(choices))];
    bool isScalar = program.inputs[changed.first].hasScalar();
    if (value < 0 && !isScalar)
      value = 0;
    // The first two are for scalars, too, which may be the sizes of
    // intermediate tensors.
    constexpr int64_t kExtremes[] = {-1, INT64_MAX - 2, INT64_MIN,
                                     int64_t(1) << 62};
    bool isElement =
        program.inputs[changed.first].kind == SizeInput::Kind::Element;
    if (isScalar && random.chance(4))
      value = kExtremes[random.below(isElement ? 4 : 2)];
    bool changesAll = random.chance(2) && value >= 0 && value < 100;
    for (auto other : dims) {
      auto [input, dim] = other;
      bool isStatic = !program.inputs[input].hasScalar() &&
                      !program.inputs[input].isDynamic[dim];
      if (other == changed ||
          (changesAll && valueAt(other) == old && !isStatic))
        valueAt(other) = value;
    }
  }
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const SizeInput &input = program.inputs[i];
    ModelTensor &tensor = trial.call.inputs[i];
    if (input.hasScalar())
      continue;
    for (int64_t n = count(tensor.shape); n > 0; --n)
      tensor.data.push_back(input.kind == SizeInput::Kind::Floats
                                ? double(random.below(33)) / 8 - 2
                            : input.kind == SizeInput::Kind::Positions
                                ? double(random.below(100))
                                : double(random.below(4)) -
                                      (random.chance(20) ? 3 : 0));
  }
  trial.isValid = program.run(trial.call);
  trial.output = trial.isValid ? trial.call.computed.back().shape : Shape();
  return trial;
}

TEST(SizesTest, EntryPointsMatchTheModel) {
  uint64_t seed = readNumber("POSENC_FUZZ_SEED", 1);
  size_t numPrograms = kNumPrograms * readNumber("POSENC_FUZZ_SCALE", 1);
  auto makeProgram = [&](size_t number) {
    Random random(seed * 0x100000001b3 + number);
    return makeSizeProgram(random);
  };
  SandboxOptions options;
  options.batch = 10;
  Summary summary = runSandboxed(
      numPrograms,
      [&]() -> Body {
        mlir::DialectRegistry registry;
        mlir::posenc::registerAllDialects(registry);
        auto context = std::make_shared<mlir::MLIRContext>(
            registry, mlir::MLIRContext::Threading::DISABLED);
        return [=](size_t number) -> Outcome {
          SizeProgram program = makeProgram(number);
          std::string diagnostics;
          mlir::ScopedDiagnosticHandler handler(
              context.get(), [&](mlir::Diagnostic &diagnostic) {
                diagnostics += diagnostic.str() + "\n";
                return mlir::success();
              });
          Subject subject(program, *context);
          if (!subject)
            return {"does not compile: " + diagnostics, 0};
          Random random(number);
          size_t numInvalid = 0, numRefused = 0, numValid = 0;
          for (size_t i = 0; i < kCallsPerProgram; ++i) {
            Trial trial = makeTrial(program, random, i > 0);
            Shape computed = subject.getOutputShape(trial);
            if (trial.isValid && computed != trial.output)
              return {"another shape of the output is computed", 0};
            trial.output = computed;
            for (bool isPlain : {false, true}) {
              size_t refused = 0;
              std::string wrong =
                  subject.run(trial, i % 2 == 0, isPlain, refused);
              if (!wrong.empty())
                return {wrong, 0};
              if (!isPlain) {
                numInvalid += !trial.isValid;
                numValid += trial.isValid;
                numRefused += refused;
              }
            }
          }
          // 1: all invalid sizes were refused, 2: some were accepted, 3: no
          // sizes were valid.
          return {"", numValid == 0              ? size_t(3)
                      : numRefused == numInvalid ? size_t(1)
                                                 : size_t(2)};
        };
      },
      options);
  for (const Failure &failure : summary.failures)
    ADD_FAILURE() << describe(failure) << "\nfunction:\n"
                  << makeProgram(failure.last).text;
  const std::vector<size_t> &reached = summary.reached;
  std::printf("%zu functions: %zu refuse all invalid sizes, %zu accept some of "
              "them, %zu had no valid sizes; slowest: %.1f s\n",
              summary.executed, reached[1], reached[2], reached[3],
              summary.slowestSeconds);
  EXPECT_EQ(summary.executed, numPrograms);
  // Guards against checks that accept everything.
  EXPECT_GE(reached[1], numPrograms / 3);
}
