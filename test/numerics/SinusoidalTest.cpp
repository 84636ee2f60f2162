//===- SinusoidalTest.cpp - forms of sinusoidal tables --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled tables of the published forms (geometric frequencies, added zeros,
// padding positions, several axes) against the oracle, with seeded faults.
//
//===----------------------------------------------------------------------===//

#include "Draw.h"
#include "Faults.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace posenc;
using namespace posenc::test;
using llvm::SmallVector;
using mlir::Builder;
using mlir::posenc::AxesAttr;
using mlir::posenc::GeometricScalingAttr;
using mlir::posenc::SinusoidalOp;

namespace {

struct SinusoidalCase {
  const char *name;
  const char *order;
  posenc_dtype dtype;
  int64_t dim;
  double base = 10000;
  /// Geometric frequencies, if there is a shift.
  std::optional<double> shift = std::nullopt;
  double scale = 1;
  bool zeroPad = false;
  std::optional<int64_t> padding = std::nullopt;
  std::vector<int64_t> sections = {};
  Route route = Route::Direct;

  int64_t numAxes() const {
    return sections.empty() ? 1 : int64_t(sections.size());
  }
};

std::string getName(const testing::TestParamInfo<SinusoidalCase> &info) {
  const SinusoidalCase &c = info.param;
  return std::string(c.name) + "_" + c.order + "_" +
         posenc_dtype_name(c.dtype) + "_" + std::to_string(c.dim) + "_" +
         test::getName(c.route);
}

/// Returns the fields of the attribute of the frequencies.
std::string getFields(const SinusoidalCase &c) {
  std::string fields =
      "dim = " + std::to_string(c.dim) + ", base = " + std::to_string(c.base);
  if (c.shift)
    fields +=
        ", scaling = #posenc.geometric<shift = " + std::to_string(*c.shift) +
        ", scale = " + std::to_string(c.scale) + ">";
  return fields;
}

/// Returns the fields of the attribute of the axes, or an empty string for a
/// single one.
std::string getAxes(const SinusoidalCase &c) {
  std::string axes;
  for (int64_t section : c.sections)
    axes += (axes.empty() ? "<axial, [" : ", ") + std::to_string(section);
  return axes.empty() ? axes : axes + "]>";
}

std::string getModule(const SinusoidalCase &c) {
  std::string element = posenc_dtype_name(c.dtype);
  std::string table =
      "tensor<?x" + std::to_string(c.dim + c.zeroPad) + "x" + element + ">";
  std::string positions =
      c.sections.empty()
          ? "tensor<?xi64>"
          : "tensor<" + std::to_string(c.sections.size()) + "x?xi64>";
  std::string forms;
  if (!c.sections.empty())
    forms += " axes " + getAxes(c);
  if (c.zeroPad)
    forms += " zero_pad";
  if (c.padding)
    forms += " padding_position = " + std::to_string(*c.padding);
  return "func.func @f(%p: " + positions + ", %t: " + table + ") -> " + table +
         " {\n  %r = posenc.sinusoidal " + c.order + " #posenc.frequencies<" +
         getFields(c) + ">" + forms + " positions(%p : " + positions +
         ") outs(%t : " + table + ")\n  return %r : " + table + "\n}\n";
}

/// Returns positions for all axes: a run, hard positions, and the padding
/// position within a run and alone.
std::vector<int64_t> getPositions(const SinusoidalCase &c, int64_t &count) {
  std::vector<int64_t> row;
  for (int64_t i = 0; i < 100; ++i)
    row.push_back(i);
  for (int64_t position : hardPositions(150))
    row.push_back(position);
  if (c.padding)
    row.insert(row.begin() + 120, 3, *c.padding);
  count = row.size();
  std::vector<int64_t> all;
  for (int64_t axis = 0; axis < c.numAxes(); ++axis) {
    // The axes differ at each row.
    all.insert(all.end(), row.begin() + 7 * axis, row.end());
    all.insert(all.end(), row.begin(), row.begin() + 7 * axis);
  }
  return all;
}

reference::Array getExpected(const SinusoidalCase &c,
                             const std::vector<int64_t> &positions,
                             int64_t count) {
  reference::FrequencySpec spec = getFrequencies(
      getFields(c), c.sections.empty() ? "" : "#posenc.axes" + getAxes(c));
  reference::AxesSpec axes;
  if (!c.sections.empty()) {
    axes.kind = reference::AxesKind::Axial;
    axes.sections = c.sections;
  }
  reference::SinusoidalOptions options;
  std::string order = c.order;
  options.order = order == "interleaved"
                      ? reference::SinusoidalOrder::Interleaved
                  : order == "sin_cos" ? reference::SinusoidalOrder::SinCos
                                       : reference::SinusoidalOrder::CosSin;
  options.zeroPad = c.zeroPad;
  options.paddingPosition = c.padding;
  return reference::sinusoidal(spec, axes, positions, {count}, options);
}

runtime::Array makeArgument(const SinusoidalCase &c,
                            const std::vector<int64_t> &positions,
                            int64_t count) {
  std::vector<int64_t> shape{count};
  if (!c.sections.empty())
    shape.insert(shape.begin(), c.numAxes());
  return makePositions(POSENC_I64, shape, positions);
}

class SinusoidalTest : public testing::TestWithParam<SinusoidalCase> {};

TEST_P(SinusoidalTest, MatchesOracle) {
  const SinusoidalCase &c = GetParam();
  int64_t count = 0;
  std::vector<int64_t> positions = getPositions(c, count);
  runtime::Array p = makeArgument(c, positions, count);
  // Other numbers than zero, so that each zero must be written.
  runtime::Array t = makeRandom(c.dtype, {count, c.dim + c.zeroPad}, 5);
  Kernel kernel(getModule(c), c.route);
  std::vector<runtime::Array> results =
      kernel.call("f", {p.value(), t.value()});
  ASSERT_EQ(results.size(), 1u);
  expectClose(results[0], getExpected(c, positions, count),
              reference::ResultKind::Table);

  p = makeArgument(c, {}, 0);
  t = makeRandom(c.dtype, {0, c.dim + c.zeroPad}, 5);
  results = kernel.call("f", {p.value(), t.value()});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].shape(), (std::vector<int64_t>{0, c.dim + c.zeroPad}));
}

std::vector<SinusoidalCase> makeForms(const char *order, posenc_dtype dtype,
                                      Route route = Route::Direct) {
  std::vector<SinusoidalCase> forms{
      {"tensor2tensor", order, dtype, 26, 20000, 1.0, 0.5, true},
      {"fairseq", order, dtype, 64, 10000, 1.0, 1, true, 1},
      {"whisper", order, dtype, 80, 10000, 1.0},
      {"diffusers", order, dtype, 32, 10000, 0.5, 1000, true},
      {"one_pair", order, dtype, 2, 10000, 1.0, 0.25, true, 3},
      {"padding", order, dtype, 48, 10000, {}, 1, false, -4},
      {"images", order, dtype, 64, 10000, {}, 1, false, {}, {16, 16}},
      {"video", order, dtype, 60, 10000, 1.0, 1, true, {}, {6, 11, 13}},
  };
  for (SinusoidalCase &form : forms)
    form.route = route;
  return forms;
}

std::vector<SinusoidalCase> makeCases() {
  std::vector<SinusoidalCase> cases;
  auto add = [&](std::vector<SinusoidalCase> forms) {
    cases.insert(cases.end(), forms.begin(), forms.end());
  };
  for (const char *order : {"interleaved", "sin_cos", "cos_sin"})
    add(makeForms(order, POSENC_F32));
  for (posenc_dtype dtype : {POSENC_F64, POSENC_F16, POSENC_BF16})
    add(makeForms("sin_cos", dtype));
  add(makeForms("interleaved", POSENC_BF16));
  for (Route route : {Route::Linalg, Route::Vectors512})
    add(makeForms("cos_sin", POSENC_F32, route));
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Forms, SinusoidalTest,
                         testing::ValuesIn(drawCases("Forms/SinusoidalTest",
                                                     makeCases(), 3, getName)),
                         getName);

Edit setGeometric(double shift, double scale) {
  return changeAttrs<GeometricScalingAttr>([=](GeometricScalingAttr scaling) {
    Builder builder(scaling.getContext());
    return GeometricScalingAttr::get(builder.getContext(),
                                     builder.getF64FloatAttr(shift),
                                     builder.getF64FloatAttr(scale));
  });
}

const Fault kAttributeFaults[] = {
    control(),
    {"Shift", op<SinusoidalOp>(), setGeometric(1.0000001, 0.5)},
    {"Scale", op<SinusoidalOp>(), setGeometric(1, 0.50000001)},
    {"PaddingPosition", op<SinusoidalOp>(), setAttr("padding_position", 2)},
    {"NoPaddingPosition", op<SinusoidalOp>(), removeAttr("padding_position")},
};

/// Faults in the vector code that writes zeros.
const Fault kZeroFaults[] = {
    control(),
    {"NoPadding", integerConstant(64, 1234567), setConstant(1234566)},
    {"NoZeroColumn",
     op<mlir::vector::StoreOp>(operand(0, splat(0.0)),
                               [](mlir::Operation *store) {
                                 auto type = mlir::cast<mlir::VectorType>(
                                     store->getOperand(0).getType());
                                 return type.getNumElements() == 1;
                               }),
     setOperand(0, 1.0)},
};

const Fault kAxesFaults[] = {
    control(),
    {"Sections", op<SinusoidalOp>(), changeAttrs<AxesAttr>([](AxesAttr axes) {
       SmallVector<int64_t> sections(llvm::reverse(axes.getSections()));
       return AxesAttr::get(axes.getContext(), axes.getLayout(), sections);
     })},
    {"Order", op<SinusoidalOp>(), change<SinusoidalOp>([](SinusoidalOp op) {
       op.setOrder(mlir::posenc::TableOrder::CosSin);
     })},
};

/// Returns a table with a scale, an added zero and a padding position.
SinusoidalCase getPaddedCase(int64_t padding) {
  return {"padded", "sin_cos", POSENC_F32, 64, 10000, 1.0, 0.5, true, padding};
}

void checkFault(const SinusoidalCase &c, const Fault &fault,
                mlir::posenc::Stage stage) {
  int64_t count = 0;
  std::vector<int64_t> positions = getPositions(c, count);
  runtime::Array p = makeArgument(c, positions, count);
  runtime::Array t = makeRandom(c.dtype, {count, c.dim + c.zeroPad}, 5);
  LoweredModule module(getModule(c), stage, /*vectorBytes=*/32);
  std::vector<runtime::Array> results =
      compileWithFault(module, fault).call("f", {p.value(), t.value()});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(reference::compare(reference::DType::F32, results[0].data(),
                               getExpected(c, positions, count))
                .within(1),
            fault.isControl());
}

class SinusoidalAttributeFaultTest : public testing::TestWithParam<Fault> {};
TEST_P(SinusoidalAttributeFaultTest, IsCaught) {
  checkFault(getPaddedCase(1), GetParam(), mlir::posenc::Stage::Posenc);
}
INSTANTIATE_TEST_SUITE_P(Faults, SinusoidalAttributeFaultTest,
                         testing::ValuesIn(kAttributeFaults), getFaultName);

class SinusoidalAxesFaultTest : public testing::TestWithParam<Fault> {};
TEST_P(SinusoidalAxesFaultTest, IsCaught) {
  checkFault({"axes",
              "sin_cos",
              POSENC_F32,
              64,
              10000,
              std::nullopt,
              1,
              false,
              std::nullopt,
              {12, 20}},
             GetParam(), mlir::posenc::Stage::Posenc);
}
INSTANTIATE_TEST_SUITE_P(Faults, SinusoidalAxesFaultTest,
                         testing::ValuesIn(kAxesFaults), getFaultName);

class SinusoidalZeroFaultTest : public testing::TestWithParam<Fault> {};
TEST_P(SinusoidalZeroFaultTest, IsCaught) {
  checkFault(getPaddedCase(1234567), GetParam(), mlir::posenc::Stage::Vector);
}
INSTANTIATE_TEST_SUITE_P(Faults, SinusoidalZeroFaultTest,
                         testing::ValuesIn(kZeroFaults), getFaultName);

} // namespace
