# SPDX-License-Identifier: Apache-2.0
"""Where inputs come from: numpy files, pictures, random values, zeros; names and shapes."""

import base64
import unittest
import zlib

import numpy as np
from onnx import helper

from command import CODES, CommandTest, png, resize

# 16x16 pixels of RGB (200, 100, 50), written by libjpeg at quality 95.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDA"
    "sKDAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgr/wAARCAAQ"
    "ABADASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAACP/EAB"
    "QRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJ4Armw//9k=")


class NumpyFileTest(CommandTest):
    def test_every_type(self):
        rng = np.random.default_rng(1)
        for name in CODES:
            model = self.identity(name, [2, 3, 5])
            array = (rng.random((2, 3, 5)) * 100).astype(name)
            got = self.outputs(model, "-i", "x=" + self.save("x.npy", array))["y"]
            self.assertEqual(got.dtype, array.dtype)
            np.testing.assert_array_equal(got, array)

    def test_extreme_values(self):
        for name in ("float32", "float64", "int64", "uint64", "int8"):
            limits = np.finfo(name) if name.startswith("f") else np.iinfo(name)
            array = np.array([limits.min, limits.max, 0, 1], name)
            got = self.outputs(self.identity(name, [4]), "-i", self.save("x.npy", array))["y"]
            np.testing.assert_array_equal(got, array)

    def test_nan_and_infinity(self):
        array = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
        got = self.outputs(self.identity("float32", [4]), "-i", self.save("x.npy", array))["y"]
        self.assertEqual(got.tobytes(), array.tobytes())

    def test_format_versions(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        model = self.identity("float32", [2, 3])
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.path("x.npy"), "wb") as file:
                np.lib.format.write_array(file, array, version)
            np.testing.assert_array_equal(self.outputs(model, "-i", self.path("x.npy"))["y"], array)

    def test_scalar(self):
        array = np.array(2.5, np.float32)
        got = self.outputs(self.identity("float32", []), "-i", self.save("x.npy", array))["y"]
        self.assertEqual((got.shape, got), ((), array))

    def test_refused(self):
        model = self.identity("float32", [2, 3])
        good = np.arange(6, dtype=np.float32).reshape(2, 3)

        def refuse(array, *parts):
            self.refuse("a.npy", *parts, arguments=["run", model, "-i", "x=" + self.save("a.npy", array)])

        refuse(np.asfortranarray(good), "Fortran order", "numpy.ascontiguousarray")
        refuse(good.astype(">f4"), "big-endian")
        refuse(good.astype(np.float64), "float64", "input 'x'", "float32")
        refuse(good.astype(np.complex64), "element type")
        refuse(good.astype("U3"), "element type")
        refuse(np.zeros(6, "f4,i4"), "element type")
        refuse(good.reshape(3, 2), "[3,2]", "input 'x'", "[2,3]")
        refuse(good.reshape(1, 2, 3), "[1,2,3]", "[2,3]")
        refuse(np.zeros((1,) * 9, np.float32), "more than 8 dimensions")

    def test_hostile(self):
        model = self.identity("float32", [2, 3])
        sound = open(self.save("a.npy", np.zeros((2, 3), np.float32)), "rb").read()

        def refuse(data):
            result = self.refuse("a.npy", arguments=["run", model, "-i", self.write("a.npy", data), "-o", "out"])
            self.assertEqual(result.stdout, "")
            self.assert_no_files(self.path("out"))

        for size in (0, 1, 6, 7, 9, 10, 50, 127, 128, len(sound) - 1):
            refuse(sound[:size])
        refuse(sound + b"\0")
        refuse(b"\x93NUMPY\x09\x00" + sound[8:])
        refuse(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + sound[10:])
        refuse(sound.replace(b"(2, 3), ", b"(-2,-3),"))
        refuse(sound.replace(b"(2, 3), ", b"(4**9,),"))
        for sizes in (b"9223372036854775807,3", b"4294967296,4294967296", b"99999999999999999999,"):
            header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + sizes + b"), }"
            refuse(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 24)

    def test_not_a_file(self):
        model = self.identity("float32", [2, 3])
        self.refuse("none.npy", "No such file", arguments=["run", model, "-i", "x=none.npy"])
        self.refuse(self.folder, "Is a directory", arguments=["run", model, "-i", "x=" + self.folder])
        self.refuse("/dev/zero", "not a regular file", arguments=["run", model, "-i", "x=/dev/zero"])
        self.write("text.npy", b"1 2 3\n")
        self.refuse("text.npy", "neither", arguments=["run", model, "-i", "x=text.npy"])


class GeneratedTest(CommandTest):
    def test_random(self):
        for name in CODES:
            model = self.identity(name, [50, 40])
            got = self.outputs(model, "-i", "x=random:7")["y"]
            self.assertEqual((got.dtype, got.shape), (np.dtype(name), (50, 40)))
            if name.startswith("float"):
                self.assertTrue(((got >= 0) & (got < 1)).all())
                self.assertGreater(len(np.unique(got)), 500)
            else:
                self.assertEqual(sorted(set(got.astype(int).flat)), [0, 1])
            self.assertTrue(0.45 < got.astype(np.float64).mean() < 0.55)

    def test_seeds(self):
        model = self.identity("float32", [100])
        plain = self.outputs(model, "-i", "random")["y"]
        np.testing.assert_array_equal(plain, self.outputs(model, "-i", "x=random:0")["y"])
        self.assertTrue((plain != self.outputs(model, "-i", "random:1")["y"]).any())
        self.outputs(model, "-i", "random:18446744073709551615")

    def test_random_is_splitmix64(self):
        """The values are documented: anyone can make them."""
        state, expected = 5, []
        for _ in range(8):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
            expected.append(((mixed ^ mixed >> 31) >> 40) / 2**24)
        got = self.outputs(self.identity("float32", [8]), "-i", "random:5")["y"]
        np.testing.assert_array_equal(got, np.array(expected, np.float32))

    def test_zeros(self):
        for name in ("float32", "int64", "bool"):
            got = self.outputs(self.identity(name, [3, 4]), "-i", "x=zeros")["y"]
            np.testing.assert_array_equal(got, np.zeros((3, 4), name))

    def test_not_given(self):
        model = self.identity("float32", ["N", 4])
        result = self.succeed("run", model, "-o", "out")
        self.assertEqual(result.lines[1], "input x: not given, random:0 float32 [1,4]")
        np.testing.assert_array_equal(np.load(self.path("out", "y.npy")),
                                      self.outputs(model, "-i", "x=random:0")["y"])
        self.assertNotIn("not given", self.succeed("run", model, "-i", "x=random:0").stdout)

    def test_free_dimensions(self):
        model = self.identity("float32", ["batch", 3, None, "width"])
        self.assertEqual(self.outputs(model)["y"].shape, (1, 3, 1, 1))
        self.assertEqual(self.outputs(model, "--shape", "x=2x3x4x5")["y"].shape, (2, 3, 4, 5))
        self.assertEqual(self.outputs(model, "--shape", "2x3x4x5", "-i", "zeros")["y"].shape, (2, 3, 4, 5))
        array = np.ones((2, 3, 1, 7), np.float32)
        self.assertEqual(self.outputs(model, "-i", self.save("a.npy", array))["y"].shape, (2, 3, 1, 7))
        self.assertEqual(self.outputs(model, "-i", self.save("a.npy", array), "--shape", "x=2x3x1x7")["y"].shape,
                         (2, 3, 1, 7))

    def test_wrong_shapes(self):
        model = self.identity("float32", ["batch", 3, None])
        self.refuse("--shape [2,4,5]", "'x'", "[batch,3,?]", arguments=["run", model, "--shape", "x=2x4x5"])
        self.refuse("--shape [3]", "[batch,3,?]", arguments=["run", model, "--shape", "x=3"])
        self.refuse("no input 'z'", "'x'", arguments=["run", model, "--shape", "z=1x3x5"])
        self.save("a.npy", np.zeros((1, 3, 2), np.float32))
        self.refuse("a.npy", "[1,3,2]", "[1,3,5]", arguments=["run", model, "-i", "a.npy", "--shape", "x=1x3x5"])
        self.refuse("input 'x'", "too large", arguments=["run", model, "--shape", "1099511627776x3x1099511627776"])
        self.refuse("input 'x'", "no memory", arguments=["run", model, "--shape", "1099511627776x3x1"])


class NameTest(CommandTest):
    def test_several_inputs(self):
        model = self.sum_of(["a", "b"], [[2, 3], [2, 3]])
        one = self.save("one.npy", np.ones((2, 3), np.float32))
        two = self.save("two.npy", np.full((2, 3), 2, np.float32))
        got = self.outputs(model, "-i", "b=" + two, "-i", "a=" + one)["y"]
        np.testing.assert_array_equal(got, np.full((2, 3), 3, np.float32))
        self.refuse("say which input", "'a', 'b'", arguments=["run", model, "-i", one])
        self.refuse("no input 'c'", "'a', 'b'", arguments=["run", model, "-i", "c=" + one])
        self.refuse("say which input", arguments=["run", model, "--shape", "2x3"])

    def test_wrong_name_of_one(self):
        model = self.relu()
        self.refuse("no input 'z'", "'x'", arguments=["run", model, "-i", "z=zeros"])
        self.refuse("no input 'z'", "'x'", arguments=["run", model, "-i", "z=none.npy"])

    def test_file_with_equals_sign(self):
        array = np.arange(4, dtype=np.float32).reshape(1, 4)
        np.testing.assert_array_equal(self.outputs(self.relu(), "-i", self.save("z=1.npy", array))["y"], array)

    def test_odd_names(self):
        """The model's names come first, even where they hold what separates names from sources."""
        names = ["serving:0", "a=b", "a", "/enc/x=zeros", "a b"]
        array = np.arange(4, dtype=np.float32)
        path = self.save("f.npy", array)
        for name in names:
            other = "q"
            model = self.model([helper.make_node("Sub", [name, other], ["y"])],
                               [(name, "float32", [4]), (other, "float32", [4])], [("y", "float32", [4])])
            got = self.outputs(model, "-i", f"{name}={path}", "-i", "q=zeros")["y"]
            np.testing.assert_array_equal(got, array)
        model = self.model([helper.make_node("Sub", ["a", "a=b"], ["y"])],
                           [("a", "float32", [4]), ("a=b", "float32", [4])], [("y", "float32", [4])])
        got = self.outputs(model, "-i", f"a=b={path}", "-i", "a=zeros")["y"]
        np.testing.assert_array_equal(got, -array)

    def test_shape_of_odd_name(self):
        model = self.model([helper.make_node("Relu", ["a=1x2"], ["y"])], [("a=1x2", "float32", ["n"])],
                           [("y", "float32", ["n"])])
        self.assertEqual(self.outputs(model, "--shape", "a=1x2=5")["y"].shape, (5,))


class PictureTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(4)
        self.model_path = self.identity("float32", [1, 3, None, None])

    def samples(self, *shape, dtype=np.uint8):
        return self.rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)

    def tensor(self, data, *options, model=None, name="p.png"):
        return self.outputs(model or self.model_path, "-i", "x=" + self.write(name, data), *options)["y"]

    def check(self, got, pixels, mean=(0, 0, 0), std=(1, 1, 1)):
        """`pixels`: [H,W,3] of 0 to 255, in the tensor's order of channels."""
        expected = ((pixels / 255 - np.array(mean)) / np.array(std)).transpose(2, 0, 1)[None]
        self.assertEqual(got.shape, expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)

    def test_plain(self):
        samples = self.samples(5, 7, 3)
        self.check(self.tensor(png(samples)), samples)

    def test_mean_and_std(self):
        samples = self.samples(5, 7, 3)
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        got = self.tensor(png(samples), "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225")
        self.check(got, samples, mean, std)
        self.check(self.tensor(png(samples), "--mean", "0.5", "--std", "-2"), samples, (0.5,) * 3, (-2,) * 3)

    def test_bgr(self):
        samples = self.samples(4, 4, 3)
        got = self.tensor(png(samples), "--color", "bgr", "--mean", "1,2,3")
        self.check(got, samples[:, :, ::-1], (1, 2, 3))

    def test_grey_and_alpha(self):
        grey = self.samples(4, 6, 1)
        self.check(self.tensor(png(grey)), np.repeat(grey, 3, 2))
        self.check(self.tensor(png(np.concatenate([grey, self.samples(4, 6, 1)], 2))), np.repeat(grey, 3, 2))
        samples = self.samples(4, 6, 4)
        self.check(self.tensor(png(samples)), samples[:, :, :3])

    def test_16_bits(self):
        for channels in (1, 2, 3, 4):
            samples = self.samples(4, 6, channels, dtype=np.uint16)
            colors = samples[:, :, :3] if channels >= 3 else np.repeat(samples[:, :, :1], 3, 2)
            self.check(self.tensor(png(samples)), colors / 257)

    def test_nhwc(self):
        samples = self.samples(4, 6, 3)
        model = self.identity("float32", [1, None, None, 3])
        for options in ((), ("--layout", "nhwc")):
            got = self.tensor(png(samples), *options, model=model)
            np.testing.assert_allclose(got, samples[None] / 255, rtol=1e-6)
        self.refuse("p.png", "[1,4,6,3]", "[1,3,4,6]", "--layout",
                    arguments=["run", self.identity("float32", [1, 3, 4, 6]), "-i", "p.png", "--layout", "nhwc",
                               "--size", "4x6"])

    def test_size(self):
        samples = self.samples(11, 17, 3)
        for height, width in ((11, 17), (5, 6), (30, 40), (1, 1), (12, 9)):
            got = self.tensor(png(samples), "--size", f"{height}x{width}")
            self.check(got, resize(samples.astype(float), height, width))

    def test_size_of_the_model(self):
        samples = self.samples(11, 17, 3)
        got = self.tensor(png(samples), "--shape", "x=1x3x4x5")
        self.check(got, resize(samples.astype(float), 4, 5))
        model = self.identity("float32", [1, 3, 8, 9])
        self.check(self.tensor(png(samples), model=model), resize(samples.astype(float), 8, 9))
        model = self.identity("float32", [1, 3, 8, None])
        self.check(self.tensor(png(samples), model=model), resize(samples.astype(float), 8, 17))
        self.refuse("p.png", "[1,3,5,5]", "[1,3,8,?]", arguments=["run", model, "-i", "p.png", "--size", "5x5"])

    def test_other_types(self):
        samples = self.samples(4, 6, 3)
        got = self.tensor(png(samples), model=self.identity("float16", [1, 3, None, None]))
        self.assertEqual(got.dtype, np.float16)
        np.testing.assert_allclose(got, samples.transpose(2, 0, 1)[None] / 255, rtol=1e-3)
        got = self.tensor(png(samples), model=self.identity("uint8", [1, 3, None, None]))
        np.testing.assert_array_equal(got, samples.transpose(2, 0, 1)[None])
        self.refuse("p.png", "int64", arguments=["run", self.identity("int64", [1, 3, None, None]), "-i", "p.png"])

    def test_rank_3(self):
        samples = self.samples(4, 6, 3)
        got = self.tensor(png(samples), model=self.identity("float32", [3, None, None]))
        np.testing.assert_allclose(got, samples.transpose(2, 0, 1) / 255, rtol=1e-6)

    def test_jpeg(self):
        got = self.tensor(JPEG, name="p.jpg")
        self.assertEqual(got.shape, (1, 3, 16, 16))
        expected = np.array([200, 100, 50]).reshape(1, 3, 1, 1) / 255
        np.testing.assert_allclose(got, np.broadcast_to(expected, got.shape), atol=3 / 255)

    def test_name_does_not_matter(self):
        self.assertEqual(self.tensor(JPEG, name="picture").shape, (1, 3, 16, 16))

    def test_damaged(self):
        whole = png(self.samples(20, 20, 3))
        for data, name in ((whole[:-20], "cut.png"), (whole[:60], "short.png"), (whole[:10] + b"x" * 90, "junk.png"),
                           (JPEG[:-100], "cut.jpg"), (JPEG[:30], "short.jpg"), (JPEG[:3] + b"x" * 90, "junk.jpg")):
            self.write(name, data)
            self.refuse(name, arguments=["run", self.model_path, "-i", name])

    def test_bomb(self):
        """A few bytes that claim 10^12 pixels."""
        data = bytearray(png(self.samples(4, 4, 3)))
        data[16:24] = (10**6).to_bytes(4, "big") * 2
        data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
        self.refuse("bomb.png", "too large", arguments=["run", self.model_path, "-i", self.write("bomb.png", data)])


if __name__ == "__main__":
    unittest.main()
