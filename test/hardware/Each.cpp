//===- Each.cpp - forms in processes of their own -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Each.h"

#include "Case.h"
#include "Device.h"
#include "Process.h"
#include "Report.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

using namespace posenc::hardware;

namespace {
struct Item {
  const Subject *subject;
  std::string form;
  std::pair<size_t, size_t> rank; // in those that run first, and in all
};
} // namespace

/// Returns the name of a file without folders and extension.
static std::string getStem(const std::string &path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

static std::vector<Item> listItems(const CheckKind &kind,
                                   const std::vector<Subject> &subjects,
                                   const std::vector<std::string> &forms,
                                   const std::vector<std::string> &first) {
  std::vector<Item> items;
  for (const Subject &subject : subjects)
    for (const std::string &form : kind.list(subject)) {
      if (!forms.empty() &&
          std::find(forms.begin(), forms.end(), form) == forms.end())
        continue;
      size_t rank = std::find(first.begin(), first.end(), form) - first.begin();
      items.push_back({&subject, form, {rank, items.size()}});
    }
  std::sort(items.begin(), items.end(),
            [](const Item &a, const Item &b) { return a.rank < b.rank; });
  return items;
}

static std::vector<std::string> getCommand(const CheckKind &kind,
                                           const Item &item) {
  const Subject &subject = *item.subject;
  std::vector<std::string> command = {"/proc/self/exe", kind.name,
                                      subject.library};
  if (kind.hasModule)
    command.push_back(subject.module);
  command.push_back("--form=" + item.form);
  command.push_back("--device=" + std::to_string(subject.device));
  if (subject.isSmall)
    command.emplace_back("--small");
  if (subject.maxCalls != INT64_MAX)
    command.push_back("--calls=" + std::to_string(subject.maxCalls));
  return command;
}

/// Returns the result in a few words, and whether it is right.
static std::pair<std::string, bool> describeEnding(const Ending &ending) {
  if (ending.kind == Ending::Late)
    return {"no end", false};
  if (ending.kind == Ending::Signaled)
    return {"signal " + std::to_string(ending.code) + " (" +
                ::strsignal(ending.code) + ")",
            false};
  if (ending.code > 1)
    return {"exit code " + std::to_string(ending.code), false};
  return {ending.code ? "wrong" : "right", ending.code == 0};
}

namespace {
/// The time since it was made.
class Clock {
public:
  double getSeconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  }

private:
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};
} // namespace

int posenc::hardware::checkEach(const CheckKind &kind,
                                const std::vector<Subject> &subjects,
                                const std::vector<std::string> &forms,
                                const EachOptions &options) {
  Clock clock;
  std::vector<Item> items = listItems(kind, subjects, forms, options.first);
  TableFile table(options.table);
  table.write(
      std::string("\nForms: ") + kind.name +
      "\n\n| library | form | result | s | |\n|---|---|---|---:|---|\n");
  size_t right = 0, wrong = 0, skipped = 0;
  for (const Item &item : items) {
    std::string library = getStem(item.subject->library);
    auto addRow = [&](const std::string &result, double seconds,
                      const std::string &note) {
      char time[32];
      std::snprintf(time, sizeof(time), "%.1f", seconds);
      std::printf("%s, %s s: %s\n", result.c_str(), time, note.c_str());
      std::fflush(stdout);
      table.write("| " + library + " | " + item.form + " | " + result + " | " +
                  time + " | " + escapeCell(note) + " |\n");
    };
    std::printf("%s %s %s: ", kind.name, library.c_str(), item.form.c_str());
    std::fflush(stdout);
    if (clock.getSeconds() > options.seconds) {
      addRow("skipped", 0, "no time was left");
      ++skipped;
      continue;
    }
    // SIGKILL at once: a handler could wait for the device.
    Ending ending =
        runProcess(getCommand(kind, item), options.formSeconds, 0, true);
    if (ending.kind == Ending::Exited && ending.code == 77) {
      std::printf("%s\n", ending.lastLine.c_str());
      return 77;
    }
    auto [result, isRight] = describeEnding(ending);
    ++(isRight ? right : wrong);
    addRow(result, ending.seconds, ending.lastLine);
  }
  std::string summary = std::string(kind.name) + ": " + std::to_string(right) +
                        " forms right, " + std::to_string(wrong) + " wrong, " +
                        std::to_string(skipped) + " skipped";
  std::printf("%s\n", summary.c_str());
  table.write("\n" + summary + "\n");
  bool hasForms = right > 0 || !kind.needsForms;
  return wrong == 0 && skipped == 0 && hasForms ? 0 : 1;
}

int posenc::hardware::measureEach(const std::string &library,
                                  const std::string &cases,
                                  const std::string &match,
                                  const std::vector<std::string> &arguments,
                                  const EachOptions &options) {
  Clock clock;
  TableFile table(options.table);
  std::string header = formatTableHeader();
  std::printf("%s", header.c_str());
  table.write(header);
  int failed = 0, measured = 0;
  for (const Case &one : readCases(cases)) {
    if (one.name.find(match) == std::string::npos)
      continue;
    std::string row;
    auto fail = [&](const std::string &why) {
      row = "| " + one.name + " | " + escapeCell(why) + " | | | | |";
      ++failed;
    };
    if (clock.getSeconds() > options.seconds) {
      fail("skipped: no time was left");
    } else {
      std::vector<std::string> command = {"/proc/self/exe", "bench", library,
                                          cases, "--case=" + one.name};
      command.insert(command.end(), arguments.begin(), arguments.end());
      Ending ending = runProcess(command, options.formSeconds, 0, true);
      bool isExit = ending.kind == Ending::Exited;
      if (isExit && ending.code == 77) {
        std::printf("%s\n", ending.lastLine.c_str());
        return 77;
      }
      if (isExit && ending.code <= 1 && ending.lastLine[0] == '|') {
        row = ending.lastLine;
        failed += ending.code;
        ++measured;
      } else {
        fail("failed: " + describeEnding(ending).first + ": " +
             ending.lastLine);
      }
    }
    std::printf("%s\n", row.c_str());
    std::fflush(stdout);
    table.write(row + "\n");
  }
  return failed == 0 && measured > 0 ? 0 : 1;
}
