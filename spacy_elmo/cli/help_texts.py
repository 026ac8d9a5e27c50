"""Help texts of arguments that several commands have."""

CORPUS_HELP = (
    "Text (.txt), JSON lines with a text each (.jsonl) or docs (.spacy), gzipped or not, or a directory of them"
)
PROCESSES_HELP = "The number of processes that tokenize raw text"
LANG_HELP = "The language of raw text. Without --lang, the text is tokenized, one sentence per line"
SEGMENTER_HELP = (
    "How raw Chinese text is cut into words: char (each character is a word) or jieba; by default {default}"
)
WEIGHTS_HELP = (
    "A weights directory, or the name of a bundled model; by default that of the language, or else en_elmo_sm"
)
WEIGHTS_ARG_HELP = "A weights directory, or the name of a bundled model, such as en_elmo_sm"
RESULTS_HELP = "Also write the results to this file, as JSON, for `spacy elmo report`"
