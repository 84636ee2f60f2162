#!/usr/bin/env python3
# ===- make-site.py - pages of the documentation's site ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: make-site.py FOLDER
#
# Writes the pages of the repository to FOLDER, from which mkdocs makes the site (`make
# docs-site`). The pages are written for the repository, so this changes:
#   - README.md is index.md, and README.md of a folder is FOLDER/index.md;
#   - the language reference is one page for each chapter;
#   - lists, tables and code get the empty lines around them that Python's Markdown needs;
#   - links to files that are no pages are links to POSENC_SOURCE_URL, or plain text if
#     that variable is not set.

import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
REFERENCE = "dialect/README.md"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
SKIPPED = (".github/", "test/")
IMAGES = (".png", ".svg")


def find_files():
    """Returns the pages and the images of the repository."""
    try:
        found = subprocess.check_output(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
            text=True, stderr=subprocess.DEVNULL).split("\n")
    except (OSError, subprocess.CalledProcessError):
        found = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
        found = [path for path in found if not path.startswith(("build", ".", "install/"))]
    return sorted(path for path in found
                  if path.endswith((".md", *IMAGES)) and (ROOT / path).is_file()
                  and not path.startswith(SKIPPED))


def get_anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def get_site_path(path):
    folder, name = posixpath.split(path)
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def split_reference(text):
    """Returns the pages of the language reference, (path, text), and the page of each
    of its anchors."""
    # The introduction ends with the contents, which the site has in its margin.
    intro, chapters = text.split("\n## Contents\n", 1)
    parts = re.split(r"^## (.*)$", chapters, flags=re.M)[1:]
    pages, owners = [("dialect/index.md", intro)], {}
    contents = "\n\n## Chapters\n\n"
    for title, body in zip(parts[::2], parts[1::2]):
        path = f"dialect/{get_anchor(title)}.md"
        # Headings keep their anchors and move up by one level.
        body = re.sub(r"^#(#+ )", r"\1", body, flags=re.M)
        pages.append((path, f"# {title}\n{body}"))
        contents += f"- [{title}]({posixpath.basename(path)})\n"
        owners[get_anchor(title)] = path
        for heading in re.findall(r"^#+ (.*)$", CODE_BLOCK.sub("", body), re.M):
            owners.setdefault(get_anchor(heading), path)
    pages[0] = (pages[0][0], pages[0][1] + contents)
    return pages, owners


def separate_blocks(text):
    """Adds empty lines before lists and tables that follow a paragraph, and around
    comments."""
    lines = []
    for line in text.split("\n"):
        kind, before = get_kind(line), get_kind(lines[-1]) if lines else ""
        if before and kind and kind != before and kind != "more" and (
                kind in ("list", "table", "comment") or before in ("table", "comment")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def get_kind(line):
    """Returns the kind of a line's block, "" for an empty line, and "more" for a line that
    goes on with a list."""
    if not line.strip():
        return ""
    for kind, pattern in (("list", r"[-*] |\d+\. "), ("table", r"\|"), ("comment", r"<!--"),
                          ("more", r" ")):
        if re.match(pattern, line):
            return kind
    return "text"


class Site:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.files = find_files()
        self.source_url = os.environ.get("POSENC_SOURCE_URL", "").rstrip("/")
        text = (ROOT / REFERENCE).read_text(encoding="utf-8")
        self.reference, self.owners = split_reference(text)

    def write(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for path in self.files:
            if path == REFERENCE:
                for page, text in self.reference:
                    self.write_page(path, page, text)
            elif path.endswith(IMAGES):
                target = self.folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, target)
            else:
                text = (ROOT / path).read_text(encoding="utf-8")
                self.write_page(path, get_site_path(path), text)

    def write_page(self, source, page, text):
        """Writes a page of the site that is made of a file of the repository."""
        parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
        for number in range(0, len(parts), 2):
            parts[number] = LINK.sub(lambda match: self.rewrite(match, source, page),
                                     separate_blocks(parts[number]))
            if number + 1 < len(parts):
                parts[number] = parts[number].rstrip("\n") + "\n\n"
        target = self.folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(parts), encoding="utf-8")

    def rewrite(self, match, source, page):
        mark, text, link = match.groups()
        if re.match(r"[a-z]+:", link):
            return match[0]
        path, _, anchor = link.partition("#")
        folder = posixpath.dirname(source)
        path = posixpath.normpath(posixpath.join(folder, path)) if path else source
        if (ROOT / path).is_dir() and f"{path}/README.md" in self.files:
            path = f"{path}/README.md"
        if path == REFERENCE and anchor:
            target = self.owners.get(anchor, "dialect/index.md")
        elif path in self.files:
            target = path if path.endswith(IMAGES) else get_site_path(path)
        elif self.source_url:
            return f"{mark}[{text}]({self.source_url}/{path})"
        else:
            return text
        relative = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"{mark}[{text}]({relative}{'#' + anchor if anchor else ''})"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make-site.py FOLDER")
    Site(sys.argv[1]).write()


if __name__ == "__main__":
    main()
