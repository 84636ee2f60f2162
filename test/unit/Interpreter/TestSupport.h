//===- TestSupport.h - evaluation of MLIR text ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_INTERPRETER_TESTSUPPORT_H
#define POSENC_TEST_UNIT_INTERPRETER_TESTSUPPORT_H

#include "posenc/Interpreter/Interpreter.h"
#include "posenc/Registration/Registration.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace mlir::posenc {

using ::posenc::reference::DType;

inline ReferenceValue tensorOf(DType type, std::vector<int64_t> shape,
                               std::vector<long double> elements) {
  ReferenceValue value;
  value.type = type;
  value.array.shape = std::move(shape);
  value.array.values = std::move(elements);
  return value;
}

inline ReferenceValue scalarOf(int64_t element, DType type = DType::I64) {
  return tensorOf(type, {}, {static_cast<long double>(element)});
}

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() {
    DialectRegistry registry;
    registerPosencDialect(registry);
    registry
        .insert<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect,
                math::MathDialect, tensor::TensorDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Returns the results of the only function of a text. After an error,
  /// returns no results and sets `message`.
  std::vector<ReferenceValue> run(StringRef text,
                                  std::vector<ReferenceValue> arguments) {
    message.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message += diagnostic.str();
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << message;
      return {};
    }
    auto function = *module->getOps<func::FuncOp>().begin();
    FailureOr<std::vector<ReferenceValue>> results =
        interpret(function, std::move(arguments));
    EXPECT_EQ(failed(results), !message.empty()) << message;
    return failed(results) ? std::vector<ReferenceValue>() : *results;
  }

  /// Returns the elements of the only result and sets `shape`.
  std::vector<long double> runOne(StringRef text,
                                  std::vector<ReferenceValue> arguments) {
    std::vector<ReferenceValue> results = run(text, std::move(arguments));
    EXPECT_EQ(results.size(), 1u) << message;
    if (results.size() != 1)
      return {};
    shape = results[0].array.shape;
    return results[0].array.values;
  }

  using Elements = std::vector<long double>;
  using Shape = std::vector<int64_t>;

  MLIRContext context;
  std::string message;
  Shape shape;
};

} // namespace mlir::posenc

#endif // POSENC_TEST_UNIT_INTERPRETER_TESTSUPPORT_H
