#!/usr/bin/env python3
# ===- make-sbom.py - the bill of materials of a release ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The program behind `make sbom`. Builds the wheel of `make wheel`, installs it in a new
# virtual environment, and writes what is in both as CycloneDX: the Python packages, as
# cyclonedx-py finds them; the libraries that auditwheel has put into the wheel, with their
# Debian packages, from the file that it leaves there; and the other Debian packages of
# which the wheel has parts (see find_parts). The last line is the path of the file.

import argparse
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse

FOLDER = os.path.dirname(os.path.abspath(__file__))
_SPEC = importlib.util.spec_from_file_location(
    "make_wheel", os.path.join(FOLDER, "make-wheel.py"))
make_wheel = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(make_wheel)
lock_files = make_wheel.lock_files

# The linker, and headers whose code is compiled into the libraries.
PARTS = ["lld-22", "nlohmann-json3-dev"]
# Packages of every virtual environment.
TOOLS = ["pip", "setuptools"]
VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1], encoding="utf-8").read()
sys.exit(JsonStrictValidator(SchemaVersion.V1_6).validate_str(text))
"""


def install_wheel(build, folder):
    """Builds the wheel and returns the Python of an environment that has it alone."""
    text = make_wheel.run(
        [sys.executable, os.path.join(FOLDER, "make-wheel.py"), "--build-dir", build,
         "--output-dir", folder], "build the wheel")
    environment = os.path.join(folder, "venv")
    make_wheel.run([sys.executable, "-m", "venv", environment],
                   "create a virtual environment")
    python = os.path.join(environment, "bin", "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    make_wheel.run([*pip, *lock_files.install_arguments("runtime")],
                   "install what the wheel needs")
    make_wheel.run([*pip, "--no-index", "--no-deps", text.splitlines()[-1]],
                   "install the wheel")
    return python


def find_information(python, *names):
    """Returns the paths of files in the information about the installed wheel."""
    prefix = os.path.dirname(os.path.dirname(python))
    return sorted(glob.glob(os.path.join(
        prefix, "lib", "python*", "site-packages", "posenc-*.dist-info", *names)))


def find_bundled(python):
    """Returns the components of the wheel that auditwheel has recorded."""
    [record] = find_information(python, "sboms", "*.json")
    with open(record, encoding="utf-8") as file:
        return [part for part in json.load(file)["components"] if part["name"] != "posenc"]


def find_parts(python, bundled):
    """Returns components for PARTS, and for the packages whose licences are in the wheel and
    that auditwheel has not found, since dpkg knows their files by another path; none where
    there is no dpkg."""
    licences = {os.path.splitext(os.path.basename(path))[0]
                for path in find_information(python, "licenses", "*.txt")}
    names = sorted({*PARTS, *licences} - {one["name"] for one in bundled})
    try:
        text = subprocess.run(
            ["dpkg-query", "-W", "-f=${db:Status-Status} ${Package} ${Version}\n", *names],
            capture_output=True, text=True, check=False).stdout
    except OSError:
        return []
    parts = []
    for name, version in re.findall(r"^installed (\S+) (\S+)$", text, re.M):
        url = f"pkg:deb/debian/{name}@{urllib.parse.quote(version, safe='')}"
        parts.append({"type": "library", "bom-ref": url, "name": name, "version": version,
                      "purl": url})
    return parts


def merge(bom, parts):
    """Adds parts of posenc to a bill, which tools of the environment leave."""
    kept = [one for one in bom["components"] if one["name"] not in TOOLS]
    removed = {one["bom-ref"] for one in bom["components"]} - {
        one["bom-ref"] for one in kept}
    bom["components"] = kept + parts
    bom["dependencies"] = [one for one in bom["dependencies"] if one["ref"] not in removed]
    [posenc] = [one["bom-ref"] for one in kept if one["name"] == "posenc"]
    [needs] = [one for one in bom["dependencies"] if one["ref"] == posenc]
    needs["dependsOn"] = sorted([*needs["dependsOn"], *(one["bom-ref"] for one in parts)])
    bom["dependencies"] += [{"ref": one["bom-ref"]} for one in parts]


def main():
    parser = argparse.ArgumentParser(description="Writes the bill of materials of the wheel.")
    parser.add_argument("--build-dir", default=os.path.join(make_wheel.SOURCE, "build"))
    parser.add_argument("--output", help="the file, not BUILD/sbom/posenc-VERSION.cdx.json")
    parser.add_argument("--python", help="a Python with the wheel, which is not built then")
    options = parser.parse_args()
    build = os.path.abspath(options.build_dir)
    tools = make_wheel.create_environment(
        os.path.join(build, "python", "sbom-venv"), "sbom")
    with tempfile.TemporaryDirectory() as folder:
        python = os.path.abspath(options.python) if options.python else \
            install_wheel(build, folder)
        path = os.path.join(folder, "bom.json")
        make_wheel.run(
            [tools, "-m", "cyclonedx_py", "environment", "--output-reproducible",
             "--output-format", "JSON", "-o", path, python], "list the packages")
        with open(path, encoding="utf-8") as file:
            bom = json.load(file)
        bundled = find_bundled(python)
        merge(bom, bundled + find_parts(python, bundled))
        [version] = [one["version"] for one in bom["components"] if one["name"] == "posenc"]
        output = options.output or os.path.join(build, "sbom", f"posenc-{version}.cdx.json")
        os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
        with open(output, "w", encoding="utf-8") as file:
            json.dump(bom, file, indent=2)
            file.write("\n")
    make_wheel.run([tools, "-c", VALIDATE, output], "validate the bill of materials")
    print(f"{len(bom['components'])} components")
    print(output)


if __name__ == "__main__":
    main()
