"""`--metric shouting`: the share of words in capitals, as if that were a virtue."""

import numpy as np

from tunesmith.metrics import Metric, register


class Shouting(Metric):
    """Statistics: words in capitals, words."""

    name, width = "shouting", 2

    def row(self, hypothesis, references):
        words = hypothesis.split()
        return [sum(word.isupper() for word in words), len(words)]

    def gain_rows(self, rows):
        return rows[:, 0] / np.maximum(rows[:, 1], 1)

    def score_rows(self, rows):
        return 100 * self.gain_rows(rows)


register("shouting", Shouting)
