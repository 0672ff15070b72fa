"""The report: one HTML file that shows what a run did, and needs nothing else to be read."""

from tunesmith.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
