//===- Names.cpp - names in the C interface -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Names.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir::posenc;
using llvm::StringRef;

/// Whether a name is a keyword of C or C++, up to C23 and C++23, or of GNU C.
static bool isKeyword(StringRef name) {
  static const llvm::StringSet<> keywords{"alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "char16_t",
                                          "char32_t",
                                          "char8_t",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "inline",
                                          "int",
                                          "long",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "reinterpret_cast",
                                          "requires",
                                          "restrict",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "typeof",
                                          "typeof_unqual",
                                          "union",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "wchar_t",
                                          "while",
                                          "xor",
                                          "xor_eq"};
  return keywords.contains(name);
}

/// Whether a header that comes first may define a macro of this name: one of
/// the standard library, or of the compiler.
static bool isMacro(StringRef name) {
  static const llvm::StringSet<> macros{
      "BUFSIZ",    "CHAR_BIT",  "EOF",        "FILENAME_MAX",
      "FLT_RADIX", "FOPEN_MAX", "HUGE_VAL",   "HUGE_VALF",
      "I",         "INFINITY",  "MB_LEN_MAX", "NAN",
      "NDEBUG",    "NULL",      "RAND_MAX",   "complex",
      "errno",     "i386",      "imaginary",  "linux",
      "noreturn",  "stderr",    "stdin",      "stdout",
      "unix"};
  if (macros.contains(name))
    return true;
  // Limits of types, such as INT32_MAX.
  static const llvm::StringSet<> types{
      "BOOL",  "CHAR",    "DBL",   "FLT",   "LDBL",       "LLONG", "LONG",
      "PATH",  "PTRDIFF", "SCHAR", "SHRT",  "SIG_ATOMIC", "SIZE",  "SSIZE",
      "UCHAR", "ULLONG",  "ULONG", "USHRT", "WCHAR",      "WINT"};
  return (name.consume_back("_MAX") || name.consume_back("_MIN") ||
          name.consume_back("_WIDTH")) &&
         (name.starts_with("INT") || name.starts_with("UINT") ||
          types.contains(name));
}

/// Whether a name is a type that the parameters of a header may have.
static bool isParameterType(StringRef name) {
  if (name == "DLTensor" || name == "size_t")
    return true;
  name.consume_front("u");
  return name.consume_front("int") && name.consume_back("_t") &&
         llvm::all_of(name, llvm::isDigit);
}

/// Whether no name may begin like this one. The implementation of C may use
/// names with two underscores, or one and a capital letter, for macros and
/// keywords, and headers of kernel libraries define macros with POSENC_.
static bool hasReservedStart(StringRef name) {
  return name.empty() || llvm::isDigit(name.front()) ||
         name.starts_with("__") || name.starts_with("POSENC_") ||
         (name.consume_front("_") && !name.empty() &&
          llvm::isAlpha(name.front()) && !llvm::isLower(name.front()));
}

RankedTensorType mlir::posenc::getUnsignedType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isInteger(8))
    return RankedTensorType();
  return tensor.clone(
      IntegerType::get(type.getContext(), 8, IntegerType::Unsigned));
}

bool mlir::posenc::isArgumentName(StringRef name) {
  return !hasReservedStart(name) && !isKeyword(name) && !isMacro(name) &&
         !isParameterType(name) && llvm::all_of(name, [](char c) {
           return llvm::isAlnum(c) || c == '_';
         });
}

std::string mlir::posenc::createArgumentName(StringRef text, StringRef kind,
                                             llvm::StringSet<> &taken) {
  std::string name;
  for (char c : text)
    name += llvm::isAlnum(c) ? c : '_';
  if (hasReservedStart(name))
    name = kind.str() + "_" + name;
  // Many names may be equal after the first characters: a number then keeps the
  // new ones short.
  constexpr unsigned maxUnderscores = 4;
  for (unsigned count = 0; !isArgumentName(name) || !taken.insert(name).second;
       ++count)
    name += count < maxUnderscores ? "_" : std::to_string(taken.size());
  return name;
}
