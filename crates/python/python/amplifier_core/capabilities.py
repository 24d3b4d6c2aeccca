"""The usual names of the capabilities of models. A provider may have others."""

from __future__ import annotations

__all__ = [
    "ALL_WELL_KNOWN_CAPABILITIES",
    "AUDIO",
    "BATCH",
    "CODE_EXECUTION",
    "COMPUTER_USE",
    "DEEP_RESEARCH",
    "EMBEDDINGS",
    "FAST",
    "IMAGE_GENERATION",
    "JSON_MODE",
    "LOCAL",
    "LONG_CONTEXT",
    "STREAMING",
    "THINKING",
    "TOOLS",
    "VISION",
    "WEB_SEARCH",
]

TOOLS = "tools"
STREAMING = "streaming"
THINKING = "thinking"
VISION = "vision"
JSON_MODE = "json_mode"
FAST = "fast"
CODE_EXECUTION = "code_execution"
WEB_SEARCH = "web_search"
DEEP_RESEARCH = "deep_research"
LOCAL = "local"
AUDIO = "audio"
IMAGE_GENERATION = "image_generation"
COMPUTER_USE = "computer_use"
EMBEDDINGS = "embeddings"
LONG_CONTEXT = "long_context"
BATCH = "batch"

ALL_WELL_KNOWN_CAPABILITIES = [
    TOOLS,
    STREAMING,
    THINKING,
    VISION,
    JSON_MODE,
    FAST,
    CODE_EXECUTION,
    WEB_SEARCH,
    DEEP_RESEARCH,
    LOCAL,
    AUDIO,
    IMAGE_GENERATION,
    COMPUTER_USE,
    EMBEDDINGS,
    LONG_CONTEXT,
    BATCH,
]
