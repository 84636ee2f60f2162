//===- Smt.h - integers of IR as formulas of a solver -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IR is evaluated for all values of its inputs at once: integers become terms
// of linear integer arithmetic in SMT-LIB, which wrap where the operation does,
// and i1 becomes Bool. So 64 bits are no harder than 4, and a quotient by a
// constant is linear. Loops of constant step run for an arbitrary iteration, or
// are unrolled. The claims are decided by the program `z3`.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PROOFS_SMT_H
#define POSENC_TEST_PROOFS_SMT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace mlir::posenc::proofs {

/// A term of SMT-LIB.
using Term = std::string;

Term number(int64_t value);
Term call(llvm::StringRef function, llvm::ArrayRef<Term> arguments);
Term all(llvm::ArrayRef<Term> conditions);
Term any(llvm::ArrayRef<Term> conditions);
inline Term negate(const Term &condition) { return call("not", {condition}); }
inline Term less(const Term &a, const Term &b) { return call("<", {a, b}); }
inline Term atMost(const Term &a, const Term &b) { return call("<=", {a, b}); }
inline Term between(const Term &low, const Term &x, const Term &high) {
  return call("<=", {low, x, high});
}
inline Term plus(const Term &a, const Term &b) { return call("+", {a, b}); }
inline Term minus(const Term &a, const Term &b) { return call("-", {a, b}); }
inline Term implies(const Term &a, const Term &b) { return call("=>", {a, b}); }

/// The number of iterations to which loops with results are unrolled.
inline constexpr int kUnrolled = 3;

/// Encodes the integers of IR. Values whose meaning is not known set an error,
/// which fails the claim that needs them.
class Encoder {
public:
  /// Declares an integer or i1 of any value.
  Term declare(mlir::Type type, llvm::StringRef name);
  /// Declares an integer without bounds.
  Term declareInteger(llvm::StringRef name);
  /// Gives a value of the IR its meaning.
  void bind(mlir::Value value, Term term) { scopes.back()[value] = term; }
  /// Returns the meaning of a value, whose operations are encoded as needed.
  Term get(mlir::Value value);
  Term get(mlir::OpFoldResult value);
  /// Returns an element of a tensor, of which nothing is known but that equal
  /// indices have equal elements.
  Term getElement(mlir::Value tensor, llvm::ArrayRef<Term> indices);
  /// Declares the name of a term that is used more than once.
  Term define(const Term &term, bool isBool);
  void assume(const Term &condition) { text += "(assert " + condition + ")\n"; }
  /// Opens and closes a scope of bindings, as each iteration of a loop needs.
  void push() { scopes.emplace_back(); }
  void pop() { scopes.pop_back(); }

  /// The range of the sizes of tensors: 0 to 2^bits.
  unsigned sizeBits = 40;
  /// Faults: replaces minima by maxima, skips conditions of `select`, or adds
  /// 1 to sums, in each operation that is encoded meanwhile. Premises are a
  /// fault of claims, which contradict themselves.
  enum class Fault { None, MinMax, Check, OffByOne, Premises };
  Fault fault = Fault::None;

  const std::string &getText() const { return text; }
  const std::string &getError() const { return error; }

private:
  Term encode(mlir::Operation *op, unsigned result);
  Term encodeArith(mlir::Operation *op);
  Term encodeLoop(mlir::Operation *op, unsigned result);
  Term encodeAffine(mlir::AffineExpr expr, llvm::ArrayRef<Term> dims,
                    llvm::ArrayRef<Term> symbols);
  Term divide(const Term &x, int64_t divisor);
  Term wrap(const Term &sum, unsigned width, bool isOnce);
  Term toUnsigned(const Term &x, unsigned width);
  Term fail(const llvm::Twine &message);

  std::vector<llvm::DenseMap<mlir::Value, Term>> scopes{1};
  std::string text, error;
  unsigned numNames = 0;
  llvm::DenseMap<mlir::Value, Term> tensors;
  llvm::StringMap<bool> declared;
};

/// A claim: assumptions and definitions, and the denial of what follows from
/// them, which has no solution. That of `premises` has no denial, and a
/// solution: what follows from a contradiction proves nothing.
struct Claim {
  std::string rule, premises, denial;
  bool hasSolution() const { return denial.empty(); }
};
/// The answer of the solver to a claim: empty if it holds.
using Answer = std::string;

/// Adds the claim that `condition` follows from what is assumed.
Claim claim(llvm::StringRef rule, const Encoder &encoder,
            const Term &condition);

/// Decides claims with `jobs` processes of z3. Returns an answer for each: a
/// counterexample, a limit that was reached, or an error. With `untilFalse`,
/// claims after the first that is false are not decided.
std::vector<Answer> decide(llvm::ArrayRef<Claim> claims, unsigned jobs,
                           const std::string &folder, bool untilFalse);

} // namespace mlir::posenc::proofs

#endif // POSENC_TEST_PROOFS_SMT_H
