# ===- _torch_export.py - programs of torch.export --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.torch.compile_exported`: programs of torch.export through torch-mlir."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree

from ._compile import compile
from ._errors import Error
from ._kernels import Kernels

_FUNCTION = "main"


def _import_torch_mlir():
    try:
        from torch_mlir import fx
        from torch_mlir.extras import fx_decomp_util, fx_importer
    except ImportError as error:
        raise Error("compile_exported needs the package torch-mlir, which imports "
                    f"programs of torch.export: pip install torch-mlir ({error})") from None
    return fx, fx_decomp_util, fx_importer


class _Frozen:
    """What torch-mlir's importer reads of a program. Buffers that are not persistent have
    their values in `constants`, where the importer does not look for buffers."""

    def __init__(self, program: ExportedProgram, held: Sequence[str]):
        signature = program.graph_signature

        def select(names: Mapping[str, str]) -> dict[str, str]:
            return {key: name for key, name in names.items() if key not in held}

        # The caller returns constants, which are no tensors.
        output = program.graph.output_node()
        output.args = (tuple(value for value in output.args[0]
                             if isinstance(value, torch.fx.Node)),)
        self.graph = program.graph
        self.constants = program.constants
        self.state_dict = {**program.constants, **program.state_dict}
        self.graph_signature = types.SimpleNamespace(
            inputs_to_parameters=select(signature.inputs_to_parameters),
            inputs_to_buffers=select(signature.inputs_to_buffers),
            inputs_to_lifted_tensor_constants=select(
                signature.inputs_to_lifted_tensor_constants))


def _collect_state(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Returns the parameters and buffers by the names of their placeholders, in the
    order of the graph's inputs."""
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
             **signature.inputs_to_lifted_tensor_constants}
    values = {**program.constants, **program.state_dict}
    return {node.name: values[names[node.name]] for node in program.graph.nodes
            if node.op == "placeholder" and node.name in names}


def _check(program: ExportedProgram) -> None:
    signature = program.graph_signature
    changed = [*signature.buffers_to_mutate.values(),
               *signature.user_inputs_to_mutate.values()]
    if changed:
        raise Error(f"the program writes to '{changed[0]}': compile_exported supports "
                    "programs without changes in place; return the new value instead")
    for node in program.graph.nodes:
        if node.op == "placeholder" and isinstance(
                node.meta.get("val"), (torch.SymInt, torch.SymFloat)):
            raise Error(f"the input '{node.name}' is a number that is not constant: make "
                        "it a tensor")


def _decompose(program: ExportedProgram, decompositions) -> ExportedProgram:
    # torch-mlir lowers the approximation of GELU by tanh with an error of 1e-4.
    table = {**decompositions.get_decomposition_table(),
             **torch._decomp.get_decompositions([torch.ops.aten.gelu.default])}
    if program.range_constraints:
        # Views of dynamic sizes, into which these are decomposed, are given wrong static
        # sizes by torch-mlir (20261001): ?x?x64 becomes ?x1x64.
        for operator in (torch.ops.aten.linear.default, torch.ops.aten.matmul.default):
            table.pop(operator, None)
    return program.run_decompositions(table)


def _write_linalg(program: ExportedProgram, constant_limit: int,
                  ) -> tuple[str, list[torch.Tensor]]:
    """Returns the module, and the parameters that its function takes first."""
    fx, decompositions, importer = _import_torch_mlir()
    # Writes in place are known after the decomposition.
    program = _decompose(program, decompositions)
    _check(program)
    held = {name: value for name, value in _collect_state(program).items()
            if value.numel() * value.element_size() > constant_limit}
    context = fx.ir.Context()
    fx.torch_d.register_dialect(context)
    imported = importer.FxImporter(context=context)
    try:
        imported.import_frozen_program(_Frozen(program, list(held)), func_name=_FUNCTION)
        module = fx._module_lowering(False, False, fx.OutputType.LINALG_ON_TENSORS,
                                     imported.module)
    except Exception as error:  # Of torch-mlir, which has no class for all of them.
        lines = [line for line in str(error).splitlines() if line.strip()]
        message = next((line for line in lines if "error:" in line),
                       lines[0] if lines else type(error).__name__)
        raise Error(f"torch-mlir cannot lower the program: {message[:400]}") from error
    text = module.operation.get_asm(large_elements_limit=None, enable_debug_info=False)
    return text, [value.detach().cpu().contiguous() for value in held.values()]


class ExportedFunction:
    """A compiled program of torch.export: called with its arguments, it returns its
    results.

    kernels: the kernels, with one function, `main`
    parameters: the tensors that `main` takes before the program's inputs
    """

    def __init__(self, program: ExportedProgram, kernels: Kernels,
                 parameters: Sequence[torch.Tensor]):
        signature = program.graph_signature
        self.kernels = kernels
        self.parameters = list(parameters)
        self._in_spec = program.call_spec.in_spec
        self._out_spec = program.call_spec.out_spec
        names = {node.name for node in program.graph.nodes if node.op == "placeholder"
                 and isinstance(node.meta.get("val"), torch.Tensor)}
        self._inputs = [None if name not in names else name
                        for name in signature.user_inputs]
        # Constants such as None are no results of the function.
        self._outputs = [spec.arg for spec in signature.output_specs]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        flat, spec = _pytree.tree_flatten((arguments, named))
        if spec != self._in_spec:
            raise Error(f"expected arguments of the structure {self._in_spec}, got {spec}")
        inputs = [value.detach() if isinstance(value, torch.Tensor) else value
                  for name, value in zip(self._inputs, flat) if name is not None]
        results = getattr(self.kernels, _FUNCTION)(*self.parameters, *inputs)
        tensors = iter(results if isinstance(results, (tuple, list)) else [results])
        return _pytree.tree_unflatten(
            [next(tensors) if isinstance(output, TensorArgument) else output.value
             for output in self._outputs], self._out_spec)


def compile_exported(exported: ExportedProgram, *, constant_limit: int = 16 << 20,
                     **options: Any) -> ExportedFunction:
    """Compiles a program of torch.export, with the kernels for its rotary embeddings and
    attention. Needs the package torch-mlir.

    exported: the program; it is not changed
    constant_limit: parameters and buffers of more bytes are arguments of the function,
        which the result holds; others are constants of its library
    options: those of `posenc.compile`

        exported = torch.export.export(model, (tokens,))
        function = posenc.torch.compile_exported(exported)
        logits = function(tokens)

    Sizes may be dynamic. Programs that write to their inputs or buffers are errors, and
    there are no derivatives.
    """
    if not isinstance(exported, ExportedProgram):
        raise TypeError("expected a torch.export.ExportedProgram, got "
                        f"{type(exported).__name__}")
    text, parameters = _write_linalg(exported, constant_limit)
    return ExportedFunction(exported, compile(text, **options), parameters)
