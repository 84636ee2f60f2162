//===- VulkanTest.cpp - Vulkan kernels against the CPU --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result for a position has the same bits on every target.
//
//===----------------------------------------------------------------------===//

#include "Draw.h"
#include "Harness.h"
#include "VulkanSupport.h"

#include <cmath>
#include <cstring>
#include <optional>

using namespace posenc;
using namespace posenc::test;

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

/// Queries and keys with different head counts in one op.
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

/// A rotary window in the middle of a row, with positions per sequence and
/// token.
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

/// The inputs and outputs of a program, and the results of the CPU.
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
  /// Returns the inputs, followed by the outputs.
  std::vector<runtime::Array *> arrays() {
    std::vector<runtime::Array *> all;
    for (std::vector<runtime::Array> *list : {&inputs, &outputs})
      for (runtime::Array &array : *list)
        all.push_back(&array);
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

/// The placement of a tensor in its buffer.
struct Layout {
  /// Bytes before the tensor, and elements after each row.
  int64_t shift = 0, gap = 0;
  /// For an output in place, the argument with whose buffer it is shared.
  std::optional<size_t> alias;
};

template <auto destroy> struct Destroyer {
  template <typename T> void operator()(T *object) const { destroy(object); }
};

/// A module compiled for and loaded on the first device. Failures are test
/// failures.
class Program {
public:
  explicit Program(const std::string &text)
      : kernel(text, Route::Direct, {/*cuda=*/{}, /*vulkan=*/true}) {
    posenc_vulkan_device *opened = nullptr;
    posenc_vulkan_program *made = nullptr;
    EXPECT_EQ(posenc_vulkan_open(0, &opened), POSENC_OK);
    device.reset(opened);
    EXPECT_EQ(
        posenc_vulkan_create_program(opened, kernel.getLibrary().get(), &made),
        POSENC_OK)
        << posenc_last_error();
    program.reset(made);
  }

  /// Records the names of launched kernels, and limits a launch to `maxBlocks`
  /// workgroups; 0: no limit.
  void observe(uint32_t maxBlocks = 0) {
    posenc_vulkan_configure_program(
        program.get(),
        [](void *names, const char *name, int64_t) {
          static_cast<std::vector<std::string> *>(names)->push_back(name);
        },
        &launched, maxBlocks);
  }

  /// Calls @f on tensors with these layouts (contiguous where there are none),
  /// and reads the tensors back.
  void call(Data &data, std::vector<Layout> layouts = {}) {
    std::vector<runtime::Array *> arrays = data.arrays();
    layouts.resize(arrays.size());
    memories.assign(arrays.size(), {});
    launched.clear();
    std::vector<Buffer> buffers(arrays.size());
    std::vector<posenc_vulkan_argument> arguments(arrays.size());
    std::vector<std::vector<int64_t>> strides(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      const posenc_tensor &tensor = arrays[i]->value().tensor;
      size_t owner = layouts[i].alias.value_or(i);
      const Layout &layout = layouts[owner];
      int64_t stride = 1;
      for (int32_t dim = tensor.rank; dim-- > 0;) {
        strides[i].insert(strides[i].begin(), stride);
        stride = stride * tensor.shape[dim];
        stride += dim + 1 == tensor.rank ? layout.gap : 0;
      }
      if (owner == i) {
        memories[i].resize(layout.shift +
                           stride * posenc_dtype_size(tensor.dtype));
        copyRows(layout, tensor, memories[i], /*isBack=*/false);
        buffers[i] = upload(memories[i]);
      }
      arguments[i] = {{0},         buffers[owner].get(), uint64_t(layout.shift),
                      tensor.rank, tensor.shape,         strides[i].data()};
    }
    ASSERT_EQ(launch(arguments), POSENC_OK) << posenc_last_error();
    for (size_t i = 0; i < arrays.size(); ++i) {
      size_t owner = layouts[i].alias.value_or(i);
      std::vector<char> &memory = memories[owner];
      posenc_vulkan_download(buffers[owner].get(), 0, memory.data(),
                             memory.size());
      copyRows(layouts[owner], arrays[i]->value().tensor, memory,
               /*isBack=*/true);
    }
  }

  posenc_status launch(const std::vector<posenc_vulkan_argument> &arguments) {
    runtime::Function function = kernel.getLibrary().function(0);
    return posenc_vulkan_launch(program.get(), function.get(), arguments.data(),
                                arguments.size());
  }

  using Buffer = std::unique_ptr<posenc_vulkan_buffer,
                                 Destroyer<posenc_vulkan_destroy_buffer>>;
  Buffer upload(const std::vector<char> &memory) {
    posenc_vulkan_buffer *made = nullptr;
    EXPECT_EQ(posenc_vulkan_create_buffer(device.get(), memory.size(), &made),
              POSENC_OK);
    EXPECT_EQ(posenc_vulkan_upload(made, 0, memory.data(), memory.size()),
              POSENC_OK);
    return Buffer(made);
  }

  /// The kernels that the last call launched, after `observe`.
  std::vector<std::string> launched;
  /// The bytes of each argument's buffer after the last call, with its gaps.
  std::vector<std::vector<char>> memories;

private:
  static void copyRows(const Layout &layout, const posenc_tensor &tensor,
                       std::vector<char> &memory, bool isBack) {
    int64_t element = posenc_dtype_size(tensor.dtype);
    int64_t length = tensor.shape[tensor.rank - 1], rows = 1;
    for (int32_t dim = 0; dim + 1 < tensor.rank; ++dim)
      rows *= tensor.shape[dim];
    for (int64_t row = 0; row < rows; ++row) {
      char *dense = static_cast<char *>(tensor.data) + row * length * element;
      char *place =
          memory.data() + layout.shift + row * (length + layout.gap) * element;
      std::memcpy(isBack ? dense : place, isBack ? place : dense,
                  length * element);
    }
  }

  Kernel kernel;
  std::unique_ptr<posenc_vulkan_device, Destroyer<posenc_vulkan_close>> device;
  std::unique_ptr<posenc_vulkan_program,
                  Destroyer<posenc_vulkan_destroy_program>>
      program;
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
  program.observe();
  program.call(data);
  ASSERT_EQ(program.launched.size(), 1u);
  EXPECT_EQ(program.launched.front().find("narrow"), std::string::npos);
  expectSame(data.outputs, data.expected);

  // Tensors are aligned to an element only, and their rows have gaps.
  for (runtime::Array &output : data.outputs)
    std::memset(output.data(), 0, output.sizeInBytes());
  std::vector<Layout> layouts;
  for (const runtime::Array *array : data.arrays()) {
    int64_t element = posenc_dtype_size(array->dtype());
    layouts.push_back({3 * element, array->shape().size() > 1 ? 5 : 0, {}});
  }
  program.call(data, layouts);
  for (size_t number = 0; number < layouts.size(); ++number) {
    const posenc_tensor &tensor = data.arrays()[number]->value().tensor;
    size_t element = posenc_dtype_size(tensor.dtype);
    size_t row = tensor.shape[tensor.rank - 1] * element;
    size_t step = row + layouts[number].gap * element;
    const std::vector<char> &memory = program.memories[number];
    for (size_t at = 0; at < memory.size(); ++at) {
      bool isInRow = at >= size_t(layouts[number].shift) &&
                     (at - layouts[number].shift) % step < row;
      ASSERT_TRUE(isInRow || memory[at] == 0)
          << "argument " << number << ": byte " << at
          << " outside of the rows is written";
    }
  }
  expectSame(data.outputs, data.expected);
}

static std::string getCaseName(const testing::TestParamInfo<VulkanCase> &info) {
  return std::string(info.param.name) + "_" +
         posenc_dtype_name(info.param.dtype);
}

INSTANTIATE_TEST_SUITE_P(, Vulkan,
                         testing::ValuesIn(drawCases("Vulkan", makeCases(), 2,
                                                     getCaseName)),
                         getCaseName);

namespace {
class VulkanOnce : public Vulkan {};
} // namespace

TEST_P(VulkanOnce, HasTheBitsOfTheCPUInSeveralLaunches) {
  Data data(GetParam());
  Program program(GetParam().module);
  program.observe(/*maxBlocks=*/3);
  program.call(data);
  expectSame(data.outputs, data.expected);
}

TEST_P(VulkanOnce, HasTheBitsOfTheCPUInPlace) {
  Data data(GetParam());
  Program program(GetParam().module);
  size_t first = data.inputs.size();
  std::vector<Layout> layouts(first + data.outputs.size());
  for (size_t i = 0; i < data.outputs.size(); ++i)
    if (data.inputs[i].sizeInBytes() == data.outputs[i].sizeInBytes())
      layouts[first + i].alias = i;
  program.call(data, layouts);
  expectSame(data.outputs, data.expected);
}

// The checks detect a frequency base that is wrong by a millionth.
TEST_P(VulkanOnce, FaultIsCaught) {
  Data data(GetParam());
  Program program(
      spell(GetParam().module, {{"base = 500000", "base = 500000.5"},
                                {"dim = 64>", "dim = 64, base = 10000.01>"}}));
  program.call(data);
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
                         getCaseName);

// Launches check what no driver checks: that tensors are within their buffers.
TEST_F(Vulkan, RefusesTensorsBeyondTheirBuffers) {
  Program program(makeTable(POSENC_F32, "interleaved").module);
  Program::Buffer positions = program.upload(std::vector<char>(3 * 8)),
                  table = program.upload(std::vector<char>(3 * 256));
  std::vector<int64_t> three{3}, shape{3, 64}, back{-64, 1}, far{65, 1};
  std::vector<posenc_vulkan_argument> good{
      {{0}, positions.get(), 0, 1, three.data(), nullptr},
      {{0}, table.get(), 0, 2, shape.data(), nullptr}};
  ASSERT_EQ(program.launch(good), POSENC_OK) << posenc_last_error();
  auto expectRefused = [&](std::vector<posenc_vulkan_argument> arguments,
                           posenc_status status, const std::string &text) {
    EXPECT_EQ(program.launch(arguments), status);
    EXPECT_NE(std::string(posenc_last_error()).find(text), std::string::npos)
        << posenc_last_error();
  };
  auto change = [&](size_t number, auto edit) {
    std::vector<posenc_vulkan_argument> arguments = good;
    edit(arguments[number]);
    return arguments;
  };
  using Argument = posenc_vulkan_argument;
  const std::string beyond = "'out0' goes beyond its buffer of 768 bytes";
  expectRefused(change(1, [&](Argument &it) { it.offset = 4; }),
                POSENC_INVALID_ARGUMENT, beyond);
  expectRefused(change(1, [&](Argument &it) { it.offset = -256; }),
                POSENC_INVALID_ARGUMENT, beyond);
  expectRefused(change(1, [&](Argument &it) { it.strides = far.data(); }),
                POSENC_INVALID_ARGUMENT, beyond);
  expectRefused(change(1, [&](Argument &it) { it.strides = back.data(); }),
                POSENC_INVALID_ARGUMENT, beyond);
  // The first row would begin an element before the buffer.
  expectRefused(change(1,
                       [&](Argument &it) {
                         it.strides = back.data();
                         it.offset = 508;
                       }),
                POSENC_INVALID_ARGUMENT, beyond);
  EXPECT_EQ(program.launch(change(1,
                                  [&](Argument &it) {
                                    it.strides = back.data();
                                    it.offset = 512;
                                  })),
            POSENC_OK)
      << posenc_last_error();
  std::vector<int64_t> vast{INT64_MAX, 64}, negative{-1, 64}, none{0, 64},
      vastStrides{INT64_MAX, 1}, vastBoth{INT64_MAX, INT64_MAX};
  expectRefused(change(1, [&](Argument &it) { it.shape = vast.data(); }),
                POSENC_INVALID_ARGUMENT, beyond);
  expectRefused(
      change(1, [&](Argument &it) { it.strides = vastStrides.data(); }),
      POSENC_INVALID_ARGUMENT, beyond);
  // The number of bytes overflows 128 bits.
  expectRefused(change(1,
                       [&](Argument &it) {
                         it.shape = vast.data();
                         it.strides = vastBoth.data();
                       }),
                POSENC_INVALID_ARGUMENT, beyond);
  expectRefused(change(1,
                       [&](Argument &it) {
                         it.shape = vastBoth.data();
                         it.strides = vastBoth.data();
                       }),
                POSENC_INVALID_ARGUMENT, beyond);
  expectRefused(change(1, [&](Argument &it) { it.shape = negative.data(); }),
                POSENC_SHAPE_MISMATCH, "dimension 0 of out0 is negative: -1");
  expectRefused(change(1, [&](Argument &it) { it.shape = none.data(); }),
                POSENC_SHAPE_MISMATCH,
                "dimension 0 of out0 is 0, but dimension 0 of in0 is 3");
  expectRefused(change(1, [&](Argument &it) { it.rank = 33; }),
                POSENC_INVALID_ARGUMENT, "'out0' has no shape");
  expectRefused(change(1, [&](Argument &it) { it.rank = 1; }),
                POSENC_SHAPE_MISMATCH, "out0 has 1 dimensions, expected 2");
  expectRefused(change(1, [&](Argument &it) { it.buffer = nullptr; }),
                POSENC_INVALID_ARGUMENT, "the buffer of 'out0' is NULL");
  expectRefused(change(1, [&](Argument &it) { it.buffer = positions.get(); }),
                POSENC_INVALID_ARGUMENT, "goes beyond its buffer of 24 bytes");
  expectRefused({good[0]}, POSENC_INVALID_ARGUMENT, "1 arguments, expected 2");

  // Empty tensors need no buffers.
  std::vector<int64_t> zero{0};
  EXPECT_EQ(program.launch({{{0}, nullptr, 0, 1, zero.data(), nullptr},
                            {{0}, nullptr, 0, 2, none.data(), nullptr}}),
            POSENC_OK)
      << posenc_last_error();
}

TEST_F(Vulkan, RefusesAScalarBeyondItsType) {
  Program program(R"mlir(
func.func @f(%x: tensor<1x2x4xf32>, %p: i32) -> tensor<1x2x4xf32> {
  %e = tensor.empty() : tensor<1x2x4xf32>
  %r = posenc.rope half #posenc.frequencies<dim = 4> ins(%x : tensor<1x2x4xf32>) positions(%p : i32) dims = [0] outs(%e : tensor<1x2x4xf32>)
  return %r : tensor<1x2x4xf32>
})mlir");
  Program::Buffer in = program.upload(std::vector<char>(32)),
                  out = program.upload(std::vector<char>(32));
  std::vector<int64_t> shape{1, 2, 4};
  auto launch = [&](int64_t position) {
    return program.launch({{{0}, in.get(), 0, 3, shape.data(), nullptr},
                           {{position}, nullptr, 0, 0, nullptr, nullptr},
                           {{0}, out.get(), 0, 3, shape.data(), nullptr}});
  };
  EXPECT_EQ(launch(INT32_MAX), POSENC_OK) << posenc_last_error();
  EXPECT_EQ(launch(INT32_MIN), POSENC_OK) << posenc_last_error();
  EXPECT_EQ(launch(int64_t(INT32_MAX) + 1), POSENC_INVALID_ARGUMENT);
  EXPECT_STREQ(posenc_last_error(), "f: 2147483648 is out of range for input "
                                    "'in1' of type i32");
  EXPECT_EQ(launch(int64_t(INT32_MIN) - 1), POSENC_INVALID_ARGUMENT);
}
