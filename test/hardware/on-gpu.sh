#!/bin/sh
#===- on-gpu.sh - checks and measures kernels on a GPU ---------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
#   on-gpu.sh [OPTION...] [RUN OPTION...]
#       compiles the kernels, then checks and measures them on this machine; the
#       remaining options are those of run.sh
#   on-gpu.sh [OPTION...] --prepare[=FILE.tar.xz]
#       only writes an archive (kit.tar.xz), which a machine with a GPU runs without
#       LLVM and without a compiler:
#           tar xf kit.tar.xz && kit/run.sh
#   --build=DIR     the build folder
#   --arch=sm_NN    the GPU (sm_90a)
#   --cpu=NAME      the CPU whose results are compared (x86-64-v3)
#   --only=LIBRARY:FUNCTION,...
#                   compiles these functions; without --only, all of all libraries
#   --opt-level=N   of posenc-compile
#
# The kernels are machine code of the ptxas whose code test/sass checks, if the tests
# have installed it, or of another one (docs/abi.md), and PTX. Without any, the driver
# compiles them when a library is opened, which can take longer than the steps of run.sh
# have. One library, driver.so, is always compiled by the driver. Kernels of attention
# are compiled for sm_80, too, to compare them on the same GPU.
set -eu

sources=$(cd "$(dirname "$0")" && pwd)
build=$sources/../../build
arch=sm_90a
cpu=
only=
optimize=
archive=
while [ $# -gt 0 ]; do
  case $1 in
    --build=*) build=${1#*=} ;;
    --arch=*) arch=${1#*=} ;;
    --cpu=*) cpu=${1#*=} ;;
    --only=?*:?*) only="$only ${1#*=}" ;;
    --opt-level=*) optimize=$1 ;;
    --prepare) archive=kit.tar.xz ;;
    --prepare=?*.tar.xz) archive=${1#*=} ;;
    --prepare=*)
      echo "expected the name of a file .tar.xz: $1" >&2
      exit 2 ;;
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
if [ -n "$archive" ] && [ $# -gt 0 ]; then
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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$work/kit
mkdir "$folder"

# compile MODULE LIBRARY FUNCTIONS OPTION...: FUNCTIONS are those without --only, '' for
# all. --threads=none: the machine with the GPU may not have libgomp.
compile() {
  module=$1
  library=$2
  functions=$3
  shift 3
  if [ -n "$only" ]; then
    functions=
    for word in $only; do
      [ "${word%%:*}" != "$library" ] || functions=${word#*:}
    done
    [ -n "$functions" ] || return 0
  fi
  # Functions without a GPU kernel are results on the other machine.
  "$build/bin/posenc-compile" "$module" -o "$folder/$library.so" --threads=none \
    ${functions:+--kernels="$functions"} ${optimize:+"$optimize"} "$@" \
    2> "$work/log" || { cat "$work/log" >&2; exit 1; }
}
inputs=$sources/../Target/Inputs
runs=$sources/../Run/Inputs
compile "$inputs/gpu-forms.mlir" forms '' --target="$cpu" --target="cuda:$arch"
compile "$sources/Inputs/cases.mlir" cases '' --target="$cpu" --target="cuda:$arch"
# The calls are in comments of these modules.
for module in "$inputs/attention-forms.mlir" "$runs/decode-forms.mlir" \
  "$runs/latent-forms.mlir" "$inputs/wide-attention.mlir" "$runs/paged-forms.mlir" \
  "$inputs/append-forms.mlir" "$inputs/row-forms.mlir"
do
  name=$(basename "$module" .mlir)
  compile "$module" "$name" '' --target="$cpu" --target="cuda:$arch"
  [ ! -f "$folder/$name.so" ] || cp "$module" "$folder/"
done
compile "$sources/Inputs/attention.mlir" attention '' --target="cuda:$arch"
compile "$sources/Inputs/attention.mlir" attention-sm_80 full_128,causal_128 \
  --target=cuda:sm_80
compile "$sources/Inputs/serving.mlir" serving '' --target="cuda:$arch"
(
  POSENC_PTXAS=off
  export POSENC_PTXAS
  compile "$inputs/attention-forms.mlir" driver full_bf16,causal_bf16,head_80 \
    --target="$cpu" --target="cuda:$arch"
)
cp "$sources/cases.txt" "$sources/attention.txt" "$sources/attention-sm_80.txt" \
  "$sources/serving.txt" "$sources/run.sh" "$sources/torch-rotary.py" \
  "$sources/torch-attention.py" "$sources/torch-serving.py" "$sources/kernel_library.py" \
  "$build/test/hardware/posenc-on-gpu" "$folder/"
chmod +x "$folder/run.sh" "$folder/posenc-on-gpu"
# Other machines may have no room for debug information.
! command -v strip > /dev/null || strip "$folder/posenc-on-gpu"

if [ -n "$archive" ]; then
  tar -C "$work" -cf - kit | xz -9 > "$archive"
  size=$(wc -c < "$archive")
  glibc=
  if command -v objdump > /dev/null; then
    glibc=$(objdump -T "$folder"/*.so "$folder/posenc-on-gpu" |
      grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2 -n | tail -n 1)
  fi
  echo "prepared $archive: $size bytes${glibc:+, for $glibc or newer}"
  echo "run: tar xf $(basename "$archive") && kit/run.sh"
  if [ "$size" -ge 20000000 ]; then
    echo "the archive has 20 MB or more" >&2
    exit 1
  fi
  exit 0
fi
code=0
"$folder/run.sh" --out="$PWD/on-gpu" "$@" || code=$?
exit $code
