"""Prints what LightGBM predicts by each file of its arguments for the rows of a
CSV without header on its standard input, one number a line. A file of fewer
features gets the first columns. Without an argument it only says whether
LightGBM is there."""

import sys

import lightgbm
import numpy

if len(sys.argv) > 1:
    rows = numpy.loadtxt(sys.stdin, delimiter=",", ndmin=2)
    for name in sys.argv[1:]:
        regressor = lightgbm.Booster(model_file=name)
        for y in regressor.predict(rows[:, : regressor.num_feature()]):
            print(repr(float(y)))
