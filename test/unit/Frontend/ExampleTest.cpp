//===- ExampleTest.cpp - published configs and expected diagnostics -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace posenc::frontend;
using namespace posenc::frontend::test;

namespace {

std::string contents(const llvm::Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer)) << path.str();
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

struct Example {
  const char *name;
  int64_t heads, keyHeads, headDim, rotaryDim;
  bool interleaved;
  double theta;
  const char *scaling;
  DType dtype;
};

constexpr const char *none = "";

const Example examples[] = {
    {"command-r", 64, 64, 128, 128, true, 8e6, none, DType::F16},
    {"deepseek-v3", 128, 1, 64, 64, true, 1e4, "yarn", DType::BF16},
    {"falcon-7b", 71, 1, 64, 64, false, 1e4, none, DType::BF16},
    {"gemma-2-9b", 16, 8, 256, 256, false, 1e4, none, DType::F32},
    {"gemma-3-4b", 8, 4, 256, 256, false, 1e6, "linear", DType::BF16},
    {"gemma-7b", 16, 16, 256, 256, false, 1e4, none, DType::BF16},
    {"glm-4-9b", 32, 2, 128, 64, true, 1e4, none, DType::BF16},
    {"gpt-j-6b", 16, 16, 256, 64, true, 1e4, none, DType::F32},
    {"gpt-neox-20b", 64, 64, 96, 24, false, 1e4, none, DType::F16},
    {"llama-3.1-8b", 32, 8, 128, 128, false, 5e5, "llama3", DType::BF16},
    {"mistral-7b", 32, 8, 128, 128, false, 1e4, none, DType::BF16},
    {"mixtral-8x7b", 32, 8, 128, 128, false, 1e6, none, DType::BF16},
    {"phi-2", 32, 32, 80, 32, false, 1e4, none, DType::F16},
    {"phi-3-mini-4k", 32, 32, 96, 96, false, 1e4, none, DType::BF16},
    {"qwen2-7b", 28, 4, 128, 128, false, 1e6, none, DType::BF16},
    {"qwen2.5-7b-yarn", 28, 4, 128, 128, false, 1e6, "yarn", DType::BF16},
    {"qwen3-8b", 32, 8, 128, 128, false, 1e6, none, DType::BF16},
    {"stablelm-3b", 32, 32, 80, 20, false, 1e4, none, DType::BF16},
};

TEST(ExampleTest, PublishedConfigs) {
  for (const Example &example : examples) {
    SCOPED_TRACE(example.name);
    Outcome outcome =
        read(contents(llvm::Twine(POSENC_SOURCE_DIR) + "/examples/configs/" +
                      example.name + ".json"));
    ASSERT_TRUE(outcome.config) << outcome.printed();
    EXPECT_TRUE(outcome.diags.empty()) << outcome.printed();
    const ModelConfig &config = *outcome.config;
    EXPECT_EQ(config.numHeads, example.heads);
    EXPECT_EQ(config.numKeyValueHeads, example.keyHeads);
    EXPECT_EQ(config.headDim, example.headDim);
    EXPECT_EQ(config.rotaryDim, example.rotaryDim);
    EXPECT_EQ(config.interleaved, example.interleaved);
    EXPECT_EQ(config.ropeTheta, example.theta);
    EXPECT_EQ(llvm::StringRef(print(config.scaling)).split('<').first,
              example.scaling);
    EXPECT_EQ(config.dtype, example.dtype);
  }
}

/// Every X.json has an X.expected with the diagnostics printed for it. The file
/// is empty for a valid config.
TEST(ExampleTest, ExpectedDiagnostics) {
  std::string folder = POSENC_SOURCE_DIR "/test/Frontend";
  unsigned found = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    if (llvm::sys::path::extension(it->path()) != ".json")
      continue;
    SCOPED_TRACE(it->path());
    ++found;
    std::string text = contents(it->path());
    llvm::SmallVector<Diagnostic> diags;
    readModelConfig(getContext(), text, llvm::sys::path::filename(it->path()),
                    diags);
    std::string printed;
    llvm::raw_string_ostream os(printed);
    printDiagnostics(os, diags);
    llvm::SmallString<128> expected(it->path());
    llvm::sys::path::replace_extension(expected, "expected");
    EXPECT_EQ(printed, contents(expected));
  }
  EXPECT_GE(found, 8u);
}

} // namespace
