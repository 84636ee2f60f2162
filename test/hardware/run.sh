#!/bin/sh
#===- run.sh - runs the kernels that on-gpu.sh has prepared ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
#   run.sh [--out=DIR] [--cases=FILE] [--small] [--no-torch]
#
# Checks that the kernels return the bits of the CPU, measures them and, if PyTorch
# is installed, its rotation for comparison. Writes bench.json and table.md to DIR
# (./on-gpu). --small is for the fake driver. Exit codes: 0 success, 1 failure, 2
# wrong option, 77 no GPU.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=$PWD/on-gpu
cases=$here/cases.txt
check_options=
bench_options=
has_torch=yes
for option in "$@"; do
  case $option in
    --out=*) out=${option#*=} ;;
    --cases=*) cases=${option#*=} ;;
    --small)
      check_options=--small
      bench_options="--seconds=0 --repetitions=5 --graph-launches=3" ;;
    --no-torch) has_torch= ;;
    *) echo "unknown option: $option" >&2; exit 2 ;;
  esac
done
mkdir -p "$out" || exit 1
rm -f "$out/bench.json" "$out/table.md" "$out/torch.md"

# Limits the time of each step, so that the others still run.
limited() {
  seconds=$1
  shift
  if command -v timeout > /dev/null; then
    timeout -k 10 "$seconds" "$@"
  else
    "$@"
  fi
}

failed=
finish() {
  code=$2
  [ "$code" -eq 0 ] && return
  [ "$code" -eq 77 ] && exit 77
  case $code in
    124 | 137) echo "failed: $1 took too long" >&2 ;;
  esac
  echo "failed: $1, exit code $code" >&2
  failed=yes
}

echo "== bits"
# shellcheck disable=SC2086
limited 150 "$here/posenc-on-gpu" check "$here/forms.so" "$here/cases.so" \
  $check_options
finish "the comparison with the CPU" $?

echo "== times"
# shellcheck disable=SC2086
limited 240 "$here/posenc-on-gpu" bench "$here/cases.so" "$cases" \
  --json="$out/bench.json" --table="$out/table.md" $bench_options
finish "the measurement" $?

echo "== PyTorch"
if [ -z "$has_torch" ]; then
  echo "skipped: --no-torch was given"
elif ! command -v python3 > /dev/null; then
  echo "skipped: python3 was not found"
elif [ ! -f "$out/bench.json" ]; then
  echo "skipped: there is no bench.json to compare with"
else
  limited 180 python3 "$here/torch-rotary.py" "$out/bench.json" "$out/torch.md"
  code=$?
  if [ $code -eq 77 ]; then
    : # The script has printed the reason.
  else
    finish "PyTorch's measurement" $code
  fi
  # Appends the comparison to the table.
  [ ! -f "$out/torch.md" ] || cat "$out/torch.md" >> "$out/table.md"
fi

if [ -n "$failed" ]; then
  echo "failed"
  exit 1
fi
echo "passed: $out/table.md"
