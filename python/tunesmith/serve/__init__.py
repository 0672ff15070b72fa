"""The HTTP service: translation with feedback, and a page for people.

>>> from pathlib import Path
>>> service = Service(Settings(Paths(Path("model"))))  # doctest: +SKIP
>>> app = application(service)  # any ASGI server runs it  # doctest: +SKIP
"""

from tunesmith.serve.app import application
from tunesmith.serve.service import Service
from tunesmith.serve.settings import Access, Feedback, Limits, Paths, Settings

__all__ = ["Access", "Feedback", "Limits", "Paths", "Service", "Settings", "application"]
