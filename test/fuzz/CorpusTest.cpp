//===- CorpusTest.cpp - inputs that searches have found -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The folder corpus/<door> has inputs that reach different code, as libFuzzer
// found them (run-fuzz.py). Each must end in a result or in an error.
// POSENC_FUZZ_CORPUS=FOLDER takes another folder.
//
//===----------------------------------------------------------------------===//

#include "KnownFaults.h"
#include "Sandbox.h"
#include "doors/Doors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdlib>

using namespace posenc::fuzz;

namespace {

struct CorpusTest : testing::TestWithParam<const Door *> {};

std::vector<std::string> listFiles(const Door &door) {
  std::vector<std::string> paths;
  std::error_code error;
  const char *other = std::getenv("POSENC_FUZZ_CORPUS");
  std::string folder = other ? other : POSENC_SOURCE_DIR "/test/fuzz/corpus";
  folder += "/" + door.name.str();
  for (llvm::sys::fs::directory_iterator file(folder, error), end;
       !error && file != end; file.increment(error))
    paths.push_back(file->path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST_P(CorpusTest, EndsInAResultOrAnError) {
  const Door &door = *GetParam();
  std::vector<std::string> paths = listFiles(door);
  ASSERT_FALSE(paths.empty());
  SandboxOptions options;
  options.isKnown = isKnownFault;
  // Opening a door may take a second.
  options.batch = 1000;
  Summary summary = runSandboxed(
      paths.size(),
      [&]() -> Body {
        RunInput run = door.open();
        return [&, run](size_t input) -> Outcome {
          auto file = llvm::MemoryBuffer::getFile(paths[input]);
          return file ? run((*file)->getBuffer())
                      : Outcome{"cannot be read", Refused};
        };
      },
      options);
  for (const Failure &failure : summary.failures)
    ADD_FAILURE() << paths[failure.last] << "\n" << describe(failure);
  EXPECT_EQ(summary.executed, paths.size());
  std::printf("%s: %zu inputs, %zu refused; %zu hit known faults of LLVM or "
              "MLIR; slowest: %s, %.1f s\n",
              door.name.data(), summary.executed, summary.reached[Refused],
              summary.upstream, paths[summary.slowest].c_str(),
              summary.slowestSeconds);
}

TEST(DoorsTest, WrongCallsAreFound) {
  EXPECT_EQ(judgeCall(0, "", false), "");
  EXPECT_EQ(judgeCall(0, "", true),
            "a call wrote to memory that is not of its outputs");
  EXPECT_EQ(judgeCall(8, llvm::StringRef("wrong\0...", 9), false), "");
  EXPECT_EQ(judgeCall(8, llvm::StringRef("\0", 1), false), "");
  EXPECT_EQ(judgeCall(8, "", false), "");
  EXPECT_EQ(judgeCall(-11, "", false), "unknown status -11");
  EXPECT_EQ(judgeCall(8, "wrong", false), "the message does not end");
  EXPECT_EQ(judgeCall(8, llvm::StringRef("\0\0", 2), false),
            "no message with status 8");
  EXPECT_EQ(judgeCall(8, "", true), "a refused call wrote to memory");
}

/// Most changes of an ONNX model leave one that can be decoded, and some leave
/// one that is imported.
TEST(DoorsTest, ChangedOnnxModelsAreImported) {
  const Door &door = *findDoor("onnx");
  std::vector<std::string> models;
  for (const std::string &path : listFiles(door))
    if (auto file = llvm::MemoryBuffer::getFile(path))
      models.push_back((*file)->getBuffer().str());
  ASSERT_FALSE(models.empty());
  constexpr size_t kCount = 100;
  Summary summary = runSandboxed(kCount, [&]() -> Body {
    auto targets = std::make_shared<Targets>();
    return [&, targets](size_t input) {
      Random random(input);
      llvm::ArrayRef<std::string> all(models);
      std::string text =
          mutateOnnx(random, {random.pick(all), random.pick(all)});
      return targets->readModule(text, "model.onnx");
    };
  });
  EXPECT_TRUE(summary.failures.empty());
  EXPECT_GE(summary.reached[Read], kCount / 10);
}

std::vector<const Door *> listDoors() {
  std::vector<const Door *> doors;
  for (const Door &door : getDoors())
    doors.push_back(&door);
  return doors;
}

INSTANTIATE_TEST_SUITE_P(Doors, CorpusTest, testing::ValuesIn(listDoors()),
                         [](const auto &info) {
                           return info.param->name.str();
                         });

} // namespace
