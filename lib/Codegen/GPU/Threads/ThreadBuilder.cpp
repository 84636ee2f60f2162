//===- ThreadBuilder.cpp - code of a GPU thread ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::posenc;

/// The array of shared memory in the kernel module.
static constexpr StringLiteral kSharedSymbol = "dynamic_shared_memory";
static constexpr unsigned kSharedSpace = 3, kGlobalSpace = 1;

ThreadBuilder::ThreadBuilder(gpu::GPUFuncOp kernel)
    : ImplicitLocOpBuilder(kernel.getLoc(), kernel.getContext()) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  auto type = LLVM::LLVMPointerType::get(getContext(), kSharedSpace);
  auto global = module.lookupSymbol<LLVM::GlobalOp>(kSharedSymbol);
  if (!global) {
    setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(
        *this, LLVM::LLVMArrayType::get(getI8Type(), 0), /*isConstant=*/false,
        LLVM::Linkage::External, kSharedSymbol, /*value=*/Attribute(),
        /*alignment=*/128, kSharedSpace);
  }
  setInsertionPointToEnd(&kernel.getBody().front());
  shared = LLVM::AddressOfOp::create(*this, type, kSharedSymbol);
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Value ThreadBuilder::i32(int64_t value) {
  return arith::ConstantIntOp::create(*this, value, 32);
}

Value ThreadBuilder::integerLike(Value like, int64_t value) {
  if (like.getType().isIndex())
    return arith::ConstantIndexOp::create(*this, value);
  return arith::ConstantIntOp::create(*this, value,
                                      like.getType().getIntOrFloatBitWidth());
}

Value ThreadBuilder::div(Value a, int64_t b) {
  return createOrFold<arith::DivUIOp>(a, integerLike(a, b));
}

Value ThreadBuilder::rem(Value a, int64_t b) {
  return createOrFold<arith::RemUIOp>(a, integerLike(a, b));
}

Value ThreadBuilder::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return createOrFold<arith::AndIOp>(a, b);
}

Value ThreadBuilder::toI32(Value index) {
  return createOrFold<arith::IndexCastOp>(getI32Type(), index);
}

Value ThreadBuilder::toIndex(Value integer) {
  return createOrFold<arith::IndexCastOp>(getIndexType(), integer);
}

Value ThreadBuilder::toClampedI32(Value index) {
  constexpr int64_t max = 1 << 20;
  Value held = createOrFold<arith::MaxSIOp>(index, integerLike(index, -max));
  return toI32(createOrFold<arith::MinSIOp>(held, integerLike(index, max)));
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Value ThreadBuilder::real(Type type, double value) {
  return arith::ConstantOp::create(*this, getFloatAttr(type, value));
}

Value ThreadBuilder::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(*this, a, b, c);
}

Value ThreadBuilder::exp2(Value x) {
  if (!x.getType().isF32())
    return math::Exp2Op::create(*this, x);
  return LLVM::CallIntrinsicOp::create(
             *this, x.getType(), getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"),
             x)
      .getResult(0);
}

Value ThreadBuilder::convert(Value x, Type type) {
  unsigned from = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  auto shape = dyn_cast<VectorType>(x.getType());
  Type to = shape ? Type(shape.clone(type)) : type;
  if (x.getType() == to)
    return x;
  unsigned width = type.getIntOrFloatBitWidth();
  if (from < width)
    return arith::ExtFOp::create(*this, to, x);
  if (from > width)
    return arith::TruncFOp::create(*this, to, x);
  // bf16 and f16 have f32 in common.
  return convert(convert(x, getF32Type()), type);
}

Value ThreadBuilder::pack(Value low, Value high, Type element) {
  StringRef name =
      element.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn";
  Value pair =
      LLVM::CallIntrinsicOp::create(*this, VectorType::get({2}, element),
                                    getStringAttr(name), ValueRange{high, low})
          .getResult(0);
  return LLVM::BitcastOp::create(*this, getI32Type(), pair);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Value ThreadBuilder::getSharedAddress() {
  return LLVM::PtrToIntOp::create(*this, getI32Type(), shared);
}

Value ThreadBuilder::getPointer(SharedAddress address) {
  auto type = LLVM::LLVMPointerType::get(getContext(), kSharedSpace);
  Value pointer;
  if (address.isAbsolute)
    pointer = LLVM::IntToPtrOp::create(*this, type, address.base);
  else
    pointer = LLVM::GEPOp::create(*this, type, getI8Type(), shared,
                                  ArrayRef<LLVM::GEPArg>{address.base});
  if (address.offset == 0)
    return pointer;
  return LLVM::GEPOp::create(
      *this, type, getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(address.offset)});
}

Value ThreadBuilder::load(SharedAddress address, Type type, int64_t alignment) {
  return LLVM::LoadOp::create(*this, type, getPointer(address), alignment);
}

void ThreadBuilder::store(Value value, SharedAddress address,
                          int64_t alignment) {
  LLVM::StoreOp::create(*this, value, getPointer(address), alignment);
}

void ThreadBuilder::copyAsync(SharedAddress to, Value from, Value exists) {
  constexpr int64_t kBytes = 16;
  auto type = LLVM::LLVMPointerType::get(getContext(), kGlobalSpace);
  Value pointer = LLVM::IntToPtrOp::create(*this, type, from);
  Value bytes;
  if (exists)
    bytes = select(exists, i32(kBytes), i32(0));
  NVVM::CpAsyncOp::create(*this, getPointer(to), pointer, kBytes,
                          NVVM::LoadCacheModifierKind::CG, bytes);
}

void ThreadBuilder::commitCopies() {
  NVVM::CpAsyncCommitGroupOp::create(*this);
}

void ThreadBuilder::waitForCopies() {
  NVVM::CpAsyncWaitGroupOp::create(*this, uint32_t{0});
}

static SmallVector<Value> unpackStruct(ThreadBuilder &b, Value value) {
  SmallVector<Value> fields;
  auto type = cast<LLVM::LLVMStructType>(value.getType());
  for (int64_t i = 0, e = type.getBody().size(); i < e; ++i)
    fields.push_back(LLVM::ExtractValueOp::create(b, value, i));
  return fields;
}

SmallVector<Value> ThreadBuilder::loadMatrices(SharedAddress row,
                                               bool transposed) {
  SmallVector<Type> words(4, getI32Type());
  auto type = LLVM::LLVMStructType::getLiteral(getContext(), words);
  auto shape = NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8);
  Value matrices = NVVM::LdMatrixOp::create(
      *this, type, getPointer(row), uint32_t{4},
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
      NVVM::LdStMatrixEltType::B16);
  return unpackStruct(*this, matrices);
}

//===----------------------------------------------------------------------===//
// Warps and blocks
//===----------------------------------------------------------------------===//

SmallVector<Value> ThreadBuilder::multiply(ValueRange a, ValueRange b,
                                           ValueRange sum, Type element) {
  // The operation has i32 for bf16, but vectors for f16.
  auto take = [&](ValueRange words) {
    return llvm::map_to_vector(words, [&](Value word) -> Value {
      if (element.isBF16())
        return word;
      return LLVM::BitcastOp::create(*this, VectorType::get({2}, element),
                                     word);
    });
  };
  SmallVector<Type> floats(4, getF32Type());
  auto type = LLVM::LLVMStructType::getLiteral(getContext(), floats);
  auto kind = element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Value product = NVVM::MmaOp::create(
      *this, type, take(a), take(b), sum, ArrayRef<int64_t>{16, 8, 16},
      std::nullopt, std::nullopt, std::array<NVVM::MMATypes, 2>{kind, kind},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  return unpackStruct(*this, product);
}

/// Shuffles 32 bits, or an f64 as two halves.
Value ThreadBuilder::shuffleBits(Value value, Value lane, bool isXor) {
  auto one = [&](Value word) -> Value {
    return NVVM::ShflOp::create(
        *this, word.getType(), i32(-1), word, lane, i32(31),
        isXor ? NVVM::ShflKind::bfly : NVVM::ShflKind::idx, UnitAttr());
  };
  if (!value.getType().isF64())
    return one(value);
  auto words = VectorType::get({2}, getI32Type());
  Value pair = LLVM::BitcastOp::create(*this, words, value);
  Value result = LLVM::PoisonOp::create(*this, words);
  for (int64_t half : {0, 1}) {
    Value word = LLVM::ExtractElementOp::create(*this, pair, i32(half));
    result = LLVM::InsertElementOp::create(*this, result, one(word), i32(half));
  }
  return LLVM::BitcastOp::create(*this, value.getType(), result);
}

Value ThreadBuilder::shuffleXor(Value value, int64_t mask) {
  return shuffleBits(value, i32(mask), /*isXor=*/true);
}

Value ThreadBuilder::shuffle(Value value, Value lane) {
  return shuffleBits(value, lane, /*isXor=*/false);
}

Value ThreadBuilder::shuffleDown(Value value) {
  return NVVM::ShflOp::create(*this, value.getType(), i32(-1), value, i32(1),
                              i32(31), NVVM::ShflKind::down, UnitAttr());
}

Value ThreadBuilder::any(Value condition) {
  return NVVM::VoteSyncOp::create(*this, getI1Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::any);
}

Value ThreadBuilder::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(*this, getI32Type(), i32(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}

Value ThreadBuilder::countTrailingZeros(Value bits) {
  return LLVM::CountTrailingZerosOp::create(*this, bits.getType(), bits,
                                            /*is_zero_poison=*/false);
}

Value ThreadBuilder::reduceLanes(Value value,
                                 function_ref<Value(Value, Value)> combine) {
  // Shuffles have operands of 32 bits.
  Type type = value.getType();
  int64_t width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Type shuffled = width > 32 ? Type(getF64Type()) : Type(getI32Type());
  auto toBits = [&](Value x) -> Value {
    if (width <= 32)
      return width == 32 ? x : arith::ExtSIOp::create(*this, shuffled, x);
    if (type.isIndex())
      x = arith::IndexCastOp::create(*this, getI64Type(), x);
    return arith::BitcastOp::create(*this, shuffled, x);
  };
  auto fromBits = [&](Value x) -> Value {
    if (width <= 32)
      return width == 32 ? x : arith::TruncIOp::create(*this, type, x);
    x = arith::BitcastOp::create(*this, getI64Type(), x);
    return type.isIndex() ? arith::IndexCastOp::create(*this, type, x) : x;
  };
  for (int64_t mask : {1, 2, 4, 8, 16})
    value = combine(value, fromBits(shuffleXor(toBits(value), mask)));
  return value;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void ThreadBuilder::emitIf(Value condition, function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

SmallVector<Value>
ThreadBuilder::emitIf(Value condition, TypeRange types,
                      function_ref<SmallVector<Value>()> ifTrue,
                      function_ref<SmallVector<Value>()> ifFalse) {
  auto branch =
      scf::IfOp::create(*this, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  auto emit = [&](Block *block, function_ref<SmallVector<Value>()> body) {
    setInsertionPointToStart(block);
    SmallVector<Value> values = body();
    // A branch without values has its terminator already.
    if (!types.empty())
      scf::YieldOp::create(*this, values);
  };
  emit(branch.thenBlock(), ifTrue);
  emit(branch.elseBlock(), ifFalse);
  return branch.getResults();
}

SmallVector<Value> ThreadBuilder::emitLoop(
    Value begin, Value end, Value step, ValueRange inits,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, step, inits);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  // A loop without values has its terminator already.
  if (!inits.empty())
    scf::YieldOp::create(*this, next);
  return loop.getResults();
}

SmallVector<Value>
ThreadBuilder::emitWhile(ValueRange inits,
                         function_ref<Value(ValueRange)> condition,
                         function_ref<SmallVector<Value>(ValueRange)> body) {
  auto loop = scf::WhileOp::create(*this, inits.getTypes(), inits);
  OpBuilder::InsertionGuard guard(*this);
  SmallVector<Location> locations(inits.size(), getLoc());
  auto begin = [&](Region &region) -> ValueRange {
    return createBlock(&region, region.end(), inits.getTypes(), locations)
        ->getArguments();
  };
  ValueRange before = begin(loop.getBefore());
  scf::ConditionOp::create(*this, condition(before), before);
  ValueRange carried = begin(loop.getAfter());
  scf::YieldOp::create(*this, body(carried));
  return loop.getResults();
}
