"""The folders of the top level are the packages below `yarus`, with or without the links of a checkout."""

import shutil
from pathlib import Path

from setuptools import find_namespace_packages, setup

FOLDERS = ("flows", "deployments", "tasks", "metrics", "db")
BELOW = [part for top in FOLDERS for part in (top, *(f"{top}.{sub}" for sub in find_namespace_packages(top)))]

# Files that an earlier build has left there would get into the wheel.
shutil.rmtree(Path(__file__).with_name("build"), ignore_errors=True)
setup(
    packages=["yarus", *(f"yarus.{part}" for part in BELOW)],
    package_dir={f"yarus.{top}": top for top in FOLDERS},
)
