#!/usr/bin/env bash
#===- setup.sh - installs missing Debian packages ---------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
set -euo pipefail

packages=(
  build-essential cmake ninja-build python3
  clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libclang-rt-22-dev libgomp1 libgtest-dev libgmock-dev libbenchmark-dev libmpfr-dev zlib1g-dev
  libjemalloc-dev
  libdlpack-dev nlohmann-json3-dev python3-numpy python3-venv libvulkan-dev
  # For tests on a Vulkan device, with a software implementation.
  libvulkan1 mesa-vulkan-drivers spirv-tools
  # For tests that run code for other CPUs in emulators.
  qemu-user libc6-dev-arm64-cross libgomp1-arm64-cross
  bochs bochs-term bochsbios
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages: ${missing[*]}" >&2
    echo "setup: install them as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
