#!/bin/sh
#===- run.sh - runs the kernels that on-gpu.sh has prepared ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
#   run.sh [--out=DIR] [--steps=STEP,...] [--cases=FILE] [--attention=FILE]
#          [--seconds=N] [--small] [--no-torch]
#
# Checks and measures the kernels, and writes tables to DIR (./on-gpu). The steps:
#   bits              elementwise kernels return the bits of the CPU
#   attention         attention is close to the CPU's, and a row has the same bits in
#                     each batch and chunk
#   times             times of elementwise kernels: bench.json
#   attention-times   times of attention: attention.json
#   torch-attention   attention and PyTorch's in turn
#   torch             PyTorch's rotation
# All of them take at most 150 seconds (--seconds): a step ends when its time is over,
# and the steps after it still run. This is a failure, but not of PyTorch's steps. --small
# is for the fake driver. Exit codes: 0 success, 1 failure, 2 wrong option, 77 no GPU.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=$PWD/on-gpu
steps=bits,attention,times,attention-times,torch-attention,torch
cases=$here/cases.txt
attention=$here/attention.txt
check_options=
bench_options=
attention_options=
seconds=150
has_torch=yes
for option in "$@"; do
  case $option in
    --out=*) out=${option#*=} ;;
    --steps=*)
      steps=${option#*=}
      for step in $(echo "$steps" | tr , ' '); do
        case $step in
          bits | attention | times | attention-times | torch-attention | torch) ;;
          *) echo "unknown step: $step" >&2; exit 2 ;;
        esac
      done ;;
    --cases=*) cases=${option#*=} ;;
    --attention=*) attention=${option#*=} ;;
    --seconds=*) seconds=${option#*=} ;;
    --small)
      check_options=--small
      bench_options="--seconds=0 --repetitions=5 --graph-launches=3"
      attention_options="--seconds=0 --repetitions=1" ;;
    --no-torch) has_torch= ;;
    *) echo "unknown option: $option" >&2; exit 2 ;;
  esac
done
mkdir -p "$out" || exit 1
rm -f "$out"/bench.json "$out"/attention*.json "$out"/*.md
end=$(($(date +%s) + seconds))

failed=
is_optional=
# Reports a step that has no time.
end_late() {
  if [ -n "$is_optional" ]; then
    echo "skipped: $1"
  else
    echo "failed: $1" >&2
    failed=yes
  fi
}
# run STEP SECONDS COMMAND...: limits the time of a command.
run() {
  name=$1
  limit=$2
  shift 2
  left=$((end - $(date +%s)))
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -le 0 ]; then
    end_late "$name: no time was left"
    return 1
  fi
  code=0
  if command -v timeout > /dev/null; then
    timeout -k 5 "$limit" "$@" || code=$?
  else
    "$@" || code=$?
  fi
  case $code in
    0 | 77) ;;
    124 | 137) end_late "$name took longer than $limit seconds" ;;
    *)
      echo "failed: $name, exit code $code" >&2
      failed=yes ;;
  esac
  return "$code"
}
# A step without a GPU ends all.
run_on_gpu() {
  run "$@"
  [ $? -eq 77 ] && exit 77
}
# begin STEP TITLE: whether the step is selected.
begin() {
  case ,$steps, in
    *,"$1",*) echo "== $2" ;;
    *) return 1 ;;
  esac
}
# Whether Python can run a step that compares with PyTorch.
has_python() {
  if [ -z "$has_torch" ]; then
    echo "skipped: --no-torch was given"
  elif ! command -v python3 > /dev/null; then
    echo "skipped: python3 was not found"
  else
    return 0
  fi
  return 1
}
# Seconds up to N that are left.
at_most() {
  left=$((end - $(date +%s)))
  [ "$left" -lt "$1" ] && echo "$left" || echo "$1"
}

if begin bits bits; then
  # shellcheck disable=SC2086
  run_on_gpu "the comparison with the CPU" 50 \
    "$here/posenc-on-gpu" check "$here/forms.so" "$here/cases.so" $check_options
fi
if begin attention attention; then
  set -- "$here/attention-forms.so" "$here/attention-forms.mlir"
  [ ! -f "$here/decode-forms.so" ] ||
    set -- "$@" "$here/decode-forms.so" "$here/decode-forms.mlir"
  # shellcheck disable=SC2086
  run_on_gpu "the comparison of attention" 50 "$here/posenc-on-gpu" attention "$@" \
    $check_options
fi
if begin times times; then
  # shellcheck disable=SC2086
  run_on_gpu "the measurement" 40 "$here/posenc-on-gpu" bench "$here/cases.so" \
    "$cases" --json="$out/bench.json" --table="$out/table.md" $bench_options
fi
if begin attention-times "times of attention"; then
  # shellcheck disable=SC2086
  run_on_gpu "the measurement of attention" 30 "$here/posenc-on-gpu" bench \
    "$here/attention.so" "$attention" --json="$out/attention.json" \
    --table="$out/attention.md" $attention_options
  if [ -z "$check_options" ]; then
    run_on_gpu "the measurement of attention for sm_80" 30 "$here/posenc-on-gpu" \
      bench "$here/attention-sm_80.so" "$here/attention-sm_80.txt" \
      --json="$out/attention-sm_80.json" --table="$out/attention-sm_80.md"
  fi
fi
is_optional=yes
if begin torch-attention "attention of PyTorch" && has_python; then
  run "PyTorch's attention" 80 python3 "$here/torch-attention.py" \
    "$out/torch-attention.md" "$here/attention.so" "$attention" \
    "$here/attention-sm_80.so" "$here/attention-sm_80.txt" \
    --seconds="$(at_most 60)"
fi
if begin torch PyTorch && has_python; then
  if [ ! -f "$out/bench.json" ]; then
    echo "skipped: there is no bench.json to compare with"
  else
    run "PyTorch's measurement" 40 python3 "$here/torch-rotary.py" \
      "$out/bench.json" "$out/torch.md"
  fi
fi

# One table of all.
for part in attention attention-sm_80 torch-attention torch; do
  [ ! -f "$out/$part.md" ] || cat "$out/$part.md" >> "$out/table.md"
done
if [ -n "$failed" ]; then
  echo "failed"
  exit 1
fi
echo "passed: $out/table.md"
