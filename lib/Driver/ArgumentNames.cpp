//===- ArgumentNames.cpp - names of arguments in a module's text ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ArgumentNames.h"

#include "posenc/IR/Names.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::posenc;

static bool isInvented(StringRef name) {
  name.consume_front("arg");
  return llvm::all_of(name, llvm::isDigit);
}

/// Returns the name of an argument in the text, without `%`.
static StringRef getName(const AsmParserState::SMDefinition &argument) {
  SMRange range = argument.loc;
  if (!range.isValid())
    return "";
  StringRef name(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  name.consume_front("%");
  return name;
}

static void nameArguments(func::FuncOp function,
                          const AsmParserState::BlockDefinition &entry) {
  StringRef attribute = PosencDialect::kNameAttrName;
  // The names that arguments and results have, or get without the attribute.
  llvm::StringSet<> taken;
  SmallVector<std::pair<unsigned, StringRef>> unnamed;
  auto take = [&](StringAttr given, StringRef kind, unsigned number) {
    taken.insert(given ? given.str() : kind.str() + std::to_string(number));
  };
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    take(function.getResultAttrOfType<StringAttr>(i, attribute), "out", i);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto given = function.getArgAttrOfType<StringAttr>(i, attribute);
    StringRef name =
        i < entry.arguments.size() ? getName(entry.arguments[i]) : "";
    if (given || isInvented(name))
      take(given, "in", i);
    else
      unnamed.push_back({i, name});
  }
  for (auto [number, name] : unnamed)
    function.setArgAttr(number, attribute,
                        StringAttr::get(function.getContext(),
                                        createArgumentName(name, "in", taken)));
}

void mlir::posenc::nameArguments(ModuleOp module, const AsmParserState &text) {
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      if (const auto *entry = text.getBlockDef(&function.front()))
        ::nameArguments(function, *entry);
}
