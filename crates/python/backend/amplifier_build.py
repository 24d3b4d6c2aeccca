"""Builds the distribution: maturin builds the extension, and this backend adds the command `amplifier` and the licences.

    python backend/amplifier_build.py --profile dev     builds what it adds, for a later `maturin build`
    python backend/amplifier_build.py --program FILE    takes a command that is built already

maturin puts everything in `amplifier_core.data/scripts` and the files of `license-files` into the wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

HERE = pathlib.Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
SCRIPTS = HERE / "amplifier_core.data" / "scripts"
LICENSES = HERE / "licenses"

#: Files with a licence or a notice, in the folder of a crate.
_LICENCE = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)


def build_command(profile: str, arguments: list[str]) -> pathlib.Path:
    """Builds the command, with the same options of cargo as the extension."""
    if not (ROOT / "crates" / "cli").is_dir():
        raise RuntimeError(f"cannot build the command `amplifier`: `{ROOT}` is not a checkout of the repository; install from one, or from a wheel")
    given = argparse.ArgumentParser(add_help=False)
    given.add_argument("--features", action="append", default=[])
    given.add_argument("--target")
    options, _ = given.parse_known_args(arguments)
    # Of the features of the extension, the command has `wasm`.
    has_wasm = "wasm" in re.split(r"[\s,]+", " ".join(options.features))
    command = ["cargo", "build", "--locked", "--package", "amplifier", "--bin", "amplifier", "--profile", profile]
    command += ["--features", "wasm"] if has_wasm else []
    command += ["--target", options.target] if options.target else []
    command += ["--message-format", "json-render-diagnostics"]
    messages = [json.loads(line) for line in _output(*command).splitlines()]
    (program,) = [message["executable"] for message in messages if message.get("executable")]
    return pathlib.Path(program)


def add_command(program: pathlib.Path) -> None:
    """Copies the command to where maturin finds it."""
    shutil.rmtree(SCRIPTS.parent, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    copy = SCRIPTS / program.name
    shutil.copy2(program, copy)
    # Without symbols: those of a program for development take a hundred megabytes. On Windows, they are in a file of their own.
    strip = shutil.which("strip")
    if strip and os.name == "posix":
        subprocess.run([strip, str(copy)], check=True)


def add_licenses() -> None:
    """Collects our licence and those of all crates in the wheel."""
    shutil.rmtree(LICENSES, ignore_errors=True)
    LICENSES.mkdir()
    shutil.copy2(ROOT / "LICENSE", LICENSES / "LICENSE")
    texts: dict[str, list[str]] = {}
    for package in _packages():
        folder = pathlib.Path(package["manifest_path"]).parent
        name = f"{package['name']} {package['version']}"
        files = sorted(path for path in folder.iterdir() if path.is_file() and _LICENCE.match(path.name))
        for text in [path.read_text(errors="replace").strip() for path in files] or [f"Licence: {package['license']}"]:
            texts.setdefault(text, []).append(name)
    parts = [f"{', '.join(names)}\n\n{text}\n" for text, names in texts.items()]
    (LICENSES / "THIRD-PARTY.txt").write_text(f"\n{'-' * 80}\n\n".join(parts), encoding="utf-8")


def _packages() -> list[dict[str, Any]]:
    """Returns the crates of others that the command and the extension are linked from."""
    host = re.search(r"host: (\S+)", _output("rustc", "-vV"))
    assert host is not None
    metadata = json.loads(_output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host[1]))
    packages = {package["id"]: package for package in metadata["packages"]}
    dependencies = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    waiting = [id for id, package in packages.items() if package["name"] in ("amplifier", "amplifier-python")]
    reached: set[str] = set()
    while waiting:
        id = waiting.pop()
        if id not in reached:
            reached.add(id)
            waiting += [dep["pkg"] for dep in dependencies[id] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return sorted((packages[id] for id in reached if packages[id]["source"]), key=lambda package: str(package["name"]))


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _prepare(config_settings: dict[str, Any] | None) -> None:
    import maturin

    arguments = maturin.get_maturin_pep517_args(config_settings)
    profile = argparse.ArgumentParser(add_help=False)
    profile.add_argument("--profile", default=maturin.get_config()["profile"])
    options, rest = profile.parse_known_args(arguments)
    # `--config-settings=program=FILE`: a command that is built already.
    program = (config_settings or {}).get("program")
    add_command(pathlib.Path(program) if program else build_command(options.profile, rest))
    add_licenses()


# ---- the interface of build backends (PEP 517, PEP 660) -------------------------------------------------------------


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    import maturin

    required: list[str] = maturin.get_requires_for_build_wheel(config_settings)
    return required


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    import maturin

    # The metadata name the licences. Without this function, a frontend builds everything to get them.
    add_licenses()
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    metadata: str = maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    return metadata


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    import maturin

    _prepare(config_settings)
    wheel: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return wheel


get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    import maturin

    _prepare(config_settings)
    wheel: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return wheel


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    raise RuntimeError("there is no source distribution, because the command is built from other folders; build a wheel in a checkout of the repository")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", default="dist")
    parser.add_argument("--program", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    add_command(options.program or build_command(options.profile, rest))
    add_licenses()


if __name__ == "__main__":
    main()
