//===- ListFunctions.cpp - listing of functions for --list ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ListFunctions.h"

#include "posenc/Frontend/ModelConfig.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Names.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// Prints `(name: type, ...)`. A value without a name is called `unnamed`
/// followed by its index, as in the C header.
static void listTypes(raw_ostream &os, TypeRange types, StringRef unnamed,
                      function_ref<DictionaryAttr(unsigned)> getAttrs) {
  os << '(';
  for (auto [number, type] : llvm::enumerate(types)) {
    os << (number == 0 ? "" : ", ");
    DictionaryAttr attrs = getAttrs(number);
    auto get = [&](StringRef name) {
      return attrs ? attrs.get(name) : Attribute();
    };
    if (auto name =
            dyn_cast_or_null<StringAttr>(get(PosencDialect::kNameAttrName)))
      os << name.getValue();
    else
      os << unnamed << number;
    RankedTensorType codes =
        get(kUnsignedAttrName) ? getUnsignedType(type) : RankedTensorType();
    os << ": " << (codes ? Type(codes) : type);
  }
  os << ')';
}

void mlir::posenc::listFunctions(raw_ostream &os, ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    os << function.getName();
    listTypes(os, function.getArgumentTypes(), "in",
              [&](unsigned number) { return function.getArgAttrDict(number); });
    os << " -> ";
    // The number of a failed assertion is no output of the entry points.
    TypeRange results = function.getResultTypes();
    results = results.drop_back(getKernelConfig(function).assertions ? 1 : 0);
    listTypes(os, results, "out", [&](unsigned number) {
      return function.getResultAttrDict(number);
    });
    if (auto layers = function->getAttrOfType<DenseI64ArrayAttr>(
            PosencDialect::kLayersAttrName))
      os << " layers " << ::posenc::frontend::spellLayers(layers);
    os << '\n';
  }
}

void mlir::posenc::listModels(llvm::raw_ostream &os) {
  using ::posenc::frontend::Pairing;
  for (const ::posenc::frontend::ModelType &type :
       ::posenc::frontend::getModelTypes()) {
    os << type.name << ": ";
    if (type.pairing)
      os << (*type.pairing == Pairing::Half ? "half" : "interleaved")
         << ", rope";
    else
      os << "bias";
    if (type.hasAttention)
      os << (type.isCausal ? ", attention, decode" : ", attention");
    os << "\n";
  }
}

void mlir::posenc::listKeys(llvm::raw_ostream &os) {
  for (const ::posenc::frontend::ConfigKey &key :
       ::posenc::frontend::getPositionKeys())
    os << (key.isOfDictionary ? "rope_parameters." : "") << key.name << " | "
       << key.effect << " | " << key.neutral << " | " << key.reading << "\n";
}
