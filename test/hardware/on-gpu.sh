#!/bin/sh
#===- on-gpu.sh - checks and measures kernels on a GPU ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
#   on-gpu.sh [--build=DIR] [--arch=sm_NN] [--cpu=NAME] [--kernels=NAME,...]
#             [--forms=NAME,...] [--decode-forms=NAME,...|none]
#             [--attention=NAME,...] [--opt-level=N] [RUN OPTION...]
#       compiles the kernels, then checks and measures them on this machine; the
#       remaining options are those of run.sh
#   on-gpu.sh [...] --prepare=DIR
#       only writes the directory DIR. Copy it to a machine with a GPU and run
#       DIR/run.sh there; that needs neither LLVM nor a compiler
#
# By default all kernels are compiled, for sm_90a (--arch) and, to compare results
# with, for x86-64-v3 (--cpu). --kernels selects functions by their names, which
# must exist in both gpu-forms.mlir and cases.mlir; --forms those of
# attention-forms.mlir, --decode-forms those of decode-forms.mlir, and --attention those
# of attention.mlir. Kernels of attention are compiled for sm_80, too, to compare them on
# the same GPU. The kernels are machine code of the ptxas whose code test/sass checks, if
# the tests have installed it, or of another one (docs/abi.md). Without any, the driver
# compiles them when a library is opened, which can take longer than the steps of run.sh
# have.
set -eu

sources=$(cd "$(dirname "$0")" && pwd)
build=$sources/../../build
arch=sm_90a
cpu=
kernels=
forms=
decode=
attention=
optimize=
folder=
while [ $# -gt 0 ]; do
  case $1 in
    --build=*) build=${1#*=} ;;
    --arch=*) arch=${1#*=} ;;
    --cpu=*) cpu=${1#*=} ;;
    --kernels=*) kernels=${1#*=} ;;
    --forms=*) forms=${1#*=} ;;
    --decode-forms=*) decode=${1#*=} ;;
    --attention=*) attention=${1#*=} ;;
    --opt-level=*) optimize=$1 ;;
    --prepare=*) folder=${1#*=} ;;
    --prepare)
      [ $# -ge 2 ] || { echo "--prepare needs a directory" >&2; exit 2; }
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

if [ -z "${POSENC_PTXAS:-}" ]; then
  for found in "$build"/test/venv/lib/python3*/site-packages/nvidia/*/bin/ptxas; do
    if [ -x "$found" ]; then
      POSENC_PTXAS=$found
      export POSENC_PTXAS
    fi
  done
fi

is_temporary=
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  is_temporary=yes
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

# compile MODULE LIBRARY FUNCTIONS OPTION...
# --threads=none: the machine with the GPU may not have libgomp.
compile() {
  module=$1
  library=$2
  functions=$3
  shift 3
  "$build/bin/posenc-compile" "$module" -o "$folder/$library" --threads=none \
    ${functions:+--kernels="$functions"} ${optimize:+"$optimize"} "$@"
}
inputs=$sources/../Target/Inputs
compile "$inputs/gpu-forms.mlir" forms.so "$kernels" \
  --target="$cpu" --target="cuda:$arch"
compile "$sources/Inputs/cases.mlir" cases.so "$kernels" \
  --target="$cpu" --target="cuda:$arch"
# compile_forms MODULE LIBRARY FUNCTIONS
# The functions without a GPU kernel are reported on the other machine.
compile_forms() {
  compile "$@" --target="$cpu" --target="cuda:$arch" 2> "$folder/compile.log" ||
    { cat "$folder/compile.log" >&2; exit 1; }
}
compile_forms "$inputs/attention-forms.mlir" attention-forms.so "$forms"
cp "$inputs/attention-forms.mlir" "$folder/"
if [ "$decode" != none ]; then
  compile_forms "$sources/../Run/Inputs/decode-forms.mlir" decode-forms.so "$decode"
  cp "$sources/../Run/Inputs/decode-forms.mlir" "$folder/"
fi
compile "$sources/Inputs/attention.mlir" attention.so "$attention" \
  --target="cuda:$arch"
compile "$sources/Inputs/attention.mlir" attention-sm_80.so \
  "${attention:-full_128,causal_128}" --target=cuda:sm_80
cp "$sources/cases.txt" "$sources/attention.txt" "$sources/attention-sm_80.txt" \
  "$sources/run.sh" "$sources/torch-rotary.py" "$sources/torch-attention.py" \
  "$build/test/hardware/posenc-on-gpu" "$folder/"
chmod +x "$folder/run.sh" "$folder/posenc-on-gpu"

if [ -z "$is_temporary" ]; then
  echo "prepared $folder: run $folder/run.sh on a machine with a GPU"
  exit 0
fi
code=0
"$folder/run.sh" --out="$PWD/on-gpu" "$@" || code=$?
exit $code
