"""Embedders, which turn texts into vectors of length 1."""

import hashlib
from collections.abc import Iterator
from functools import cached_property, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from yarus.db.errors import InputError
from yarus.tasks.config.redaction import replace_surrogates
from yarus.tasks.config.services import is_http_url
from yarus.tasks.config.settings import Settings, get_settings
from yarus.tasks.models.embedding.ngrams import hash_ngrams
from yarus.tasks.models.embedding.partial_results import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor, nn


LEXICAL = "lexical"
WEIGHTS = {"torch": {".safetensors", ".bin"}, "bfloat16": {".safetensors", ".bin"}, "onnx": {".onnx"}}
"""Backend of sentence-transformers models -> suffixes of their weight files."""


class Embedder(Protocol):
    """Model that turns texts into vectors."""

    @property
    def identity(self) -> str:
        """Return everything that changes the vectors: kind, model, version, parameters. Stored with every result."""

    @property
    def worth_storing(self) -> bool:
        """Return whether reading a stored vector is cheaper than computing it."""

    def encode(self, texts: list[str]) -> Vectors:
        """Return one row per text, float32, of length 1 (0 for a text without content), in the order of the texts."""


def get_embedder(name: str, *, prefix: str = "", backend: str = "torch") -> Embedder:
    """Return the embedder of that name.

    Args:
        name: `lexical`, the name or folder of a sentence-transformers model, or the address of a server that speaks
            the OpenAI embeddings protocol, http(s)://…/v1, with its model behind a `#` or in the settings.
        prefix: put before every text, as models like E5 want it ('query: ', 'passage: ').
        backend: what computes a sentence-transformers model: `torch`, `bfloat16` (torch with half the precision) or
            `onnx`.
    """
    if is_http_url(name):
        from yarus.tasks.models.embedding.served import open_http_embedder  # aiohttp, which local embedders do not need

        return open_http_embedder(name, get_settings(), prefix=prefix)
    return LexicalEmbedder() if name == LEXICAL else _load_transformer(name, prefix, backend)


def get_embedder_pair(name: str, settings: Settings) -> tuple[Embedder, Embedder]:
    """Return the embedders for questions and for chunks: one model, each with its prefix and its fields."""
    if is_http_url(name):
        from yarus.tasks.models.embedding.served import open_http_embedder

        service = settings.embedder_service
        return (
            open_http_embedder(name, settings, prefix=settings.query_prefix, fields=service.query),
            open_http_embedder(name, settings, prefix=settings.passage_prefix, fields=service.passage),
        )
    questions, chunks = (
        get_embedder(name, prefix=prefix, backend=settings.embedder_backend)
        for prefix in (settings.query_prefix, settings.passage_prefix)
    )
    return questions, chunks


class LexicalEmbedder:
    """Hashed character n-grams of words: needs neither a model nor a download, and does not know meaning.

    The square root of each count damps repetition. 2,000 dimensions, because pgvector indexes no more.
    """

    DIMENSIONS = 2_000
    identity = "lexical (no language model)|char_wb:3-4|sqrt|d:2000|v:1"
    worth_storing = False

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder`."""
        if not texts:
            return np.zeros((0, self.DIMENSIONS), dtype=np.float32)
        counts = hash_ngrams([replace_surrogates(text) for text in texts], self.DIMENSIONS)
        vectors: Vectors = np.sign(counts) * np.sqrt(np.abs(counts))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(norms > 0, norms, 1)
        return vectors


class SentenceTransformerEmbedder:
    """Model of sentence-transformers, loaded for the first text that is not in the store."""

    worth_storing = True
    CPU_BATCH_CHARACTERS = 4_500  # about 1,024 tokens of English: longer batches leave the cache and pad more
    GPU_BATCH_CHARACTERS = 100_000  # small batches leave a GPU idle

    def __init__(self, name: str, prefix: str, backend: str) -> None:
        self._name, self._prefix, self._backend = name, prefix, backend

    @cached_property
    def _batch_characters(self) -> int:
        return self.CPU_BATCH_CHARACTERS if self._model.device.type == "cpu" else self.GPU_BATCH_CHARACTERS

    @cached_property
    def identity(self) -> str:
        """Return name, a digest of the model's files, the prefix and the backend."""
        folder = _find_model_folder(self._name)
        if folder is None:
            _ = self._model  # downloads it
            folder = _find_model_folder(self._name)
        digest = model_digest(folder, WEIGHTS[self._backend]) if folder else "unknown"
        model = f"sentence-transformers:{Path(self._name).name}|files:{digest}"
        return f"{model}|prefix:{self._prefix}|backend:{self._backend}|v:1"

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder`. A text of white space alone has no content, whatever the model returns for it.

        Raises:
            InputError: the model cannot be loaded, or returns values that are not finite numbers.
        """
        import torch

        if not texts:
            return self.encode([""])[:0]
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        # Copied to the CPU at the end: a GPU computes one batch while the next is tokenized.
        encoded = torch.cat([self._batch([texts[index] for index in batch]) for batch in self._batches(texts, order)])
        vectors = encoded.float().cpu().numpy()[np.argsort(order)]
        # Normalised again in float32: bfloat16 leaves lengths between 0.99 and 1.01.
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(min=1e-12)
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(broken):
            raise InputError(
                "embedder {name!r} gives numbers that are not finite, first for {text!r}. Its weights may be "
                "damaged, or too large for YARUS_EMBEDDER_BACKEND=bfloat16: give another model",
                name=self._name,
                text=texts[broken[0]][:80],
            )
        vectors[[not text.strip() for text in texts]] = 0
        return vectors

    def _batches(self, texts: list[str], order: list[int]) -> Iterator[list[int]]:
        """Yield the order in parts of similar length; text that the model cuts off does not count."""
        longest = 5 * (self._model.max_seq_length or 512)
        start = 0
        while start < len(order):
            size = min(len(self._prefix) + len(texts[order[start]]), longest)
            width = max(1, self._batch_characters // max(1, size))
            yield order[start : start + width]
            start += width

    def _batch(self, texts: list[str]) -> "Tensor":
        """Compute the vectors of texts together, or in halves if they do not fit into the memory of a GPU."""
        import torch

        try:
            return self._model.encode(
                [replace_surrogates(self._prefix + text) for text in texts],
                batch_size=len(texts),
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_tensor=True,
            )
        except torch.OutOfMemoryError:
            if len(texts) == 1:
                raise
        self._batch_characters //= 2  # batches of this size would fail again
        middle = len(texts) // 2
        return torch.cat([self._batch(texts[:middle]), self._batch(texts[middle:])])

    @cached_property
    def _model(self) -> "SentenceTransformer":
        import torch
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        if self._backend == "onnx" and not all(map(find_spec, ("optimum", "onnxruntime"))):
            raise InputError(
                "YARUS_EMBEDDER_BACKEND=onnx needs packages that are missing: pip install 'sentence-transformers[onnx]'"
                " (it may bring an older sentence-transformers), or unset it: torch is about as fast"
            )
        backend: Literal["torch", "onnx"] = "onnx" if self._backend == "onnx" else "torch"
        dtype = {"dtype": torch.bfloat16} if self._backend == "bfloat16" else {}
        try:
            model = SentenceTransformer(self._name, backend=backend, model_kwargs=dtype)
        except (OSError, ValueError, ImportError, RuntimeError, SafetensorError) as error:
            reason = str(error).strip().split("\n")[0]
            raise InputError(
                "embedder {name!r} cannot be loaded with backend {backend!r}: {reason}. Give 'lexical', the folder "
                "of a sentence-transformers model, or the name of one that can be downloaded from here",
                name=self._name,
                backend=self._backend,
                reason=reason,
            ) from error
        if self._backend == "torch":
            prepack_weights(model)
        return model


def prepack_weights(model: "nn.Module") -> None:
    """Let oneDNN multiply by the model's matrices, which are prepacked once.

    PyTorch gives float32 products to MKL, which uses half the width of an AMD processor's vector units: 2.2 times the
    time for equal results. No public switch changes that. Without the operator of oneDNN, nothing changes.
    """
    import torch

    has_operator = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    for linear in model.modules() if has_operator else ():
        if type(linear) is not torch.nn.Linear or linear.weight.device.type != "cpu":
            continue
        if linear.weight.dtype == torch.float32:
            packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
            linear.forward = partial(_multiply, weight=packed, bias=linear.bias)  # type: ignore[method-assign]


def _multiply(inputs: "Tensor", *, weight: "Tensor", bias: "Tensor | None") -> "Tensor":
    import torch

    products: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return products


@lru_cache(maxsize=4)
def _load_transformer(name: str, prefix: str, backend: str) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(name, prefix, backend)


def is_downloaded(name: str) -> bool:
    """Return whether the files of a sentence-transformers model are on this machine."""
    return _find_model_folder(name) is not None


def _find_model_folder(name: str) -> Path | None:
    """Return the folder of the model's files on this machine, or None."""
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for repository in (name, f"sentence-transformers/{name}"):
        try:
            cached_file = try_to_load_from_cache(repository, "modules.json")
        except HFValidationError:
            continue
        if isinstance(cached_file, str):
            return Path(cached_file).parent
    return None


def model_digest(folder: Path, weights: set[str]) -> str:
    """Return a digest of the names and contents of all files that decide the vectors.

    All weights are hashed, because models may differ in their last layer only.
    """
    digest = hashlib.sha256()
    suffixes = {".json", ".txt", ".model", *weights}
    for path in sorted(path for path in folder.rglob("*") if path.suffix in suffixes):
        digest.update(f"{path.relative_to(folder)}:".encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def resolve_embedder_name(name: str, settings: Settings) -> str:
    """Return the name of an embedder, with the model if it is an address; other names are complete.

    Raises:
        InputError: the address is unusable or has a secret in it, or the model is not named.
    """
    if not is_http_url(name):
        return name
    from yarus.tasks.models.embedding.served import resolve_endpoint

    return resolve_endpoint(name, settings).name


def get_measuring_embedder_name() -> str:
    """Return the name of the embedder that measures, which may differ from the retriever's."""
    return resolve_embedder_name(get_settings().similarity_embedder or get_settings().embedder, get_settings())
