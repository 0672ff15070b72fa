"""What a decoder does with weights, and how weights differ: beams, lists, bins, time, overlap."""

from tunesmith.analysis.diversity import diversity
from tunesmith.analysis.overlap import Overlap, differences, overlap
from tunesmith.analysis.reordering import Reordered, reordered
from tunesmith.analysis.search import BEAMS, Beamed, Binned, Listed, by_beam, of_bins, of_lists
from tunesmith.analysis.spent import Spent, spent

__all__ = [
    "BEAMS",
    "Beamed",
    "Binned",
    "Listed",
    "Overlap",
    "Reordered",
    "Spent",
    "by_beam",
    "differences",
    "diversity",
    "of_bins",
    "of_lists",
    "overlap",
    "reordered",
    "spent",
]
