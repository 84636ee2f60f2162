//===- PublishedModelsTest.cpp - configs of published models --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/Frontend/published-models.txt has one paragraph per model: its name, its
// config without keys that do not matter here, and what is read from it.
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdio>

using namespace posenc::frontend;
using namespace posenc::frontend::test;

namespace {

using llvm::raw_ostream;

/// Prints a number with up to eight digits.
std::string spell(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.8g", value);
  return buffer;
}

/// Prints base, rotary dimension, head size and heads, for example
/// `10000 64/128 32:8`: 64 of 128 channels of 32 query and 8 key heads rotate.
void print(raw_ostream &os, const ModelConfig &model) {
  os << (model.interleaved ? "interleaved " : "half ");
  if (model.hasRotation())
    os << spell(model.ropeTheta) << " " << model.rotaryDim << "/";
  os << model.headDim << " " << model.numHeads << ":" << model.numKeyValueHeads;
  if (model.scaling)
    os << " " << test::print(model.scaling);
  if (model.axes) {
    os << (model.axes->layout == PositionAxes::Layout::Interleaved
               ? " alternating"
               : " axes");
    llvm::interleave(
        model.axes->sections, os, [&](int64_t pairs) { os << " " << pairs; },
        "");
  }
  os << "\n";
  for (const LayerRotation &rotation : model.rotations) {
    os << "  " << rotation.type << " " << spell(rotation.theta) << " "
       << rotation.rotaryDim;
    if (rotation.scaling)
      os << " " << test::print(rotation.scaling);
    os << "\n";
  }
}

void print(raw_ostream &os, const AttentionConfig &attention) {
  os << (attention.isCausal ? "causal" : "bidirectional");
  if (attention.rotaryOffset)
    os << " offset=" << attention.rotaryOffset;
  os << " " << attention.headDim << "/" << attention.valueDim;
  if (attention.scale)
    os << " scale=" << spell(*attention.scale);
  if (attention.softCap)
    os << " cap=" << spell(*attention.softCap);
  if (attention.hasSinks)
    os << " sinks";
  if (attention.temperature)
    os << " temperature(" << spell(attention.temperature->beta) << ","
       << attention.temperature->length << ")";
  if (attention.bias)
    os << (attention.bias->kind == ScoreBias::Kind::Alibi ? " alibi" : " t5");
  for (const LayerAttention &layer : attention.layers) {
    os << " [" << layer.type;
    if (layer.window)
      os << " window " << *layer.window;
    if (layer.chunk)
      os << " chunk " << *layer.chunk;
    os << (layer.rotates ? "]" : " unrotated]");
  }
  os << "\n";
}

/// Returns what is read from a config.
std::string describe(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  ReadOptions options;
  options.attention = true;
  options.ropeLength = 4096;
  Outcome outcome = read(text, options);
  for (const Diagnostic &diag : outcome.diags)
    os << (diag.severity == Severity::Error ? "error: " : "warning: ")
       << diag.message << "\n";
  if (!outcome.config)
    return result;
  auto printFunctions = [&](const ModelConfig &config) {
    print(os, config);
    if (config.attention)
      print(os, *config.attention);
  };
  if (outcome.config->sets.empty())
    printFunctions(*outcome.config);
  for (const ModelConfig &set : outcome.config->sets) {
    os << set.suffix << ": ";
    printFunctions(set);
  }
  options.qkNorm = true;
  outcome = read(text, options);
  if (!outcome.config || !outcome.config->attention)
    return result;
  const QkNorm &norm = *outcome.config->attention->norm;
  os << "norm of " << (norm.allHeads ? "all heads" : "each head") << ", eps "
     << spell(norm.eps);
  if (norm.weightOffset != 0)
    os << ", weights plus " << spell(norm.weightOffset);
  os << "\n";
  return result;
}

TEST(PublishedModelsTest, AreReadAsTheyAre) {
  auto buffer =
      llvm::MemoryBuffer::getFile(POSENC_SOURCE_DIR "/test/Frontend/"
                                                    "published-models.txt");
  ASSERT_TRUE(bool(buffer));
  llvm::SmallVector<llvm::StringRef> models;
  (*buffer)->getBuffer().split(models, "\n\n", -1, /*KeepEmpty=*/false);
  EXPECT_GE(models.size(), 100u);
  for (llvm::StringRef model : models) {
    auto [name, rest] = model.ltrim('\n').split('\n');
    auto [config, expected] = rest.split('\n');
    EXPECT_EQ(describe(config), expected.rtrim('\n').str() + "\n")
        << name.str();
  }
}

} // namespace
