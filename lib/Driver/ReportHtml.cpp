//===- ReportHtml.cpp - writes the report of a compilation ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All text of the input is written by escape(), in content and in attributes.
// Ids consist of names of stages and numbers alone. The policy in the head
// forbids scripts and everything that is loaded.
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/CompileReport.h"

#include "TimeShares.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::posenc;

/// Limits of a stage's text, which keep the file small enough for a browser.
static constexpr size_t kMaxLines = 6000, kMaxBytes = 512 << 10,
                        kMaxLineBytes = 800;
/// The reasons that the summary lists.
static constexpr size_t kMaxReasons = 50;

static constexpr llvm::StringLiteral kStyle = R"css(
:root { color-scheme: light dark; --fg: #1b1f24; --bg: #ffffff; --soft: #f3f5f8;
  --line: #d5dae1; --link: #0b5cad; --good: #1a7f37; --bad: #b42318;
  --mark: #fff1b8; --dim: #697380; }
@media (prefers-color-scheme: dark) { :root { --fg: #e3e7ec; --bg: #14171b;
  --soft: #1d2127; --line: #343b45; --link: #79b8ff; --good: #57c26f;
  --bad: #ff7b72; --mark: #4b4013; --dim: #929ca8; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg);
  background: var(--bg); margin: 2rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
h3 { font-size: 1rem; }
a { color: var(--link); }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
thead th { color: var(--dim); font-weight: 600; }
tbody th[colspan] { background: var(--soft); }
code, pre { font: 12.5px/1.45 ui-monospace, monospace; }
.passed, .good { color: var(--good); }
.missed, .failure, .error, .bad { color: var(--bad); }
.warning { font-weight: 600; }
.messages li { white-space: pre-wrap; }
.stages { display: flex; gap: .8rem; overflow-x: auto; align-items: flex-start; }
.stages details { border: 1px solid var(--line); border-radius: 6px; }
.stages details[open] { flex: 1 0 42%; min-width: 0; }
.stages summary { padding: .3rem .7rem; background: var(--soft); cursor: pointer;
  white-space: nowrap; }
.stages pre { margin: 0; padding: .4rem 0; overflow: auto; max-height: 85vh;
  counter-reset: line; tab-size: 2; }
.stages pre span { counter-increment: line; }
.stages pre span::before { content: counter(line); display: inline-block;
  width: 4.5em; padding-right: 1em; text-align: right; color: var(--dim); }
.stages pre span:target { background: var(--mark); }
.stages p { margin: .4rem .7rem; color: var(--dim); }
)css";

/// Returns text for content and quoted attributes. Bytes that are not UTF-8,
/// control characters and marks that change the order of the text on the screen
/// become visible.
static std::string escape(StringRef text) {
  std::string fixed = llvm::json::fixUTF8(text), escaped;
  StringRef rest = fixed;
  escaped.reserve(fixed.size());
  while (!rest.empty()) {
    unsigned char c = rest.front();
    // U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069.
    if (rest.size() >= 3 && c == 0xe2) {
      unsigned second = static_cast<unsigned char>(rest[1]);
      unsigned third = static_cast<unsigned char>(rest[2]);
      bool isMark = (second == 0x80 && (third == 0x8e || third == 0x8f ||
                                        (third >= 0xaa && third <= 0xae))) ||
                    (second == 0x81 && third >= 0xa6 && third <= 0xa9);
      if (isMark) {
        unsigned code = (second & 0x3f) << 6 | (third & 0x3f) | 0x2000;
        escaped += llvm::formatv("[U+{0:X-}]", code);
        rest = rest.drop_front(3);
        continue;
      }
    }
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (c == '\'')
      escaped += "&#39;";
    else if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
      escaped += llvm::formatv("[U+{0:X-4}]", unsigned(c));
    else
      escaped += char(c);
    rest = rest.drop_front();
  }
  return escaped;
}

namespace {
/// A stage's text as lines, up to the limits.
struct Excerpt {
  SmallVector<StringRef> lines;
  size_t numLeftOut = 0;

  explicit Excerpt(StringRef text) {
    text = text.rtrim('\n');
    size_t bytes = 0;
    while (!text.empty() && lines.size() < kMaxLines && bytes < kMaxBytes) {
      auto [line, rest] = text.split('\n');
      lines.push_back(line);
      bytes += std::min(line.size(), kMaxLineBytes);
      text = rest;
    }
    if (!text.empty())
      numLeftOut = text.count('\n') + 1;
  }
};

/// Writes the parts of a report.
class Writer {
public:
  Writer(raw_ostream &os, ArrayRef<ReportStage> stages) : os(os) {
    for (const ReportStage &stage : stages)
      excerpts.emplace_back(&stage, Excerpt(stage.text));
  }

  void row(StringRef name, StringRef value, bool isCode = false) {
    StringRef open = isCode ? "<code>" : "", close = isCode ? "</code>" : "";
    os << "<tr><th>" << name << "</th><td>" << open << escape(value) << close
       << "</td></tr>\n";
  }
  void links(StringRef location, unsigned sourceLine);
  void messages(StringRef text, StringRef input);
  void remarks(ArrayRef<const ReportRemark *> remarks, bool hasTargets);
  void stages(const llvm::StringSet<> &linked);

  /// Returns the linked lines of all stages as `stage-line`.
  llvm::StringSet<> linked;

private:
  void link(const ReportStage &stage, const Excerpt &excerpt, unsigned line);

  raw_ostream &os;
  SmallVector<std::pair<const ReportStage *, Excerpt>> excerpts;
};
} // namespace

void Writer::link(const ReportStage &stage, const Excerpt &excerpt,
                  unsigned line) {
  if (line == 0 || line > excerpt.lines.size())
    return;
  std::string id = (stage.name + "-" + llvm::Twine(line)).str();
  linked.insert(id);
  os << " <a href=\"#" << id << "\">" << stage.name << ':' << line << "</a>";
}

/// Writes links to the lines of a location in all stages that have it.
void Writer::links(StringRef location, unsigned sourceLine) {
  for (auto &[stage, excerpt] : excerpts) {
    auto line = stage->lines.find(location);
    if (stage->name == "source")
      link(*stage, excerpt, sourceLine);
    else if (line != stage->lines.end())
      link(*stage, excerpt, line->second);
  }
}

/// Writes the errors, warnings and notes among printed lines. A line without a
/// severity continues the one before.
void Writer::messages(StringRef text, StringRef input) {
  SmallVector<std::pair<StringRef, StringRef>> found; // severity, text
  bool isRemark = false;
  while (!text.empty()) {
    StringRef line = text.substr(0, text.find('\n'));
    StringRef severity;
    size_t first = StringRef::npos;
    for (StringRef name : {"error: ", "warning: ", "note: ", "remark: "}) {
      size_t at = line.find(name);
      if (at < first && (at == 0 || line[at - 1] == ' ')) {
        first = at;
        severity = name.drop_back(2);
      }
    }
    if (!severity.empty())
      isRemark = severity == "remark";
    if (severity.empty() && !found.empty() && !isRemark)
      found.back().second = StringRef(found.back().second.begin(),
                                      line.end() - found.back().second.begin());
    else if (!isRemark)
      found.push_back({severity, line});
    text = text.drop_front(std::min(line.size() + 1, text.size()));
  }
  if (found.empty()) {
    os << "<p>None.</p>\n";
    return;
  }
  os << "<ul class=\"messages\">\n";
  for (auto [severity, message] : found) {
    os << "<li class=\"" << severity << "\">" << escape(message);
    StringRef rest = message;
    unsigned line = 0;
    if (rest.consume_front(input) && rest.consume_front(":") &&
        !rest.consumeInteger(10, line))
      links("", line);
    os << "</li>\n";
  }
  os << "</ul>\n";
}

/// Writes the remarks of a function, grouped by pass. Equal ones are one row.
void Writer::remarks(ArrayRef<const ReportRemark *> remarks, bool hasTargets) {
  llvm::MapVector<StringRef, SmallVector<const ReportRemark *>> passes;
  for (const ReportRemark *remark : remarks)
    passes[remark->pass].push_back(remark);
  unsigned numColumns = hasTargets ? 4 : 3;
  os << "<table class=\"remarks\"><thead><tr><th>Kind</th><th>Location</th>"
     << (hasTargets ? "<th>Target</th>" : "") << "<th>Text</th></tr></thead>\n";
  auto isEqual = [](const ReportRemark *a, const ReportRemark *b) {
    return std::tie(a->kind, a->location, a->target, a->text) ==
           std::tie(b->kind, b->location, b->target, b->text);
  };
  for (auto &[pass, group] : passes) {
    os << "<tbody><tr><th colspan=\"" << numColumns << "\"><code>"
       << escape(pass) << "</code></th></tr>\n";
    for (size_t i = 0, count; i < group.size(); i += count) {
      const ReportRemark &remark = *group[i];
      count = 1;
      while (i + count < group.size() && isEqual(group[i + count], &remark))
        ++count;
      os << "<tr><td class=\"" << remark.kind << "\">" << remark.kind
         << "</td><td>" << escape(remark.location);
      links(remark.location, remark.sourceLine);
      os << "</td>";
      if (hasTargets)
        os << "<td>" << escape(remark.target) << "</td>";
      os << "<td>" << escape(remark.text);
      if (count > 1)
        os << " (" << count << " times)";
      os << "</td></tr>\n";
    }
    os << "</tbody>\n";
  }
  os << "</table>\n";
}

void Writer::stages(const llvm::StringSet<> &linked) {
  constexpr unsigned numOpen = 3;
  os << "<div class=\"stages\">\n";
  for (auto [number, pair] : llvm::enumerate(excerpts)) {
    auto &[stage, excerpt] = pair;
    os << "<details" << (number < numOpen ? " open" : "") << "><summary>"
       << escape(stage->title) << "</summary>\n<pre>";
    for (auto [index, line] : llvm::enumerate(excerpt.lines)) {
      std::string id = (stage->name + "-" + llvm::Twine(index + 1)).str();
      os << "<span";
      if (linked.contains(id))
        os << " id=\"" << id << '"';
      os << '>' << escape(line.take_front(kMaxLineBytes));
      if (line.size() > kMaxLineBytes)
        os << " [" << line.size() - kMaxLineBytes << " more bytes]";
      os << "</span>\n";
    }
    os << "</pre>\n";
    if (excerpt.numLeftOut != 0)
      os << "<p>" << excerpt.numLeftOut
         << " more lines: --emit or --save-temps write all of them.</p>\n";
    os << "</details>\n";
  }
  os << "</div>\n";
}

/// Writes the shares of the operations of each function by kind, the largest
/// first.
static void writeTimes(llvm::raw_ostream &os, ArrayRef<ReportTime> times) {
  struct Share {
    unsigned count = 0;
    double time = 0;
  };
  std::map<StringRef, std::map<std::string, Share>> functions;
  std::map<StringRef, double> totals;
  for (const ReportTime &time : times) {
    std::string kind = time.kind + (time.isScalar ? ", a loop on scalars" : "");
    Share &share = functions[time.function][kind];
    ++share.count;
    share.time += time.time;
    totals[time.function] += time.time;
  }
  os << "<h2>Estimated time</h2>\n<p>Shares of a call on one thread, from the "
        "bytes and operations of each kind; results that are fused into their "
        "only user do not count. Dynamic sizes count as "
     << kSampleSize << ".</p>\n";
  for (auto &[function, kinds] : functions) {
    std::vector<std::pair<std::string, Share>> sorted(kinds.begin(),
                                                      kinds.end());
    llvm::sort(sorted, [](const auto &a, const auto &b) {
      return std::tie(b.second.time, a.first) <
             std::tie(a.second.time, b.first);
    });
    os << "<h3><code>" << escape(function)
       << "</code></h3>\n<table><thead><tr><th>Kind</th><th>Operations</th>"
          "<th>Share</th></tr></thead>\n<tbody>\n";
    for (auto &[kind, share] : sorted)
      os << "<tr><td>" << escape(kind) << "</td><td>" << share.count
         << "</td><td>"
         << llvm::format("%.1f %%", totals[function] > 0
                                        ? 100 * share.time / totals[function]
                                        : 0.0)
         << "</td></tr>\n";
    os << "</tbody></table>\n";
  }
}

std::string CompileReport::write(StringRef messages, bool isCompiled) const {
  std::string html;
  llvm::raw_string_ostream os(html);
  Writer writer(os, stages);
  os << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
        "charset=\"utf-8\">\n"
     << "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; style-src 'unsafe-inline'\">\n<title>"
     << escape(input) << " - Posenc</title>\n<style>" << kStyle
     << "</style>\n</head>\n<body>\n<h1>Compilation of " << escape(input)
     << "</h1>\n";
  os << (isCompiled ? "<p class=\"good\">Compiled.</p>\n"
                    : "<p class=\"bad\">Not compiled: see the errors.</p>\n");
  os << "<table>\n";
  writer.row("Command", command, /*isCode=*/true);
  writer.row("Version", "Posenc " POSENC_VERSION ", LLVM " LLVM_VERSION_STRING);
  writer.row("Input", inputKind.empty() ? "not read" : inputKind);
  writer.row("Output", outputKind);
  writer.row(targets.size() == 1 ? "Target" : "Targets",
             llvm::join(targets, ", "));
  os << "</table>\n";

  os << "<h2>Summary</h2>\n<ul>\n";
  constexpr std::pair<StringLiteral, StringLiteral> kinds[] = {
      {"rotate", "rotations with tables"},
      {"rope", "rotations"},
      {"sinusoidal", "sinusoidal tables"},
      {"attention", "attentions"},
      {"kv_append", "appends to a cache"}};
  for (auto [op, name] : kinds) {
    auto found = numOps.find(op.str());
    auto [imported, raised] =
        found == numOps.end() ? std::pair(0u, 0u) : found->second;
    if (raised == 0 && op != "attention" && op != "rotate")
      continue;
    os << "<li>" << raised << ' ' << name << " (<code>posenc." << op
       << "</code>): " << (raised > imported ? raised - imported : 0)
       << " raised, " << std::min(imported, raised) << " in the input</li>\n";
  }
  std::map<StringRef, unsigned> fused;
  SmallVector<const ReportRemark *> missed;
  for (const ReportRemark &remark : remarks) {
    StringRef pass = remark.pass;
    if (remark.kind == "missed")
      missed.push_back(&remark);
    else if (remark.kind == "passed" &&
             (pass.contains("fuse") || pass.contains("fold")))
      ++fused[pass];
  }
  os << "<li>Fused: ";
  if (fused.empty())
    os << "nothing";
  for (auto [number, pair] : llvm::enumerate(fused))
    os << (number == 0 ? "" : ", ") << pair.second << " by <code>"
       << escape(pair.first) << "</code>";
  os << "</li>\n<li>Left alone: " << (missed.empty() ? "nothing" : "");
  if (!missed.empty())
    os << "<ul>\n";
  for (const ReportRemark *remark : ArrayRef(missed).take_front(kMaxReasons)) {
    os << "<li>" << escape(remark->location);
    writer.links(remark->location, remark->sourceLine);
    os << (remark->location.empty() ? "" : ": ") << escape(remark->text);
    double own = 0, all = 0;
    for (const ReportTime &time : times) {
      bool isSame = time.function == remark->function;
      all += isSame ? time.time : 0;
      own += isSame && time.location == remark->location ? time.time : 0;
    }
    if (own > 0 && !remark->location.empty())
      os << llvm::format("; this operation takes about %.1f %% of a call",
                         100 * own / all);
    os << " (<code>" << escape(remark->pass) << "</code>)</li>\n";
  }
  if (missed.size() > kMaxReasons)
    os << "<li>" << missed.size() - kMaxReasons
       << " more: see the remarks</li>\n";
  os << (missed.empty() ? "" : "</ul>") << "</li>\n</ul>\n";

  os << "<h2>Errors and warnings</h2>\n";
  writer.messages(messages, input == "-" ? "<stdin>" : StringRef(input));

  os << "<h2>Functions</h2>\n";
  if (functions.empty())
    os << "<p>None.</p>\n";
  else
    os << "<table><thead><tr><th>Name</th><th>Type</th><th>Code, bytes</th>"
          "<th>Stack, bytes</th><th>Memory</th></tr></thead>\n<tbody>\n";
  for (auto &[name, function] : functions) {
    os << "<tr><td><code>" << escape(name) << "</code></td><td><code>"
       << escape(function.type) << "</code></td><td>";
    if (function.codeBytes != 0)
      os << function.codeBytes;
    os << "</td><td>";
    if (function.stackBytes)
      os << *function.stackBytes;
    os << "</td><td>" << escape(llvm::join(function.memory, "; "))
       << "</td></tr>\n";
  }
  os << (functions.empty() ? "" : "</tbody></table>\n");

  if (!times.empty())
    writeTimes(os, times);

  os << "<h2>Remarks</h2>\n";
  if (remarks.empty())
    os << "<p>None.</p>\n";
  llvm::MapVector<StringRef, SmallVector<const ReportRemark *>> byFunction;
  bool hasTargets = false;
  for (const ReportRemark &remark : remarks) {
    byFunction[remark.function].push_back(&remark);
    hasTargets |= !remark.target.empty();
  }
  for (auto &[function, group] : byFunction) {
    os << "<h3><code>" << escape(function) << "</code></h3>\n";
    writer.remarks(group, hasTargets);
  }

  os << "<h2>Stages</h2>\n";
  if (stages.empty())
    os << "<p>None: the input was not read.</p>\n";
  else
    writer.stages(writer.linked);
  os << "</body>\n</html>\n";
  return html;
}
