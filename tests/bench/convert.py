# SPDX-License-Identifier: Apache-2.0
"""Makes other engines' files of an ONNX model: convert.py mnn|ncnn MODEL SHAPE TYPE OUTPUT, in a process of its own."""

import os
import subprocess
import sys
import tempfile

import numpy as np

ENDINGS = {"mnn": ".mnn", "ncnn": ".ncnn.param"}
refusals = {}


def model_for(engine, model, data, folder):
    """The file that the engine reads; made unless it is there. RuntimeError says why it cannot be."""
    if engine not in ENDINGS:
        return model
    output = os.path.join(folder, os.path.basename(model).removesuffix(".onnx") + ENDINGS[engine])
    if os.path.exists(output) and os.path.getmtime(output) >= os.path.getmtime(model):
        return output
    if output not in refusals:
        array = np.load(data, mmap_mode="r")
        shape = ",".join(map(str, (1, *array.shape[1:])))
        with tempfile.TemporaryDirectory() as place:  # converters leave files where they run
            done = subprocess.run([sys.executable, os.path.abspath(__file__), engine, model, shape, str(array.dtype), output],
                                  capture_output=True, text=True, errors="replace", check=False, cwd=place)
        said = done.stderr.strip() or f"the converter ended with {done.returncode}"
        refusals[output] = said.splitlines()[-1].strip() if done.returncode else ""
    if refusals[output]:
        raise RuntimeError(f"not converted: {refusals[output]}")
    return output


def to_mnn(model, output):
    """Through the module that the command mnnconvert wraps: the command reports its use to the vendor."""
    import MNN  # noqa: F401
    import _tools

    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", model, "--MNNModel", output, "--bizCode", "runnel"])
    if not os.path.exists(output):
        raise ValueError("MNN's converter wrote nothing")


def to_ncnn(model, shape, dtype, output):
    import importlib.util

    tool = os.path.join(os.path.dirname(importlib.util.find_spec("pnnx").origin), "pnnx")
    kind = {"float32": "f32", "int64": "i64", "int32": "i32"}[dtype]
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(output))) as folder:
        os.symlink(os.path.abspath(model), os.path.join(folder, "m.onnx"))
        done = subprocess.run([tool, "m.onnx", f"inputshape=[{shape}]{kind}", "fp16=0", "device=cpu"], cwd=folder,
                              capture_output=True, text=True, check=False)
        made = [os.path.join(folder, "m.ncnn" + ending) for ending in (".param", ".bin")]
        if done.returncode or not all(map(os.path.exists, made)):
            raise ValueError(f"pnnx ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        check_layers(made[0])
        os.replace(made[1], output.removesuffix(".param") + ".bin")
        os.replace(made[0], output)


def check_layers(path):
    """What pnnx could not express keeps a name with a dot or two colons, which ncnn refuses."""
    with open(path, encoding="utf-8") as file:
        kinds = {line.split()[0] for line in file.readlines()[2:] if line.strip()}
    left = sorted(kind for kind in kinds if not kind.isalnum())
    if left:
        raise ValueError(f"ncnn has no {', '.join(left)}")


def main():
    kind, model, shape, dtype, output = sys.argv[1:]
    try:
        if kind == "mnn":
            to_mnn(model, output)
        else:
            to_ncnn(model, shape, dtype, output)
    except ValueError as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
