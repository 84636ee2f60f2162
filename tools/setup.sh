#!/usr/bin/env bash
#===- setup.sh - finds and installs missing Debian packages -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
# Usage: setup.sh [build|test|check]
#   build   installs what is missing to build, to run the quick tests and to install
#   test    the same, and what all tests need (default)
#   check   installs nothing: names what is missing to build, and exits with 1
#
# POSENC_LLVM=DIR is the LLVM to build with. Its packages are neither installed nor
# asked for, if it is not Debian's. Where there is no dpkg, nothing is installed,
# and CMake names what it does not find.
set -euo pipefail

debian_llvm=/usr/lib/llvm-22
llvm=${POSENC_LLVM:-$debian_llvm}

packages=(
  build-essential cmake ninja-build python3
  libgomp1 libgtest-dev libgmock-dev libbenchmark-dev libmpfr-dev zlib1g-dev
  nlohmann-json3-dev libvulkan-dev
)
llvm_packages=(
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libclang-rt-22-dev
)
# The build finds out whether they are there; some tests need them.
optional_packages=(libjemalloc-dev libdlpack-dev python3-numpy python3-venv)
test_packages=(
  # For tests on a Vulkan device, with a software implementation.
  libvulkan1 mesa-vulkan-drivers spirv-tools
  # For tests that run code for other CPUs in emulators.
  qemu-user libc6-dev-arm64-cross libgomp1-arm64-cross
  bochs bochs-term bochsbios
  # The solver of the proofs, and a checker of memory.
  z3 valgrind
)

mode=${1:-test}
case $mode in
  test) packages+=("${optional_packages[@]}" "${test_packages[@]}") ;;
  build) packages+=("${optional_packages[@]}") ;;
  check) ;;
  *) echo "setup: expected build, test or check, got '$mode'" >&2; exit 2 ;;
esac

if [ "$llvm" = "$debian_llvm" ]; then
  packages+=("${llvm_packages[@]}")
elif ! compgen -G "$llvm/lib*/cmake/mlir" >/dev/null; then
  echo "setup: no LLVM with MLIR in '$llvm' (POSENC_LLVM): expected a folder with" \
    "lib/cmake/mlir, such as $debian_llvm" >&2
  exit 1
fi
if ! command -v dpkg-query >/dev/null; then
  [ "$mode" = check ] || echo "setup: not a Debian system, so nothing is installed"
  exit 0
fi

missing=()
installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" \
  2>/dev/null || true)
for package in "${packages[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$mode" = check ]; then
  {
    echo "setup: missing Debian packages: ${missing[*]}"
    echo "setup: 'make setup' installs them and those of all tests, by apt-get as root"
    [ "$llvm" != "$debian_llvm" ] ||
      echo "setup: another LLVM 22 is used with POSENC_LLVM=DIR"
  } >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing Debian packages: ${missing[*]}" >&2
    echo "setup: install them as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: ${as_root[*]:+by sudo, }installing the Debian packages ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
