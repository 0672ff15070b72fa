"""The report: one HTML file that shows what a run did, and needs nothing else to be read."""

from tunesmith.report.following import Follow
from tunesmith.report.page import render_report, write_report

__all__ = ["Follow", "render_report", "write_report"]
