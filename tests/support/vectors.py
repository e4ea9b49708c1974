"""Vectors that tests of embeddings share, and a tiny model that scores pairs."""

from pathlib import Path
from typing import Any

import numpy as np

# Unit vectors at 0, 90 and 45 degrees, and one at 180; lengths differ, which only Euclidean distances see.
EAST, NORTH, NORTHEAST, WEST = [2.0, 0.0], [0.0, 1.0], [3.0, 3.0], [-1.0, 0.0]


def make_clouds(n: int, d: int, clusters: int, seed: int = 0, dtype: Any = np.float64) -> tuple[np.ndarray, list[int]]:
    """Return Gaussian clouds around random centres."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, clusters, n)
    return (rng.normal(size=(clusters, d))[labels] + rng.normal(size=(n, d))).astype(dtype), labels.tolist()


def write_tiny_cross_encoder(folder: Path, *, seed: int = 0, labels: int = 1) -> Path:
    """Write a BERT of two layers for Russian letters and digits, with random weights; return its folder."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    folder.mkdir(parents=True)
    characters = [*map(chr, range(ord("а"), ord("я") + 1)), *"0123456789"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{character}" for character in characters)]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=128, num_labels=labels, **shape)
    config.initializer_range = 0.5  # makes the scores differ
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder
