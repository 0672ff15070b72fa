"""Metrics: statistics that add up, and a score of their sum, equal to sacreBLEU's."""

from tunesmith.metrics.base import Metric, Rows
from tunesmith.metrics.bleu import Bleu
from tunesmith.metrics.chrf import Chrf
from tunesmith.metrics.column import Column, RatioColumns, StatisticsColumns
from tunesmith.metrics.edit import Cer, Wer
from tunesmith.metrics.registry import get_metric, metric_names, register
from tunesmith.metrics.ter import Ter
from tunesmith.metrics.ter_bleu import TerBleu

__all__ = [
    "Bleu",
    "Cer",
    "Chrf",
    "Column",
    "Metric",
    "RatioColumns",
    "Rows",
    "StatisticsColumns",
    "Ter",
    "TerBleu",
    "Wer",
    "get_metric",
    "metric_names",
    "register",
]
