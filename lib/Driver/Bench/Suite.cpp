//===- Suite.cpp - the cases of make bench ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Suite.h"

#include "LinalgModule.h"
#include "RopeModule.h"
#include "posenc/Driver/Bench/Limit.h"
#include "posenc/TargetInfo/TargetSpec.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <thread>

using namespace mlir::posenc;

int64_t mlir::posenc::getTokensFromMemory(SuiteSize size,
                                          int64_t touchedBytesPerToken) {
  constexpr int64_t small = 256, least = 16384;
  if (size == SuiteSize::Small)
    return small;
  int64_t needed = 4 * getLastLevelCacheBytes() / touchedBytesPerToken;
  return std::max<int64_t>(least, llvm::PowerOf2Ceil(needed));
}

int64_t mlir::posenc::getAttentionTokens(SuiteSize size, int64_t tokens) {
  constexpr int64_t smaller = 32;
  return size == SuiteSize::Small ? tokens / smaller : tokens;
}

int64_t mlir::posenc::getKeysFromMemory(SuiteSize size,
                                        const AttentionForm &form) {
  // Keys and values.
  return getTokensFromMemory(size, 2 * form.keyHeads * form.headDim *
                                       int64_t(posenc_dtype_size(form.dtype)));
}

std::vector<int>
mlir::posenc::getThreadsFromMemory(const std::vector<int> &wanted) {
  if (!wanted.empty())
    return wanted;
  return std::thread::hardware_concurrency() > 1 ? std::vector<int>{1, 2}
                                                 : std::vector<int>{1};
}

namespace {

class SuiteBuilder {
public:
  SuiteBuilder(SuiteSize size, const std::vector<int> &threads)
      : size(size), fromMemoryThreads(getThreadsFromMemory(threads)) {}

  std::vector<Case> build();

private:
  Case &add(const std::string &name) {
    cases.emplace_back();
    cases.back().name = name;
    return cases.back();
  }
  Case &addRope(const std::string &variant, const RopeForm &form);
  void addRopeOfTokens(const RopeForm &form, int64_t tokens);
  void addSinusoidal(posenc_dtype dtype, int64_t dim);
  Case &addAttention(const std::string &variant, const AttentionForm &form,
                     int64_t tokens);
  void addFormsOfAttention();
  void addLinalg();
  Case &addDecode(const std::string &variant, const AttentionForm &form);

  SuiteSize size;
  std::vector<int> fromMemoryThreads;
  std::vector<Case> cases;
};

} // namespace

/// From memory.
Case &SuiteBuilder::addRope(const std::string &variant, const RopeForm &form) {
  Case &added = add("rope/" + variant);
  int64_t bytes = (form.queryHeads + form.keyHeads) * form.rotaryDim *
                  int64_t(posenc_dtype_size(form.dtype));
  setRope(form, getTokensFromMemory(size, bytes), added);
  added.threads = fromMemoryThreads;
  return added;
}

void SuiteBuilder::addRopeOfTokens(const RopeForm &form, int64_t tokens) {
  setRope(form, tokens, add(std::string("rope/") + form.pairing));
}

void SuiteBuilder::addSinusoidal(posenc_dtype dtype, int64_t dim) {
  Case &added = add("sinusoidal/interleaved");
  setSinusoidal(
      dtype, dim,
      getTokensFromMemory(size, dim * int64_t(posenc_dtype_size(dtype))),
      added);
  added.threads = fromMemoryThreads;
}

Case &SuiteBuilder::addAttention(const std::string &variant,
                                 const AttentionForm &form, int64_t tokens) {
  Case &added = add("attention/" + variant);
  setAttention(form, getAttentionTokens(size, tokens), added);
  added.threads = fromMemoryThreads;
  return added;
}

/// What models do to scores and masks, against the plain form.
void SuiteBuilder::addFormsOfAttention() {
  constexpr int64_t tokens = 1024, window = 256;
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
    AttentionForm plain;
    plain.dtype = dtype;
    plain.isCausal = true;
    Case named;
    named.name = "attention/causal";
    setAttention(plain, getAttentionTokens(size, tokens), named);
    auto addForm = [&](const std::string &word, AttentionForm form) {
      Case &added = addAttention("causal-" + word, form, tokens);
      added.plain = named.name;
      added.threads = {fromMemoryThreads.front()};
    };
    AttentionForm form = plain;
    form.score = AttentionForm::SoftCap;
    addForm("soft-cap", form);
    form.score = AttentionForm::Alibi;
    addForm("alibi", form);
    form.score = AttentionForm::T5;
    addForm("t5", form);
    form = plain;
    form.window = getAttentionTokens(size, window);
    addForm("window", form);
  }
}

Case &SuiteBuilder::addDecode(const std::string &variant,
                              const AttentionForm &form) {
  Case &added = add("decode/" + variant);
  setDecode(form, getKeysFromMemory(size, form), added);
  added.threads = fromMemoryThreads;
  return added;
}

/// Adds the linalg operations that models have around encodings.
void SuiteBuilder::addLinalg() {
  bool isSmall = size == SuiteSize::Small;
  auto addProduct = [&](const std::string &variant, ProductForm form) {
    if (isSmall)
      form.m = form.k = form.n = 64;
    Case &added = add("linalg/" + variant);
    setProduct(form, added);
    added.threads = fromMemoryThreads;
  };
  for (int64_t sizes : {512, 1024})
    addProduct("matmul", {POSENC_F32, sizes, sizes, sizes});
  addProduct("matmul", {POSENC_BF16, 512, 512, 512});
  addProduct("matmul", {POSENC_F32, 32, 4096, 4096});
  addProduct("matmul-packed", {POSENC_F32, 32, 4096, 4096, /*isPacked=*/true});
  addProduct("matmul", {POSENC_F32, 512, 1024, 1024});
  addProduct("matmul-rope", {POSENC_F32, 512, 1024, 1024, /*isPacked=*/false,
                             /*hasRope=*/true});
  Case &matvec = add("linalg/matvec");
  setMatvec(isSmall ? 64 : 4096, matvec);
  matvec.threads = fromMemoryThreads;
  int64_t columns = isSmall ? 64 : 4096;
  int64_t rows = isSmall ? 64
                         : llvm::PowerOf2Ceil(4 * getLastLevelCacheBytes() /
                                              (2 * columns * sizeof(float)));
  for (auto [variant, work] : {std::pair("bias-silu", RowWork::BiasSilu),
                               {"residual", RowWork::Residual},
                               {"to-bf16", RowWork::ToBF16},
                               {"rmsnorm", RowWork::RmsNorm},
                               {"softmax", RowWork::Softmax}}) {
    Case &added = add(std::string("linalg/") + variant);
    setRows(work, rows, columns, added);
    added.threads = fromMemoryThreads;
  }
  int64_t tokens = isSmall ? 16 : 1024;
  setAddSinusoidal(8, tokens, 512, add("linalg/add-sinusoidal"));
  Case &normRope = add("linalg/norm-rope");
  setNormRope(getTokensFromMemory(size, 32 * 128 * sizeof(float)), 32, 128,
              normRope);
  normRope.threads = fromMemoryThreads;
}

/// Targets of code with other vectors than this machine's widest, by words for
/// names of cases: what a library's older version is, and AVX-512 on vectors of
/// 256 bits.
static std::vector<std::pair<std::string, std::string>> getOtherWidths() {
  std::vector<std::pair<std::string, std::string>> targets;
#if defined(__x86_64__)
  targets.push_back({"avx2", "x86-64-v3"});
  llvm::Expected<TargetSpec> host = TargetSpec::parse("host");
  if (!host)
    llvm::consumeError(host.takeError());
  else if (host->vectorBytes > 32)
    targets.push_back({"256", host->name + "+prefer-256-bit"});
#endif
  return targets;
}

std::vector<Case> SuiteBuilder::build() {
  for (const char *pairing : {"half", "interleaved"})
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F16}) {
      RopeForm form;
      form.pairing = pairing;
      form.dtype = dtype;
      addRope(pairing, form);
    }

  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
    RopeForm form;
    form.dtype = dtype;
    addRope("half-out", form).inPlace = false;

    RopeForm fewHeads = form;
    fewHeads.queryHeads = 8;
    fewHeads.keyHeads = 0;
    fewHeads.headDim = fewHeads.rotaryDim = 64;
    addRope("half", fewHeads);

    // As in Phi-2.
    RopeForm window = form;
    window.keyHeads = 32;
    window.headDim = 80;
    window.rotaryDim = 32;
    addRope("half-window", window);

    // As in Qwen2-VL.
    RopeForm sections = form;
    sections.axes = "<contiguous, [16, 24, 24]>";
    sections.numAxes = 3;
    sections.positions = CaseInput::Grid;
    addRope("half-mrope", sections);

    RopeForm axial = form;
    axial.axes = "<axial, [32, 32]>";
    axial.numAxes = 2;
    axial.positions = CaseInput::Grid;
    addRope("half-axial", axial);

    RopeForm ids = form;
    ids.layout = RopeForm::Packed;
    ids.positions = CaseInput::Shuffled;
    addRope("half-ids", ids);

    RopeForm strided = form;
    strided.layout = RopeForm::Packed;
    strided.isView = true;
    addRope("half-strided", strided);

    RopeForm headFirst = form;
    headFirst.layout = RopeForm::BatchHeadFirst;
    addRope("half-bhsd", headFirst);
  }

  for (const auto &[word, target] : getOtherWidths())
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      RopeForm form;
      form.dtype = dtype;
      addRope("half-" + word, form).target = target;
    }

  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F16}) {
    RopeForm form;
    form.dtype = dtype;
    form.queryHeads = 8;
    form.keyHeads = 0;
    form.headDim = form.rotaryDim = 64;
    addRopeOfTokens(form, 512);
  }
  for (int64_t tokens : {1, 32})
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      RopeForm form;
      form.dtype = dtype;
      addRopeOfTokens(form, tokens);
    }
  for (int64_t dim : {64, 512, 4096})
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16})
      addSinusoidal(dtype, dim);

  for (bool isCausal : {false, true}) {
    const char *variant = isCausal ? "causal" : "full";
    AttentionForm form;
    form.isCausal = isCausal;
    for (int64_t tokens : {512, 1024, 4096})
      addAttention(variant, form, tokens);
    form.dtype = POSENC_BF16;
    addAttention(variant, form, 1024);
  }
  for (const auto &[word, target] : getOtherWidths())
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      AttentionForm form;
      form.dtype = dtype;
      addAttention("full-" + word, form, 1024).target = target;
      addDecode("rotated-" + word, form).target = target;
    }
  addFormsOfAttention();
  for (bool isTokenMajor : {false, true})
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16, POSENC_F16}) {
      AttentionForm form;
      form.dtype = dtype;
      form.isTokenMajor = isTokenMajor;
      addDecode(isTokenMajor ? "rotated-token-major" : "rotated", form);
    }
  addLinalg();
  return std::move(cases);
}

std::vector<Case> mlir::posenc::createSuite(SuiteSize size,
                                            const std::vector<int> &threads) {
  return SuiteBuilder(size, threads).build();
}
