//===- CommonFunctions.cpp - kernels that most models have ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuneRequest.h"

#include "AttentionModule.h"
#include "LinalgModule.h"
#include "RopeModule.h"
#include "posenc-bench/Limit.h"

using namespace mlir::posenc;

std::vector<TunedFunction> mlir::posenc::getCommonFunctions() {
  std::vector<TunedFunction> functions;
  auto add = [&](const char *name) -> Case & {
    functions.emplace_back();
    functions.back().function.name = name;
    return functions.back().function;
  };
  // Twice the last-level cache: enough for kernels to be memory-bound, and no
  // more, as every kernel takes a share of the budget.
  int64_t bytes = 2 * getLastLevelCacheBytes();
  auto getTokens = [&](int64_t bytesPerToken) {
    return std::max<int64_t>(bytes / bytesPerToken, 1024);
  };
  auto addRope = [&](const char *name, const RopeForm &form) -> Case & {
    Case &added = add(name);
    int64_t heads = form.queryHeads + (form.isView ? 2 : 1) * form.keyHeads;
    setRope(form,
            getTokens(heads * form.headDim *
                      int64_t(posenc_dtype_size(form.dtype))),
            added);
    return added;
  };
  for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
    RopeForm form;
    form.dtype = dtype;
    addRope(dtype == POSENC_F32 ? "rope-f32" : "rope-bf16", form);
  }
  RopeForm form;
  addRope("rope-out", form).inPlace = false;
  form.dtype = POSENC_BF16;
  form.layout = RopeForm::BHSD;
  addRope("rope-bhsd", form);
  form = RopeForm();
  form.layout = RopeForm::THD;
  form.isView = true;
  addRope("rope-view", form);
  form = RopeForm();
  form.dtype = POSENC_BF16;
  form.queryHeads = 8;
  form.keyHeads = 0;
  form.headDim = form.rotaryDim = 64;
  addRope("rope-8x64", form);

  AttentionForm attention;
  auto getKeys = [&] {
    return getTokens(2 * attention.keyHeads * attention.headDim *
                     int64_t(posenc_dtype_size(attention.dtype)));
  };
  // In place, the result would be the query of the next call.
  auto addAttention = [&](const char *name) -> Case & {
    Case &added = add(name);
    added.inPlace = false;
    return added;
  };
  setDecode(attention, getKeys(), addAttention("decode"));
  attention.isTokenMajor = true;
  attention.dtype = POSENC_BF16;
  setDecode(attention, getKeys(), addAttention("decode-token-major"));
  attention = AttentionForm();
  attention.isCausal = true;
  setAttention(attention, /*tokens=*/512, addAttention("attention"));
  setProduct({POSENC_F32, 512, 512, 512}, add("product"));
  return functions;
}
