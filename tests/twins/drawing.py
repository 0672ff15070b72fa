"""The random stream of a sentence: SplitMix64 named by (seed, epoch, sentence)."""

from __future__ import annotations

MASK = 2**64 - 1


def mix(word: int) -> int:
    """Return the word stirred."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


class Stream:
    """Numbers that depend on (seed, epoch, sentence) and on nothing else."""

    def __init__(self, seed: int, epoch: int, sentence: int) -> None:
        state = 0x9E3779B97F4A7C15
        for part in (seed, epoch, sentence):
            state = mix(state ^ mix((part + 0x632BE59BD9B4E019) & MASK))
        self.state = state

    def below(self, bound: int) -> int:
        """Return a number below `bound`."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        return mix(self.state) * bound >> 64

    def pair_below(self, bound: int) -> tuple[int, int]:
        """Return two numbers below `bound`, of the halves of one word."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        upper, lower = divmod(mix(self.state), 2**32)
        return upper * bound >> 32, lower * bound >> 32

    def permutation(self, length: int) -> list[int]:
        """Return `0..length` shuffled from the end (Fisher & Yates)."""
        order = list(range(length))
        for last in range(length - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def visiting_order(seed: int, epoch: int, sentences: int) -> list[int]:
    """Return the order in which an epoch visits its sentences."""
    return Stream(seed, epoch, MASK).permutation(sentences)
