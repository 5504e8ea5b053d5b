#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of fuzz_source: arrays of numpy's and small pictures.

Needs numpy and Pillow. Run it only to change the corpus: python tests/fuzz/make_corpus_source.py tests/fuzz/corpus_source
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "b1", ">f4", "c8"):
        np.save(folder / f"{kind.replace('>', 'big_')}.npy", np.ones((2, 3), kind))
    np.save(folder / "empty.npy", np.ones((0, 3), "f4"))
    np.save(folder / "scalar.npy", np.array(1, "f4"))
    np.save(folder / "fortran.npy", np.asfortranarray(np.ones((2, 3), "f4")))
    for version in ((2, 0), (3, 0)):
        with open(folder / f"version{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, np.ones((2, 3), "f4"), version)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK"):
        picture = Image.new(mode, (5, 4), 1)
        name = mode.replace(";", "_")
        if mode != "CMYK":
            picture.save(folder / f"{name}.png")
        if mode in ("L", "RGB", "CMYK"):
            picture.save(folder / f"{name}.jpg")
    Image.new("RGB", (5, 4), 1).save(folder / "progressive.jpg", progressive=True)


if __name__ == "__main__":
    main()
