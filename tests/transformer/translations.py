"""Made-up sentence pairs, small models and settings for the tests of translation."""

from itertools import product

from transformer import SubwordTokenizer, TranslationTask
from transformer.subwords import train_subwords
from transformer.translation.pairs import Sentence

WHO = {"The cat": "Le chat", "The dog": "Le chien", "My friend": "Mon ami", "The boy": "Le garçon"}
DOES = {"sees": "voit", "likes": "aime", "wants": "veut", "takes": "prend", "finds": "trouve"}
WHAT = {"the tea": "le thé", "the house": "la maison", "the key": "la clé", "the book": "le livre", "bread": "du pain"}
WHEN = {"": "", " today": " aujourd'hui", " now": " maintenant", " here": " ici"}


def sentences() -> list[Sentence]:
    """400 of them, of 3 to 6 English words; every fifth has a second translation."""
    found = []
    for i, parts in enumerate(product(WHO.items(), DOES.items(), WHAT.items(), WHEN.items())):
        english, french = ("{} {} {}{}.".format(*side) for side in zip(*parts, strict=True))
        found.append(Sentence(english, (french,) if i % 5 else (french, french.replace(".", " !"))))
    return found


def tsv() -> str:
    """The same as lines of a file: one pair a line."""
    return "".join(f"{sentence.english}\t{french}\n" for sentence in sentences() for french in sentence.french)


def tokenizer() -> SubwordTokenizer:
    texts = [text for sentence in sentences() for text in (sentence.english, *sentence.french)]
    return SubwordTokenizer(train_subwords(texts, 500), 64)


def task() -> TranslationTask:
    return TranslationTask(tokenizer().definition, 64, 12, 14)
