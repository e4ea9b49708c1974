"""Embedders: what turns texts into vectors of length 1."""

import hashlib
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from db.errors import InputError
from tasks.settings import Settings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = NDArray[np.float32]
LEXICAL = "lexical"


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def identity(self) -> str:
        """Everything that changes the vectors: kind, model, version, parameters. Stored with every result."""

    @property
    def worth_storing(self) -> bool:
        """Whether reading a stored vector is cheaper than computing it."""

    def encode(self, texts: list[str]) -> Vectors:
        """One row a text, float32, each of length 1 (0 for a text without content), in the order of the texts."""


def embedder(name: str, *, prefix: str = "") -> Embedder:
    """The embedder of that name.

    Args:
        name: `lexical`, or the name or folder of a sentence-transformers model.
        prefix: put before every text, as models like E5 want it ('query: ', 'passage: ').
    """
    return Lexical() if name == LEXICAL else _transformer(name, prefix)


def embedders(name: str, settings: Settings) -> tuple[Embedder, Embedder]:
    """The embedder for questions and the one for chunks: one model, each with its prefix."""
    return embedder(name, prefix=settings.query_prefix), embedder(name, prefix=settings.passage_prefix)


class Lexical:
    """Character n-grams of words, hashed: needs no model and no download, and knows no meaning.

    The square root of each count damps repetition. 2,000 dimensions, because pgvector indexes no more.
    """

    DIMENSIONS = 2_000
    identity = "lexical (no language model)|char_wb:3-4|sqrt|d:2000|v:1"
    worth_storing = False

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder`."""
        if not texts:
            return np.zeros((0, self.DIMENSIONS), dtype=np.float32)
        counts = self._hasher.transform(texts)
        counts.data = np.sign(counts.data) * np.sqrt(np.abs(counts.data))
        vectors: Vectors = counts.toarray()
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(norms > 0, norms, 1)
        return vectors

    @cached_property
    def _hasher(self):  # type: ignore[no-untyped-def]
        from sklearn.feature_extraction.text import HashingVectorizer

        return HashingVectorizer(
            analyzer="char_wb", ngram_range=(3, 4), n_features=self.DIMENSIONS, norm=None, dtype=np.float32
        )


class Transformer:
    """A sentence-transformers model; loaded when the first text is not in the store."""

    worth_storing = True
    BATCH = 16  # on a CPU faster than the library's 32, which pads more

    def __init__(self, name: str, prefix: str) -> None:
        self._name, self._prefix = name, prefix

    @cached_property
    def identity(self) -> str:
        """Name, a digest of the model's files, and the prefix."""
        folder = _folder(self._name)
        if folder is None:
            _ = self._model  # downloads it
            folder = _folder(self._name)
        digest = _digest(folder) if folder else "unknown"
        return f"sentence-transformers:{Path(self._name).name}|files:{digest}|prefix:{self._prefix}|v:1"

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder`."""
        prefixed = [self._prefix + text for text in texts]
        vectors = self._model.encode(
            prefixed, batch_size=self.BATCH, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _model(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(self._name)
        except (OSError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise InputError(
                f"embedder {self._name!r} cannot be loaded: {reason}. Give 'lexical', the folder of a "
                "sentence-transformers model, or the name of one that can be downloaded from here"
            ) from error


@lru_cache(maxsize=4)
def _transformer(name: str, prefix: str) -> Transformer:
    return Transformer(name, prefix)


def _folder(name: str) -> Path | None:
    """Where the model's files are on this machine, or None."""
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for repository in (name, f"sentence-transformers/{name}"):
        try:
            found = try_to_load_from_cache(repository, "modules.json")
        except HFValidationError:
            continue
        if isinstance(found, str):
            return Path(found).parent
    return None


def _digest(folder: Path) -> str:
    """Of all files' names and sizes and the start of each: weights differ there too."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".json", ".safetensors", ".bin", ".txt"}):
        digest.update(f"{path.relative_to(folder)}:{path.stat().st_size}:".encode())
        with path.open("rb") as file:
            digest.update(file.read(1 << 20))
    return digest.hexdigest()[:12]
