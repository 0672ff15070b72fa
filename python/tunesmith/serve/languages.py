"""Languages: their names, and the ways in which clients write their codes."""

from __future__ import annotations

import re

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "ga": "Irish", "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ms": "Malay",
    "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian",
    "sv": "Swedish", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


def name_of(code: str) -> str:
    """Return the English name of a language, or its code."""
    return NAMES.get(code, code)


def pattern_of(code: str, *also: str) -> str:
    """Return a regular expression of a language's codes: any case, with or without a region.

    >>> re.search(pattern_of("en"), "EN-gb") is not None
    True
    >>> re.search(pattern_of("en"), "enm") is None
    True
    """
    letters = "".join(f"[{letter}{letter.upper()}]" for letter in code)
    return "|".join([f"^{letters}([-_][A-Za-z0-9]{{2,8}})*$", *(f"^{re.escape(o)}$" for o in also)])
