"""Makes digits.bin.gz from the copy of the UCI digits that scikit-learn carries.

Use, in any virtual environment:  pip install scikit-learn && python make_digits.py

The file is a gzip stream of records of 65 bytes, one per image, in the order
of the source: 64 pixels row by row, each 0 to 16, then the digit, 0 to 9.
"""

import gzip
import pathlib

from sklearn.datasets import load_digits

OUTPUT = pathlib.Path(__file__).with_name("digits.bin.gz")


def records(digits):
    """Yields the bytes of each image, and refuses a value that is out of range."""
    for pixels, digit in zip(digits.data, digits.target):
        values = [int(value) for value in pixels]
        if len(values) != 64 or any(v != p or not 0 <= v <= 16 for v, p in zip(values, pixels)):
            raise ValueError(f"not an 8x8 image of integers from 0 to 16: {pixels}")
        yield bytes(values) + bytes([int(digit)])


def main():
    content = b"".join(records(load_digits()))
    # A fixed time stamp and no name: the same images give the same file.
    with open(OUTPUT, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(content)
    print(f"{OUTPUT.name}: {len(content) // 65} images, {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
