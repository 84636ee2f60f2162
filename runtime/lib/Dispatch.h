//===- Dispatch.h - Calls a C function by argument count --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_DISPATCH_H
#define POSENC_RUNTIME_LIB_DISPATCH_H

#include "posenc/runtime/types.h"

#include <array>
#include <cstdint>
#include <utility>

namespace posenc::runtime {

static_assert(sizeof(void *) == sizeof(int64_t),
              "pointers and integers are passed alike");

// The calling conventions of x86-64 and AArch64 pass a pointer, an int64_t and
// an int32_t in the same registers and stack slots, so that one type of
// function per number of arguments is enough. A sanitizer that compares types
// cannot know.
#if defined(__clang__)
#define POSENC_NO_FUNCTION_CHECK __attribute__((no_sanitize("function")))
#else
#define POSENC_NO_FUNCTION_CHECK
#endif

template <typename Result, size_t... I>
POSENC_NO_FUNCTION_CHECK Result callWith(void *address,
                                         const int64_t *arguments,
                                         std::index_sequence<I...>) {
  auto function =
      reinterpret_cast<Result (*)(decltype(arguments[I] + 0)...)>(address);
  (void)arguments;
  return function(arguments[I]...);
}

template <typename Result, size_t Count>
Result callCounted(void *address, const int64_t *arguments) {
  return callWith<Result>(address, arguments,
                          std::make_index_sequence<Count>());
}

template <typename Result>
using Caller = Result (*)(void *address, const int64_t *arguments);

template <typename Result, size_t... Count>
constexpr std::array<Caller<Result>, sizeof...(Count)>
makeCallers(std::index_sequence<Count...>) {
  return {callCounted<Result, Count>...};
}

/// Calls the C function at `address`, which takes `count` pointers and
/// integers, at most POSENC_MAX_ARGUMENTS.
template <typename Result>
Result dispatch(void *address, const int64_t *arguments, size_t count) {
  static constexpr auto callers =
      makeCallers<Result>(std::make_index_sequence<POSENC_MAX_ARGUMENTS + 1>());
  return callers[count](address, arguments);
}

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_DISPATCH_H
