"""What evaluations are made of, in floors: each package uses only those below it (docs/contributing.md)."""

if __name__ == "tasks":
    raise ImportError("the packages of Yarus are imported as yarus: from yarus.tasks …")
