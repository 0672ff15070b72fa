"""`--format shouting`: a line per hypothesis, `id TAB score TAB text`."""

from tunesmith.formats import Format, Hypothesis, register


def read(file):
    """Yield the hypotheses of a file."""
    for line in file.lines():
        sentence, score, text = line.split("\t")
        yield Hypothesis(int(sentence), text, {"score": float(score)}, float(score))


register(Format("shouting", read))
