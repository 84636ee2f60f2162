//===- Options.cpp - command-line parser of the tools ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Options.h"

#include "posenc/Driver/Diagnostics.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::posenc;
using llvm::StringRef;

OptionParser::OptionParser(StringRef tool, StringRef synopsis,
                           StringRef summary)
    : tool(tool), synopsis(synopsis), summary(summary) {}

void OptionParser::add(StringRef name, StringRef value, StringRef help,
                       Setter set) {
  flags.push_back({name.str(), value.str(), help.str(), std::move(set), true});
}

void OptionParser::add(StringRef name, StringRef value, StringRef help,
                       std::optional<std::string> &to) {
  add(name, value, help, [&to](StringRef text) -> std::optional<std::string> {
    if (to)
      return "is given twice";
    to = text.str();
    return std::nullopt;
  });
}

void OptionParser::add(StringRef name, StringRef value, StringRef help,
                       std::vector<std::string> &to) {
  add(name, value, help, [&to](StringRef text) -> std::optional<std::string> {
    to.push_back(text.str());
    return std::nullopt;
  });
}

void OptionParser::add(StringRef name, StringRef help, bool &to) {
  flags.push_back({name.str(), "", help.str(),
                   [&to](StringRef) -> std::optional<std::string> {
                     to = true;
                     return std::nullopt;
                   },
                   false});
}

/// Returns a flag with its dashes.
static std::string spell(StringRef name) {
  return (name.size() == 1 ? "-" : "--") + name.str();
}

int OptionParser::usageError(const std::string &message) const {
  getErrorStream() << tool << ": error: " << message << " (see " << tool
                   << " --help)\n";
  return kExitUsage;
}

void OptionParser::printHelp() const {
  llvm::outs() << "usage: " << tool << " " << synopsis << "\n\n"
               << summary << "\n\noptions:\n";
  auto line = [](const std::string &flag, const std::string &help) {
    llvm::outs() << llvm::formatv("  {0,-34} {1}\n", flag, help);
  };
  for (const Flag &flag : flags)
    line(spell(flag.name) +
             (flag.takesValue ? (flag.name.size() == 1 ? " " : "=") + flag.value
                              : ""),
         flag.help);
  line("--help", "print this and exit");
  line("--version", "print the version and exit");
}

std::optional<int> OptionParser::parse(llvm::ArrayRef<const char *> arguments,
                                       std::vector<std::string> &positional) {
  if (arguments.empty())
    return usageError("no input");
  bool onlyPositional = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (onlyPositional || argument == "-" || !argument.starts_with("-")) {
      positional.push_back(argument.str());
      continue;
    }
    if (argument == "--") {
      onlyPositional = true;
      continue;
    }
    if (argument == "--help" || argument == "-h") {
      printHelp();
      return kExitSuccess;
    }
    if (argument == "--version") {
      llvm::outs() << tool << " " << POSENC_VERSION << ", LLVM "
                   << LLVM_VERSION_STRING << "\n";
      return kExitSuccess;
    }
    auto [spelled, value] = argument.split('=');
    bool hasValue = spelled.size() != argument.size();
    StringRef name = spelled.drop_front(spelled.starts_with("--") ? 2 : 1);
    const Flag *flag = nullptr;
    for (const Flag &candidate : flags)
      if (candidate.name == name)
        flag = &candidate;
    if (!flag)
      return usageError("unknown option '" + spelled.take_front(80).str() +
                        "'");
    if (!flag->takesValue && hasValue)
      return usageError("option '" + spell(flag->name) + "' takes no value");
    if (flag->takesValue && !hasValue) {
      if (i + 1 == arguments.size())
        return usageError("option '" + spell(flag->name) + "' needs a value");
      value = arguments[++i];
    }
    if (std::optional<std::string> error = flag->set(value))
      return usageError("option '" + spell(flag->name) + "' " + *error);
  }
  return std::nullopt;
}
