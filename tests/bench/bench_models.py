# SPDX-License-Identifier: Apache-2.0
"""The models that are compared, their inputs, and copies with a free batch dimension."""

import collections
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODELS = os.path.join(ROOT, "models")
BATCH = "N"
CALIBRATION = 8

Case = collections.namedtuple("Case", "source shape batches precision", defaults=["f32"])

# source: a file of models/, or None where build_models.py builds it, or the case that this one is the int8 copy of.
# shape: of the only input, with None where the batch stands. precision: f32, int8, or bf16: what OpenVINO chooses itself.
PICTURE = (None, 3, 224, 224)
TOKENS = (None, 128)
CASES = {
    "resnet50": Case("filled/resnet50.onnx", PICTURE, (1, 8, 32)),
    "mobilenetv2": Case(None, PICTURE, (1, 8, 32)),
    "minilm": Case(None, TOKENS, (1, 8)),
    "ppocr_det": Case("ch_PP-OCRv4_det_infer.onnx", (None, 3, 640, 640), (1,)),
    "ppocr_rec": Case("ch_PP-OCRv4_rec_infer.onnx", (None, 3, 48, 320), (1,)),
    "resnet18": Case(None, PICTURE, (1, 8)),
    "squeezenet1_1": Case(None, PICTURE, (1, 8)),
    "vit_tiny": Case(None, PICTURE, (1, 8)),
    "resnet50_int8": Case("resnet50", PICTURE, (1, 8), "int8"),
    "minilm_int8": Case("minilm", TOKENS, (1, 8), "int8"),
    "resnet50_bf16": Case("filled/resnet50.onnx", PICTURE, (1,), "bf16"),
    "mobilenetv2_bf16": Case("mobilenetv2", PICTURE, (1,), "bf16"),
    "minilm_bf16": Case("minilm", TOKENS, (1,), "bf16"),
}
MORE_CASES = {
    "squeezenet": Case("filled/squeezenet.onnx", PICTURE, (1, 8)),
    "densenet121": Case("filled/densenet121.onnx", PICTURE, (1, 8)),
    "shufflenet": Case("filled/shufflenet.onnx", PICTURE, (1, 8)),
    "inception_v1": Case("filled/inception_v1.onnx", PICTURE, (1, 8)),
    "magika": Case("magika.onnx", (None, 2048), (1,)),
}
ALL_CASES = {**CASES, **MORE_CASES}


def only_input(model):
    """The one input that is no initialiser."""
    known = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in known]
    if len(inputs) != 1:
        raise ValueError(f"{len(inputs)} inputs")
    return inputs[0]


def make_input(model, shape, seed=7):
    """Floats uniform in [0,1), integers from 0 to 255; the same each time."""
    generator = np.random.default_rng(seed)
    dtype = helper.tensor_dtype_to_np_dtype(only_input(model).type.tensor_type.elem_type)
    if np.issubdtype(dtype, np.integer):
        return generator.integers(0, 256, shape).astype(dtype)
    return generator.random(shape).astype(dtype)


def shapes_of(model):
    """{value: shape} as far as inference knows them."""
    inferred = onnx.shape_inference.infer_shapes(model)
    values = [*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output]
    return {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in values}


def free_reshape(model, node, shapes):
    """A Reshape to [1, ...] of a value with batch 1 takes its first size from that value instead: 0 says so."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    constant = constants.get(node.input[1])
    if constant is None or shapes.get(node.input[0], [0])[0] != 1:
        return
    shape = numpy_helper.to_array(constant).copy()
    if shape.size == 0 or shape[0] != 1:
        return
    shape[0] = 0
    name = f"{constant.name}/{node.output[0]}/free"
    model.graph.initializer.append(numpy_helper.from_array(shape, name))
    node.input[1] = name


def free_batch(model):
    """Changes a model of batch 1 in place into one of any batch; only what is exact for every batch."""
    shapes = shapes_of(model)
    for node in model.graph.node:
        if node.op_type == "Reshape":
            free_reshape(model, node, shapes)
    del model.graph.value_info[:]
    for value in [only_input(model), *model.graph.output]:
        value.type.tensor_type.shape.dim[0].ClearField("dim_value")
        value.type.tensor_type.shape.dim[0].dim_param = BATCH
    used = {name for node in model.graph.node for name in node.input}
    for kept in (model.graph.initializer, model.graph.input):
        for value in [value for value in kept if value.name not in used]:
            kept.remove(value)
    return model


def has_free_batch(model):
    dim = only_input(model).type.tensor_type.shape.dim[0]
    return dim.WhichOneof("value") != "dim_value" or dim.dim_value <= 0


def check_copy(original, copy, shape, run):
    """Two inputs at once must give what each gives alone; `run` is run(path, array) -> arrays."""
    model = onnx.load(copy)
    pair = make_input(model, (2, *shape[1:]))
    both = run(copy, pair)
    for index in range(2):
        for got, expected in zip(both, run(original, pair[index:index + 1])):
            if not np.allclose(got[index:index + 1], expected, rtol=1e-3, atol=1e-4):
                raise ValueError(f"{copy} gives another result than {original}")


def free_copy(name, path, folder, shape, run):
    """The model itself where its batch is free."""
    if has_free_batch(onnx.load(path)):
        return path
    copy = os.path.join(folder, f"{name}_free.onnx")
    if not os.path.exists(copy):
        onnx.save(free_batch(onnx.load(path)), copy + ".part")
        check_copy(path, copy + ".part", shape, run)
        os.replace(copy + ".part", copy)
    return copy


def make_int8(name, folder, run):
    """Picture models with ranges from random pictures; the others' are found while they run."""
    import quantize_models

    source, shape = ALL_CASES[name].source, ALL_CASES[name].shape
    path = free_copy(source, find(source, folder, run), folder, shape, run)
    output = os.path.join(folder, f"{name}.onnx")
    if os.path.exists(output):
        return output
    if shape == PICTURE:
        model = onnx.load(path)
        arrays = [make_input(model, (1, *shape[1:]), seed) for seed in range(CALIBRATION)]
        quantize_models.static(path, output + ".part", only_input(model).name, arrays)
    else:
        quantize_models.dynamic(path, output + ".part")
    os.replace(output + ".part", output)
    return output


def find(name, folder, run):
    """The model's file, which is made where it must be."""
    case = ALL_CASES[name]
    if case.source is None:
        import build_models

        return build_models.build(name, os.path.join(folder, f"{name}.onnx"))
    if case.source in ALL_CASES:
        return make_int8(name, folder, run) if case.precision == "int8" else find(case.source, folder, run)
    return os.path.join(MODELS, case.source)


def prepare(name, batch, folder, run):
    """(path of the model, path of the input as .npy) for a case; all engines get the same files."""
    shape = ALL_CASES[name].shape
    path = find(name, folder, run)
    if batch != 1:
        path = free_copy(name, path, folder, shape, run)
    data = os.path.join(folder, f"{name}_{batch}.npy")
    np.save(data, make_input(onnx.load(path), (batch, *shape[1:])))
    return path, data


def save_trivial(path):
    """x -> Relu -> y: the least that an engine can be asked for."""
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "trivial",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
