"""What a decoder does with weights: beam sizes, oracles, diversity, bins, time."""

from tunesmith.analysis.diversity import diversity
from tunesmith.analysis.search import BEAMS, Beamed, Binned, Listed, by_beam, of_bins, of_lists
from tunesmith.analysis.spent import Spent, spent

__all__ = [
    "BEAMS",
    "Beamed",
    "Binned",
    "Listed",
    "Spent",
    "by_beam",
    "diversity",
    "of_bins",
    "of_lists",
    "spent",
]
