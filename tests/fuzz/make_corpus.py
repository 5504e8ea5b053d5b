#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of fuzz_onnx: small ONNX models that together use every field the reader knows.

Needs the package onnx. Run it only to change the corpus: python tests/fuzz/make_corpus.py tests/fuzz/corpus
"""

import sys
from pathlib import Path

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def info(name, shape=(2, 3), dtype=F32):
    return helper.make_tensor_value_info(name, dtype, shape)


def graph(nodes, initializers=(), inputs=("x",), outputs=("y",), **kinds):
    ends = [[end if not isinstance(end, str) else info(end) for end in group] for group in (inputs, outputs)]
    return helper.make_graph(list(nodes), "g", *ends, list(initializers), **kinds)


def model(body, opset=13, **kinds):
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **kinds)


def one_node(operator, attributes=None, opset=13, **kinds):
    return model(graph([helper.make_node(operator, ["x"], ["y"], name="n", **(attributes or {}))], **kinds), opset)


def with_tensor(tensor):
    return model(graph([helper.make_node("Add", ["x", tensor.name], ["y"])], [tensor]))


def tensors():
    """Every element type, raw and typed."""
    for code in range(1, 29):
        name = TensorProto.DataType.Name(code).lower()
        if code in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128) or code > 26:
            tensor = TensorProto(name="w", data_type=code, dims=[2], raw_data=b"abcd")
            yield f"foreign_{name}", with_tensor(tensor)
            continue
        values = np.array([0, 1, 1, 0, 1, 0])
        tensor = helper.make_tensor("w", code, [2, 3], values.tolist())
        yield f"typed_{name}", with_tensor(tensor)
        array = values.reshape(2, 3).astype(helper.tensor_dtype_to_np_dtype(code))
        raw = numpy_helper.from_array(array, "w")  # packed where elements have less than a byte
        yield f"raw_{name}", with_tensor(raw)
    yield "empty_tensor", with_tensor(TensorProto(name="w", data_type=F32, dims=[0, 3]))
    external = TensorProto(name="w", data_type=F32, dims=[1], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "4")):
        external.external_data.add(key=key, value=value)
    yield "external", with_tensor(external)


def constants():
    """Every form of a Constant's value."""
    tensor = numpy_helper.from_array(np.ones((2, 3), np.float32))
    for name, value in (("value", tensor), ("value_float", 1.0), ("value_floats", [1.0, 2.0, 3.0]), ("value_int", 1),
                        ("value_ints", [1, 2, 3]), ("value_string", "text"), ("value_strings", ["a", "b"])):
        nodes = [helper.make_node("Constant", [], ["c"], **{name: value}),
                 helper.make_node("Add", ["x", "c"], ["y"])]
        yield f"constant_{name}", model(graph(nodes))


def attributes():
    """Every attribute type, also those that are refused."""
    inner = graph([helper.make_node("Relu", ["x"], ["y"])], inputs=())
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.ones(1, np.float32), "s"),
                                       numpy_helper.from_array(np.zeros(1, np.int64)), [4])
    for name, value in (("f", 1.5), ("i", -3), ("s", "SAME_UPPER"), ("floats", [1.0, 2.0]), ("ints", [1, -2]),
                        ("strings", ["a", "b"]), ("t", numpy_helper.from_array(np.zeros(2, np.int64))), ("g", inner),
                        ("sparse", sparse)):
        yield f"attribute_{name}", one_node("Thing", {name: value})
    nested = model(graph([helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)]))
    yield "subgraphs", nested
    untyped = one_node("Softmax", {"axis": 1})
    untyped.graph.node[0].attribute[0].type = AttributeProto.UNDEFINED
    yield "attribute_untyped", untyped


def graphs():
    """Graphs with something particular about names, order, inputs or outputs."""
    relu, cast = helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Cast", ["a"], ["y"], to=I64)
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    yield "sorted", model(graph([relu, cast]))
    yield "unsorted", model(graph([cast, relu]))
    yield "initializer_as_input", model(graph([helper.make_node("Add", ["x", "w"], ["y"])], [weight], ("w", "x")))
    yield "initializer_as_output", model(graph([], [weight], ("x",), ("w", "x")))
    yield "free_dimensions", model(graph([helper.make_node("Relu", ["x"], ["y"])],
                                         inputs=[info("x", ["batch", None, -1, 0])], outputs=[info("y", None)]))
    yield "optional_inputs", model(graph([helper.make_node("Clip", ["x", "", "w", ""], ["y"])], [weight]))
    yield "identity", model(graph([helper.make_node("Identity", ["w"], ["v"]),
                                   helper.make_node("Add", ["x", "v"], ["y"])], [weight]))
    sequence = helper.make_tensor_sequence_value_info("x", F32, None)
    yield "sequence", model(graph([helper.make_node("SequenceLength", ["x"], ["y"])], inputs=[sequence]))
    yield "conv", model(graph([helper.make_node("Conv", ["x", "k", "w"], ["y"], kernel_shape=[3, 3], pads=[1] * 4,
                                                strides=[2, 2], auto_pad="NOTSET", group=1)],
                              [weight, numpy_helper.from_array(np.ones((3, 2, 3, 3), np.float32), "k")]))


def models():
    """What stands outside of the graph."""
    relu = graph([helper.make_node("Relu", ["x"], ["y"])])
    full = model(relu, producer_name="producer", producer_version="1.0", doc_string="documentation")
    helper.set_model_props(full, {"author": "nobody", "characters": "a\nb\n\u4e00"})
    yield "properties", full
    domains = [helper.make_opsetid(domain, 2) for domain in ("com.example", "ai.onnx.ml")]
    other = helper.make_model(graph([helper.make_node("Relu", ["x"], ["y"], domain="com.example")]), ir_version=8,
                              opset_imports=[helper.make_opsetid("ai.onnx", 21), *domains])
    yield "domains", other
    body = [helper.make_node("Relu", ["a"], ["b"])]
    function = helper.make_function("com.example", "F", ["a"], ["b"], body, [helper.make_opsetid("", 13)])
    caller = helper.make_model(graph([helper.make_node("F", ["x"], ["y"], domain="com.example", overload="o")]),
                               ir_version=8, functions=[function], opset_imports=[helper.make_opsetid("", 13), domains[0]])
    yield "functions", caller
    yield "newest", one_node("Gelu", {"approximate": "tanh"}, 26)
    yield "oldest", one_node("Upsample", {"mode": "nearest", "scales": [1.0, 2.0]}, 7)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for family in (tensors, constants, attributes, graphs, models):
        for name, proto in family():
            (folder / f"{name}.onnx").write_bytes(proto.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
