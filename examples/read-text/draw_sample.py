#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws a picture of text lines, and writes the lines themselves beside it as .txt.

Two sizes, dark on light and light on dark. Needs Pillow, and the DejaVu fonts (Debian: fonts-dejavu-core).
"""
import argparse
import os
import random
import sys

from PIL import Image, ImageDraw, ImageFont

FONTS = os.environ.get("RUNNEL_FONTS", "/usr/share/fonts/truetype/dejavu")
WIDTH, MARGIN = 960, 36
LARGE, SMALL = 44, 26

# Each block: ground, ink, then (font, size, line) from top to bottom.
SAMPLE = [
    ("#f6f3ea", "#1d2a36", [
        ("DejaVuSans-Bold.ttf", LARGE, "Small channels, fast water"),
        ("DejaVuSans.ttf", SMALL, "A runnel is a small channel in which water runs."),
        ("DejaVuSans.ttf", SMALL, "One network finds the lines, another reads them."),
        ("DejaVuSerif.ttf", SMALL, "Both run on whatever OpenCL device there is."),
    ]),
    ("#16324f", "#f4f7fa", [
        ("DejaVuSerif-Bold.ttf", LARGE, "Light letters on dark"),
        ("DejaVuSans.ttf", SMALL, "Order 20473: 318 pieces at 12.50 each"),
        ("DejaVuSansMono.ttf", SMALL, "Open from 9:30 to 17:45 except Sunday"),
    ]),
    ("#f2c14e", "#3d1308", [
        ("DejaVuSans.ttf", SMALL, "Water finds its way: no pump, no pipe, no plan."),
    ]),
]


def random_word(rng):
    """Letters that can be said, now and then a number."""
    if rng.random() < 0.15:
        return str(rng.randrange(10, 100000))
    word = "".join(rng.choice("bcdfghjkmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randint(1, 4)))
    word += rng.choice(("", "n", "r", "s", "t", "sh", "nd"))
    return word.capitalize() if rng.random() < 0.3 else word


def random_line(rng, font, limit):
    """As many words as fit into `limit` pixels."""
    line = random_word(rng)
    while True:
        longer = f"{line} {random_word(rng)}"
        if font.getlength(longer) > limit:
            return line
        line = longer


def random_blocks(seed):
    """The sample's grounds, inks, fonts and sizes, with other words."""
    rng = random.Random(seed)
    limit = WIDTH - 2 * MARGIN
    return [(ground, ink, [(name, size, random_line(rng, load(name, size), limit * rng.uniform(0.4, 1)))
                           for name, size, _ in lines]) for ground, ink, lines in SAMPLE]


def load(name, size):
    path = os.path.join(FONTS, name)
    if not os.path.exists(path):
        sys.exit(f"draw_sample: there is no font {path} (Debian: fonts-dejavu-core)")
    # Pillow's other engine draws differently, and is there only where the system has libfribidi.
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


def line_height(size):
    return size * 17 // 10


def block_height(lines):
    return MARGIN + sum(line_height(size) for _, size, _ in lines)


def draw(blocks):
    picture = Image.new("RGB", (WIDTH, sum(block_height(lines) for _, _, lines in blocks)))
    pen = ImageDraw.Draw(picture)
    top = 0
    for ground, ink, lines in blocks:
        bottom = top + block_height(lines)
        pen.rectangle((0, top, WIDTH, bottom), fill=ground)
        y = top + MARGIN // 2
        for name, size, text in lines:
            pen.text((MARGIN, y + line_height(size) // 2), text, font=load(name, size), fill=ink, anchor="lm")
            y += line_height(size)
        top = bottom
    return picture


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("picture", help="the file to write, .png or .jpg; the lines go beside it as .txt")
    parser.add_argument("--random", metavar="SEED", type=int, help="random words in place of the sample's")
    options = parser.parse_args()
    blocks = SAMPLE if options.random is None else random_blocks(options.random)
    draw(blocks).save(options.picture)
    with open(os.path.splitext(options.picture)[0] + ".txt", "w", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for _, _, lines in blocks for _, _, text in lines)


if __name__ == "__main__":
    main()
