#!/bin/sh
#===- run.sh - runs the kernels that on-gpu.sh has prepared ----------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
#
#   run.sh [--call=A|B] [--out=DIR] [--steps=STEP,...] [--seconds=N] [--small]
#          [--no-torch] [--form-seconds=N]
#          [--cases=FILE] [--attention=FILE] [--serving=FILE]
#
# Checks and measures the kernels, and appends tables to DIR/table.md (./on-gpu), or
# table-A.md and table-B.md: whenever it is stopped, they have all results until then. The
# first call, A, takes 270 seconds at most, and the second, B, 360; without --call, all
# steps run in up to 630 seconds (--seconds).
#   A forms             each form of attention, caches and rows in a process of its own,
#                       those that may fail first: calls are close to the CPU's, and a
#                       row has the same bits in each batch and chunk
#     serving-times     times of decode, pages, ragged calls, MLA and caches of f8
#     sanitizers        compute-sanitizer on six small forms
#     attention-times   times of attention
#     bits              elementwise kernels return the bits of the CPU
#   B torch-serving     decode and ragged calls beside PyTorch's functions
#     torch-attention   attention beside PyTorch's functions
#     cycles            cycles of some cases, by ncu
#     driver            kernels that the driver has compiled
#     times             times of elementwise kernels: bench.json
#     torch             PyTorch's rotation
# A step ends when its time is over, and the steps after it still run. This is a failure,
# but not of steps whose tool is missing or optional. --small is for the fake driver.
# Exit codes: 0 success, 1 failure, 2 wrong option, 77 no GPU.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=$PWD/on-gpu
steps_a=forms,serving-times,sanitizers,attention-times,bits
steps_b=torch-serving,torch-attention,cycles,driver,times,torch
steps=$steps_a,$steps_b
table=table.md
seconds=
cases=$here/cases.txt
attention=$here/attention.txt
serving=$here/serving.txt
check_options=
bench_options=
each_options=
form_seconds=10
is_small=
has_torch=yes
for option in "$@"; do
  case $option in
    --call=A) steps=$steps_a table=table-A.md seconds=${seconds:-270} ;;
    --call=B) steps=$steps_b table=table-B.md seconds=${seconds:-360} ;;
    --out=*) out=${option#*=} ;;
    --steps=*)
      steps=${option#*=}
      for step in $(echo "$steps" | tr , ' '); do
        case ,$steps_a,$steps_b, in
          *,"$step",*) ;;
          *) echo "unknown step: $step" >&2; exit 2 ;;
        esac
      done ;;
    --cases=*) cases=${option#*=} ;;
    --attention=*) attention=${option#*=} ;;
    --serving=*) serving=${option#*=} ;;
    --seconds=*) seconds=${option#*=} ;;
    --form-seconds=*) form_seconds=${option#*=} ;;
    --small)
      is_small=yes
      check_options=--small
      bench_options="--seconds=0 --repetitions=5 --graph-launches=3"
      each_options="--seconds=0 --repetitions=1 --graph-launches=1" ;;
    --no-torch) has_torch= ;;
    *) echo "unknown option: $option" >&2; exit 2 ;;
  esac
done
mkdir -p "$out" || exit 1
table=$out/$table
rm -f "$table"
end=$(($(date +%s) + ${seconds:-630}))
program=$here/posenc-on-gpu

failed=
is_optional=
# note LINE...: prints lines and appends them to the table.
note() {
  printf '%s\n' "$@"
  printf '\n%s\n' "$@" >> "$table"
}
# at_most N: the seconds up to N that are left.
at_most() {
  left=$((end - $(date +%s)))
  [ "$left" -gt 0 ] || left=0
  [ "$left" -lt "$1" ] && echo "$left" || echo "$1"
}
# Reports a step that has no time.
end_late() {
  if [ -n "$is_optional" ]; then
    note "skipped: $1"
  else
    note "failed: $1"
    failed=yes
  fi
}
# run NAME SECONDS COMMAND...: limits the time of a command. A missing GPU ends all.
run() {
  name=$1
  limit=$(at_most "$2")
  shift 2
  if [ "$limit" -le 0 ]; then
    end_late "$name: no time was left"
    return 1
  fi
  code=0
  "$program" limit "$limit" "$@" || code=$?
  case $code in
    0) ;;
    77)
      [ -n "$is_optional" ] || exit 77
      note "skipped: $name" ;;
    124) end_late "$name took longer than $limit seconds" ;;
    *)
      note "failed: $name, exit code $code"
      failed=yes ;;
  esac
  return "$code"
}
# begin STEP TITLE: whether the step is selected.
begin() {
  case ,$steps, in
    *,"$1",*)
      echo "== $2"
      printf '\n## %s\n' "$2" >> "$table" ;;
    *) return 1 ;;
  esac
}
# Whether Python can run a step that compares with PyTorch.
has_python() {
  if [ -z "$has_torch" ]; then
    note "skipped: --no-torch was given"
  elif ! command -v python3 > /dev/null; then
    note "skipped: python3 was not found"
  else
    return 0
  fi
  return 1
}
# find_tool NAME: prints the path of a tool of the CUDA toolkit.
find_tool() {
  folder=${CUDA_HOME:-/usr/local/cuda}/bin
  command -v "$1" || { [ -x "$folder/$1" ] && echo "$folder/$1"; }
}
# each KIND SECONDS FILE...: runs the forms of libraries.
each() {
  kind=$1
  time=$(at_most "$2")
  shift 2
  # shellcheck disable=SC2086
  run "forms ($kind)" $((time + 20)) "$program" "$kind" "$@" --each \
    --form-seconds="$form_seconds" --total-seconds="$time" --table="$table" \
    --first=head_80,head_96,head_72,values_wider,causal_bf16,one,pages_16,heads_16 \
    $check_options
}

"$program" limit 20 "$program" device --table="$table"
code=$?
[ "$code" -ne 77 ] || exit 77
[ "$code" -eq 0 ] || { note "failed: no answer of the device, exit code $code"; exit 1; }
if smi=$(find_tool nvidia-smi); then
  note "$("$program" limit 10 "$smi" --format=csv,noheader \
    --query-gpu=driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu)"
else
  note "skipped: nvidia-smi was not found"
fi

if begin forms "forms in processes of their own"; then
  forms_end=$(($(date +%s) + 165))
  # of_forms N: the seconds of the step that are left, N at most.
  of_forms() {
    left=$((forms_end - $(date +%s)))
    [ "$left" -gt 0 ] || left=0
    [ "$left" -lt "$1" ] && echo "$left" || echo "$1"
  }
  [ ! -f "$here/attention-forms.so" ] ||
    each strides "$(of_forms 40)" "$here/attention-forms.so" \
      ${is_small:+--form=no-keys-heads-of-stride-0,descending}
  set --
  for name in attention-forms decode-forms latent-forms paged-forms wide-attention \
    append-forms row-forms; do
    [ ! -f "$here/$name.so" ] || set -- "$@" "$here/$name.so" "$here/$name.mlir"
  done
  [ $# -eq 0 ] || each calls "$(of_forms 140)" "$@"
  [ ! -f "$here/attention-forms.so" ] ||
    each rows "$(of_forms 50)" "$here/attention-forms.so"
fi
if begin serving-times "times of decode and serving"; then
  time=$(at_most 40)
  # shellcheck disable=SC2086
  run "the measurement of serving" $((time + 15)) "$program" bench \
    "$here/serving.so" "$serving" --each --form-seconds=15 --total-seconds="$time" \
    --table="$table" $each_options
fi
if begin sanitizers compute-sanitizer; then
  if sanitizer=$(find_tool compute-sanitizer); then
    sanitizer_end=$(($(date +%s) + 60))
    printf '\n| tool | form | exit code | |\n|---|---|---:|---|\n' >> "$table"
    for tool in memcheck racecheck synccheck; do
      for form in attention-forms:full_bf16 attention-forms:causal_bf16 \
        attention-forms:documents decode-forms:one attention-forms:ragged_pages \
        latent-forms:heads_16; do
        library=$here/${form%%:*}
        # A kit may have some of the forms only.
        [ -f "$library.so" ] || continue
        "$program" calls "$library.so" "$library.mlir" --list |
          grep -qx "${form#*:}" || continue
        limit=$(at_most 20)
        if [ $((sanitizer_end - $(date +%s))) -le 0 ] || [ "$limit" -le 0 ]; then
          end_late "$tool: no time was left for $form"
          continue
        fi
        code=0
        printf '%s %s: ' "$tool" "$form"
        "$program" limit "$limit" "$sanitizer" --tool "$tool" --error-exitcode 9 \
          "$program" calls "$library.so" "$library.mlir" --form="${form#*:}" --calls=1 \
          $check_options > "$out/sanitizer.log" 2>&1 || code=$?
        line=$(grep SUMMARY "$out/sanitizer.log" || tail -n 1 "$out/sanitizer.log")
        echo "exit code $code: $line"
        echo "| $tool | $form | $code | $(echo "$line" | tr '|\n' '/ ') |" >> "$table"
        if [ "$code" -ne 0 ]; then
          cp "$out/sanitizer.log" "$out/$tool-${form#*:}.log"
          failed=yes
        fi
      done
    done
    rm -f "$out/sanitizer.log"
  else
    note "skipped: compute-sanitizer was not found"
  fi
fi
if begin attention-times "times of attention"; then
  for name in attention attention-sm_80; do
    list=$here/$name.txt
    [ "$name" != attention ] || list=$attention
    [ -f "$here/$name.so" ] || continue
    [ "$name" = attention ] || [ -z "$is_small" ] || continue
    time=$(at_most 40)
    # shellcheck disable=SC2086
    run "the measurement of $name" $((time + 15)) "$program" bench "$here/$name.so" \
      "$list" --each --form-seconds=15 --total-seconds="$time" --table="$table" \
      $each_options
  done
fi
if begin bits bits; then
  for name in forms cases; do
    [ -f "$here/$name.so" ] || continue
    # All in one process, as most faults are in others. After one, each form has its own.
    # shellcheck disable=SC2086
    if "$program" limit "$(at_most 20)" "$program" bits "$here/$name.so" \
      $check_options > "$out/bits.log" 2>&1; then
      note "$name: $(grep -c "with the CPU's bits" "$out/bits.log") functions with the bits of the CPU"
    else
      note "$name: $(tail -n 1 "$out/bits.log")"
      each bits 60 "$here/$name.so"
    fi
    rm -f "$out/bits.log"
  done
fi

is_optional=yes
if begin torch-serving "decode and serving beside PyTorch" && has_python; then
  run "PyTorch's decode" 110 python3 "$here/torch-serving.py" "$table" \
    "$here/serving.so" "$serving" --seconds="$(at_most 90)"
fi
if begin torch-attention "attention beside PyTorch" && has_python; then
  run "PyTorch's attention" 120 python3 "$here/torch-attention.py" \
    "$table" "$here/attention.so" "$attention" \
    "$here/attention-sm_80.so" "$here/attention-sm_80.txt" --seconds="$(at_most 100)"
fi
if begin cycles "cycles by ncu"; then
  if ncu=$(find_tool ncu); then
    cycles_end=$(($(date +%s) + 60))
    printf '\n| case | kernel | least cycles |\n|---|---|---:|\n' >> "$table"
    # Without '#' comments and graphs: ncu does not see the kernels of a graph.
    for list in "$attention" "$serving"; do
      library=$here/attention.so
      [ "$list" != "$serving" ] || library=$here/serving.so
      for name in $(grep -v '^#' "$list" | grep -v ' graph' |
        grep -E 'x(2048|8192)x(16x128|32\+8x128|128\+1x576) ' | cut -d' ' -f1 |
        head -n 6); do
        [ $((cycles_end - $(date +%s))) -gt 0 ] || {
          note "skipped: no time was left for $name"
          break
        }
        "$program" limit "$(at_most 15)" "$ncu" --clock-control none --csv \
          --metrics sm__cycles_elapsed.max "$program" bench "$library" "$list" \
          --case="$name" --seconds=0 --repetitions=1 > "$out/ncu.log" 2>&1
        awk -F '","' -v name="$name" '
          /sm__cycles_elapsed.max/ {
            value = $NF; gsub(/[",]/, "", value); value += 0
            if (!($5 in least) || value < least[$5]) least[$5] = value
          }
          END { for (kernel in least) print "| " name " | " kernel " | " least[kernel] " |" }
        ' "$out/ncu.log" > "$out/ncu.rows"
        [ -s "$out/ncu.rows" ] ||
          echo "| $name | $(tail -n 1 "$out/ncu.log" | tr '|' '/') | |" > "$out/ncu.rows"
        cat "$out/ncu.rows"
        cat "$out/ncu.rows" >> "$table"
      done
    done
    rm -f "$out/ncu.log" "$out/ncu.rows"
  else
    note "skipped: ncu was not found"
  fi
fi
is_optional=
if begin driver "compiled by the driver" && [ -f "$here/driver.so" ]; then
  # shellcheck disable=SC2086
  run "forms that the driver compiles" 70 "$program" calls "$here/driver.so" \
    "$here/attention-forms.mlir" --each --form-seconds=30 --total-seconds="$(at_most 60)" \
    --table="$table" $check_options
fi
if begin times "times of elementwise kernels"; then
  # shellcheck disable=SC2086
  run "the measurement" 40 "$program" bench "$here/cases.so" "$cases" \
    --json="$out/bench.json" --table="$table" $bench_options
fi
is_optional=yes
if begin torch PyTorch && has_python; then
  if [ ! -f "$out/bench.json" ]; then
    note "skipped: there is no bench.json to compare with"
  else
    run "PyTorch's measurement" 40 python3 "$here/torch-rotary.py" \
      "$out/bench.json" "$table"
  fi
fi

if [ -n "$failed" ]; then
  note "failed"
  exit 1
fi
note "passed: $table"
