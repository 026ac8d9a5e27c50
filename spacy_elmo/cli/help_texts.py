"""Help texts of arguments that several commands have."""

CORPUS_HELP = (
    "Text (.txt), JSON lines with a text each (.jsonl) or docs (.spacy), gzipped or not, or a directory of them"
)
PROCESSES_HELP = "Processes that tokenize raw text"
LANG_HELP = "The language of raw text, to tokenize it; leave it out for one tokenized sentence per line"
