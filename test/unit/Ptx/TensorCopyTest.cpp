//===- TensorCopyTest.cpp - cp.async.bulk.tensor in the PTX interpreter ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "ptx/TensorMap.h"

using namespace posenc;
using namespace posenc::test;
using ptx::TensorMap;

namespace {

constexpr unsigned sharedBytes = 8192;

// Thread 0 initializes an mbarrier. %d0 is the address of the tensor map.
const char *prologue =
    ".shared .align 1024 .b8 s[8192]; .shared .align 8 .b8 m[8];\n"
    "mov.b64 %d0, map; cvta.param.u64 %d0, %d0; ld.param.b64 %d1, [out];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r7, m;\n"
    "ld.param.b32 %r20, [c0]; ld.param.b32 %r21, [c1];\n"
    "ld.param.b32 %r22, [c2]; ld.param.b32 %r23, [bytes];\n"
    "setp.eq.u32 %p0, %r0, 0;\n"
    "@%p0 mbarrier.init.shared.b64 [%r7], 1;\n"
    "@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
const char *expectBytes =
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], %r23;\n";
const char *load3 =
    "@%p0 cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx"
    "::bytes [%r1], [%d0, {%r20, %r21, %r22}], [%r7];\n";
const char *await =
    "$W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r7], 0;"
    "@!%p2 bra $W;\n";
// Each of 32 threads stores every 32nd word of the box.
const char *dump =
    "mov.b32 %r10, 0; $D: mad.lo.s32 %r11, %r10, 32, %r0; shl.b32 %r11, %r11, "
    "2;"
    "setp.ge.u32 %p3, %r11, %r23; @%p3 bra $E; add.s32 %r12, %r1, %r11;"
    "ld.shared.b32 %r13, [%r12]; cvt.u64.u32 %d2, %r11; add.s64 %d2, %d1, %d2;"
    "st.global.b32 [%d2], %r13; add.s32 %r10, %r10, 1; bra.uni $D; $E:\n";
// The threads fill the first bytes of shared memory: word i is 7 * i.
const char *fill =
    "mov.b32 %r10, 0; $F: mad.lo.s32 %r11, %r10, 32, %r0; shl.b32 %r12, %r11, "
    "2;"
    "setp.ge.u32 %p3, %r12, %r23; @%p3 bra $G; mul.lo.s32 %r13, %r11, 7;"
    "add.s32 %r12, %r1, %r12; st.shared.b32 [%r12], %r13;"
    "add.s32 %r10, %r10, 1; bra.uni $F; $G:\n";
const char *store3 =
    "@%p0 cp.async.bulk.tensor.3d.global.shared::cta.bulk_group "
    "[%d0, {%r20, %r21, %r22}], [%r1];\n";
const char *finish = "cp.async.bulk.commit_group;"
                     "cp.async.bulk.wait_group.read 0;\n";
const char *fence = "fence.proxy.async.shared::cta; bar.sync 0;\n";

// A tensor of 16-bit elements with three dimensions.
struct Tensor {
  std::array<int32_t, 3> sizes = {50, 9, 3}, coordinates = {0, 0, 0};
  std::array<uint32_t, 3> box = {16, 4, 2};
  TensorMap::Swizzle swizzle = TensorMap::Swizzle32;
  unsigned pitch = 56; // elements between two rows
  std::vector<uint16_t> data, out = std::vector<uint16_t>(sharedBytes / 2);

  Tensor() { data.resize(pitch * 9 * 3); }
  uint32_t getBoxBytes() const { return box[0] * box[1] * box[2] * 2; }
  /// Returns the element at box coordinates, or null outside of the tensor.
  uint16_t *at(uint32_t x, uint32_t y, uint32_t z) {
    int32_t i = coordinates[0] + x, j = coordinates[1] + y,
            k = coordinates[2] + z;
    bool isInside = i >= 0 && i < sizes[0] && j >= 0 && j < sizes[1] &&
                    k >= 0 && k < sizes[2];
    return isInside ? &data[(k * sizes[1] + j) * pitch + i] : nullptr;
  }
  /// The index in shared memory of an element of the box, in elements. Row r of
  /// a swizzled tile has its chunks of 16 bytes permuted by a number that
  /// repeats after 8 rows of 128 bytes, as the PTX ISA draws it.
  uint32_t getIndex(uint32_t x, uint32_t y, uint32_t z) const {
    uint32_t row = z * box[1] + y, chunk = x / 8;
    if (swizzle == TensorMap::Swizzle128)
      chunk ^= row % 8;
    else if (swizzle == TensorMap::Swizzle64)
      chunk ^= row / 2 % 4;
    else if (swizzle == TensorMap::Swizzle32)
      chunk ^= row / 4 % 2;
    return row * box[0] + chunk * 8 + x % 8;
  }
  template <typename F> void forBox(F function) {
    for (uint32_t z = 0; z < box[2]; ++z)
      for (uint32_t y = 0; y < box[1]; ++y)
        for (uint32_t x = 0; x < box[0]; ++x)
          function(x, y, z);
  }

  std::vector<ptx::Argument> prepare(Kernel &kernel, bool isStore) {
    TensorMap map;
    map.rank = 3;
    map.elementBytes = 2;
    map.swizzle = swizzle;
    map.address = kernel.memory.add(
        data, isStore ? ptx::Access::ReadWrite : ptx::Access::ReadOnly,
        "tensor");
    map.strides[0] = pitch * 2;
    map.strides[1] = pitch * 2 * sizes[1];
    for (unsigned i = 0; i < 3; ++i) {
      map.sizes[i] = sizes[i];
      map.box[i] = box[i];
    }
    EXPECT_EQ(map.check(), nullptr);
    kernel.shape.block = {32, 1, 1};
    kernel.options.instructionLimit = 1000000;
    uint64_t address = kernel.memory.add(out, ptx::Access::ReadWrite, "out");
    return {
        map,          address, coordinates[0], coordinates[1], coordinates[2],
        getBoxBytes()};
  }
};

std::string make(const std::string &body) {
  return makeModule(
      ".param .align 64 .b8 map[128], .param .u64 out, .param "
      ".b32 c0, .param .b32 c1, .param .b32 c2, .param .b32 bytes",
      prologue + body);
}

void expectFault(const std::string &body, ptx::FaultKind kind,
                 const std::vector<std::string> &parts, Tensor tensor = {}) {
  for (uint32_t seed : {0, 1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << seed << body);
    Kernel kernel(make(body));
    kernel.options.seed = seed;
    std::vector<ptx::Argument> arguments =
        tensor.prepare(kernel, /*isStore=*/true);
    kernel.expectFault(kind, arguments, parts);
  }
}

// Tensors with all patterns, inside and across each border.
std::vector<Tensor> getTensors() {
  std::vector<Tensor> tensors;
  for (unsigned swizzle = 0; swizzle < 4; ++swizzle) {
    for (std::array<int32_t, 3> at : {std::array<int32_t, 3>{8, 1, 0},
                                      {-5, -2, -1},
                                      {40, 7, 2},
                                      {-70, 0, 0},
                                      {0, 20, 0}}) {
      Tensor tensor;
      tensor.swizzle = TensorMap::Swizzle(swizzle);
      tensor.box[0] = swizzle == 0 ? 24 : 8u << swizzle;
      tensor.coordinates = at;
      for (size_t i = 0; i < tensor.data.size(); ++i)
        tensor.data[i] = 1 + i;
      tensors.push_back(tensor);
    }
  }
  return tensors;
}

} // namespace

TEST(PtxTensorCopy, Loads) {
  for (Tensor &tensor : getTensors()) {
    for (uint32_t seed : {0, 1, 3}) {
      Kernel kernel(make(std::string(expectBytes) + load3 + await + dump));
      kernel.options.seed = seed;
      kernel.run(tensor.prepare(kernel, /*isStore=*/false));
      tensor.forBox([&](uint32_t x, uint32_t y, uint32_t z) {
        const uint16_t *element = tensor.at(x, y, z);
        EXPECT_EQ(tensor.out[tensor.getIndex(x, y, z)], element ? *element : 0)
            << x << " " << y << " " << z << " " << int(tensor.swizzle);
      });
    }
  }
}

TEST(PtxTensorCopy, Stores) {
  for (Tensor &tensor : getTensors()) {
    std::vector<uint16_t> before = tensor.data;
    Kernel kernel(make(std::string(fill) + fence + store3 + finish));
    kernel.run(tensor.prepare(kernel, /*isStore=*/true));
    uint32_t changed = 0;
    tensor.forBox([&](uint32_t x, uint32_t y, uint32_t z) {
      uint16_t *element = tensor.at(x, y, z);
      if (!element)
        return;
      uint32_t index = tensor.getIndex(x, y, z);
      EXPECT_EQ(*element, uint16_t(7 * (index / 2) >> 16 * (index % 2)));
      before[element - tensor.data.data()] = *element;
      ++changed;
    });
    // Nothing else has changed: neither other elements nor the padding.
    EXPECT_EQ(before, tensor.data);
    EXPECT_EQ(kernel.statistics.storedBytes, 2 * changed);
  }
}

// Copies of 1, 2, 4 and 5 dimensions: a box of 16 x 2 x 2 ... elements that
// begins at 8, 1, 1, ... and exceeds the last dimension.
TEST(PtxTensorCopy, Ranks) {
  for (unsigned rank : {1, 2, 4, 5}) {
    TensorMap map;
    map.rank = rank;
    map.elementBytes = 4;
    uint32_t elements = 1, bytes = 4;
    std::string coordinates = "8";
    for (unsigned i = 0; i < rank; ++i) {
      map.sizes[i] = i == 0 ? 32 : 3;
      map.box[i] = i == 0 ? 16 : 2;
      if (i + 1 == rank)
        map.sizes[i] = i == 0 ? 20 : 2;
      elements *= map.sizes[i];
      bytes *= map.box[i];
      if (i < 4)
        map.strides[i] = elements * 4;
      coordinates += i > 0 ? ", 1" : "";
    }
    std::vector<uint32_t> data(elements), out(sharedBytes / 4, 7);
    for (uint32_t i = 0; i < elements; ++i)
      data[i] = 100 + i;
    Kernel kernel(make(std::string(expectBytes) + "@%p0 cp.async.bulk.tensor." +
                       std::to_string(rank) +
                       "d.shared::cluster.global.tile.mbarrier::complete_tx::"
                       "bytes [%r1], [%d0, {" +
                       coordinates + "}], [%r7];\n" + await + dump));
    kernel.shape.block = {32, 1, 1};
    map.address = kernel.memory.add(data, ptx::Access::ReadOnly, "tensor");
    kernel.run({map, kernel.memory.add(out, ptx::Access::ReadWrite, "out"), 0,
                0, 0, bytes});
    for (uint32_t i = 0; i < bytes / 4; ++i) {
      uint32_t rest = i, scale = 1, index = 0;
      bool isInside = true;
      for (unsigned dim = 0; dim < rank; ++dim) {
        uint32_t at = rest % map.box[dim] + (dim == 0 ? 8 : 1);
        rest /= map.box[dim];
        isInside &= at < map.sizes[dim];
        index += at * scale;
        scale *= map.sizes[dim];
      }
      EXPECT_EQ(out[i], isInside ? 100 + index : 0) << rank << " " << i;
    }
  }
}

// Bytes in flight, and bytes that the reading thread has not waited for.
TEST(PtxTensorCopy, Waits) {
  std::string issue = std::string(expectBytes) + load3;
  std::string use = "ld.shared.b32 %r13, [%r1]; add.s32 %r13, %r13, 0;";
  expectFault(issue + use + await, ptx::FaultKind::Race, {"ld.shared.b32"});
  expectFault(issue + "st.shared.b32 [%r1], 5;" + await, ptx::FaultKind::Race,
              {"st.shared.b32"});
  // A write before the copy, by a thread that has not been waited for.
  expectFault("@%p0 bra $I; st.shared.b32 [%r1], 0; $I:" + issue + await,
              ptx::FaultKind::Race, {});
  // The block ends before the copy.
  for (uint32_t seed : {0, 2}) {
    Kernel kernel(make(issue));
    kernel.options.seed = seed;
    Tensor tensor;
    std::vector<ptx::Argument> arguments = tensor.prepare(kernel, false);
    kernel.expectFault(ptx::FaultKind::Race, arguments,
                       {"the block has ended before the copy was complete"});
  }
  // Too many and too few bytes are expected.
  for (int difference : {16, -16})
    expectFault("add.s32 %r23, %r23, " + std::to_string(difference) + ";" +
                    issue + await,
                ptx::FaultKind::Barrier,
                {"deadlock", "lacks 0 arrivals and " +
                                 std::to_string(difference) + " bytes"});
}

TEST(PtxTensorCopy, StoreWaits) {
  std::string issue = std::string(fill) + fence + store3;
  std::string change = "@%p0 st.shared.b32 [%r1], 0;";
  expectFault(issue + "cp.async.bulk.commit_group;" + change + finish,
              ptx::FaultKind::Race, {"is still reading here"});
  expectFault(issue + "cp.async.bulk.wait_group.read 0;" + change + finish,
              ptx::FaultKind::Race, {"is still reading here"});
  expectFault(issue + "cp.async.bulk.commit_group;", ptx::FaultKind::Race,
              {"the thread has ended before it waited"});
  Kernel kernel(make(issue + finish + change));
  Tensor tensor;
  std::vector<ptx::Argument> arguments = tensor.prepare(kernel, true);
  kernel.run(arguments);
  // Another thread needs a barrier after the wait.
  expectFault(issue + finish + "st.shared.b32 [%r1+4], %r0;",
              ptx::FaultKind::Race, {"data race"});
}

TEST(PtxTensorCopy, Fences) {
  // Without a proxy fence, before the store, by another thread, or too early.
  expectFault(std::string(fill) + "bar.sync 0;" + store3 + finish,
              ptx::FaultKind::Race, {"without fence.proxy.async in between"});
  expectFault(std::string(fill) + "@%p0 fence.proxy.async; bar.sync 0;" +
                  store3 + finish,
              ptx::FaultKind::Race, {"without fence.proxy.async in between"});
  expectFault("fence.proxy.async;" + std::string(fill) + "bar.sync 0;" +
                  store3 + finish,
              ptx::FaultKind::Race, {"without fence.proxy.async in between"});
  expectFault(std::string(fill) + "fence.proxy.async.global; bar.sync 0;" +
                  store3 + finish,
              ptx::FaultKind::Race, {"without fence.proxy.async in between"});
  // The mbarrier was initialized without a fence.
  std::string text = make(std::string(expectBytes) + load3 + await);
  size_t at = text.find("@%p0 fence.mbarrier_init");
  text.erase(at, text.find(';', at) + 1 - at);
  Kernel kernel(text);
  Tensor tensor;
  std::vector<ptx::Argument> arguments = tensor.prepare(kernel, false);
  kernel.expectFault(ptx::FaultKind::Race, arguments,
                     {"no fence.mbarrier_init or fence.proxy.async follows"});
}

TEST(PtxTensorCopy, Faults) {
  std::string issue = std::string(expectBytes) + load3;
  expectFault("add.s32 %r1, %r1, 128;" + issue, ptx::FaultKind::Misaligned,
              {"is not a multiple of 256"});
  expectFault("add.s32 %r1, %r1, 8192;" + issue, ptx::FaultKind::OutOfBounds,
              {"shared memory has"});
  expectFault("add.s64 %d0, %d0, 4;" + issue, ptx::FaultKind::Misaligned, {});
  expectFault("mov.b64 %d0, %d1;" + issue, ptx::FaultKind::Undefined,
              {"invalid tensor map: the bytes are not a tensor map"});
  expectFault("@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
              "complete_tx::bytes [%r1], [%d0, {%r20, %r21}], [%r7];",
              ptx::FaultKind::Undefined, {"the tensor map has 3 dimensions"});
  Tensor narrow;
  narrow.box[0] = 8;
  expectFault(issue, ptx::FaultKind::Undefined,
              {"rows of 16 bytes with a swizzle of 32"}, narrow);
  // The map claims more rows than the buffer has.
  Tensor large;
  large.sizes[1] = 1000;
  large.coordinates[1] = 500;
  expectFault(issue, ptx::FaultKind::OutOfBounds, {}, large);
}

TEST(PtxTensorCopy, Maps) {
  auto make = [] {
    TensorMap map;
    map.rank = 2;
    map.elementBytes = 2;
    map.address = 4096;
    map.sizes[0] = map.sizes[1] = 64;
    map.strides[0] = 128;
    map.box[0] = map.box[1] = 64;
    map.swizzle = TensorMap::Swizzle128;
    return map;
  };
  EXPECT_EQ(make().check(), nullptr);
  auto expectError = [&](auto change, const char *part) {
    TensorMap map = make();
    change(map);
    const char *error = map.check();
    ASSERT_NE(error, nullptr) << part;
    EXPECT_NE(std::string(error).find(part), std::string::npos) << error;
  };
  expectError([](TensorMap &map) { map.magic = 0; }, "not a tensor map");
  expectError([](TensorMap &map) { map.rank = 6; }, "rank");
  expectError([](TensorMap &map) { map.rank = 0; }, "rank");
  expectError([](TensorMap &map) { map.elementBytes = 3; }, "element");
  expectError([](TensorMap &map) { map.swizzle = TensorMap::Swizzle(9); },
              "swizzle");
  expectError([](TensorMap &map) { map.address = 4104; }, "address");
  expectError([](TensorMap &map) { map.sizes[1] = 0; }, "size");
  expectError([](TensorMap &map) { map.box[1] = 257; }, "box");
  expectError([](TensorMap &map) { map.strides[0] = 130; }, "stride");
  expectError([](TensorMap &map) { map.box[0] = 4; }, "multiple of 16");
  expectError([](TensorMap &map) { map.box[0] = 128; }, "swizzled");
}

TEST(PtxTensorCopy, Errors) {
  std::string load = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
                     "complete_tx::bytes ";
  EXPECT_EQ(getInstructionError(load + "[%r0], [%d0, {%r1, %r2}], [%r3];"), "");
  for (const std::string &text :
       {load + "[%r0], [%d0, {%r1}], [%r3];", load + "[%r0], [%d0], [%r3];",
        load + "[%r0], [%d0, {%r1, %r2}];",
        load + "[%r0], [%d0, {%r1, %d2}], [%r3];",
        load + "[%r0], [%d0, {%r1, %r2], [%r3];",
        std::string("cp.async.bulk.tensor.2d.global.shared::cta [%d0, {%r1, "
                    "%r2}], [%r0];"),
        std::string("cp.async.bulk.tensor.6d.global.shared::cta.bulk_group "
                    "[%d0, {%r1, %r2}], [%r0];"),
        std::string("cp.async.bulk.wait_group %r0;"),
        std::string("ld.shared.b32 %r0, [%r1, {%r2}];")})
    EXPECT_NE(getInstructionError(text).find("line "), std::string::npos)
        << text;
}
