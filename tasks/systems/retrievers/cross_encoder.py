"""A cross-encoder of sentence-transformers, which reads question and text together; nothing is downloaded."""

import json
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from yarus.db.errors import InputError
from yarus.tasks.models.embedding.embedders import WEIGHTS, model_digest, prepack_weights

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class LocalCrossEncoder:
    """Cross-encoder on this machine; pairs of similar length go through the model together."""

    def __init__(self, name: str, folder: Path) -> None:
        """Take the model's name and folder; the model is loaded for the first call."""
        self._name, self._folder = name, folder

    @cached_property
    def identity(self) -> str:
        """Return the name and a digest of the files."""
        return f"cross-encoder:{Path(self._name).name}|files:{model_digest(self._folder, WEIGHTS['torch'])}|v:1"

    def load(self) -> None:
        """Load the model and check that it can score, so that no question waits for that.

        Raises:
            InputError: it cannot be loaded, or returns several numbers per pair.
        """
        scores = np.asarray(self._model.predict([("?", "?")], show_progress_bar=False))
        if scores.ndim != 1:
            raise InputError(
                "re-ranker {name!r} gives {n} numbers a pair: it sorts pairs into classes. Give a cross-encoder with "
                "one score",
                name=self._name,
                n=scores.shape[1],
            )

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the model's own scores of the texts; higher is better."""
        scores = self._model.predict([(question, text) for text in texts], show_progress_bar=False)
        return [float(score) for score in scores]

    @cached_property
    def _model(self) -> "CrossEncoder":
        from safetensors import SafetensorError
        from sentence_transformers import CrossEncoder
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        if not _can_score(self._folder):
            raise InputError(
                "re-ranker {name!r} is no cross-encoder: it has no layer that scores pairs, and one made up would "
                "order at random. An embedder belongs into YARUS_EMBEDDER",
                name=self._name,
            )
        try:
            model: CrossEncoder = CrossEncoder(str(self._folder), local_files_only=True)
        except (OSError, ValueError, ImportError, RuntimeError, KeyError, SafetensorError) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                "re-ranker {name!r} cannot be loaded: {reason}. Give the folder of a cross-encoder of "
                "sentence-transformers",
                name=self._name,
                reason=reason.rstrip("."),
            ) from error
        prepack_weights(model)
        return model


@lru_cache(maxsize=4)
def get_cross_encoder(name: str) -> LocalCrossEncoder:
    """Return the cross-encoder of that name or folder, one per process.

    Raises:
        InputError: it is not on this machine.
    """
    if (folder := _find_model_folder(name)) is None:
        raise InputError(
            "no re-ranker {name!r}: no folder of a model, and no model of that name on this machine (nothing is "
            "downloaded; fetch it first: hf download {name}). Else give an http(s) URL, module:function or 'none'",
            name=name,
        )
    return LocalCrossEncoder(name, folder)


def _can_score(folder: Path) -> bool:
    """Return whether a model has learned to score pairs; sentence-transformers adds a random last layer to others."""
    try:
        classes = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("architectures")
    except (ValueError, AttributeError):
        return True  # loading the model reports the fault
    modules = folder / "modules.json"
    is_scoring = modules.is_file() and "cross_encoder" in modules.read_text(encoding="utf-8")
    return is_scoring or not classes or any(str(name).endswith("ForSequenceClassification") for name in classes)


def _find_model_folder(name: str) -> Path | None:
    """Return the folder of the model's files, or None."""
    if (Path(name) / "config.json").is_file():
        return Path(name)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached_file = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    return Path(cached_file).parent if isinstance(cached_file, str) else None
