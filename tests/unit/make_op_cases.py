#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fixtures/op_cases.bin: single nodes with inputs and the outputs that they must have; and
tests/fixtures/op_schemas.txt: what onnx says each version of each operator takes.

    python tests/unit/make_op_cases.py            needs onnx, onnxruntime, numpy (tools/requirements.txt)

Three sources: the node cases of the onnx package (expected values are onnx's own), and nodes of older opsets and of
seeded random attributes and shapes (op_cases_old.py), whose expected outputs come from onnxruntime, or where it has no
such kernel from onnx's reference evaluator. The file is committed; tests read it with tests/support/op_cases.c, where
the format is described.
"""
import collections
import pathlib
import struct
import sys
import warnings

import numpy as np
import onnx
from onnx import helper

from op_cases_old import old_cases
from op_cases_run import expected_outputs

OPERATORS = set("""
    Abs Add And AveragePool BatchNormalization Cast CastLike Ceil Clip Concat ConstantOfShape Conv ConvTranspose Cos
    DepthToSpace Div Dropout Elu Equal Erf Exp Expand Flatten Floor Gather Gelu Gemm GlobalAveragePool GlobalMaxPool
    Greater GreaterOrEqual HardSigmoid HardSwish Identity InstanceNormalization IsNaN LRN LayerNormalization LeakyRelu
    Less LessOrEqual Log LogSoftmax MatMul Max MaxPool Mean Min Mod Mul Neg Not Or PRelu Pad Pow Range Reciprocal
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Relu Reshape Resize Round Selu Shape Sigmoid Sign Sin Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt
    Squeeze Sub Sum Tanh Tile Transpose Unsqueeze Upsample Where Xor""".split())
# Tensor work: the shapes are compared, the values are the device tests' business.
SHAPE_ONLY = set("""
    AveragePool BatchNormalization Conv ConvTranspose DepthToSpace Gemm GlobalAveragePool GlobalMaxPool
    InstanceNormalization LRN LayerNormalization LogSoftmax MatMul MaxPool Resize Softmax SpaceToDepth
    Upsample""".split())
TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}
OLDEST = 7  # operators that have not changed since are tested as of this opset
NEWEST = 28
TYPE_NAMES = dict(zip("float uint8 int8 uint16 int16 int32 int64 bool float16 double uint32 uint64 bfloat16".split(),
                      "FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 BOOL FLOAT16 DOUBLE UINT32 UINT64 BFLOAT16".split()))
VALUES_LIMIT = 1024  # elements, of evaluated tensors
SMALL = 64  # elements, of inputs of the others

Case = collections.namedtuple("Case", "name node opset inputs outputs")


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<H", len(raw)) + raw


def tensor(array, with_data):
    if array is None:
        return struct.pack("<B", 0)
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    out = struct.pack("<BB", code, array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
    data = np.ascontiguousarray(array).tobytes() if with_data else b""
    return out + struct.pack("<B", with_data) + data


def attribute(a):
    head = text(a.name) + struct.pack("<B", a.type)
    kind = onnx.AttributeProto
    if a.type == kind.FLOAT:
        return head + struct.pack("<f", a.f)
    if a.type == kind.INT:
        return head + struct.pack("<q", a.i)
    if a.type == kind.STRING:
        return head + text(a.s)
    if a.type == kind.TENSOR:
        return head + tensor(onnx.numpy_helper.to_array(a.t), True)
    if a.type == kind.FLOATS:
        return head + struct.pack(f"<I{len(a.floats)}f", len(a.floats), *a.floats)
    if a.type == kind.INTS:
        return head + struct.pack(f"<I{len(a.ints)}q", len(a.ints), *a.ints)
    raise ValueError(f"attribute {a.name} of type {a.type}")


def pack(case):
    shape_only = case.node.op_type in SHAPE_ONLY
    limit = SMALL if shape_only else VALUES_LIMIT
    everything = [x for x in case.inputs + case.outputs if x is not None]
    whole = not shape_only and all(x.size <= VALUES_LIMIT for x in everything)
    out = text(case.name) + text(case.node.op_type)
    out += struct.pack("<B", case.opset)
    out += struct.pack("<HHH", len(case.node.attribute), len(case.inputs), len(case.outputs))
    out += b"".join(attribute(a) for a in case.node.attribute)
    for x in case.inputs:
        out += tensor(x, x is not None and (whole or x.size <= min(limit, SMALL)))
    for x in case.outputs:
        out += tensor(x, x is not None and whole)
    return out


def as_array(value):
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def arrays_of(node, names, graph_values, values):
    """The data set's arrays in the order of the node's inputs or outputs, None where one is left out."""
    by_name = {v.name: as_array(x) for v, x in zip(graph_values, values)}
    return [by_name[name] if name else None for name in names]


def reason_to_leave_out(arrays):
    for x in arrays:
        if x is None:
            continue
        if not isinstance(x, np.ndarray):
            return "sequence or optional"
        try:
            code = helper.np_dtype_to_tensor_dtype(x.dtype)
        except KeyError:
            return f"type {x.dtype}"
        if code not in TYPES:
            return "type " + onnx.TensorProto.DataType.Name(code)
    return None


def node_cases(left_out):
    from onnx.backend.test.loader import load_model_tests

    for test in load_model_tests(kind="node"):
        model = test.model
        if len(model.graph.node) != 1 or model.graph.node[0].op_type not in OPERATORS or model.graph.node[0].domain:
            continue
        node = model.graph.node[0]
        opset = max([OLDEST] + [o.version for o in model.opset_import if not o.domain])
        inputs, outputs = test.data_sets[0]
        if any(a.name == "to" and a.i not in TYPES for a in node.attribute):
            left_out.append((test.name, "Cast to a type that runnel does not have"))
            continue
        try:
            inputs = arrays_of(node, node.input, model.graph.input, inputs)
            outputs = arrays_of(node, node.output, model.graph.output, outputs)
        except KeyError as error:
            left_out.append((test.name, f"no value for {error}"))
            continue
        reason = reason_to_leave_out(inputs + outputs)
        if reason:
            left_out.append((test.name, reason))
            continue
        yield Case(test.name, node, opset, inputs, outputs)


def made_cases(left_out):
    for name, node, opset, inputs in old_cases():
        outputs = expected_outputs(node, opset, inputs)
        if outputs is None:
            left_out.append((name, "no reference that runs it"))
            continue
        yield Case(name, node, opset, inputs, outputs)


def schema_line(schema, until):
    """Operator, first and last opset, inputs, outputs, types of input 0 as bits of their ONNX codes, attributes."""
    most = [count if count < 2**31 - 1 else -1 for count in (schema.max_input, schema.max_output)]
    codes = [onnx.TensorProto.DataType.Value(name) for name in TYPE_NAMES.values()]
    names = dict(zip(TYPE_NAMES, codes))
    allowed = []
    if schema.inputs:
        kind = schema.inputs[0].type_str
        constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        allowed = constraints.get(kind, [kind])
    bits = sum(1 << names[t[7:-1]] for t in allowed if t[:7] == "tensor(" and t[7:-1] in names)
    attributes = ",".join(sorted(schema.attributes)) or "-"
    return (f"{schema.name} {max(schema.since_version, OLDEST)} {until} {schema.min_input} {most[0]} "
            f"{schema.min_output} {most[1]} {bits} {attributes}")


def schema_lines():
    versions = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain and schema.name in OPERATORS:
            versions[schema.name].append(schema)
    for name in sorted(versions):
        history = sorted(versions[name], key=lambda schema: schema.since_version)
        for schema, successor in zip(history, history[1:] + [None]):
            until = successor.since_version - 1 if successor else NEWEST
            if until >= OLDEST and not schema.deprecated:
                yield schema_line(schema, until)


def main():
    warnings.simplefilter("ignore")
    left_out = []
    cases = [*node_cases(left_out), *made_cases(left_out)]
    path = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "op_cases.bin"
    data = b"RNLCASE1" + struct.pack("<I", len(cases)) + b"".join(pack(case) for case in cases)
    path.write_bytes(data)
    path.with_name("op_schemas.txt").write_text("".join(f"{line}\n" for line in schema_lines()))
    print(f"{path}: {len(cases)} cases, {len(data)} bytes")
    for reason, count in sorted(collections.Counter(reason for _, reason in left_out).items()):
        print(f"  left out: {count} with {reason}")
    if "-v" in sys.argv:
        for name, reason in left_out:
            print(f"  {name}: {reason}")
    missing = OPERATORS - {case.node.op_type for case in cases}
    if missing:
        sys.exit(f"no case for {sorted(missing)}")


if __name__ == "__main__":
    main()
