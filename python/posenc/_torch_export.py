# ===- _torch_export.py - programs of torch.export --------------------------===#
#
# Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------===#
"""`posenc.torch.compile_exported`: programs of torch.export through torch-mlir."""

from __future__ import annotations

import json
import os
import tempfile
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import TensorArgument
from torch.utils import _pytree

from ._compile import compile, compile_library
from ._errors import Error
from ._kernels import Kernels
from ._torch_constants import fold_uniform

_FUNCTION = "main"
# Smaller constants are no weights for posenc-compile.
_MIN_WEIGHT = 4096
# The types of tensors that may be weights, as the safetensors format names them.
_STORED = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16",
           torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
           torch.int16: "I16", torch.int8: "I8"}


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


def _get_first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0][:400] if lines else type(error).__name__


def _decompose(program: ExportedProgram, decompositions) -> ExportedProgram:
    # torch-mlir lowers the approximation of GELU by tanh with an error of 1e-4.
    table = {**decompositions.get_decomposition_table(),
             **torch._decomp.get_decompositions([torch.ops.aten.gelu.default])}
    if program.range_constraints:
        # Views of dynamic sizes, into which these are decomposed, are given wrong static
        # sizes by torch-mlir (20261001): ?x?x64 becomes ?x1x64.
        for operator in (torch.ops.aten.linear.default, torch.ops.aten.matmul.default):
            table.pop(operator, None)
    try:
        return program.run_decompositions(table)
    except Exception as error:  # Of PyTorch, such as PendingUnbackedSymbolNotFound.
        raise Error("PyTorch cannot decompose the program: "
                    f"{_get_first_line(error)}") from error


def _write_linalg(program: ExportedProgram, constant_limit: int,
                  types: Collection[torch.dtype] | None = None
                  ) -> tuple[str, dict[str, torch.Tensor]]:
    """Returns the module, and the parameters that its function takes first, by the names
    of these arguments: those with more bytes than the limit, and one of the types."""
    fx, decompositions, importer = _import_torch_mlir()
    # Writes in place are known after the decomposition.
    program = _decompose(program, decompositions)
    _check(program)
    state = _collect_state(program)
    held = {name: value for name, value in state.items()
            if value.numel() * value.element_size() > constant_limit
            and (types is None or value.dtype in types)}
    fold_uniform(program.graph, {name: value for name, value in state.items()
                                 if name not in held})
    context = fx.ir.Context()
    fx.torch_d.register_dialect(context)
    imported = importer.FxImporter(context=context)
    # torch-mlir prints its errors, and its exception does not have them.
    errors: list[str] = []

    def collect(diagnostic) -> bool:
        if diagnostic.severity == fx.ir.DiagnosticSeverity.ERROR:
            errors.append(diagnostic.message)
        return True

    handler = context.attach_diagnostic_handler(collect)
    try:
        imported.import_frozen_program(_Frozen(program, list(held)), func_name=_FUNCTION)
        module = fx._module_lowering(False, False, fx.OutputType.LINALG_ON_TENSORS,
                                     imported.module)
    except Exception as error:  # Of torch-mlir, which has no class for all of them.
        message = errors[0][:400] if errors else _get_first_line(error)
        raise Error(f"torch-mlir cannot lower the program: {message}") from error
    finally:
        handler.detach()
    context.allow_unregistered_dialects = True
    with context:
        function, = (one for one in module.body.operations
                     if "sym_name" in one.attributes
                     and one.attributes["sym_name"].value == _FUNCTION)
        function.attributes["arg_attrs"] = fx.ir.ArrayAttr.get(
            [fx.ir.DictAttr.get({"posenc.name": fx.ir.StringAttr.get(name)})
             if name else fx.ir.DictAttr.get({}) for name in
             [*held, *[""] * (len(function.attributes["function_type"].value.inputs) -
                              len(held))]])
        text = module.operation.get_asm(large_elements_limit=None, enable_debug_info=False)
    return text, {name: value.detach().cpu().resolve_neg().contiguous()
                  for name, value in held.items()}


def _write_tensors(path: str, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a file of the safetensors format, in which tensors that share their memory
    have the same bytes."""
    header: dict[str, Any] = {}
    places: dict[tuple[int, int], int] = {}
    written, end = [], 0
    for name, value in tensors.items():
        size = value.numel() * value.element_size()
        place = value.data_ptr(), size
        if place not in places:
            places[place] = end
            written.append(value)
            end += size
        header[name] = {"dtype": _STORED[value.dtype], "shape": list(value.shape),
                        "data_offsets": [places[place], places[place] + size]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for value in written:
            file.write(value.reshape(-1).view(torch.uint8).numpy().data)


def _freeze(text: str, tensors: Mapping[str, torch.Tensor], output: str | None,
            options: Mapping[str, Any]) -> Kernels:
    """Compiles a module to a library with a file of the weights that it is given."""
    with tempfile.TemporaryDirectory(prefix="posenc-") as folder:
        source = os.path.join(folder, "module.mlir")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        constants = os.path.join(folder, "constants.safetensors")
        _write_tensors(constants, tensors)
        # What is mapped needs no name.
        return compile_library(source, output or os.path.join(folder, "libmodel.so"),
                               constants, options)


def _drop_sign(tensor: torch.Tensor) -> torch.Tensor:
    """Returns unsigned bytes as signed ones, which the functions take: MLIR's integers have
    no sign."""
    return tensor.view(torch.int8) if tensor.dtype is torch.uint8 else tensor


def _find_shapes(program: ExportedProgram) -> dict[str, list[Any]]:
    """Returns the sizes of the inputs by name: integers, or expressions of symbols."""
    return {node.name: [size if isinstance(size, int) else size.node.expr
                        for size in node.meta["val"].shape]
            for node in program.graph.nodes if node.op == "placeholder"
            and isinstance(node.meta.get("val"), torch.Tensor)}


def _check_sizes(tensors: Sequence[tuple[str, torch.Tensor]],
                 shapes: Mapping[str, Sequence[Any]], ranges: Mapping[Any, Any]) -> None:
    """Checks what the export has assumed of sizes: torch-mlir makes sizes dynamic that the
    program needs to be constant, such as that of a dimension which is unbound."""
    symbols: dict[Any, int] = {}
    found = [(name, dim, expected, size) for name, tensor in tensors
             if len(shapes[name]) == tensor.dim()
             for dim, (expected, size) in enumerate(zip(shapes[name], tensor.shape))]
    for name, dim, expected, size in found:
        if getattr(expected, "is_Symbol", False):
            symbols.setdefault(expected, size)
            known = ranges.get(expected)
            # A lower bound of 2 says only that 0 and 1 were not tried.
            if known is not None and (size > known.upper or 2 < known.lower > size):
                raise Error(f"dimension {dim} of '{name}' is {size}, expected from "
                            f"{known.lower} to {known.upper}, as the program was exported")
    for name, dim, expected, size in found:
        if not isinstance(expected, int):
            expected = expected.xreplace(symbols)
            if getattr(expected, "free_symbols", None):
                continue
        if expected != size:
            raise Error(f"dimension {dim} of '{name}' is {size}, expected {expected}, as the "
                        "program was exported")


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
        self.parameters = [_drop_sign(tensor) for tensor in parameters]
        self._in_spec = program.call_spec.in_spec
        self._out_spec = program.call_spec.out_spec
        names = {node.name for node in program.graph.nodes if node.op == "placeholder"
                 and isinstance(node.meta.get("val"), torch.Tensor)}
        self._inputs = [None if name not in names else name
                        for name in signature.user_inputs]
        self._shapes = _find_shapes(program)
        self._ranges = dict(program.range_constraints)
        # Constants such as None are no results of the function.
        self._outputs = [spec.arg for spec in signature.output_specs]
        self._unsigned = {node.name for node in program.graph.nodes
                          if isinstance(node.meta.get("val"), torch.Tensor)
                          and node.meta["val"].dtype is torch.uint8}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        flat, spec = _pytree.tree_flatten((arguments, named))
        if spec != self._in_spec:
            raise Error(f"expected arguments of the structure {self._in_spec}, got {spec}")
        inputs = [_drop_sign(value.detach()) if isinstance(value, torch.Tensor) else value
                  for name, value in zip(self._inputs, flat) if name is not None]
        _check_sizes([(name, value) for name, value in zip(self._inputs, flat)
                      if name is not None and isinstance(value, torch.Tensor)],
                     self._shapes, self._ranges)
        results = getattr(self.kernels, _FUNCTION)(*self.parameters, *inputs)
        tensors = iter(results if isinstance(results, (tuple, list)) else [results])

        def get(output: Any) -> Any:
            if not isinstance(output, TensorArgument):
                return output.value
            tensor = next(tensors)
            return tensor.view(torch.uint8) if output.name in self._unsigned else tensor

        return _pytree.tree_unflatten([get(output) for output in self._outputs],
                                      self._out_spec)


def compile_exported(exported: ExportedProgram, *, constant_limit: int = 16 << 20,
                     freeze: bool | str | os.PathLike = False,
                     **options: Any) -> ExportedFunction:
    """Compiles a program of torch.export, with the kernels for its rotary embeddings and
    attention. Needs the package torch-mlir.

    exported: the program; it is not changed
    constant_limit: parameters and buffers of more bytes are arguments of the function,
        which the result holds; others are constants of its library. Not used with `freeze`
    freeze: parameters and buffers of 4 KiB and more are packed for the kernels while
        compiling, into a file of weights that is mapped; later changes of the module's
        parameters change nothing. A path is that of the library to write, `libX.so`, with
        `X.safetensors` beside it, for `posenc.load`. Needs the tool posenc-compile
    options: those of `posenc.compile`

        exported = torch.export.export(model, (tokens,))
        function = posenc.torch.compile_exported(exported)
        logits = function(tokens)

    Returns a function with the program's arguments and results. Sizes may be dynamic.
    Programs that write to their inputs or buffers are errors, and there are no derivatives.
    """
    if not isinstance(exported, ExportedProgram):
        raise TypeError("expected a torch.export.ExportedProgram, got "
                        f"{type(exported).__name__}")
    if freeze is False:
        text, held = _write_linalg(exported, constant_limit)
        return ExportedFunction(exported, compile(text, **options), list(held.values()))
    text, held = _write_linalg(exported, _MIN_WEIGHT - 1, _STORED)
    output = None if freeze is True else os.fsdecode(freeze)
    if output == "":
        raise Error("freeze: expected True, False, or the path of a library, libX.so; got an "
                    "empty path")
    return ExportedFunction(exported, _freeze(text, held, output, options), [])
