//===- CallTest.cpp - Calling functions -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryLibrary.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

class Call : public testing::Test {
protected:
  void SetUp() override {
    library = Library::open(POSENC_TEST_KERNELS, error);
    ASSERT_TRUE(library) << error;
  }
  Function find(const char *name) { return library.find(name, error); }

  Library library;
  std::string error;
  int64_t shapeOut[2] = {-7, -7};
};

/// Calls a function and expects this status and error text.
void expectFailure(Function function, const std::vector<posenc_value> &inputs,
                   const std::vector<posenc_value> &outputs,
                   posenc_status status, const std::string &text) {
  EXPECT_EQ(posenc_call(function.get(), inputs.data(), inputs.size(),
                        outputs.data(), outputs.size()),
            status);
  EXPECT_EQ(posenc_last_error(), text);
}

TEST_F(Call, Scales) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {};
  std::vector<int64_t> shape = {2, 4};
  ASSERT_TRUE(find("scale").call({view(x, POSENC_F32, shape)},
                                 {view(y, POSENC_F32, shape)}, error))
      << error;
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(y[i], 2 * x[i]);
  // In place.
  ASSERT_TRUE(find("scale").call({view(x, POSENC_F32, shape)},
                                 {view(x, POSENC_F32, shape)}, error))
      << error;
  EXPECT_EQ(std::memcmp(x, y, sizeof(x)), 0);
}

TEST_F(Call, AllocatesOutputs) {
  double q[12] = {};
  int64_t positions[6] = {0, 1, 2, 3, 4, 5};
  std::vector<int64_t> qShape = {2, 3, 2}, pShape = {2, 3};
  std::vector<Array> results;
  ASSERT_TRUE(find("add_positions")
                  .call({view(q, POSENC_F64, qShape),
                         view(positions, POSENC_INDEX, pShape), scalar(-100)},
                        results, error))
      << error;
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].shape(), qShape);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(results[0].dataAs<double>()[i], i / 2 - 100);
}

TEST_F(Call, SizesFromScalars) {
  std::vector<Array> results;
  ASSERT_TRUE(find("fill").call({scalar(3), scalar(-5)}, results, error))
      << error;
  EXPECT_EQ(results[0].shape(), (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(results[0].dataAs<int32_t>()[23], -5);
  ASSERT_TRUE(find("fill").call({scalar(0), scalar(1)}, results, error));
  EXPECT_EQ(results[0].numElements(), 0u);

  EXPECT_FALSE(find("fill").call({scalar(-1), scalar(1)}, results, error));
  EXPECT_EQ(error, "fill: input 'count' is -1, which cannot be a size");
  EXPECT_FALSE(
      find("fill").call({scalar(INT64_MAX), scalar(1)}, results, error));
  EXPECT_EQ(error, "fill: the sizes of output 'out' are too large: their "
                   "product overflows");
  int32_t out[16];
  std::vector<int64_t> shape = {2, 8};
  expectFailure(find("fill"), {scalar(3), scalar(1)},
                {view(out, POSENC_I32, shape)}, POSENC_SHAPE_MISMATCH,
                "fill: output 'out' has size 2 in dimension 0, but input "
                "'count' is 3");
}

TEST_F(Call, RealScalarsAndShapes) {
  Function mix = find("mix");
  EXPECT_TRUE(mix.input(0).isReal());
  EXPECT_FALSE(mix.input(3).isReal());
  EXPECT_TRUE(mix.input(4).isShapeOnly());
  EXPECT_FALSE(mix.input(1).isShapeOnly());
  double x[3] = {1, 2, 4}, y[3] = {};
  std::vector<int64_t> shape = {3}, other = {2};
  auto in = [&](void *data, const std::vector<int64_t> &ofShape) {
    return std::vector<posenc_value>{real(0.1), view(x, POSENC_F64, shape),
                                     real(-0.25), scalar(7),
                                     view(data, POSENC_F64, ofShape)};
  };
  posenc_value out = view(y, POSENC_F64, shape);
  // A shape-only input may be NULL, overlap the output or be misaligned.
  for (void *data : {static_cast<void *>(nullptr), static_cast<void *>(y),
                     static_cast<void *>(y + 1),
                     static_cast<void *>(reinterpret_cast<char *>(y) + 1)}) {
    std::memset(y, 0, sizeof(y));
    ASSERT_TRUE(mix.call(in(data, shape), {out}, error)) << error;
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(y[i], double(0.1f) * x[i] + 6.75);
  }
  expectFailure(mix, in(nullptr, other), {out}, POSENC_SHAPE_MISMATCH,
                "mix: size 'n' is 3 in input 'x' (dimension 0) but 2 in input "
                "'o' (dimension 0)");
  std::vector<posenc_value> null = in(nullptr, shape);
  null[1].tensor.data = nullptr;
  expectFailure(mix, null, {out}, POSENC_INVALID_ARGUMENT,
                "mix: the data of input 'x' is NULL");
}

TEST_F(Call, ScalarRange) {
  std::vector<Array> results;
  for (int64_t value : {int64_t(INT32_MAX), int64_t(INT32_MIN)}) {
    ASSERT_TRUE(find("fill").call({scalar(1), scalar(value)}, results, error));
    EXPECT_EQ(results[0].dataAs<int32_t>()[7], value);
  }
  for (int64_t value :
       {int64_t(INT32_MAX) + 1, int64_t(INT32_MIN) - 1, INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE(find("fill").call({scalar(1), scalar(value)}, results, error));
    EXPECT_EQ(error, "fill: " + std::to_string(value) +
                         " is out of range for input 'value' of type i32");
  }
}

TEST_F(Call, KernelErrors) {
  float x = 7;
  EXPECT_FALSE(find("fails").call({view(&x, POSENC_F32, {})},
                                  std::vector<posenc_value>(), error));
  EXPECT_EQ(error, "fails: the kernel failed with code 7");
  x = 0;
  EXPECT_TRUE(find("fails").call({view(&x, POSENC_F32, {})},
                                 std::vector<posenc_value>(), error));
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// The DLTensor that the checked entry point receives.
struct CheckedTensor {
  void *data;
  int32_t deviceType, deviceId, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};

int32_t refusal = 12;

int32_t refuse(const void *, int64_t, void *) { return refusal; }

/// f(x: bf16[2,3], n: i64) -> (y: i32[2])
int32_t explain(const CheckedTensor *x, int64_t n, const CheckedTensor *y,
                char *message, int64_t size) {
  bool isRight = x->deviceType == 1 && x->rank == 2 && x->code == 4 &&
                 x->bits == 16 && x->lanes == 1 && !x->strides &&
                 !x->byteOffset && x->shape[0] == 2 && x->shape[1] == 3 &&
                 y->rank == 1 && y->code == 0 && y->bits == 32 && n == -5;
  std::snprintf(message, size_t(size), isRight ? "f: n is wrong" : "wrong");
  return refusal;
}

/// The error text comes from the checked entry point; without one it has the
/// code.
TEST(Refusal, HasTheTextOfTheCheckedEntryPoint) {
  std::string error;
  std::string json = libraryJson(functionJson(
      "f", tensorJson("x", "bf16", "2,3") + "," + scalarJson("n", "i64"),
      tensorJson("y", "i32", "2"), ""));
  uint16_t x[6] = {};
  int32_t y[2] = {7, 7};
  std::vector<int64_t> xShape = {2, 3}, yShape = {2};
  std::vector<posenc_value> inputs = {view(x, POSENC_BF16, xShape), scalar(-5)};
  std::vector<posenc_value> outputs = {view(y, POSENC_I32, yShape)};
  Symbols symbols = {{"m_f", addressOf(refuse)}};
  Library silent = openMemory(json, symbols, error);
  ASSERT_TRUE(silent) << error;
  symbols["m_f_dl"] = addressOf(explain);
  Library library = openMemory(json, symbols, error);
  ASSERT_TRUE(library) << error;
  for (int32_t code : {8, 12}) {
    refusal = code;
    expectFailure(silent.function(0), inputs, outputs, POSENC_KERNEL_FAILED,
                  "f: the kernel failed with code " + std::to_string(code));
    expectFailure(library.function(0), inputs, outputs,
                  code == 8 ? POSENC_SHAPE_MISMATCH : POSENC_INVALID_ARGUMENT,
                  "f: n is wrong");
  }
  // Other codes do not call the checked entry point.
  refusal = 4;
  expectFailure(library.function(0), inputs, outputs, POSENC_KERNEL_FAILED,
                "f: the kernel failed with code 4");
  EXPECT_EQ(y[0], 7);
}

TEST_F(Call, Workspace) {
  int64_t x[6] = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> shape = {4};
  auto value = [&] { return view(x, POSENC_I64, shape); };
  ASSERT_TRUE(find("scratch").call({value()}, {value()}, error)) << error;
  EXPECT_EQ(x[0], 4);
  EXPECT_EQ(x[3], 1);
  shape[0] = 0;
  EXPECT_TRUE(find("scratch").call({value()}, {value()}, error)) << error;
  shape[0] = 3;
  expectFailure(find("scratch"), {value()}, {value()}, POSENC_KERNEL_FAILED,
                "scratch: the kernel asks for a workspace of -1 bytes");
  shape[0] = 5;
  expectFailure(find("scratch"), {value()}, {value()}, POSENC_OUT_OF_MEMORY,
                "scratch: no memory for a workspace of 9223372036854775807 "
                "bytes");
}

TEST_F(Call, Counts) {
  float x[4] = {};
  std::vector<int64_t> shape = {1, 4};
  posenc_value value = view(x, POSENC_F32, shape);
  expectFailure(find("scale"), {}, {value}, POSENC_INVALID_ARGUMENT,
                "scale: 0 inputs given, 1 expected");
  expectFailure(find("scale"), {value}, {value, value}, POSENC_INVALID_ARGUMENT,
                "scale: 2 outputs given, 1 expected");
  EXPECT_EQ(posenc_call(find("scale").get(), nullptr, 1, nullptr, 1),
            POSENC_INVALID_ARGUMENT);
  EXPECT_STREQ(posenc_last_error(), "scale: the inputs are NULL");
  EXPECT_EQ(posenc_call(find("scale").get(), &value, 1, nullptr, 1),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_call(nullptr, &value, 1, &value, 1),
            POSENC_INVALID_ARGUMENT);
}

TEST_F(Call, KindsTypesAndRanks) {
  float x[4] = {};
  std::vector<int64_t> shape = {1, 4}, flat = {4};
  posenc_value good = view(x, POSENC_F32, shape);
  expectFailure(find("scale"), {scalar(1)}, {good}, POSENC_INVALID_ARGUMENT,
                "scale: input 'x' is a tensor, but a scalar was given");
  expectFailure(find("scale"), {good}, {scalar(1)}, POSENC_INVALID_ARGUMENT,
                "scale: output 'y' is a tensor, but a scalar was given");
  expectFailure(find("fill"), {good, scalar(1)}, {good},
                POSENC_INVALID_ARGUMENT,
                "fill: input 'count' is a scalar, but a tensor was given");
  posenc_value odd = good;
  odd.kind = 77;
  EXPECT_FALSE(find("scale").call({odd}, {good}, error));
  expectFailure(find("scale"), {view(x, POSENC_I32, shape)}, {good},
                POSENC_DTYPE_MISMATCH, "scale: input 'x' is i32, expected f32");
  for (posenc_dtype dtype : {0, -1, 13, INT32_MAX, INT32_MIN})
    expectFailure(find("scale"), {view(x, dtype, shape)}, {good},
                  POSENC_DTYPE_MISMATCH,
                  "scale: input 'x' is invalid, expected f32");
  expectFailure(find("scale"), {view(x, POSENC_F32, flat)}, {good},
                POSENC_SHAPE_MISMATCH,
                "scale: input 'x' has rank 1, expected 2");
  for (int32_t rank : {-1, INT32_MIN, INT32_MAX, 3}) {
    posenc_value bad = good;
    bad.tensor.rank = rank;
    EXPECT_FALSE(find("scale").call({bad}, {good}, error));
    EXPECT_FALSE(find("scale").call({good}, {bad}, error));
  }
  posenc_value noShape = good;
  noShape.tensor.shape = nullptr;
  expectFailure(find("scale"), {noShape}, {good}, POSENC_INVALID_ARGUMENT,
                "scale: the shape of input 'x' is NULL");
}

TEST_F(Call, SizesMustAgree) {
  double q[24] = {};
  int64_t positions[24] = {};
  std::vector<int64_t> qShape = {2, 3, 2}, pShape = {2, 4};
  posenc_value value = view(q, POSENC_F64, qShape);
  expectFailure(find("add_positions"),
                {value, view(positions, POSENC_I64, pShape), scalar(0)},
                {value}, POSENC_SHAPE_MISMATCH,
                "add_positions: size 'n1' is 3 in input 'q' (dimension 1) but "
                "4 in input 'positions' (dimension 1)");
  pShape = {2, 3};
  std::vector<int64_t> outShape = {1, 3, 2};
  expectFailure(find("add_positions"),
                {value, view(positions, POSENC_I64, pShape), scalar(0)},
                {view(q + 12, POSENC_F64, outShape)}, POSENC_SHAPE_MISMATCH,
                "add_positions: size 'n0' is 2 in input 'q' (dimension 0) but "
                "1 in output 'q_out' (dimension 0)");
  qShape[2] = 3;
  expectFailure(find("add_positions"),
                {value, view(positions, POSENC_I64, pShape), scalar(0)},
                {value}, POSENC_SHAPE_MISMATCH,
                "add_positions: input 'q' has size 3 in dimension 2, expected "
                "2");
  for (int64_t size : {int64_t(-1), INT64_MIN}) {
    qShape = {size, 3, 2};
    expectFailure(find("add_positions"),
                  {value, view(positions, POSENC_I64, pShape), scalar(0)},
                  {value}, POSENC_SHAPE_MISMATCH,
                  "add_positions: input 'q' has the negative size " +
                      std::to_string(size) + " in dimension 0");
  }
}

TEST_F(Call, ProductsMustNotOverflow) {
  double q[2] = {};
  int64_t positions[1] = {};
  // A size of zero does not help: the strides overflow.
  for (auto [n0, n1] : {std::pair<int64_t, int64_t>{INT64_MAX, 1},
                        {INT64_MAX / 16 + 1, 1},
                        {int64_t(1) << 32, int64_t(1) << 32},
                        {INT64_MAX, 0},
                        {1, INT64_MAX}}) {
    std::vector<int64_t> qShape = {n0, n1, 2}, pShape = {n0, n1};
    posenc_value value = view(q, POSENC_F64, qShape);
    EXPECT_EQ(posenc_output_shape(find("add_positions").get(), &value, 1, 0,
                                  shapeOut),
              POSENC_INVALID_ARGUMENT);
    expectFailure(find("add_positions"),
                  {value, view(positions, POSENC_I64, pShape), scalar(0)},
                  {value}, POSENC_SHAPE_MISMATCH,
                  "add_positions: the sizes of input 'q' are too large: their "
                  "product overflows");
  }
  // The largest size that fits reaches past the end of memory.
  std::vector<int64_t> shape = {INT64_MAX / 16, 4};
  EXPECT_FALSE(find("scale").call(
      {view(reinterpret_cast<void *>(~uintptr_t(15)), POSENC_F32, shape)},
      {view(q, POSENC_F32, shape)}, error));
  EXPECT_EQ(error, "scale: the data of input 'x' runs past the end of memory");
}

TEST_F(Call, Data) {
  alignas(16) char memory[64] = {};
  std::vector<int64_t> shape = {1, 4}, none = {0, 4};
  posenc_value good = view(memory, POSENC_F32, shape);
  expectFailure(find("scale"), {view(nullptr, POSENC_F32, shape)}, {good},
                POSENC_INVALID_ARGUMENT,
                "scale: the data of input 'x' is NULL");
  expectFailure(find("scale"), {good}, {view(nullptr, POSENC_F32, shape)},
                POSENC_INVALID_ARGUMENT,
                "scale: the data of output 'y' is NULL");
  for (int offset : {1, 2, 3})
    expectFailure(find("scale"), {good},
                  {view(memory + 32 + offset, POSENC_F32, shape)},
                  POSENC_INVALID_ARGUMENT,
                  "scale: the data of output 'y' is not aligned to its element "
                  "of 4 bytes");
  // Alignment to the element is enough.
  EXPECT_TRUE(find("scale").call({view(memory + 4, POSENC_F32, shape)},
                                 {view(memory + 36, POSENC_F32, shape)}, error))
      << error;
  // Empty tensors need no data.
  EXPECT_TRUE(find("scale").call({view(nullptr, POSENC_F32, none)},
                                 {view(nullptr, POSENC_F32, none)}, error))
      << error;
}

TEST_F(Call, OutputShapes) {
  std::vector<int64_t> qShape = {5, 6, 2}, pShape = {5, 6}, shape;
  std::vector<posenc_value> inputs = {view(nullptr, POSENC_F64, qShape),
                                      view(nullptr, POSENC_I64, pShape),
                                      scalar(0)};
  ASSERT_TRUE(find("add_positions").outputShape(inputs, 0, shape, error))
      << error;
  EXPECT_EQ(shape, qShape);
  EXPECT_FALSE(find("add_positions").outputShape(inputs, 1, shape, error));
  EXPECT_EQ(error, "add_positions: there is no output #1");
  EXPECT_FALSE(find("loop").outputShape({}, 0, shape, error));
  EXPECT_EQ(error,
            "loop: the inputs do not determine size 'n' of output 'out'");
  EXPECT_EQ(posenc_output_shape(find("fill").get(), nullptr, 0, 0, nullptr),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_output_shape(nullptr, nullptr, 0, 0, shapeOut),
            POSENC_INVALID_ARGUMENT);
  // A failure writes nothing.
  posenc_value values[2] = {scalar(-1), scalar(0)};
  EXPECT_EQ(posenc_output_shape(find("fill").get(), values, 2, 0, shapeOut),
            POSENC_SHAPE_MISMATCH);
  EXPECT_EQ(shapeOut[0], -7);
}

TEST_F(Call, NothingIsWrittenByAFailedCheck) {
  float x[4] = {1, 2, 3, 4}, y[4] = {9, 9, 9, 9};
  std::vector<int64_t> shape = {1, 4}, bad = {2, 4};
  EXPECT_FALSE(find("scale").call({view(x, POSENC_F32, shape)},
                                  {view(y, POSENC_F32, bad)}, error));
  for (float value : y)
    EXPECT_EQ(value, 9);
}

TEST_F(Call, FromManyThreads) {
  Function function = find("fill");
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::string text;
      std::vector<Array> results;
      for (int i = 0; i < 500; ++i) {
        bool good = function.call({scalar(2), scalar(t)}, results, text) &&
                    results[0].dataAs<int32_t>()[15] == t;
        bool bad = !function.call({scalar(-t - 1), scalar(t)}, results, text) &&
                   text == "fill: input 'count' is " + std::to_string(-t - 1) +
                               ", which cannot be a size";
        right[t] += good && bad;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 500));
}

} // namespace
