//===- LimitTest.cpp - memory regions and streams of the limits -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-bench/Limit.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace mlir::posenc;

namespace {

/// Returns bytes that are no NaN in any element type. Neighbours differ.
std::vector<char> makeBytes(size_t count) {
  std::vector<char> bytes(count);
  for (size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(1 + i % 61);
  return bytes;
}

/// Memory that is aligned to a cache line.
struct alignas(64) Aligned {
  char bytes[8192];
};

TEST(TouchedLinesTest, WholeRowsAreOneRun) {
  Aligned memory;
  ByteRows region = getTouchedLines(memory.bytes, 5, 320, 0, 320);
  EXPECT_EQ(region.rows, 1);
  EXPECT_EQ(region.bytes(), 1600);
}

TEST(TouchedLinesTest, WindowOfAlignedRows) {
  Aligned memory;
  // 32 of 80 channels of f32: two of the five cache lines of a row.
  ByteRows region = getTouchedLines(memory.bytes, 8, 320, 0, 128);
  EXPECT_EQ(region.rows, 8);
  EXPECT_EQ(region.stride, 320);
  EXPECT_EQ(region.bytes(), 8 * 128);
}

TEST(TouchedLinesTest, WindowOfRowsThatShareLines) {
  Aligned memory;
  // 32 of 80 channels of bf16: every second row starts in the middle of a cache
  // line. The window of the first row is the line at 0; that of the second row
  // is in the lines at 128 and 192.
  ByteRows region = getTouchedLines(memory.bytes, 8, 160, 0, 64);
  EXPECT_EQ(region.rows, 4);
  EXPECT_EQ(region.stride, 320);
  ASSERT_EQ(region.runs.size(), 2u);
  EXPECT_EQ(region.runs[0].offset, 0);
  EXPECT_EQ(region.runs[0].bytes, 64);
  EXPECT_EQ(region.runs[1].offset, 128);
  EXPECT_EQ(region.runs[1].bytes, 128);
}

TEST(TouchedLinesTest, CountsSharedLinesOnce) {
  Aligned memory;
  // Rows of 32 bytes, so each cache line has the windows of two rows.
  ByteRows region = getTouchedLines(memory.bytes, 8, 32, 8, 16);
  EXPECT_EQ(region.bytes(), 8 * 32);
}

TEST(StreamTest, CountsBytesReadAndWritten) {
  Aligned memory;
  StreamStep step;
  step.to = ByteRows::create(memory.bytes, 100);
  EXPECT_EQ(step.bytes(), 200);
  step.kind = StreamStep::Fill;
  EXPECT_EQ(step.bytes(), 100);
}

/// Expects that a fill of the region writes all of it and nothing else.
void expectWritten(const ByteRows &region, int threads) {
  Aligned memory;
  std::memset(&memory, 0x77, sizeof(memory));
  ByteRows to = region;
  to.data = memory.bytes + 64;
  StreamStep step;
  step.kind = StreamStep::Fill;
  step.to = to;
  createStreams({step}).front().run(threads);
  std::vector<char> expected(sizeof(memory), 0x77);
  for (int64_t row = 0; row < to.rows; ++row)
    for (const ByteRun &run : to.runs)
      std::memset(expected.data() + 64 + row * to.stride + run.offset, 0,
                  static_cast<size_t>(run.bytes));
  EXPECT_EQ(std::memcmp(&memory, expected.data(), sizeof(memory)), 0)
      << region.rows << " rows, " << threads << " threads";
}

TEST(StreamTest, ThreadsWriteWholeRegion) {
  Aligned memory;
  for (int threads : {1, 2, 3, 7}) {
    for (int64_t bytes : {1, 63, 64, 65, 1000, 4096})
      expectWritten(ByteRows::create(memory.bytes, bytes), threads);
    expectWritten(getTouchedLines(memory.bytes, 20, 160, 0, 64), threads);
    expectWritten(getTouchedLines(memory.bytes, 20, 320, 64, 128), threads);
  }
}

TEST(StreamTest, CopiesAreExact) {
  Aligned from, to;
  for (int64_t bytes : {1, 64, 100, 4096, 5000}) {
    std::vector<char> bytesFrom = makeBytes(sizeof(from));
    std::memcpy(&from, bytesFrom.data(), sizeof(from));
    StreamStep step;
    step.kind = StreamStep::Copy;
    step.from = ByteRows::create(from.bytes, bytes);
    step.to = ByteRows::create(to.bytes, bytes);
    std::vector<Stream> streams = createStreams({step});
    EXPECT_EQ(streams.front().name, "memcpy");
    for (const Stream &stream : streams)
      for (int threads : {1, 3}) {
        std::memset(&to, 0, sizeof(to));
        stream.run(threads);
        EXPECT_EQ(std::memcmp(to.bytes, from.bytes, size_t(bytes)), 0);
        EXPECT_EQ(to.bytes[bytes], 0) << stream.name << " writes too much";
      }
  }
}

TEST(StreamTest, ReadsCountBytesOnce) {
  Aligned memory;
  std::memset(&memory, 1, sizeof(memory));
  StreamStep step;
  step.kind = StreamStep::Read;
  for (int64_t bytes : {1, 64, 1000, 4096}) {
    step.from = ByteRows::create(memory.bytes, bytes);
    EXPECT_EQ(step.bytes(), bytes);
    std::vector<Stream> streams = createStreams({step});
    ASSERT_EQ(streams.size(), 2u);
    EXPECT_EQ(streams[0].name, "read");
    EXPECT_EQ(streams[1].name, "prefetched read");
    for (const Stream &stream : streams) {
      EXPECT_EQ(stream.bytes(), bytes);
      EXPECT_EQ(stream.flops(), 0);
      for (int threads : {1, 3})
        stream.run(threads);
    }
  }
}

TEST(StreamTest, FmaCountsOperations) {
  for (posenc_dtype dtype : {POSENC_F64, POSENC_F32, POSENC_F16, POSENC_BF16}) {
    StreamStep step;
    step.kind = StreamStep::Fma;
    step.dtype = dtype;
    step.flops = 1e6;
    std::vector<Stream> streams = createStreams({step});
    ASSERT_EQ(streams.size(), 1u);
    EXPECT_EQ(streams[0].name, "fma");
    EXPECT_EQ(streams[0].bytes(), 0);
    EXPECT_EQ(streams[0].flops(), 1e6);
    for (int threads : {1, 3})
      streams[0].run(threads);
  }
}

/// Streams scale by 1, which must preserve the values of every type, including
/// the end of rows that are not a multiple of the vector size.
TEST(StreamTest, ScaleKeepsValues) {
  for (posenc_dtype dtype : {POSENC_F64, POSENC_F32, POSENC_F16, POSENC_BF16})
    for (int64_t bytes : {8, 64, 72, 200, 4096}) {
      Aligned memory;
      std::vector<char> before = makeBytes(sizeof(memory));
      std::memcpy(&memory, before.data(), sizeof(memory));
      StreamStep step;
      step.dtype = dtype;
      step.to = ByteRows::create(memory.bytes, bytes);
      for (const Stream &stream : createStreams({step}))
        for (int threads : {1, 2})
          stream.run(threads);
      EXPECT_EQ(std::memcmp(&memory, before.data(), sizeof(memory)), 0)
          << posenc_dtype_name(dtype) << ", " << bytes << " bytes";
    }
}

/// Scaling windows of 1 to 10 cache lines per row keeps values. Rows of up to 8
/// lines have loops of their own.
TEST(StreamTest, ScaleOfWindowsKeepsValues) {
  for (posenc_dtype dtype : {POSENC_F64, POSENC_F32, POSENC_F16, POSENC_BF16})
    for (int64_t windowBytes = 64; windowBytes <= 640; windowBytes += 64) {
      Aligned memory;
      std::vector<char> before = makeBytes(sizeof(memory));
      std::memcpy(&memory, before.data(), sizeof(memory));
      StreamStep step;
      step.dtype = dtype;
      step.to = getTouchedLines(memory.bytes, 8, 1024, 128, windowBytes);
      for (const Stream &stream : createStreams({step}))
        stream.run(2);
      EXPECT_EQ(std::memcmp(&memory, before.data(), sizeof(memory)), 0)
          << posenc_dtype_name(dtype) << ", " << windowBytes << " bytes";
    }
}

TEST(CacheTest, LastLevelCacheHasPlausibleSize) {
  EXPECT_GE(getLastLevelCacheBytes(), 1 << 16);
}

} // namespace
