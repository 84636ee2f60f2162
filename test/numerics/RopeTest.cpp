//===- RopeTest.cpp - compiled ropes against the oracle -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draw.h"
#include "Harness.h"

#include <cctype>
#include <numeric>

using namespace posenc;
using namespace posenc::test;

namespace {

struct Layout {
  const char *name;
  std::vector<int64_t> shape; // without the head dimension
  std::vector<int64_t> dims;
};

struct Window {
  const char *name;
  int64_t headDim, rotaryDim, offset;
};

struct Scaling {
  const char *name;
  const char *attribute;
};

const Scaling kDefault{"Default", ""};
const Scaling kLinear{"Linear", ", scaling = #posenc.linear<factor = 4>"};
const Scaling kLlama3{
    "Llama3", ", scaling = #posenc.llama3<factor = 8, low_freq_factor = 1, "
              "high_freq_factor = 4, original_max_position = 8192>"};
/// Has an attention factor other than 1.
const Scaling kYarn{
    "Yarn",
    ", scaling = #posenc.yarn<factor = 4, original_max_position = 4096>"};

const Layout kBatchSequence{"BatchSequence", {2, 5, 3}, {0, 1}};
const Layout kBatchHead{"BatchHead", {2, 3, 5}, {0, 2}};
const Layout kRagged{"Ragged", {7, 3}, {0}};
const Layout kFive{"FiveDims", {2, 2, 3, 3}, {2, 0}};
const Layout kShared{"SharedPositions", {2, 5, 3}, {1}};
const Layout kEmpty{"Empty", {2, 0, 3}, {0, 1}};
const Layout kOne{"OneToken", {1, 1, 1}, {0, 1}};

const Window kWhole{"Whole", 64, 64, 0};
const Window kPrefix{"Prefix", 80, 32, 0};
const Window kOffset{"Offset", 48, 22, 26};
const Window kMiddle{"Middle", 37, 10, 5};

struct RopeCase {
  bool interleaved = false;
  posenc_dtype dtype = POSENC_F32;
  Layout layout = kBatchSequence;
  Window window = kWhole;
  Scaling scaling = kDefault;
  Route route = Route::Direct;
  posenc_dtype positions = POSENC_I64; // or POSENC_DTYPE_INVALID: a scalar
  reference::AxesKind axes = reference::AxesKind::Single;
  bool inverse = false;
};

const char *getAxesName(reference::AxesKind axes) {
  switch (axes) {
  case reference::AxesKind::Single:
    return "";
  case reference::AxesKind::Sections:
    return "Sections";
  case reference::AxesKind::InterleavedSections:
    return "InterleavedSections";
  case reference::AxesKind::Axial:
    return "Axial";
  }
  return "";
}

std::string getName(const testing::TestParamInfo<RopeCase> &info) {
  const RopeCase &c = info.param;
  std::string name = c.interleaved ? "Interleaved" : "Half";
  std::string dtype = posenc_dtype_name(c.dtype);
  dtype[0] = static_cast<char>(std::toupper(dtype[0]));
  name += dtype + c.layout.name + c.window.name + c.scaling.name;
  if (c.positions == POSENC_DTYPE_INVALID)
    name += "Scalar";
  else if (c.positions != POSENC_I64)
    name += std::string("Positions") + posenc_dtype_name(c.positions);
  return name + getAxesName(c.axes) + (c.inverse ? "Inverse" : "") +
         test::getName(c.route);
}

/// Divides the pairs unequally among three axes.
std::vector<int64_t> getSections(int64_t pairs) {
  return {pairs / 4, pairs / 4 + 1, pairs - 2 * (pairs / 4) - 1};
}

/// Returns the fields of the attribute of the frequencies.
std::string getFields(const RopeCase &c) {
  return "dim = " + std::to_string(c.window.rotaryDim) + ", base = 500000" +
         c.scaling.attribute;
}

/// Returns the attribute of the axes, or an empty string for a single one.
std::string getAxes(const RopeCase &c) {
  if (c.axes == reference::AxesKind::Single)
    return "";
  const char *layout = c.axes == reference::AxesKind::Sections ? "contiguous"
                       : c.axes == reference::AxesKind::InterleavedSections
                           ? "interleaved"
                           : "axial";
  std::string axes = std::string("#posenc.axes<") + layout + ", [";
  for (int64_t section : getSections(c.window.rotaryDim / 2))
    axes += std::to_string(section) + ", ";
  axes.resize(axes.size() - 2);
  return axes + "]>";
}

std::string getModule(const RopeCase &c) {
  std::string dtype = posenc_dtype_name(c.dtype), type = "tensor<";
  for (size_t i = 0; i < c.layout.shape.size(); ++i)
    type += "?x";
  type += std::to_string(c.window.headDim) + "x" + dtype + ">";
  std::string positions = "i64", axes, dims;
  bool several = c.axes != reference::AxesKind::Single;
  if (c.positions != POSENC_DTYPE_INVALID) {
    positions = several ? "tensor<3x" : "tensor<";
    for (size_t i = 0; i < c.layout.dims.size(); ++i)
      positions += "?x";
    positions += std::string(posenc_dtype_name(c.positions)) + ">";
  }
  if (several)
    axes = " axes " + getAxes(c);
  for (int64_t dim : c.layout.dims)
    dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
  return "func.func @f(%x: " + type + ", %p: " + positions + ") -> " + type +
         " {\n  %r = posenc.rope " + (c.interleaved ? "interleaved" : "half") +
         (c.inverse ? " inverse" : "") + " #posenc.frequencies<" +
         getFields(c) + ">" + axes + " ins(%x : " + type +
         ") positions(%p : " + positions + ") dims = [" + dims +
         "] offset = " + std::to_string(c.window.offset) +
         " outs(%x : " + type + ")\n  return %r : " + type + "\n}\n";
}

class RopeTest : public testing::TestWithParam<RopeCase> {};

TEST_P(RopeTest, MatchesOracle) {
  const RopeCase &c = GetParam();
  std::vector<int64_t> shape = c.layout.shape, grid;
  shape.push_back(c.window.headDim);
  for (int64_t dim : c.layout.dims)
    grid.push_back(shape[dim]);
  int64_t count = std::accumulate(grid.begin(), grid.end(), int64_t{1},
                                  std::multiplies<>());
  bool several = c.axes != reference::AxesKind::Single;
  std::vector<int64_t> positions = hardPositions(several ? 3 * count : count);
  if (several)
    grid.insert(grid.begin(), 3);

  runtime::Array x = makeRandom(c.dtype, shape, 5), p;
  posenc_value positionsValue;
  if (c.positions == POSENC_DTYPE_INVALID) {
    // A scalar is the position of the first row.
    int64_t first = 1000000007;
    std::iota(positions.begin(), positions.end(), first);
    positionsValue = runtime::scalar(first);
  } else {
    p = makePositions(c.positions, grid, positions);
    positionsValue = p.value();
  }

  Kernel kernel(getModule(c), c.route);
  std::vector<runtime::Array> results =
      kernel.call("f", {x.value(), positionsValue});
  ASSERT_EQ(results.size(), 1u);

  reference::FrequencySpec spec = getFrequencies(getFields(c), getAxes(c));
  reference::AxesSpec axes;
  axes.kind = c.axes;
  if (several)
    axes.sections = getSections(c.window.rotaryDim / 2);
  reference::RotateOptions options;
  options.interleaved = c.interleaved;
  options.windowOffset = c.window.offset;
  options.positionDims = c.layout.dims;
  options.inverse = c.inverse;
  ASSERT_EQ(
      reference::checkRope(toReference(x), spec, axes, positions, options), "");
  expectClose(results.front(),
              reference::rope(toReference(x), spec, axes, positions, options),
              reference::ResultKind::Rotated);
}

const posenc_dtype kTypes[] = {POSENC_F32, POSENC_BF16, POSENC_F16, POSENC_F64};

/// Returns all combinations of pairings, types, layouts and windows.
std::vector<RopeCase> makeForms() {
  std::vector<RopeCase> cases;
  for (bool interleaved : {false, true})
    for (posenc_dtype dtype : kTypes)
      for (const Layout &layout : {kBatchSequence, kBatchHead, kRagged, kFive})
        for (const Window &window : {kWhole, kPrefix, kOffset, kMiddle}) {
          RopeCase c;
          c.interleaved = interleaved;
          c.dtype = dtype;
          c.layout = layout;
          c.window = window;
          cases.push_back(c);
        }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Forms, RopeTest,
                         testing::ValuesIn(drawCases("Forms/RopeTest",
                                                     makeForms(), 4, getName)),
                         getName);

/// Returns cases of scalings, directions, axes, types of positions, and rare
/// layouts.
std::vector<RopeCase> makeVariants() {
  std::vector<RopeCase> cases;
  for (bool interleaved : {false, true}) {
    RopeCase base;
    base.interleaved = interleaved;
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F64}) {
      base.dtype = dtype;
      for (bool inverse : {false, true})
        for (const Scaling &scaling : {kLinear, kLlama3, kYarn}) {
          RopeCase c = base;
          c.scaling = scaling;
          c.inverse = inverse;
          cases.push_back(c);
        }
      for (reference::AxesKind axes : {reference::AxesKind::Sections,
                                       reference::AxesKind::InterleavedSections,
                                       reference::AxesKind::Axial}) {
        RopeCase c = base;
        c.axes = axes;
        cases.push_back(c);
        c.window = kPrefix;
        c.layout = kBatchHead;
        cases.push_back(c);
      }
    }
    base.dtype = POSENC_F32;
    for (const Layout &layout : {kShared, kEmpty, kOne}) {
      RopeCase c = base;
      c.layout = layout;
      cases.push_back(c);
    }
    for (posenc_dtype positions :
         {POSENC_I32, POSENC_INDEX, POSENC_DTYPE_INVALID}) {
      RopeCase c = base;
      c.positions = positions;
      if (positions == POSENC_DTYPE_INVALID)
        c.layout = kShared;
      cases.push_back(c);
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Variants, RopeTest,
                         testing::ValuesIn(drawCases("Variants/RopeTest",
                                                     makeVariants(), 4,
                                                     getName)),
                         getName);

/// Returns cases that are printed and parsed at each stage of the lowering.
std::vector<RopeCase> makeRoutes() {
  std::vector<RopeCase> cases;
  for (Route route : {Route::Linalg, Route::Vector, Route::LLVM,
                      Route::Vectors128, Route::Vectors512})
    for (bool interleaved : {false, true})
      for (posenc_dtype dtype : kTypes) {
        RopeCase c;
        c.interleaved = interleaved;
        c.dtype = dtype;
        c.route = route;
        cases.push_back(c);
        c.window = kOffset;
        c.layout = kBatchHead;
        cases.push_back(c);
        if (dtype != POSENC_F32)
          continue;
        c.window = kWhole;
        c.layout = kBatchSequence;
        c.axes = reference::AxesKind::Sections;
        cases.push_back(c);
        c.axes = reference::AxesKind::Single;
        c.layout = kEmpty;
        cases.push_back(c);
        c.layout = kShared;
        c.positions = POSENC_DTYPE_INVALID;
        cases.push_back(c);
      }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Routes, RopeTest,
                         testing::ValuesIn(drawCases("Routes/RopeTest",
                                                     makeRoutes(), 4, getName)),
                         getName);

} // namespace
