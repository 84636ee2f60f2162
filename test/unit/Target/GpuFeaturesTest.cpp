//===- GpuFeaturesTest.cpp - what kernels for several GPUs may use --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Pipelines/Pipelines.h"

#include "gtest/gtest.h"

using namespace mlir::posenc;

/// Returns the features that GPUs share, as letters: of functions, attention,
/// warpgroups and small shared memory.
static std::string getFeatures(llvm::ArrayRef<llvm::StringRef> names) {
  std::vector<CudaTarget> gpus;
  for (llvm::StringRef name : names)
    gpus.push_back(llvm::cantFail(CudaTarget::parse(name)));
  GpuFeatures features = getGpuFeatures(gpus);
  std::string letters;
  for (auto [letter, has] : {std::pair{'f', features.functions},
                             {'a', features.attention},
                             {'w', features.warpgroups},
                             {'s', features.smallSharedMemory}})
    if (has)
      letters += letter;
  return letters;
}

TEST(GpuFeatures, AreThoseOfOneGpu) {
  EXPECT_EQ(getFeatures({"cuda:sm_75"}), "f");
  EXPECT_EQ(getFeatures({"cuda:sm_80"}), "fa");
  EXPECT_EQ(getFeatures({"cuda:sm_90a"}), "faw");
  EXPECT_EQ(getFeatures({"cuda:sm_120"}), "fas");
}

TEST(GpuFeatures, AllowKernelsThatSomeGpusHave) {
  EXPECT_EQ(getFeatures({"cuda:sm_75", "cuda:sm_80"}), "fa");
  EXPECT_EQ(getFeatures({"cuda:sm_90a", "cuda:sm_80"}), "faw");
}

TEST(GpuFeatures, HaveSmallTilesIfAllGpusWithAttentionNeedThem) {
  EXPECT_EQ(getFeatures({"cuda:sm_86", "cuda:sm_120"}), "fas");
  EXPECT_EQ(getFeatures({"cuda:sm_120", "cuda:sm_75"}), "fas");
  EXPECT_EQ(getFeatures({"cuda:sm_86", "cuda:sm_80"}), "fa");
  EXPECT_EQ(getFeatures({"cuda:sm_90a", "cuda:sm_120"}), "faw");
}
