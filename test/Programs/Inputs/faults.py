# ===- faults.py - checks that programs.py detects faults ------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""Compares the model with a copy of itself that has one seeded fault and whose
results are rounded to the result type, in place of a kernel."""

import contextlib
import functools

import numpy as np

import attention_model
import formats
import model
import phases
import programs


@contextlib.contextmanager
def changed(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def swapped_pair():
    correct = model.pair_elements

    def pair_elements(pairing, offset, dim):
        first, second = correct(pairing, offset, dim)
        first, second = first.copy(), second.copy()
        first[0], second[0] = second[0], first[0]
        return first, second
    return changed(model, "pair_elements", pair_elements)


def next_position():
    correct = phases.Frequencies.cos_sin
    return changed(phases.Frequencies, "cos_sin",
                   lambda self, positions: correct(self, np.asarray(positions) + 1))


def ties_to_odd():
    correct = formats.Format.round

    def round_(self, values):
        nearest, unit = correct(self, values), self.ulp(abs(np.asarray(values)))
        with np.errstate(invalid="ignore"):
            other = np.where(nearest > values, nearest - unit, nearest + unit)
        return np.where(self.is_tie(values), other, nearest)
    return changed(formats.Format, "round", round_)


def no_maximum():
    return changed(attention_model.Attention, "subtracts_max", False)


def wrong_scale():
    return changed(attention_model.Attention, "scale_fault", 1.001)


# Each fault, with the families that must detect it.
FAULTS = {
    "swapped lanes": (swapped_pair, ("rope", "append", "attention", "mixture")),
    "position off by one": (next_position, ("rope", "append", "mixture")),
    "ties to odd": (ties_to_odd, ("known-tables", "known-attention")),
    "no maximum": (no_maximum, ("attention",)),
    "wrong scale": (wrong_scale, ("attention",)),
}
COUNT, SEED = 6, 1


@functools.cache
def make_expected(family, number):
    return programs.make_function(family, SEED, number)


def is_reported(family, fault):
    """Returns whether a function has a wrong result. Without a fault, only the first
    function is made again, which gives the same one."""
    for number in range(COUNT):
        expected = make_expected(family, number)
        is_same = number and fault is contextlib.nullcontext
        with fault(), np.errstate(all="ignore"):
            faulty = expected if is_same else programs.make_function(family, SEED, number)
            results = [t.value.kind.encode(t.value.ref) for t in faulty.results]
        if any(programs.compare(result, tensor.value)
               for result, tensor in zip(results, expected.results)):
            return True
    return False


def main():
    families = sorted({name for _, names in FAULTS.values() for name in names})
    for family in families:
        assert not is_reported(family, contextlib.nullcontext), family
    print("none: not reported")
    for name, (fault, families) in FAULTS.items():
        missed = [family for family in families if not is_reported(family, fault)]
        print(f"{name}: " + (f"missed in {missed}" if missed else "reported"))


main()
