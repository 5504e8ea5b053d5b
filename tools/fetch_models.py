#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/fetch-models takes from where, and the check that it is what it should be. Standard library only."""
import concurrent.futures
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import zipfile

TOOLS = os.path.dirname(os.path.abspath(__file__))
RAPIDOCR = ("rapidocr_onnxruntime", "rapidocr_onnxruntime/models/")

# name: (file, SHA-256 of the file, wheel, path in the wheel)
FETCHED = {
    "ppocr-det": ("ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
                  RAPIDOCR[0], RAPIDOCR[1] + "ch_PP-OCRv4_det_infer.onnx"),
    "ppocr-rec": ("ch_PP-OCRv4_rec_infer.onnx", "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
                  RAPIDOCR[0], RAPIDOCR[1] + "ch_PP-OCRv4_rec_infer.onnx"),
    "ppocr-cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx",
                  "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
                  RAPIDOCR[0], RAPIDOCR[1] + "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    "magika": ("magika.onnx", "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
               "magika", "magika/models/standard_v3_3/model.onnx"),
}

# name: (SHA-256 of onnx's light file, SHA-256 of the filled file)
FILLED = {
    "resnet50": ("05e77a5c9c9ce0913f549a50d6ebaced5e0ff6817b61e09bae26e4c5bd9055e4",
                 "589880e170cf843c3d2e5e73d96f098284c91f21404f926a56be8f5db6974045"),
    "squeezenet": ("770b0f3c8623e18bf58b53754d710051b4c268248422142980a132bbe6dfe908",
                   "94daf4e78264872c1d9dbea2607d5ac126948e3d9c4b1db07e9894d06f8d3db8"),
    "densenet121": ("49ddb5712797d6164f1d864bedaad927de4f3909ad1b4ba390a92c2f8150e9f6",
                    "991eb6e20f1e2ffb4b3e1a034e8a1582afe7a1abd7d002147cfac19c480b00e9"),
    "inception_v1": ("bb7a0e6c370c709f5615eeef961b43628de13d0009ae4d6f4bfb0d5aea5d8270",
                     "b7da9e41159888fefa432a5b299cef78f85a7f2bc9587b9bc9291f7c7f7db6dd"),
    "inception_v2": ("224d77d55b26559a959db627c3f417a623fbf3b3000d25f0939327aa935d933f",
                     "0e8f63ada42c64a9830e2f4467e2889bacfa02a89c592294efb43d5803e342c4"),
    "shufflenet": ("c6f406d62be36d6b4572542c0950a2abd59f56237068793290680bba89fbafe5",
                   "b9116a04f20aeca510ef5f676eeb12ef2be91280ce72006ac6369cdd4d82038b"),
    "vgg19": ("8e547d732b3a3d66eeb8fa64a026adb994d3db552f0bbd52e436d06300d89afe",
              "177b134375ed9b00158850f8326309aa659061fadc7299137bab9eed351df66d"),
    "alexnet": ("2afa78cef5a88aed9d6e3d63fb92bd330c9177ac150d19189c6b3e7204ba0212",
                "0a155eb6621dedfdeb05c7126e2e45d8b48b6b2ea7f938683231bb9bd57cc713"),
    "zfnet512": ("6444bb58b98c3d14f551a3bdb83eea9e5db7e147790db3115c447e9c9a8338b0",
                 "fea60e9bceb1ce62dc8baa26db1fbb093b070321005b0b906cd8c5aba10e710c"),
}


def target(folder, name):
    """(path, SHA-256) of a model by name."""
    if name in FETCHED:
        return os.path.join(folder, FETCHED[name][0]), FETCHED[name][1]
    return os.path.join(folder, "filled", name + ".onnx"), FILLED[name][1]


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def is_right(path, expected):
    try:
        return sha256(path) == expected
    except OSError:
        return False


def missing(folder, names):
    """The names whose file is absent or wrong. Hashing lets go of the interpreter's lock, so threads help."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        right = pool.map(lambda name: is_right(*target(folder, name)), names)
        return [name for name, good in zip(names, right) if not good]


def extract(wheel, member, path, expected):
    partial = f"{path}.partial.{os.getpid()}"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(partial, "wb") as file:
            shutil.copyfileobj(source, file)
        if not is_right(partial, expected):
            raise ValueError(f"{member} of {os.path.basename(wheel)} is not the file that was expected")
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def requirement_of(wheel_name):
    """The pinned lines of tools/models.txt for one package."""
    with open(os.path.join(TOOLS, "models.txt"), encoding="utf-8") as file:
        lines = file.read().replace("\\\n", " ").splitlines()
    return next(line for line in lines if line.replace("-", "_").startswith(wheel_name + "=="))


def download(wheel_name, folder):
    """Downloads one package with pip, which checks its SHA-256 and draws the progress bar; returns the wheel's path."""
    listing = os.path.join(folder, wheel_name + ".txt")
    with open(listing, "w", encoding="utf-8") as file:
        file.write(requirement_of(wheel_name) + "\n")
    subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes",
                    "--platform=any", "--platform=manylinux_2_28_x86_64", "--disable-pip-version-check",
                    "--dest", folder, "--requirement", listing], check=True, stdin=subprocess.DEVNULL)
    return next(os.path.join(folder, name) for name in os.listdir(folder)
                if name.startswith(wheel_name + "-") and name.endswith(".whl"))


def remove_leftovers(folder):
    """Removes what runs that were killed left: files and folders called *.partial.PID whose process is gone."""
    for entry in [*os.scandir(folder), *os.scandir(os.path.join(folder, "filled"))]:
        pid = entry.name.rpartition(".partial.")[2]
        if ".partial." not in entry.name or os.path.exists(f"/proc/{pid}"):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def fetch(folder, names):
    scratch = os.path.join(folder, f"wheels.partial.{os.getpid()}")
    os.mkdir(scratch)
    wheels = {}
    try:
        for name in names:
            file, digest, wheel_name, member = FETCHED[name]
            if wheel_name not in wheels:
                wheels[wheel_name] = download(wheel_name, scratch)
            extract(wheels[wheel_name], member, os.path.join(folder, file), digest)
            print(f"{name}: {file}", flush=True)
    finally:
        shutil.rmtree(scratch)


def fill(folder, names):
    package = os.path.dirname(importlib.util.find_spec("onnx").origin)
    for name in names:
        light = "light_bvlc_alexnet.onnx" if name == "alexnet" else f"light_{name}.onnx"
        source = os.path.join(package, "backend/test/data/light", light)
        if not is_right(source, FILLED[name][0]):
            raise ValueError(f"{source} is not the file that was expected")
        path, digest = target(folder, name)
        subprocess.run([sys.executable, os.path.join(TOOLS, "fill_models.py"), source, path, "--name", name,
                        "--sha256", digest], check=True)


def main():
    action = sys.argv[1]
    if action == "names":
        print("\n".join([*FETCHED, *FILLED]))
        return
    folder, names = sys.argv[2], sys.argv[3:] or [*FETCHED, *FILLED]
    unknown = [name for name in names if name not in FETCHED and name not in FILLED]
    if unknown:
        sys.exit(f"fetch-models: no model is called '{unknown[0]}' (tools/fetch-models --list shows the names)")
    lacking = missing(folder, names)
    if action == "missing":
        for name in lacking:
            print("fetch" if name in FETCHED else "fill", name)
        return
    os.makedirs(os.path.join(folder, "filled"), exist_ok=True)
    remove_leftovers(folder)
    if action == "fetch":
        fetch(folder, [name for name in lacking if name in FETCHED])
    elif action == "fill":
        fill(folder, [name for name in lacking if name in FILLED])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a killed run cleans up as an interrupted one
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"fetch-models: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)  # the program has said why
    except KeyboardInterrupt:
        sys.exit(130)
