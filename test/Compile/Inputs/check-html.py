# ===- check-html.py - checks the HTML of a report -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""check-html.py FILE...: checks that elements are closed, links have targets, and nothing
is loaded or run. With --fault, damages the files and expects errors."""

import html.parser
import sys

ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li",
    "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "span", "a", "div",
    "details", "summary"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "class", "id", "href", "colspan",
              "open"}


class Checker(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.open, self.ids, self.links, self.errors = [], set(), set(), []

    def handle_starttag(self, tag, attributes):
        if tag not in ELEMENTS:
            self.errors.append(f"element {tag}")
        if tag != "meta":
            self.open.append(tag)
        names = [name for name, _ in attributes]
        if len(set(names)) != len(names) or not set(names) <= ATTRIBUTES:
            self.errors.append(f"attributes {names} of {tag}")
        for name, value in attributes:
            if name == "id":
                if value in self.ids:
                    self.errors.append(f"id {value} is there twice")
                self.ids.add(value)
            elif name == "href":
                self.links.add(value)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> at {self.getpos()}")

    def handle_entityref(self, name):
        if name not in ("amp", "lt", "gt", "quot"):
            self.errors.append(f"&{name};")

    def handle_pi(self, data):
        self.errors.append("a processing instruction")

    def handle_comment(self, data):
        self.errors.append("a comment")


def check(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    if checker.open:
        checker.errors.append(f"{checker.open} are not closed")
    for link in checker.links:
        if not link.startswith("#") or link[1:] not in checker.ids:
            checker.errors.append(f"the link {link} has no target")
    if any(ord(c) < 32 and c not in "\n\t" for c in text):
        checker.errors.append("a control character")
    if any(mark in text for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"):
        checker.errors.append("a mark that changes the order of text")
    return checker.errors


faults = [("</table>", ""), ("href=\"#", "href=\"#x"), ("<pre>", "<script>"),
          ("<td>", "<td onclick=\"x\">"), ("</h2>", "</h2>\x01"),
          ("<p ", "<img src=\"x\"><p ")]
wrong = 0
for name in sys.argv[1:]:
    if name == "--fault":
        continue
    with open(name, encoding="utf-8", newline="") as file:
        text = file.read()
    found = check(text)
    if "--fault" in sys.argv:
        found = [f"{old} is missed" for old, new in faults
                 if old not in text or not check(text.replace(old, new, 1))]
    for error in found:
        print(f"{name}: {error}")
    wrong += len(found)
print(f"{wrong} wrong")
