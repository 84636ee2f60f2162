//===- Types.cpp - Element types, status names and sizes ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "posenc/kernel/DlTensor.h"

#include <cstdlib>
#include <cstring>

namespace {
struct DtypeInfo {
  const char *name;
  size_t size;
};
} // namespace

// Indexed by posenc_dtype.
static const DtypeInfo dtypes[] = {{"invalid", 0},
#define POSENC_ELEMENT_TYPE(name, text, bytes, code) {text, bytes},
                                   POSENC_ELEMENT_TYPES(POSENC_ELEMENT_TYPE)
#undef POSENC_ELEMENT_TYPE
};
#define POSENC_ELEMENT_TYPE(name, text, bytes, code) 1 +
static_assert(POSENC_ELEMENT_TYPES(POSENC_ELEMENT_TYPE) 0 == POSENC_U8,
              "posenc_dtype numbers the element types in order");
#undef POSENC_ELEMENT_TYPE
static constexpr posenc_dtype numDtypes = sizeof(dtypes) / sizeof(dtypes[0]);

static const DtypeInfo &info(posenc_dtype dtype) {
  return dtypes[dtype > 0 && dtype < numDtypes ? dtype : 0];
}

size_t posenc_dtype_size(posenc_dtype dtype) { return info(dtype).size; }

const char *posenc_dtype_name(posenc_dtype dtype) { return info(dtype).name; }

posenc_dtype posenc_dtype_from_name(const char *name) {
  for (posenc_dtype dtype = 1; name && dtype < numDtypes; ++dtype)
    if (!std::strcmp(name, dtypes[dtype].name))
      return dtype;
  return POSENC_DTYPE_INVALID;
}

namespace posenc::runtime {

bool tensorBytes(posenc_dtype dtype, const int64_t *shape, int32_t rank,
                 uint64_t &bytes) {
  int64_t product = static_cast<int64_t>(posenc_dtype_size(dtype));
  bool empty = false;
  for (int32_t dim = 0; dim < rank; ++dim) {
    if (shape[dim] < 0)
      return false;
    if (shape[dim] == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, shape[dim], &product))
      return false;
  }
  bytes = empty ? 0 : static_cast<uint64_t>(product);
  return true;
}

bool isCompatible(posenc_dtype given, posenc_dtype wanted) {
  auto same = [](posenc_dtype dtype) {
    return dtype == POSENC_INDEX ? POSENC_I64 : dtype;
  };
  bool isByte = wanted == POSENC_I1 || wanted == POSENC_F8E4M3FN ||
                wanted == POSENC_F8E5M2;
  return same(given) == same(wanted) || (given == POSENC_U8 && isByte);
}

void *allocateAligned(uint64_t bytes) {
  void *memory = nullptr;
  if (bytes >= uint64_t(1) << 47 ||
      posix_memalign(&memory, 64, bytes ? bytes : 1))
    return nullptr;
  return memory;
}

} // namespace posenc::runtime
