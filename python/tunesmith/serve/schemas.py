"""The requests and responses of the service as JSON Schema: checked here, published by OpenAPI."""

from __future__ import annotations

from typing import Any

from tunesmith.serve.languages import pattern_of
from tunesmith.serve.settings import Limits

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
# One line with at least one character that is no space, and no control characters.
# Spaces and other characters differ, so that no text can be read in many ways.
LINE = r"^[^\S\u0000-\u001f\u007f-\u009f\u2028\u2029]*[^\s\u0000-\u001f\u007f-\u009f\u2028\u2029]"
LINE += r"[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"
# Ids of SQLite.
ID: Schema = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}


def listed(item: Schema, **more: Any) -> Schema:
    """Return the schema of a list."""
    # The length first: a list that is too long is not looked through.
    return {"type": "array", **more, "items": item}


def fields(required: Schema, optional: Schema | None = None, *, closed: bool = True) -> Schema:
    """Return the schema of an object."""
    made: Schema = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        made["required"] = list(required)
    if closed:
        made["additionalProperties"] = False
    return made


def perhaps(schema: Schema) -> Schema:
    """Return a schema that null fits, too."""
    return {"anyOf": [schema, {"type": "null"}]}


def _language(code: str, pattern: str) -> Schema:
    described = f"{code}, the language of this model (GET /languages)"
    return {"type": "string", "description": described, "pattern": pattern}


def requests(source: str, target: str, limits: Limits) -> dict[str, Schema]:
    """Return the schemas of requests, by name."""
    # No `anyOf`: it would collect the errors of all items.
    texts = {**listed(TEXT, minItems=1, maxItems=limits.sentences), "type": ["string", "array"]}
    line = {
        "type": "string",
        "description": "a line of text that is not blank and has no control characters",
        "maxLength": limits.characters,
        "pattern": LINE,
    }
    nbest = {"type": "integer", "minimum": 0, "maximum": limits.nbest}
    to = _language(target, pattern_of(target))
    features = {"type": "object", "additionalProperties": NUMBER}
    return {
        # LibreTranslate and DeepL pass over fields that they do not know.
        "Translate": fields(
            {
                "q": texts,
                "source": _language(source, pattern_of(source, "auto")),
                "target": to,
            },
            {
                "format": {"type": "string", "enum": ["text", "html"]},
                "alternatives": nbest,
                "api_key": TEXT,
            },
            closed=False,
        ),
        "Detect": fields({"q": TEXT}, {"api_key": TEXT}, closed=False),
        "DeepL": fields(
            {"text": texts, "target_lang": to},
            {
                "source_lang": _language(source, pattern_of(source)),
                "tag_handling": {"type": "string", "enum": ["html"]},
                # What would change the translation is refused, not ignored.
                "formality": {
                    "type": "string",
                    "enum": ["default", "prefer_more", "prefer_less"],
                },
                "glossary_id": False,
            },
            closed=False,
        ),
        "TranslateAll": fields(
            {"text": texts},
            {
                "nbest": nbest,
                "local": FLAG,
                "memory": FLAG,
                "format": {"type": "string", "enum": ["text", "html"]},
            },
        ),
        "Choose": fields(
            {
                "hypotheses": listed(
                    fields({"features": features}, {"text": TEXT}), minItems=1, maxItems=1000
                )
            },
            {"weights": features},
        ),
        "Feedback": fields(
            {"source": line, "translation": line},
            {"suggestion": {"type": "string", "maxLength": limits.characters}},
        ),
    }


PLACES = listed(listed(COUNT, minItems=2, maxItems=2))
PHRASE = fields(
    {
        "source": listed(COUNT),
        "target": listed(COUNT),
        "source_text": TEXT,
        "target_text": TEXT,
        "origin": {"type": "string", "enum": ["table", "unknown", "given"]},
    },
    {"alternatives": listed(TEXT)},
)
HYPOTHESIS = fields(
    {
        "text": TEXT,
        "score": NUMBER,
        "features": {"type": "object", "additionalProperties": NUMBER},
        "phrases": listed(PHRASE),
    }
)
NEIGHBOUR = fields(
    {"id": COUNT, "similarity": NUMBER, "source": TEXT, "references": listed(TEXT)},
    {"feedback": perhaps(ID)},
)
SENTENCE = fields(
    {
        "source": TEXT,
        "text": TEXT,
        "memory": perhaps(ID),
        "score": perhaps(NUMBER),
        "words": listed(TEXT),
        "source_places": perhaps(PLACES),
        "target_words": listed(TEXT),
        "target_places": perhaps(PLACES),
        "alignment": PLACES,
        "phrases": listed(PHRASE),
        "pieces": COUNT,
        "nbest": listed(HYPOTHESIS),
        "neighbours": listed(NEIGHBOUR),
        "moved": {"type": "object", "additionalProperties": NUMBER},
        "seconds": {"type": "object", "additionalProperties": NUMBER},
    }
)
CORRECTION = fields(
    {
        "id": ID,
        "source": TEXT,
        "translation": TEXT,
        "suggestion": perhaps(TEXT),
        "status": {"type": "string", "enum": ["accepted", "held"]},
        "reasons": listed(TEXT),
        "name": TEXT,
        "created": {"type": "string", "format": "date-time"},
        "changed": {"type": "string", "format": "date-time"},
    }
)
LANGUAGE = fields({"code": TEXT, "name": TEXT})
_DETECTED = fields({"language": TEXT, "confidence": NUMBER})
RESPONSES: dict[str, Schema] = {
    "Error": fields({"error": TEXT, "code": TEXT}),
    "DeepLError": fields({"message": TEXT, "code": TEXT}),
    "Translated": fields(
        {"translatedText": {"anyOf": [TEXT, listed(TEXT)]}},
        {
            "alternatives": {"anyOf": [listed(TEXT), listed(listed(TEXT))]},
            "detectedLanguage": {"anyOf": [_DETECTED, listed(_DETECTED)]},
            "fromMemory": FLAG,
        },
    ),
    "Languages": listed(fields({"code": TEXT, "name": TEXT, "targets": listed(TEXT)})),
    "Detected": listed(_DETECTED),
    "FrontendSettings": {"type": "object"},
    "DeepLTranslated": fields(
        {"translations": listed(fields({"detected_source_language": TEXT, "text": TEXT}))}
    ),
    "TranslatedAll": fields(
        {
            "translations": listed(fields({"text": TEXT, "sentences": listed(SENTENCE)})),
            "model": TEXT,
            "local": FLAG,
            "seconds": fields({"waiting": NUMBER, "total": NUMBER}),
        }
    ),
    "Chosen": fields(
        {
            "order": listed(COUNT),
            "scores": listed(NUMBER),
            "best": COUNT,
            "text": perhaps(TEXT),
            "unknown": listed(TEXT),
        }
    ),
    "Correction": CORRECTION,
    "Corrections": fields({"feedback": listed(CORRECTION), "next": perhaps(ID)}),
    "Service": fields(
        {
            "version": TEXT,
            "model": TEXT,
            "source": LANGUAGE,
            "target": LANGUAGE,
            "local": FLAG,
            "feedback": {"type": "string", "enum": ["off", "token", "open"]},
            "memory": FLAG,
            "private": FLAG,
            "limits": {"type": "object"},
        }
    ),
    "Reloaded": fields({"model": TEXT, "changed": FLAG, "seconds": NUMBER}),
    "Health": fields({"status": {"const": "ok"}}),
    "Ready": fields({"status": {"const": "ready"}, "model": TEXT, "waiting": COUNT}),
}
