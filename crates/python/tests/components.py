"""WebAssembly components of the world in `crates/modules/wit/hook.wit`, as bytes: there is no compiler for them here.

They are like those that `crates/modules/tests/wasm/mod.rs` has as text.
"""

from __future__ import annotations

import asyncio
import base64
import os

import pytest

from amplifier_core.bundles import mount, parse
from amplifier_core.hooks import HookRegistry

#: What a package says that was built without components.
WITHOUT = "this program was built without `wasm` hooks; rebuild with `--features wasm`"


def are_built_in() -> bool:
    """Whether the package was built with components, or has to be."""
    try:
        asyncio.run(mount(HookRegistry(), parse("hooks: [{wasm: none.wasm, on: 'tool:pre'}]")))
    except ValueError as error:
        return WITHOUT not in str(error) or "NEEDS_COMPONENTS" in os.environ
    raise AssertionError("there is no component")


needs_components = pytest.mark.skipif(not are_built_in(), reason="the package was built without components")


#: Answers `{"action": "deny", "reason": "the component says no"}`, whatever it is asked.
DENIES = base64.b64decode(
    "AGFzbQ0AAQABxwEAYXNtAQAAAAEPAmAEf39/fwF/YAJ/fwF/AwMCAAEFAwEAAgYIAX8BQYCABAsHHgMGbWVtb3J5AgAIYWxsb2NhdGUAAAZoYW5kbGUAAQoh"
    "AgsAIwAjACADaiQACxMAQRRBgAg2AgBBGEE1NgIAQRALCzwBAEGACAs1eyJhY3Rpb24iOiAiZGVueSIsICJyZWFzb24iOiAidGhlIGNvbXBvbmVudCBzYXlz"
    "IG5vIn0AFwRuYW1lAAcGbW9kdWxlBwcBAARmcmVlAgQBAAAABxMCagFzAXNAAQdyZXF1ZXN0cwAABiQDAAABAAZoYW5kbGUAAgEABm1lbW9yeQAAAQAIYWxs"
    "b2NhdGUICgEAAAACAwAEAQELDAEABmhhbmRsZQEAAAArDmNvbXBvbmVudC1uYW1lAQsAEQEABm1vZHVsZQENABIBAAhpbnN0YW5jZQ=="
)

#: Computes for ever.
LOOPS = base64.b64decode(
    "AGFzbQ0AAQABZQBhc20BAAAAAQ8CYAR/f39/AX9gAn9/AX8DAwIAAQUDAQACBx4DBm1lbW9yeQIACGFsbG9jYXRlAAAGaGFuZGxlAAEKEAIFAEGACAsIAANA"
    "DAALAAsADgRuYW1lAAcGbW9kdWxlAgQBAAAABxMCagFzAXNAAQdyZXF1ZXN0cwAABiQDAAABAAZoYW5kbGUAAgEABm1lbW9yeQAAAQAIYWxsb2NhdGUICgEA"
    "AAACAwAEAQELDAEABmhhbmRsZQEAAAArDmNvbXBvbmVudC1uYW1lAQsAEQEABm1vZHVsZQENABIBAAhpbnN0YW5jZQ=="
)
