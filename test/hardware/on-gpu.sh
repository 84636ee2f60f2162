#!/bin/sh
#===- on-gpu.sh - check and measure on a machine with a GPU -----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
#   on-gpu.sh [--build=DIR] [--arch=sm_NN] [--cpu=NAME] [--kernels=NAME,...]
#             [RUN OPTION...]
#       compiles what is measured and runs it here; options as run.sh's
#   on-gpu.sh [...] --prepare=DIR
#       only makes DIR, which is all that a machine with a GPU needs: DIR/run.sh
#       runs it there, with neither LLVM nor a compiler
#
# The kernels are for sm_90a, and beside them, to compare bits with, for
# x86-64-v3; all of them, unless names that both modules have are given.
set -eu

sources=$(cd "$(dirname "$0")" && pwd)
build=$sources/../../build
arch=sm_90a
cpu=
kernels=
folder=
while [ $# -gt 0 ]; do
  case $1 in
    --build=*) build=${1#*=} ;;
    --arch=*) arch=${1#*=} ;;
    --cpu=*) cpu=${1#*=} ;;
    --kernels=*) kernels=${1#*=} ;;
    --prepare=*) folder=${1#*=} ;;
    --prepare)
      [ $# -ge 2 ] || { echo "--prepare needs a folder" >&2; exit 2; }
      folder=$2
      shift ;;
    *) break ;;
  esac
  shift
done
if [ -z "$cpu" ]; then
  case $(uname -m) in
    x86_64) cpu=x86-64-v3 ;;
    *) cpu=host ;;
  esac
fi
if [ -n "$folder" ] && [ $# -gt 0 ]; then
  echo "unknown option: $1" >&2
  exit 2
fi

for needed in "$build/bin/posenc-compile" "$build/test/hardware/posenc-on-gpu"
do
  [ -x "$needed" ] || { echo "not built: $needed" >&2; exit 1; }
done

is_temporary=
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  is_temporary=yes
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# Without the host's OpenMP, which may not be there.
compile() {
  "$build/bin/posenc-compile" "$1" -o "$folder/$2" --threads=none \
    --target="$cpu" --target="cuda:$arch" ${kernels:+--kernels="$kernels"}
}
compile "$sources/../Target/Inputs/gpu-forms.mlir" forms.so
compile "$sources/Inputs/cases.mlir" cases.so
cp "$build/test/hardware/posenc-on-gpu" "$sources/cases.txt" \
  "$sources/run.sh" "$sources/torch-rotary.py" "$folder/"
chmod +x "$folder/run.sh" "$folder/posenc-on-gpu"

if [ -z "$is_temporary" ]; then
  echo "$folder/run.sh runs it on a machine with a GPU"
  exit 0
fi
code=0
"$folder/run.sh" --out="$PWD/on-gpu" "$@" || code=$?
exit $code
