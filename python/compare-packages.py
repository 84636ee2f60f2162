#!/usr/bin/env python3
# ===- compare-packages.py - the same packages from other folders -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""The program behind `make compare-packages`. Builds all packages twice, from copies of the
sources with other paths, dates, permissions and time zones, and compares all bytes: the
installed files, the wheel and the source distribution. Prints each file that differs, and
exits with 1 if one does.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE = FOLDER.parent
_SPEC = importlib.util.spec_from_file_location("make_wheel", FOLDER / "make-wheel.py")
make_wheel = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(make_wheel)

# Of each copy: its folder, the date of its files, the mode of new files, the time zone.
SURROUNDINGS = [
    ("a", 1_000_000_000, 0o022, "UTC"),
    ("another folder/of/b", 1_700_000_000, 0o077, "Asia/Tokyo"),
]
SDIST = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"


def list_sources():
    """Returns the paths of the sources, those of git where there is one."""
    try:
        listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True,
                                check=False)
    except OSError:
        listed = None
    if listed and listed.returncode == 0 and listed.stdout:
        return [pathlib.Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
    return [path.relative_to(SOURCE) for path in SOURCE.rglob("*")
            if path.is_file() and not path.relative_to(SOURCE).parts[0].startswith("build")]


def copy_sources(folder, date, mask):
    """Copies the sources and returns their folder. All files have the date, and the
    permissions that a checkout gives them."""
    for path in list_sources():
        copy = folder / path
        if not (SOURCE / path).is_file():
            continue  # removed, and not committed yet
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / path, copy)
        copy.chmod((0o777 if os.access(copy, os.X_OK) else 0o666) & ~mask)
        os.utime(copy, (date, date))
    return folder


def run(command, folder, environment):
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"compare-packages: {command[0]} failed:\n{done.stdout[-4000:]}")


def build_packages(root, surroundings, options, python):
    """Builds the packages of a copy, and returns their folder."""
    name, date, mask, zone = surroundings
    source = copy_sources(root / name, date, mask)
    packages = root / name / "packages"
    packages.mkdir()
    environment = {**os.environ, "TZ": zone, "SOURCE_DATE_EPOCH": options.date}
    before = os.umask(mask)
    build = source / "build"
    if "sdist" in options.only:
        run([python, "-c", SDIST, packages / "sdist"], source, environment)
    if "runtime" in options.only:
        runtime = source / "build-runtime"
        run(["cmake", "-G", "Ninja", "-S", source / "runtime", "-B", runtime, *options.cmake],
            source, environment)
        run(["cmake", "--build", runtime, "-j", options.jobs], source, environment)
        run(["cmake", "--install", runtime, "--prefix", "/usr"], source,
            {**environment, "DESTDIR": str(packages / "runtime")})
    if "install" in options.only or "wheel" in options.only:
        run(["cmake", "-S", source, "-B", build, "--preset", "release", *options.cmake],
            source, environment)
        run(["cmake", "--build", build, "-j", options.jobs], source, environment)
    if "install" in options.only:
        run(["cmake", "--install", build, "--prefix", "/usr"], source,
            {**environment, "DESTDIR": str(packages / "install")})
    if "wheel" in options.only:
        run([sys.executable, source / "python" / "make-wheel.py", "--build-dir", build,
             "--output-dir", packages / "wheel", "--level", "1"], source, environment)
    os.umask(before)
    return packages


def list_archive(path):
    """Returns the contents and the attributes of the files of an archive; none of others."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {entry.filename: (archive.read(entry), entry.date_time, entry.external_attr)
                    for entry in archive.infolist()}
    if path.suffix == ".gz":
        with tarfile.open(path) as archive:
            return {entry.name: (archive.extractfile(entry).read() if entry.isfile() else b"",
                                 entry.mtime, entry.mode, entry.uname) for entry in archive}
    return {}


def list_files(root):
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*"))
            if path.is_file() or path.is_symlink()}


def compare(first, second):
    """Returns the names of the files that differ, with those within archives, and the number
    of files."""
    files, others = list_files(first), list_files(second)
    differ = [f"{name}: only in one" for name in sorted(files.keys() ^ others.keys())]
    for name in sorted(files.keys() & others.keys()):
        path, other = files[name], others[name]
        if path.is_symlink() or other.is_symlink():
            if not (path.is_symlink() and other.is_symlink()
                    and os.readlink(path) == os.readlink(other)):
                differ.append(name)
        elif path.read_bytes() != other.read_bytes():
            parts, other_parts = list_archive(path), list_archive(other)
            within = sorted(part for part in parts.keys() | other_parts.keys()
                            if parts.get(part) != other_parts.get(part))
            differ += [f"{name}: {part}" for part in within] or [name]
    return differ, len(files)


def main():
    kinds = ["sdist", "runtime", "install", "wheel"]
    parser = argparse.ArgumentParser(description="Builds packages twice and compares them.")
    parser.add_argument("--build-dir", default=SOURCE / "build", type=pathlib.Path,
                        help="where copies are made, in the folder 'packages'")
    parser.add_argument("--only", default=",".join(kinds),
                        help=f"some of {', '.join(kinds)}, separated by commas")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    parser.add_argument("--cmake", action="append", default=[], metavar="FLAG",
                        help="a further option of cmake")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if unknown := set(options.only) - set(kinds):
        parser.error(f"expected some of {', '.join(kinds)}, got {', '.join(sorted(unknown))}")
    options.date = make_wheel.find_date(SOURCE)
    build = options.build_dir.resolve()
    (build / "python").mkdir(parents=True, exist_ok=True)
    python = make_wheel.create_environment(str(build / "python" / "wheel-venv"), "wheel")
    with tempfile.TemporaryDirectory(prefix="packages-", dir=build) as root:
        folders = [build_packages(pathlib.Path(root), one, options, python)
                   for one in SURROUNDINGS]
        differ, count = compare(*folders)
    for name in differ:
        print(f"differs: {name}")
    # Parts of one archive are one file.
    files = {name.partition(": ")[0] for name in differ}
    print(f"{count - len(files)} of {count} files are the same")
    return 1 if differ or not count else 0


if __name__ == "__main__":
    sys.exit(main())
