//===- Dispatch.h - Calls a C function by argument count --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_DISPATCH_H
#define POSENC_RUNTIME_LIB_DISPATCH_H

#include "Signature.h"

#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>

namespace posenc::runtime {

static_assert(sizeof(void *) == sizeof(int64_t),
              "pointers and integers are passed alike");

// The calling conventions of x86-64 and AArch64 pass a pointer, an int64_t and
// an int32_t in the same registers and stack slots, and the first eight
// floating-point arguments in separate registers. So one function type per
// number of arguments is enough. -fsanitize=function would report the cast.
#if defined(__clang__)
#define POSENC_NO_FUNCTION_CHECK __attribute__((no_sanitize("function")))
#else
#define POSENC_NO_FUNCTION_CHECK
#endif

/// The maximum number of floating-point arguments of a function that can be
/// called.
constexpr size_t maxReals = 8;

/// The arguments of a call: the pointers and integers in order, and the
/// floating-point numbers in order, in the form that registers hold.
struct CallArguments {
  int64_t words[POSENC_MAX_ARGUMENTS];
  size_t numWords = 0;
  double reals[maxReals] = {};
  size_t numReals = 0;

  /// Binding has checked that there are at most POSENC_MAX_ARGUMENTS.
  void add(int64_t word) {
    assert(numWords < POSENC_MAX_ARGUMENTS);
    words[numWords++] = word;
  }
  /// Binding has checked that there are at most maxReals.
  void addReal(posenc_dtype dtype, double real) {
    if (numReals == maxReals)
      return;
    // A float is in the lower half of the register.
    auto narrow = static_cast<float>(real);
    if (dtype == POSENC_F32)
      std::memcpy(&reals[numReals], &narrow, sizeof(narrow));
    else
      reals[numReals] = real;
    ++numReals;
  }
  void addScalar(const posenc_argument &argument, int64_t scalar, double real) {
    if (isRealScalar(argument))
      addReal(argument.dtype, real);
    else
      add(scalar);
  }
};

template <typename Result, size_t... I, typename... Reals>
POSENC_NO_FUNCTION_CHECK Result callWith(void *address, const int64_t *words,
                                         std::index_sequence<I...>,
                                         Reals... reals) {
  (void)words;
  using Function = Result (*)(decltype(words[I] + 0)..., Reals...);
  return reinterpret_cast<Function>(address)(words[I]..., reals...);
}

template <typename Result, size_t Count>
Result callCounted(void *address, const int64_t *words, const double *reals) {
  std::make_index_sequence<Count> indices;
  if (!reals)
    return callWith<Result>(address, words, indices);
  return callWith<Result>(address, words, indices, reals[0], reals[1], reals[2],
                          reals[3], reals[4], reals[5], reals[6], reals[7]);
}

template <typename Result>
using Caller = Result (*)(void *address, const int64_t *words,
                          const double *reals);

template <typename Result, size_t... Count>
constexpr std::array<Caller<Result>, sizeof...(Count)>
makeCallers(std::index_sequence<Count...>) {
  return {callCounted<Result, Count>...};
}

/// Calls the C function at `address`, which takes `count` pointers and integers
/// (at most POSENC_MAX_ARGUMENTS) and, anywhere between them, at most maxReals
/// floating-point numbers. `reals` has maxReals elements, or is null for a
/// function without floating-point arguments.
template <typename Result>
Result dispatch(void *address, const int64_t *words, size_t count,
                const double *reals = nullptr) {
  assert(address && count <= POSENC_MAX_ARGUMENTS);
  constexpr size_t maxExact = 32;
  static constexpr auto callers =
      makeCallers<Result>(std::make_index_sequence<maxExact + 1>());
  if (count <= maxExact)
    return callers[count](address, words, reals);
  // The caller removes arguments from the stack, so a function may be called
  // with more of them than it takes.
  int64_t padded[POSENC_MAX_ARGUMENTS] = {};
  std::memcpy(padded, words, count * sizeof(*words));
  static constexpr auto padding = makeCallers<Result>(
      std::index_sequence<64, 128, 256, POSENC_MAX_ARGUMENTS>());
  size_t number = count <= 64 ? 0 : count <= 128 ? 1 : count <= 256 ? 2 : 3;
  return padding[number](address, padded, reals);
}

template <typename Result>
Result dispatch(void *address, const CallArguments &arguments) {
  return dispatch<Result>(address, arguments.words, arguments.numWords,
                          arguments.numReals ? arguments.reals : nullptr);
}

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_DISPATCH_H
