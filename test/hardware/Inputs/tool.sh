#!/bin/sh
#===- tool.sh - stands for compute-sanitizer, ncu and nvidia-smi -----------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

# Runs the program among its arguments, and prints what the tool of its name would.

case $0 in
  *nvidia-smi)
    echo "580.0, 1980 MHz"
    exit ;;
esac
while [ "${1##*/}" != posenc-on-gpu ]; do
  shift
done
case $0 in
  *ncu) echo '"0","1","posenc-on-gpu","host","kernel","","","","sm__cycles_elapsed.max","cycle","1,234"' ;;
  *) "$@" && echo "======== ERROR SUMMARY: 0 errors" ;;
esac
