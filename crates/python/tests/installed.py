"""A package with a hook module, made into a wheel and installed with pip, without a network or a build backend."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import zipfile

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "path_guard.py"

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def install(folder: pathlib.Path, package: str, files: dict[str, str], entry_points: dict[str, str]) -> pathlib.Path:
    """Installs a package into a folder of its own, and gives the folder to put on the import path."""
    name = package.replace("-", "_")
    group = "".join(f"{key} = {value}\n" for key, value in entry_points.items())
    contents = {
        **files,
        f"{name}-1.0.dist-info/METADATA": _METADATA.format(name=package),
        f"{name}-1.0.dist-info/WHEEL": _WHEEL,
        f"{name}-1.0.dist-info/entry_points.txt": f"[amplifier.modules]\n{group}",
    }
    record = f"{name}-1.0.dist-info/RECORD"
    contents[record] = "".join(f"{path},,\n" for path in [*contents, record])
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    target = folder / f"{name}-installed"
    options = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(wheel)], check=True, timeout=120)
    return target


def install_example(folder: pathlib.Path) -> pathlib.Path:
    """Installs the example as a package that offers `hooks-path-guard`."""
    files = {"amplifier_module_path_guard.py": EXAMPLE.read_text()}
    points = {"hooks-path-guard": "amplifier_module_path_guard:mount"}
    return install(folder, "amplifier-module-path-guard", files, points)
