"""The notes of a session."""


class Notes:
    def __init__(self, texts: list[str]) -> None:
        self.texts = list(texts)

    def add(self, text: str) -> None:
        self.texts.append(text)
