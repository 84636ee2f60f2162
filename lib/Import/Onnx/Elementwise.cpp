//===- Elementwise.cpp - operators of one or two numbers ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each operator is a linalg.generic. f16 and bf16 are computed in f32 and
// rounded once.
//
//===----------------------------------------------------------------------===//

#include "Ops.h"
#include "Scalars.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::onnx;

FailureOr<Tensor> onnx::mapFloats(NodeImporter &node,
                                  ArrayRef<Tensor *> operands, Body body) {
  Type element = operands.front()->element;
  if (!isa<FloatType>(element))
    return node.emitError() << "expected floats, found " << element;
  return mapElements(node, operands, element, [&](Scalars &s, ValueRange args) {
    SmallVector<Value> values;
    for (Value arg : args)
      values.push_back(s.convert(arg));
    return body(s, values);
  });
}

FailureOr<Tensor> onnx::addTensors(NodeImporter &node,
                                   ArrayRef<Tensor *> operands) {
  Type element = operands.front()->element;
  return mapElements(node, operands, element, [&](Scalars &s, ValueRange args) {
    Value sum = s.convert(args[0]);
    for (Value arg : args.drop_front())
      sum = s.add(sum, s.convert(arg));
    return sum;
  });
}

//===----------------------------------------------------------------------===//
// Unary operators
//===----------------------------------------------------------------------===//

static LogicalResult importUnary(NodeImporter &node) {
  StringRef op = node.node.op;
  constexpr int64_t kOpsetOfIntegers = 14;
  Tensor &input = node.getInput(0);
  if (op == "Relu" && isa<IntegerType>(input.element) && !input.isBool() &&
      node.getOpset() >= kOpsetOfIntegers)
    return node.setResult(mapElements(
        node, &input, input.element,
        [](Scalars &s, ValueRange args) { return s.max(args[0], s.get(0)); }));
  double alpha = 0, beta = 0;
  bool isTanh = false;
  if (op == "LeakyRelu")
    alpha = node.getFloat("alpha", 0.01);
  else if (op == "Elu" || op == "Celu" || op == "ThresholdedRelu")
    alpha = node.getFloat("alpha", 1.0);
  else if (op == "Selu") {
    alpha = node.getFloat("alpha", 1.67326319217681884765625);
    beta = node.getFloat("gamma", 1.05070102214813232421875);
  } else if (op == "HardSigmoid") {
    alpha = node.getFloat("alpha", 0.2);
    beta = node.getFloat("beta", 0.5);
  } else if (op == "QuickGelu")
    alpha = node.getFloat("alpha", 1.702);
  else if (op == "Swish")
    alpha = node.getFloat("alpha", 1.0);
  else if (op == "Gelu") {
    StringRef form = node.getString("approximate", "none");
    isTanh = form == "tanh";
    if (!isTanh && form != "none")
      return node.emitError() << "unknown approximation of Gelu";
  }
  return node.setResult(
      mapFloats(node, &node.getInput(0), [&](Scalars &s, ValueRange args) {
        Value x = args[0];
        if (op == "Relu")
          return s.max(x, s.get(0));
        if (op == "LeakyRelu")
          return s.select(s.less(x, s.get(0)), s.mul(x, s.get(alpha)), x);
        if (op == "Elu")
          return s.select(s.less(x, s.get(0)),
                          s.mul(s.get(alpha), s.sub(s.exp(x), s.get(1))), x);
        if (op == "Selu")
          return s.mul(s.get(beta),
                       s.select(s.less(x, s.get(0)),
                                s.mul(s.get(alpha), s.sub(s.exp(x), s.get(1))),
                                x));
        if (op == "Celu")
          return s.select(s.less(x, s.get(0)),
                          s.mul(s.get(alpha),
                                s.sub(s.exp(s.div(x, s.get(alpha))), s.get(1))),
                          x);
        if (op == "ThresholdedRelu")
          return s.select(s.less(s.get(alpha), x), x, s.get(0));
        if (op == "HardSigmoid")
          return s.max(s.get(0), s.min(s.get(1), s.add(s.mul(x, s.get(alpha)),
                                                       s.get(beta))));
        if (op == "HardSwish") {
          Value gate = s.add(s.mul(x, s.get(1.0 / 6)), s.get(0.5));
          return s.mul(x, s.max(s.get(0), s.min(s.get(1), gate)));
        }
        if (op == "Sigmoid")
          return s.sigmoid(x);
        if (op == "QuickGelu" || op == "Swish")
          return s.mul(x, s.sigmoid(s.mul(x, s.get(alpha))));
        if (op == "Softplus" || op == "Mish") {
          // ln(1 + e^x) without overflow.
          Value tail = math::Log1pOp::create(
              s, s.exp(s.neg(math::AbsFOp::create(s, x))));
          Value softplus = s.add(s.max(x, s.get(0)), tail);
          if (op == "Softplus")
            return softplus;
          return s.mul(x, math::TanhOp::create(s, softplus));
        }
        if (op == "Softsign")
          return s.div(x, s.add(s.get(1), math::AbsFOp::create(s, x)));
        if (op == "Gelu")
          return s.gelu(x, isTanh);
        if (op == "Sqrt")
          return math::SqrtOp::create(s, x).getResult();
        if (op == "Reciprocal")
          return s.div(s.get(1), x);
        if (op == "Exp")
          return s.exp(x);
        if (op == "Log")
          return math::LogOp::create(s, x).getResult();
        if (op == "Erf")
          return math::ErfOp::create(s, x).getResult();
        if (op == "Tanh")
          return math::TanhOp::create(s, x).getResult();
        if (op == "Sin")
          return math::SinOp::create(s, x).getResult();
        if (op == "Cos")
          return math::CosOp::create(s, x).getResult();
        if (op == "Floor")
          return math::FloorOp::create(s, x).getResult();
        if (op == "Ceil")
          return math::CeilOp::create(s, x).getResult();
        assert(op == "Round" && "expected an operator of the table");
        return math::RoundEvenOp::create(s, x).getResult();
      }));
}

/// Abs, Neg and Sign, of floats and integers.
static LogicalResult importSigned(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  StringRef op = node.node.op;
  if (input.isBool())
    return node.emitError() << "expected numbers, found bool";
  if (input.elements && op != "Sign") {
    SmallVector<Size> elements;
    for (const Size &size : *input.elements) {
      // The lowest number is its own negation.
      Size negated = size.isConstant(INT64_MIN) ? size : Size(0) - size;
      bool isKept = op == "Abs" && node.sizes.isNonNegative(size);
      bool isNegated = op == "Neg" || node.sizes.isNonNegative(negated) ||
                       size.isConstant(INT64_MIN);
      elements.push_back(isKept ? size : isNegated ? negated : Size::invalid());
    }
    if (std::optional<Tensor> result =
            createResults(node, input.element, elements, input.getRank()))
      return node.setResult(std::move(*result));
  }
  return node.setResult(mapElements(
      node, &input, input.element, [&](Scalars &s, ValueRange args) -> Value {
        Value x = args[0];
        Value zero = createScalar(s, x.getType(), 0);
        bool isFloat = input.isFloat();
        if (op == "Neg")
          return isFloat ? arith::NegFOp::create(s, x).getResult()
                         : arith::SubIOp::create(s, zero, x).getResult();
        if (op == "Abs")
          return isFloat ? math::AbsFOp::create(s, x).getResult()
                         : math::AbsIOp::create(s, x).getResult();
        Value one = createScalar(s, x.getType(), 1);
        Value minus = createScalar(s, x.getType(), -1);
        Value isLess =
            isFloat
                ? s.less(x, zero)
                : arith::CmpIOp::create(s, arith::CmpIPredicate::slt, x, zero);
        Value isMore =
            isFloat
                ? s.less(zero, x)
                : arith::CmpIOp::create(s, arith::CmpIPredicate::sgt, x, zero);
        Value up = arith::SelectOp::create(s, isMore, one, isFloat ? x : zero);
        return arith::SelectOp::create(s, isLess, minus, up);
      }));
}

/// IsNaN, IsInf and Not, which return bools.
static LogicalResult importPredicate(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  StringRef op = node.node.op;
  bool isNot = op == "Not";
  if (isNot ? !input.isBool() : !input.isFloat())
    return node.emitError() << "input has elements of type " << input.element;
  if (isNot && input.elements) {
    // Each is 1 or 0.
    SmallVector<Size> elements;
    for (const Size &bit : *input.elements)
      elements.push_back(Size(1) - bit);
    if (std::optional<Tensor> result =
            createResults(node, input.element, elements, input.getRank()))
      return node.setResult(std::move(*result));
  }
  bool negative = node.node.op != "IsInf" || node.getInt("detect_negative", 1);
  bool positive = node.node.op != "IsInf" || node.getInt("detect_positive", 1);
  FailureOr<Tensor> result = mapElements(
      node, &input, node.getI1Type(),
      [&](Scalars &s, ValueRange args) -> Value {
        Value x = args[0];
        if (isNot)
          return arith::XOrIOp::create(s, x, createScalar(s, s.getI1Type(), 1));
        x = s.convert(x, getWideType(x.getType()));
        if (op == "IsNaN")
          return arith::CmpFOp::create(s, arith::CmpFPredicate::UNO, x, x);
        Value infinity = createScalar(s, x.getType(), INFINITY);
        Value low = s.equal(x, s.neg(infinity)), high = s.equal(x, infinity);
        Value no = createScalar(s, s.getI1Type(), 0);
        return arith::OrIOp::create(s, negative ? low : no,
                                    positive ? high : no);
      });
  if (failed(result))
    return failure();
  if (isNot && input.elements) {
    result->elements.emplace();
    for (const Size &size : *input.elements)
      result->elements->push_back(Size(1) - size);
  }
  return node.setResult(std::move(*result));
}

//===----------------------------------------------------------------------===//
// Clip, Cast and operators with a bias
//===----------------------------------------------------------------------===//

static LogicalResult importClip(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  SmallVector<Tensor *> operands{&input};
  Tensor bounds[2];
  int low = -1, high = -1;
  StringRef names[] = {"min", "max"};
  // Bounds are attributes before opset 11, and from opset 6 on, those that are
  // not given are the ends of f32: they replace infinities.
  bool hasDefaults = node.getOpset() >= 6 && node.getOpset() < 11;
  for (unsigned number : {0, 1}) {
    int &place = number ? high : low;
    const AttributeProto *attribute = node.getAttribute(names[number]);
    if (attribute || hasDefaults) {
      if (!input.isFloat())
        return node.emitError() << "expected floats, found " << input.element;
      float end = std::numeric_limits<float>::max();
      float bound =
          attribute ? attribute->f.value_or(0) : (number ? end : -end);
      bounds[number] = createConstant(DenseElementsAttr::get(
          RankedTensorType::get({}, input.element),
          mlir::Attribute(node.getFloatAttr(input.element, bound))));
    } else if (node.hasInput(number + 1)) {
      bounds[number] = node.getInput(number + 1);
      if (bounds[number].element != input.element)
        return node.emitError() << "bounds have another element type";
    } else {
      continue;
    }
    place = operands.size();
    operands.push_back(&bounds[number]);
  }
  return node.setResult(mapElements(node, operands, input.element,
                                    [&](Scalars &s, ValueRange args) {
                                      Value x = args[0];
                                      if (low >= 0)
                                        x = s.max(x, args[low]);
                                      if (high >= 0)
                                        x = s.min(x, args[high]);
                                      return x;
                                    }));
}

static LogicalResult importCast(NodeImporter &node) {
  Tensor &input = node.getInput(0);
  // These concern types that the import does not accept.
  node.ignore("saturate");
  node.ignore("round_mode");
  Type type;
  if (node.node.op == "CastLike") {
    type = node.getInput(1).element;
  } else {
    int64_t number = node.getInt("to", 0);
    type = getElementType(node.getContext(), number);
    if (!type)
      return node.emitError() << "element type " << describeDataType(number)
                              << " is not supported";
  }
  if (isCode(type) && !type.isUnsignedInteger(8) && type != input.element)
    return node.emitError()
           << "conversions to " << type << " are not supported";
  return node.setResult(convertTensor(node, input, type));
}

/// BiasGelu and FastGelu of com.microsoft.
static LogicalResult importBiasGelu(NodeImporter &node) {
  SmallVector<Tensor *> operands{&node.getInput(0)};
  if (node.hasInput(1))
    operands.push_back(&node.getInput(1));
  bool isTanh = node.node.op == "FastGelu";
  return node.setResult(
      mapFloats(node, operands, [&](Scalars &s, ValueRange args) {
        Value x = args.size() > 1 ? s.add(args[0], args[1]) : args[0];
        return s.gelu(x, isTanh);
      }));
}

void onnx::addElementwiseOperators(OperatorTable &table) {
  for (StringRef op : {"Relu",      "LeakyRelu", "Elu",      "HardSigmoid",
                       "HardSwish", "Sigmoid",   "Softplus", "Softsign",
                       "Gelu",      "Swish",     "Sqrt",     "Reciprocal",
                       "Exp",       "Log",       "Erf",      "Tanh",
                       "Sin",       "Cos",       "Floor",    "Ceil",
                       "Round",     "Selu",      "Celu",     "ThresholdedRelu",
                       "Mish"})
    table[op] = {1, 1, 1, importUnary};
  table["com.microsoft/QuickGelu"] = {1, 1, 1, importUnary};
  table["com.microsoft/Gelu"] = {1, 1, 1, importUnary};
  for (StringRef op : {"Abs", "Neg", "Sign"})
    table[op] = {1, 1, 1, importSigned};
  for (StringRef op : {"IsNaN", "IsInf", "Not"})
    table[op] = {1, 1, 1, importPredicate};
  table["Clip"] = {1, 3, 1, importClip};
  table["Cast"] = {1, 1, 1, importCast, CodeUse::Read};
  table["CastLike"] = {2, 2, 1, importCast, CodeUse::Read};
  table["com.microsoft/BiasGelu"] = {2, 2, 1, importBiasGelu};
  table["com.microsoft/FastGelu"] = {1, 2, 1, importBiasGelu};
  setFirstOpsets(table, {{"Cast", 6},
                         {"Selu", 6},
                         {"Cos", 7},
                         {"Sin", 7},
                         {"Erf", 9},
                         {"IsNaN", 9},
                         {"Sign", 9},
                         {"IsInf", 10},
                         {"ThresholdedRelu", 10},
                         {"Round", 11},
                         {"Celu", 12},
                         {"HardSwish", 14},
                         {"CastLike", 15},
                         {"Mish", 18},
                         {"Gelu", 20},
                         {"Swish", 24}});
}
