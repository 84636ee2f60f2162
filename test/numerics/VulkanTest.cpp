//===- VulkanTest.cpp - kernels on Vulkan against those of the CPU ===========//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a position gets has the same bits on every target.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "VulkanSupport.h"

#include "posenc/Registration/Registration.h"
#include "posenc/Run/VulkanProgram.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstring>

using namespace posenc;
using namespace posenc::test;
using mlir::posenc::VulkanArgument;

namespace {

struct VulkanCase {
  const char *name;
  std::string module;
  posenc_dtype dtype;
  std::vector<std::vector<int64_t>> inputs; // all of `dtype`
  std::vector<int64_t> grid;                // of the positions
  std::vector<std::vector<int64_t>> outputs;
  posenc_dtype outputType = POSENC_DTYPE_INVALID;
};

std::string spell(std::string text,
                  std::vector<std::pair<std::string, std::string>> words) {
  for (auto &[from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
         at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

/// Queries and keys of two head counts, in one operation.
VulkanCase makeRope(posenc_dtype dtype, bool interleaved, int64_t tokens = 37) {
  const char *text = R"(
func.func @f(%q: tensor<?x4x64xT>, %k: tensor<?x2x64xT>, %p: tensor<?xi64>) -> (tensor<?x4x64xT>, tensor<?x2x64xT>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x4x64xT>
  %a = tensor.empty(%n) : tensor<?x4x64xT>
  %b = tensor.empty(%n) : tensor<?x2x64xT>
  %r:2 = posenc.rope PAIRING #posenc.frequencies<dim = 64, base = 500000> ins(%q, %k : tensor<?x4x64xT>, tensor<?x2x64xT>) positions(%p : tensor<?xi64>) dims = [0] outs(%a, %b : tensor<?x4x64xT>, tensor<?x2x64xT>)
  return %r#0, %r#1 : tensor<?x4x64xT>, tensor<?x2x64xT>
})";
  VulkanCase c;
  c.name = interleaved ? "Interleaved" : "Half";
  c.module =
      spell(text, {{"xT>", std::string("x") + posenc_dtype_name(dtype) + ">"},
                   {"PAIRING", interleaved ? "interleaved" : "half"}});
  c.dtype = dtype;
  c.inputs = c.outputs = {{tokens, 4, 64}, {tokens, 2, 64}};
  c.grid = {tokens};
  return c;
}

/// A window in the middle of the row, at a batch's and a sequence's positions.
VulkanCase makeWindow(posenc_dtype dtype) {
  const char *text = R"(
func.func @f(%x: tensor<?x?x?x80xT>, %p: tensor<?x?xi64>) -> tensor<?x?x?x80xT> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x?x80xT>
  %h = tensor.dim %x, %c1 : tensor<?x?x?x80xT>
  %s = tensor.dim %x, %c2 : tensor<?x?x?x80xT>
  %e = tensor.empty(%b, %h, %s) : tensor<?x?x?x80xT>
  %r = posenc.rope half inverse #posenc.frequencies<dim = 32, base = 10000, scaling = #posenc.yarn<factor = 4, original_max_position = 4096>> ins(%x : tensor<?x?x?x80xT>) positions(%p : tensor<?x?xi64>) dims = [0, 2] offset = 16 outs(%e : tensor<?x?x?x80xT>)
  return %r : tensor<?x?x?x80xT>
})";
  VulkanCase c;
  c.name = "Window";
  c.module =
      spell(text, {{"xT>", std::string("x") + posenc_dtype_name(dtype) + ">"}});
  c.dtype = dtype;
  c.inputs = c.outputs = {{2, 3, 19, 80}};
  c.grid = {2, 19};
  return c;
}

VulkanCase makeTable(posenc_dtype dtype, const char *order) {
  const char *text = R"(
func.func @f(%p: tensor<?xi64>) -> tensor<?x64xT> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x64xT>
  %r = posenc.sinusoidal ORDER #posenc.frequencies<dim = 64> positions(%p : tensor<?xi64>) outs(%e : tensor<?x64xT>)
  return %r : tensor<?x64xT>
})";
  VulkanCase c;
  c.name = order[0] == 'i' ? "Sinusoidal" : "SinusoidalParts";
  c.module =
      spell(text, {{"xT>", std::string("x") + posenc_dtype_name(dtype) + ">"},
                   {"ORDER", order}});
  c.dtype = c.outputType = dtype;
  c.grid = {67};
  c.outputs = {{67, 64}};
  return c;
}

VulkanCase makeSincos(posenc_dtype dtype) {
  const char *text = R"(
func.func @f(%p: tensor<?xi64>) -> (tensor<?x24xT>, tensor<?x24xT>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %p, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x24xT>
  %r:2 = posenc.sincos #posenc.frequencies<dim = 48, scaling = #posenc.yarn<factor = 8, original_max_position = 4096>> positions(%p : tensor<?xi64>) outs(%e, %e : tensor<?x24xT>, tensor<?x24xT>)
  return %r#0, %r#1 : tensor<?x24xT>, tensor<?x24xT>
})";
  VulkanCase c;
  c.name = "Sincos";
  c.module =
      spell(text, {{"xT>", std::string("x") + posenc_dtype_name(dtype) + ">"}});
  c.dtype = dtype;
  c.grid = {67};
  c.outputs = {{67, 24}, {67, 24}};
  return c;
}

std::vector<VulkanCase> makeCases() {
  std::vector<VulkanCase> cases;
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F16, POSENC_F64}) {
    cases.push_back(makeRope(dtype, false));
    cases.push_back(makeRope(dtype, true));
    cases.push_back(makeWindow(dtype));
    cases.push_back(makeTable(dtype, "interleaved"));
    cases.push_back(makeTable(dtype, "sin_cos"));
    cases.push_back(makeSincos(dtype));
  }
  return cases;
}

/// What a program is run with, and what the CPU makes of it.
struct Data {
  explicit Data(const VulkanCase &c) {
    for (auto &shape : c.inputs)
      inputs.push_back(makeRandom(c.dtype, shape, 7 + inputs.size()));
    int64_t count = 1;
    for (int64_t size : c.grid)
      count *= size;
    inputs.push_back(makePositions(POSENC_I64, c.grid, hardPositions(count)));
    Kernel kernel(c.module);
    std::vector<posenc_value> values;
    for (const runtime::Array &input : inputs)
      values.push_back(input.value());
    expected = kernel.call("f", values);
    std::string error;
    for (auto &shape : c.outputs) {
      outputs.emplace_back();
      EXPECT_TRUE(
          runtime::Array::allocate(c.dtype, shape, outputs.back(), error));
    }
  }
  std::vector<VulkanArgument> arguments() const {
    std::vector<VulkanArgument> all;
    for (const std::vector<runtime::Array> *list : {&inputs, &outputs})
      for (const runtime::Array &array : *list)
        all.emplace_back(array.value());
    return all;
  }
  std::vector<runtime::Array> inputs, outputs, expected;
};

void expectSame(const std::vector<runtime::Array> &results,
                const std::vector<runtime::Array> &expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i].sizeInBytes(), expected[i].sizeInBytes());
    size_t element = posenc_dtype_size(results[i].dtype()), different = 0;
    size_t first = 0;
    for (size_t at = 0; at < results[i].sizeInBytes(); at += element)
      if (std::memcmp(results[i].dataAs<char>() + at,
                      expected[i].dataAs<char>() + at, element) &&
          !different++)
        first = at / element;
    EXPECT_EQ(different, 0u) << "of " << results[i].numElements()
                             << " in result " << i << ", first at " << first;
  }
}

/// A module compiled for the first device. Failures are test failures.
class Program {
public:
  explicit Program(const std::string &text) {
    mlir::DialectRegistry registry;
    mlir::posenc::registerAllDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    auto made = mlir::posenc::VulkanProgram::create(*module, 0);
    if (made)
      program = std::move(*made);
    else
      ADD_FAILURE() << llvm::toString(made.takeError());
  }
  bool call(const std::vector<VulkanArgument> &arguments) {
    if (!program)
      return false;
    std::string error = llvm::toString(program->call("f", arguments));
    EXPECT_EQ(error, "");
    return error.empty();
  }
  mlir::posenc::VulkanProgram *operator->() { return program.get(); }

private:
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<mlir::posenc::VulkanProgram> program;
};

class Vulkan : public testing::TestWithParam<VulkanCase> {
protected:
  void SetUp() override {
    std::string reason = whyNoVulkan();
    if (!reason.empty())
      GTEST_SKIP() << reason;
  }
};

} // namespace

TEST_P(Vulkan, HasTheBitsOfTheCPU) {
  Data data(GetParam());
  Program program(GetParam().module);
  ASSERT_TRUE(program.call(data.arguments()));
  ASSERT_EQ(program->getLaunched().size(), 1u);
  EXPECT_EQ(program->getLaunched().front().find("narrow"), std::string::npos);
  expectSame(data.outputs, data.expected);

  // Nothing is aligned to more than an element, and rows have gaps.
  std::vector<VulkanArgument> arguments = data.arguments();
  for (runtime::Array &output : data.outputs)
    std::memset(output.data(), 0, output.sizeInBytes());
  for (VulkanArgument &argument : arguments) {
    const posenc_tensor &tensor = argument.value.tensor;
    argument.shift = 3 * posenc_dtype_size(tensor.dtype);
    if (tensor.rank > 1)
      argument.gap = 5;
  }
  ASSERT_TRUE(program.call(arguments));
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    const posenc_tensor &tensor = argument.value.tensor;
    size_t element = posenc_dtype_size(tensor.dtype);
    size_t row = tensor.shape[tensor.rank - 1] * element;
    llvm::ArrayRef<char> memory = program->getMemory(number);
    for (size_t at = 0; at < memory.size(); ++at) {
      bool isOfRow =
          at >= size_t(argument.shift) &&
          (at - argument.shift) % (row + argument.gap * element) < row;
      ASSERT_TRUE(isOfRow || memory[at] == 0)
          << "argument " << number << ": byte " << at << " is written";
    }
  }
  expectSame(data.outputs, data.expected);
}

INSTANTIATE_TEST_SUITE_P(, Vulkan, testing::ValuesIn(makeCases()),
                         [](const auto &info) {
                           return std::string(info.param.name) + "_" +
                                  posenc_dtype_name(info.param.dtype);
                         });

namespace {
class VulkanOnce : public Vulkan {};
} // namespace

TEST_P(VulkanOnce, HasTheBitsOfTheCPUInParts) {
  Data data(GetParam());
  Program program(GetParam().module);
  program->setMostBlocks(3);
  ASSERT_TRUE(program.call(data.arguments()));
  expectSame(data.outputs, data.expected);
}

TEST_P(VulkanOnce, HasTheBitsOfTheCPUInPlace) {
  Data data(GetParam());
  Program program(GetParam().module);
  std::vector<VulkanArgument> arguments = data.arguments();
  size_t first = data.inputs.size();
  for (size_t i = 0; i < data.outputs.size(); ++i)
    if (data.inputs[i].sizeInBytes() == data.outputs[i].sizeInBytes())
      arguments[first + i].alias = i;
  ASSERT_TRUE(program.call(arguments));
  expectSame(data.outputs, data.expected);
}

// The check sees a frequency that is wrong by a millionth.
TEST_P(VulkanOnce, ShowsAFault) {
  Data data(GetParam());
  Program program(
      spell(GetParam().module, {{"base = 500000", "base = 500000.5"},
                                {"dim = 64>", "dim = 64, base = 10000.01>"}}));
  ASSERT_TRUE(program.call(data.arguments()));
  bool same = true;
  for (size_t i = 0; i < data.outputs.size(); ++i)
    same &= !std::memcmp(data.outputs[i].data(), data.expected[i].data(),
                         data.outputs[i].sizeInBytes());
  EXPECT_FALSE(same);
}

INSTANTIATE_TEST_SUITE_P(, VulkanOnce,
                         testing::Values(makeRope(POSENC_BF16, false),
                                         makeRope(POSENC_F32, true),
                                         makeTable(POSENC_F32, "interleaved")),
                         [](const auto &info) {
                           return std::string(info.param.name) + "_" +
                                  posenc_dtype_name(info.param.dtype);
                         });
