# ===- check-rooms.py - whether each folder of the sources has a room ------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
#
# Usage: check-rooms.py SOURCE

import importlib.util
import os
import re
import sys

source = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "rooms", os.path.join(source, "test", "mutants", "rooms.py"))
rooms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rooms)

folders = {os.path.join(top, name)
           for top in ("lib", "runtime") for name in os.listdir(os.path.join(source, top))
           if any(file.endswith((".c", ".cpp"))
                  for _, _, files in os.walk(os.path.join(source, top, name))
                  for file in files)}
known = {room.folder for room in rooms.ROOMS}
if folders != known:
    sys.exit(f"without tests: {folders - known}, without sources: {known - folders}")
for room in rooms.ROOMS:
    for names in re.findall(r"Posenc :: \(([^ ']*)\)/", " ".join(room.tests)):
        for name in re.findall(r"[A-Z]\w+|install", names):
            if not os.path.isdir(os.path.join(source, "test", name)) and \
                    name not in names.split("/"):
                sys.exit(f"{room.folder}: no folder test/{name}")
