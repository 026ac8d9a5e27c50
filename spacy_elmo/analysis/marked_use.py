"""How a use of a word is written: the sentence, with the word in square brackets."""

import re

MARKED = re.compile(r"\[([^\[\]]+)\]")
