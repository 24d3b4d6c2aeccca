"""WebAssembly components of the world in `crates/modules/wit/hook.wit`, as bytes: there is no compiler for them here.

They are like those that `crates/modules/tests/wasm/mod.rs` has as text.
"""

from __future__ import annotations

import base64

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
