"""What the lists of an index depend on: digests of a model's files, weights and settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.files.fingerprint import CHECKED, fingerprint

WHAT = {"model": "another model", "weights": "other weights", "settings": "other settings"}
REMEDIES = {
    "model": "give the model that the index was built with, or build an index for this one",
    "weights": "give the weights that the index was built with (--weights), or build it again",
    "settings": "give the settings that the index was built with (--search), or build it again",
}


def identity(translator: Translator) -> dict[str, str]:
    """Return digests of a translator's model, weights and settings.

    Paths do not matter: a model may be moved. Raise if the model was not loaded from files.
    """
    model = translator.model
    if not model.files:
        raise InputError(
            "the model was not loaded from files, so an index cannot recognise it",
            remedy="use Model.load, Model.of_moses or Model.of_cdec",
        )
    files = [fingerprint(path, ends=path.suffix in CHECKED) for path in model.files]
    digests = [each.get("sha256") or each["sha256_of_ends"] for each in files]
    own = [type(each).__qualname__ for each in model.own]
    settings = {**dict(model.decoder.settings), **translator.settings}
    weights = sorted((name, value) for name, value in translator.weights.items() if value)
    return {
        "model": _digest([digests, model.kind, sorted(model.templates), own]),
        "weights": _digest(weights),
        "settings": _digest([sorted(settings.items()), translator.tokenized]),
    }


def check_identity(
    made_with: Mapping[str, str], given: Mapping[str, str], folder: str, translator: Translator
) -> None:
    """Raise if an index was made with another model, other weights or other settings.

    `given` is the identity of the translator.
    """
    for name, what in WHAT.items():
        if made_with.get(name) != given[name]:
            # The digest is that of all files, so each of them may be the one that differs.
            than = f" than {', '.join(map(str, translator.model.files))}" * (name == "model")
            raise InputError(
                f"the lists of this index were decoded with {what}{than}",
                folder,
                remedy=REMEDIES[name],
            )


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
