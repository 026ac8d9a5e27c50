"""Text that UTF-8 can hold."""


def drop_surrogates(text: str) -> str:
    """Drop lone surrogates: halves of characters, which JSON and Python's texts can hold, and UTF-8 cannot.

    text (str): The text.
    RETURNS (str): The text without them.
    """
    return text.encode("utf8", "ignore").decode("utf8")
