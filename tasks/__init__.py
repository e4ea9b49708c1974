"""Steps of evaluations, in layers: each package uses only those below it (docs/contributing.md)."""

if __name__ == "tasks":
    raise ImportError("`tasks` is now `yarus.tasks`; use `from yarus.tasks import …`")
