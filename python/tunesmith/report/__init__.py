"""The report: one self-contained HTML file about a run, or about several."""

from tunesmith.report.following import Follow
from tunesmith.report.page import render_report, write_comparison, write_report

__all__ = ["Follow", "render_report", "write_comparison", "write_report"]
