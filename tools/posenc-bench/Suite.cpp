//===- Suite.cpp - the cases of make bench --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Suite.h"

#include "LinalgModule.h"
#include "RopeModule.h"
#include "posenc-bench/Limit.h"
#include "posenc/TargetInfo/TargetSpec.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <thread>

using namespace mlir::posenc;

int64_t mlir::posenc::getMemoryBoundTokens(SuiteSize size,
                                           int64_t touchedBytesPerToken) {
  constexpr int64_t smallTokens = 256, minTokens = 16384;
  if (size == SuiteSize::Small)
    return smallTokens;
  int64_t needed = 4 * getLastLevelCacheBytes() / touchedBytesPerToken;
  return std::max<int64_t>(minTokens, llvm::PowerOf2Ceil(needed));
}

int64_t mlir::posenc::getAttentionTokens(SuiteSize size, int64_t tokens) {
  constexpr int64_t smallDivisor = 32;
  return size == SuiteSize::Small ? tokens / smallDivisor : tokens;
}

int64_t mlir::posenc::getMemoryBoundKeys(SuiteSize size,
                                         const AttentionForm &form) {
  // A token has a key and a value.
  return getMemoryBoundTokens(size, 2 * form.keyHeads * form.headDim *
                                        int64_t(posenc_dtype_size(form.dtype)));
}

std::vector<int>
mlir::posenc::getLargeCaseThreads(const std::vector<int> &wanted) {
  if (!wanted.empty())
    return wanted;
  return std::thread::hardware_concurrency() > 1 ? std::vector<int>{1, 2}
                                                 : std::vector<int>{1};
}

namespace {

class SuiteBuilder {
public:
  SuiteBuilder(SuiteSize size, const std::vector<int> &threads)
      : size(size), largeCaseThreads(getLargeCaseThreads(threads)) {}

  std::vector<Case> build();

private:
  Case &add(const std::string &name) {
    cases.emplace_back();
    cases.back().name = name;
    return cases.back();
  }
  Case &addRope(const std::string &variant, const RopeForm &form);
  void addRopeWithTokens(const RopeForm &form, int64_t tokens);
  void addSinusoidal(posenc_dtype dtype, int64_t dim);
  Case &addAttention(const std::string &variant, const AttentionForm &form,
                     int64_t tokens);
  void addAttentionVariants();
  void addLinalg();
  Case &addDecode(const std::string &variant, const AttentionForm &form);

  SuiteSize size;
  std::vector<int> largeCaseThreads;
  std::vector<Case> cases;
};

} // namespace

/// Adds a rope whose tensors exceed the caches.
Case &SuiteBuilder::addRope(const std::string &variant, const RopeForm &form) {
  Case &added = add("rope/" + variant);
  int64_t bytes = (form.queryHeads + form.keyHeads) * form.rotaryDim *
                  int64_t(posenc_dtype_size(form.dtype));
  setRope(form, getMemoryBoundTokens(size, bytes), added);
  added.threads = largeCaseThreads;
  return added;
}

void SuiteBuilder::addRopeWithTokens(const RopeForm &form, int64_t tokens) {
  setRope(form, tokens, add(std::string("rope/") + form.pairing));
}

void SuiteBuilder::addSinusoidal(posenc_dtype dtype, int64_t dim) {
  Case &added = add("sinusoidal/interleaved");
  setSinusoidal(
      dtype, dim,
      getMemoryBoundTokens(size, dim * int64_t(posenc_dtype_size(dtype))),
      added);
  added.threads = largeCaseThreads;
}

Case &SuiteBuilder::addAttention(const std::string &variant,
                                 const AttentionForm &form, int64_t tokens) {
  Case &added = add("attention/" + variant);
  setAttention(form, getAttentionTokens(size, tokens), added);
  added.threads = largeCaseThreads;
  return added;
}

/// Adds causal attention with the score_mods and windows of models, and with a
/// mask_mod instead of the attribute, each compared with plain causal
/// attention.
void SuiteBuilder::addAttentionVariants() {
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
      added.threads = {largeCaseThreads.front()};
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
    form = plain;
    form.hasCausalMask = true;
    addForm("where", form);
  }
}

Case &SuiteBuilder::addDecode(const std::string &variant,
                              const AttentionForm &form) {
  Case &added = add("decode/" + variant);
  setDecode(form, getMemoryBoundKeys(size, form), added);
  added.threads = largeCaseThreads;
  return added;
}

/// Adds the linalg operations that surround positional encodings in models.
void SuiteBuilder::addLinalg() {
  bool isSmall = size == SuiteSize::Small;
  auto addProduct = [&](const std::string &variant, ProductForm form) {
    if (isSmall)
      form.m = form.k = form.n = 64;
    Case &added = add("linalg/" + variant);
    setProduct(form, added);
    added.threads = largeCaseThreads;
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
  matvec.threads = largeCaseThreads;
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
    added.threads = largeCaseThreads;
  }
  int64_t tokens = isSmall ? 16 : 1024;
  setAddSinusoidal(8, tokens, 512, add("linalg/add-sinusoidal"));
  Case &normRope = add("linalg/norm-rope");
  setNormRope(getMemoryBoundTokens(size, 32 * 128 * sizeof(float)), 32, 128,
              normRope);
  normRope.threads = largeCaseThreads;
}

/// Returns targets with narrower vectors than the host's, each with the word
/// that it adds to names of cases: AVX2, as in the oldest variant of a library,
/// and AVX-512 with vectors of 256 bits.
static std::vector<std::pair<std::string, std::string>> getOtherVectorWidths() {
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

    // Phi-2 has this shape.
    RopeForm window = form;
    window.keyHeads = 32;
    window.headDim = 80;
    window.rotaryDim = 32;
    addRope("half-window", window);

    // Qwen2-VL has these sections.
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
    ids.layout = RopeForm::THD;
    ids.positions = CaseInput::Shuffled;
    addRope("half-ids", ids);

    RopeForm strided = form;
    strided.layout = RopeForm::THD;
    strided.isView = true;
    addRope("half-strided", strided);

    RopeForm headFirst = form;
    headFirst.layout = RopeForm::BHSD;
    addRope("half-bhsd", headFirst);
  }

  for (const auto &[word, target] : getOtherVectorWidths())
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
    addRopeWithTokens(form, 512);
  }
  for (int64_t tokens : {1, 32})
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      RopeForm form;
      form.dtype = dtype;
      addRopeWithTokens(form, tokens);
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
  for (const auto &[word, target] : getOtherVectorWidths())
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      AttentionForm form;
      form.dtype = dtype;
      addAttention("full-" + word, form, 1024).target = target;
      addDecode("rotated-" + word, form).target = target;
    }
  addAttentionVariants();
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
