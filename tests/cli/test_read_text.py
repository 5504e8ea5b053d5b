# SPDX-License-Identifier: Apache-2.0
"""examples/read-text on its sample, on a new picture of random words in each run, and on bad input.

RUNNEL_BUILD      folder with the program (default build/release)
RUNNEL_MODELS     folder with the networks (default models/)
RUNNEL_TEST_SEED  seed of the random words; without it the clock gives one, which is printed
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import onnx
from onnx import TensorProto, helper
from PIL import Image

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROGRAM = os.path.join(os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release")), "read-text")
MODELS = os.environ.get("RUNNEL_MODELS", os.path.join(ROOT, "models"))
EXAMPLE = os.path.join(ROOT, "examples", "read-text")
DRAW = os.path.join(EXAMPLE, "draw_sample.py")
DETECTOR, RECOGNISER = "ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx"
RED = (230, 30, 60)


def edit_distance(a, b):
    """The fewest insertions, deletions and replacements of characters that make b of a."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


class ReadTextTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        for name in (DETECTOR, RECOGNISER):
            if not os.path.exists(os.path.join(MODELS, name)):
                raise unittest.SkipTest(f"{name} is not in {MODELS}: run tools/fetch-models")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="read-text-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def read(self, picture, *options):
        """The texts and the confidences that the program prints."""
        done = self.run_program(picture, "--models", MODELS, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^device: .+\n$")
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        return [text for text, _ in rows], [float(confidence) for _, confidence in rows]

    def refuse(self, *arguments, code=1, sentence=""):
        """Runs what must fail with one sentence; what was on stderr before it is the device's name."""
        done = self.run_program(*arguments)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("device: ")]
        self.assertEqual((done.returncode, done.stdout, len(lines)), (code, "", 1), done.stderr)
        self.assertRegex(lines[0], "^read-text: .*" + sentence)

    def assert_read(self, texts, expected):
        wrong = edit_distance("\n".join(texts), "\n".join(expected))
        total = len("\n".join(expected))
        print(f"{total - wrong} of {total} characters are right")
        self.assertLessEqual(wrong, 0.05 * total, f"read {texts}\nof   {expected}")

    def test_sample(self):
        texts, confidences = self.read(os.path.join(EXAMPLE, "sample.png"))
        self.assertEqual(texts, read_lines(os.path.join(EXAMPLE, "sample.txt")))
        for confidence in confidences:
            self.assertTrue(0.9 <= confidence <= 1, confidence)

    def test_sample_is_what_the_script_draws(self):
        subprocess.run([sys.executable, DRAW, self.path("again.png")], check=True)
        with Image.open(self.path("again.png")) as again, Image.open(os.path.join(EXAMPLE, "sample.png")) as sample:
            self.assertEqual(again.tobytes(), sample.tobytes())
        self.assertEqual(read_lines(self.path("again.txt")), read_lines(os.path.join(EXAMPLE, "sample.txt")))

    def test_random_words(self):
        seed = int(os.environ.get("RUNNEL_TEST_SEED", time.time_ns() % 2**32))
        print(f"RUNNEL_TEST_SEED={seed}")
        subprocess.run([sys.executable, DRAW, "--random", str(seed), self.path("words.png")], check=True)
        expected = read_lines(self.path("words.txt"))
        self.assert_read(self.read(self.path("words.png"))[0], expected)
        with Image.open(self.path("words.png")) as picture:
            picture.save(self.path("words.jpg"), quality=85)
        self.assert_read(self.read(self.path("words.jpg"))[0], expected)

    def test_kinds_of_pictures(self):
        expected = read_lines(os.path.join(EXAMPLE, "sample.txt"))
        with Image.open(os.path.join(EXAMPLE, "sample.png")) as picture:
            picture.convert("L").save(self.path("grey.jpg"), quality=90)
            picture.convert("P").save(self.path("palette.png"))
            picture.convert("RGBA").save(self.path("alpha.png"))
        for name in ("grey.jpg", "palette.png", "alpha.png"):
            with self.subTest(name):
                self.assert_read(self.read(self.path(name))[0], expected)

    def test_shapes(self):
        """A flat strip, and a picture without text in it, down to one pixel."""
        with Image.open(os.path.join(EXAMPLE, "sample.png")) as picture:
            picture.crop((0, 95, 960, 137)).save(self.path("strip.png"))
        self.assert_read(self.read(self.path("strip.png"))[0], read_lines(os.path.join(EXAMPLE, "sample.txt"))[1:2])
        for size in ((200, 100), (1, 1), (900, 3)):
            Image.new("RGB", size, (90, 120, 60)).save(self.path("empty.png"))
            self.assertEqual(self.read(self.path("empty.png")), ([], []))

    def test_boxes(self):
        out = self.path("boxes.png")
        texts, _ = self.read(os.path.join(EXAMPLE, "sample.png"), "--boxes", out)
        with Image.open(out) as boxes, Image.open(os.path.join(EXAMPLE, "sample.png")) as sample:
            self.assertEqual(boxes.size, sample.size)
            drawn = [p for p, q in zip(boxes.convert("RGB").get_flattened_data(), sample.get_flattened_data()) if p != q]
            column = [boxes.getpixel((200, y))[:3] == RED for y in range(boxes.height)]
        self.assertEqual(set(drawn), {RED})
        edges = sum(now and not before for before, now in zip([False] + column, column))
        self.assertEqual(edges, 2 * len(texts))

    def test_confidence(self):
        self.assertEqual(self.read(os.path.join(EXAMPLE, "sample.png"), "--min-confidence", "1.01"), ([], []))

    def test_bad_pictures(self):
        with Image.open(os.path.join(EXAMPLE, "sample.png")) as picture:
            picture.save(self.path("whole.jpg"))
        with open(self.path("whole.jpg"), "rb") as file:
            jpeg = file.read()
        with open(os.path.join(EXAMPLE, "sample.png"), "rb") as file:
            png = file.read()
        cases = {
            "text.png": (b"no picture\n", "neither a PNG nor a JPEG"),
            "empty.png": (b"", "neither a PNG nor a JPEG"),
            "half.png": (png[:len(png) // 2], "not a PNG picture that can be read: "),
            "start.png": (png[:20], "not a PNG picture that can be read: "),
            "noise.png": (png[:40] + bytes(range(200)), "not a PNG picture that can be read: "),
            "half.jpg": (jpeg[:len(jpeg) // 2], "not a JPEG picture that can be read: Premature end"),
            "start.jpg": (jpeg[:100], "not a JPEG picture that can be read: "),
            "noise.jpg": (b"\xff\xd8" + bytes(range(200)), "not a JPEG picture that can be read: "),
        }
        for name, (data, sentence) in cases.items():
            with self.subTest(name):
                self.refuse(self.write(name, data), "--models", MODELS, sentence=f"{name}: {sentence}")
        self.refuse(self.path("none.png"), "--models", MODELS, sentence="none.png: No such file")
        self.refuse(self.folder, "--models", MODELS, sentence="Is a directory")

    def test_bad_models(self):
        picture = os.path.join(EXAMPLE, "sample.png")
        self.refuse(picture, "--models", self.path("none"), sentence=f"none/{DETECTOR}")
        shutil.copy(os.path.join(MODELS, DETECTOR), self.folder)
        self.refuse(picture, "--models", self.folder, sentence=RECOGNISER)
        shutil.copy(os.path.join(MODELS, DETECTOR), self.path(RECOGNISER))
        self.refuse(picture, "--models", self.folder, sentence="does not say which characters")
        shutil.copy(os.path.join(MODELS, RECOGNISER), self.folder)
        self.write(DETECTOR, b"not a model")
        self.refuse(picture, "--models", self.folder, sentence=DETECTOR)

    def save_identity(self, name, **metadata):
        """A sound model, but no network that reads."""
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 3, "h", "w"]) for n in "xy")
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, metadata)
        onnx.save(model, self.path(name))

    def test_models_of_another_kind(self):
        picture = os.path.join(EXAMPLE, "sample.png")
        self.save_identity(DETECTOR)
        shutil.copy(os.path.join(MODELS, RECOGNISER), self.folder)
        self.refuse(picture, "--models", self.folder, sentence="detector's output is not a map of its input")
        shutil.copy(os.path.join(MODELS, DETECTOR), self.folder)
        self.save_identity(RECOGNISER, character="a\nb")
        self.refuse(picture, "--models", self.folder, sentence="recogniser's output is not one row of classes")

    def test_bad_outputs_and_devices(self):
        picture = os.path.join(EXAMPLE, "sample.png")
        self.refuse(picture, "--models", MODELS, "--device", "no such device", sentence="no such device")
        done = self.run_program(picture, "--models", MODELS, "--boxes", self.path("none/boxes.png"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\nread-text: .*none/boxes\.png: .+\n$")

    def test_usage(self):
        self.refuse(code=2, sentence="usage: ")
        self.refuse("one.png", "two.png", code=2, sentence="usage: ")
        self.refuse("one.png", "--min-confidence", "much", code=2, sentence="usage: ")
        self.assertEqual(self.run_program("one.png", "--wrong").returncode, 2)
        self.assertRegex(self.run_program("--help").stdout, "^usage: ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
