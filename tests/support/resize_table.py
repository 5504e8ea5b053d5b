#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes resize_table.h: what the reference implementation of the Python package onnx gives for Resize.

    python3 resize_table.py > resize_table.h        # needs onnx and numpy
"""
import numpy
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_half_pixel_for_nn", "tf_crop_and_resize"]
MODES = ["nearest", "linear", "cubic"]
ROI = [0.1, -0.2, 0.8, 1.1]


def cases():
    """(mode, coordinates, nearest, exclude_outside, antialias, source shape, scales); the resized sizes are whole:
    the reference takes a fraction's part along where onnxruntime does not"""
    for coordinates in ("half_pixel", "align_corners", "asymmetric"):
        for nearest in range(4):
            yield "nearest", coordinates, nearest, 0, 0, (3, 6), (2.0, 1.5)
    yield "nearest", "half_pixel_symmetric", 0, 0, 0, (4, 4), (2.0, 0.5)
    yield "nearest", "tf_crop_and_resize", 0, 0, 0, (4, 4), (1.5, 1.25)
    for mode in ("linear", "cubic"):
        for coordinates in COORDINATES:
            if coordinates == "tf_half_pixel_for_nn":
                continue
            yield mode, coordinates, 0, 0, 0, (4, 4), (1.5, 1.75)
            yield mode, coordinates, 0, 0, 0, (5, 8), (0.6, 0.375)
    yield "cubic", "half_pixel", 0, 1, 0, (4, 4), (1.5, 1.25)
    for mode in ("linear", "cubic"):
        for exclude in (0, 1):
            yield mode, "half_pixel", 0, exclude, 1, (8, 16), (0.625, 0.3125)
        yield mode, "half_pixel", 0, 0, 1, (4, 8), (1.5, 0.75)


def result(mode, coordinates, nearest, exclude, antialias, shape, scales):
    values = (numpy.arange(numpy.prod(shape)) * 37 % 101 / 8 - 5).astype(numpy.float32).reshape(shape)
    crop = coordinates == "tf_crop_and_resize"
    attributes = dict(mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=NEAREST[nearest],
                      exclude_outside=exclude, extrapolation_value=10.0, cubic_coeff_a=-0.6)
    if antialias:
        attributes["antialias"] = 1
    node = helper.make_node("Resize", ["x", "roi", "scales"], ["y"], **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "resize", [info("x", 1, shape), info("roi", 1, [4]), info("scales", 1, [2])], [info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    roi = numpy.array(ROI if crop else [0, 0, 1, 1], numpy.float32)
    inputs = {"x": values, "roi": roi, "scales": numpy.array(scales, numpy.float32)}
    return ReferenceEvaluator(model).run(None, inputs)[0]


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print(f"/* Written by resize_table.py with onnx {onnx.__version__}. */\n/* clang-format off */")
    numbers, rows = [], []
    for case in cases():
        mode, coordinates, nearest, exclude, antialias, shape, scales = case
        values = result(*case)
        rows.append(f"    {{{MODES.index(mode)}, {COORDINATES.index(coordinates)}, {nearest}, {exclude}, {antialias}, "
                    f"{{{shape[0]}, {shape[1]}}}, {{{values.shape[0]}, {values.shape[1]}}}, "
                    f"{{{scales[0]}f, {scales[1]}f}}, {len(numbers)}}},")
        numbers += [f"{value:.7g}" for value in values.flatten()]
    lines = [", ".join(numbers[i:i + 10]) for i in range(0, len(numbers), 10)]
    print("static const double resize_results[] = {\n    " + ",\n    ".join(lines) + "};")
    print("/* mode, coordinates, nearest, exclude_outside, antialias, sizes of source and result, scales, first result */")
    print("static const resize_case resize_cases[] = {\n" + "\n".join(rows) + "\n};\n/* clang-format on */")


if __name__ == "__main__":
    main()
