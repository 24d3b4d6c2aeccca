"""Writes the names of the events into the stubs, from the installed package: run it after the kernel's catalog has changed."""

import pathlib
import re

from amplifier_core._native import EVENTS, HookRegistry

PACKAGE = pathlib.Path(__file__).parent / "python" / "amplifier_core"


def constants(values: dict[str, str], indent: str) -> str:
    return "".join(f'{indent}{name}: Final = "{value}"\n' for name, value in values.items())


def main() -> None:
    head = 'from typing import Final\n\nfrom amplifier_core._native import ALL_EVENTS as ALL_EVENTS\n\n'
    names = "".join(f'    "{name}",\n' for name in ["ALL_EVENTS", *EVENTS])
    (PACKAGE / "events.pyi").write_text(f"{head}__all__ = [\n{names}]\n\n{constants(EVENTS, '')}")
    native = PACKAGE / "_native.pyi"
    of_class = constants({name: getattr(HookRegistry, name) for name in EVENTS}, "    ")
    pattern = re.compile(r"(    # begin of the events\n).*?(    # end of the events\n)", re.DOTALL)
    native.write_text(pattern.sub(lambda found: found[1] + of_class + found[2], native.read_text()))


if __name__ == "__main__":
    main()
