"""Prints LightGBM's prediction of a model file for each row of a CSV without header on standard
input, one number per line. Without an argument it only checks that LightGBM is installed."""

import sys

import lightgbm
import numpy

if len(sys.argv) > 1:
    rows = numpy.loadtxt(sys.stdin, delimiter=",", ndmin=2)
    for y in lightgbm.Booster(model_file=sys.argv[1]).predict(rows):
        print(repr(float(y)))
