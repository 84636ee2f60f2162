#!/usr/bin/env python3
# ===- interrupt.py - posenc-tune stops on signals -------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#

# interrupt.py PROGRAM INPUT: expects that posenc-tune exits with an error and
# removes its temporary folder.

import os
import signal
import subprocess
import sys
import time

program, source = sys.argv[1:]
folder = os.path.abspath("interrupted")
os.mkdir(folder)

# SIGTERM during the first compilation, SIGINT after the first line of output.
for number, when in ((signal.SIGTERM, "folder"), (signal.SIGINT, "line")):
    process = subprocess.Popen(
        [program, source, "-o", "stopped.json", "--function=small"],
        env={**os.environ, "TMPDIR": folder}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if when == "line":
        process.stdout.readline()
    while not os.listdir(folder):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 1, (number, process.returncode, errors)
    assert "error: interrupted; 'stopped.json' was not written" in errors, errors
    assert not os.listdir(folder), os.listdir(folder)
    assert not os.path.exists("stopped.json")
