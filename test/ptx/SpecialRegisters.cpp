//===- SpecialRegisters.cpp - values of the special registers -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

struct Special {
  const char *name;
  bool isWide;
  uint64_t (*get)(const Warp &, unsigned lane);
};

std::array<uint32_t, 3> getThread(const Warp &warp, unsigned lane) {
  const std::array<uint32_t, 3> &shape = warp.block.execution.shape.block;
  uint32_t thread = warp.index * warpSize + lane;
  return {thread % shape[0], thread / shape[0] % shape[1],
          thread / shape[0] / shape[1]};
}

template <unsigned i> uint64_t tid(const Warp &warp, unsigned lane) {
  return getThread(warp, lane)[i];
}
template <unsigned i> uint64_t ntid(const Warp &warp, unsigned) {
  return warp.block.execution.shape.block[i];
}
template <unsigned i> uint64_t ctaid(const Warp &warp, unsigned) {
  return warp.block.index[i];
}
template <unsigned i> uint64_t nctaid(const Warp &warp, unsigned) {
  return warp.block.execution.shape.grid[i];
}
uint64_t zero(const Warp &, unsigned) { return 0; }
uint64_t one(const Warp &, unsigned) { return 1; }

// Each block is a cluster of its own.
const Special specials[] = {
    {"%tid.x", false, tid<0>},
    {"%tid.y", false, tid<1>},
    {"%tid.z", false, tid<2>},
    {"%ntid.x", false, ntid<0>},
    {"%ntid.y", false, ntid<1>},
    {"%ntid.z", false, ntid<2>},
    {"%ctaid.x", false, ctaid<0>},
    {"%ctaid.y", false, ctaid<1>},
    {"%ctaid.z", false, ctaid<2>},
    {"%nctaid.x", false, nctaid<0>},
    {"%nctaid.y", false, nctaid<1>},
    {"%nctaid.z", false, nctaid<2>},
    {"%clusterid.x", false, ctaid<0>},
    {"%clusterid.y", false, ctaid<1>},
    {"%clusterid.z", false, ctaid<2>},
    {"%nclusterid.x", false, nctaid<0>},
    {"%nclusterid.y", false, nctaid<1>},
    {"%nclusterid.z", false, nctaid<2>},
    {"%cluster_ctaid.x", false, zero},
    {"%cluster_ctaid.y", false, zero},
    {"%cluster_ctaid.z", false, zero},
    {"%cluster_nctaid.x", false, one},
    {"%cluster_nctaid.y", false, one},
    {"%cluster_nctaid.z", false, one},
    {"%cluster_ctarank", false, zero},
    {"%cluster_nctarank", false, one},
    {"%laneid", false,
     [](const Warp &, unsigned lane) -> uint64_t { return lane; }},
    {"%warpid", false,
     [](const Warp &warp, unsigned) -> uint64_t { return warp.index; }},
    {"%nwarpid", false,
     [](const Warp &warp, unsigned) -> uint64_t {
       return warp.block.numWarps;
     }},
    {"%smid", false, zero},
    {"%nsmid", false, one},
    {"%gridid", true, zero},
    {"%lanemask_eq", false,
     [](const Warp &, unsigned lane) -> uint64_t { return 1u << lane; }},
    {"%lanemask_lt", false,
     [](const Warp &, unsigned lane) -> uint64_t { return (1u << lane) - 1; }},
    {"%lanemask_le", false,
     [](const Warp &, unsigned lane) -> uint64_t { return (2u << lane) - 1; }},
    {"%lanemask_gt", false,
     [](const Warp &, unsigned lane) -> uint64_t {
       return ~((2u << lane) - 1);
     }},
    {"%lanemask_ge", false,
     [](const Warp &, unsigned lane) -> uint64_t {
       return ~((1u << lane) - 1);
     }},
    {"%total_smem_size", false,
     [](const Warp &warp, unsigned) -> uint64_t {
       return warp.block.execution.sharedBytes;
     }},
    {"%dynamic_smem_size", false,
     [](const Warp &warp, unsigned) -> uint64_t {
       return warp.block.execution.shape.dynamicShared;
     }},
};
static_assert(std::size(specials) <= specialRegisterLimit);

} // namespace

std::optional<SpecialRegister> findSpecialRegister(StringRef name) {
  static const StringMap<uint32_t> *indices = [] {
    auto *result = new StringMap<uint32_t>;
    for (auto [i, special] : enumerate(specials))
      (*result)[special.name] = i;
    return result;
  }();
  auto it = indices->find(name);
  if (it == indices->end())
    return std::nullopt;
  return SpecialRegister{it->second, specials[it->second].isWide};
}

void Warp::setSpecials() {
  for (uint64_t used = execution.program.usedSpecials; used; used &= used - 1) {
    unsigned index = __builtin_ctzll(used);
    uint8_t *at = registers.data() + getSpecialOffset(index);
    for (unsigned lane = 0; lane < warpSize; ++lane) {
      uint64_t value = specials[index].get(*this, lane);
      unsigned bytes = specials[index].isWide ? 8 : 4;
      std::memcpy(at + lane * bytes, &value, bytes);
    }
  }
}

} // namespace posenc::ptx
