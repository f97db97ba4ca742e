"""Translation by a model that was trained elsewhere, with Marian (Junczys-Dowmunt et al. 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..pieces import PieceTokenizer
from .translation import TranslationTask

# By code: what a language is called, and sentences to begin with.
_LANGUAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "de": ("German", ("Die Katze schläft auf dem Stuhl.", "Wo hast du dieses Buch gekauft?")),
    "en": ("English", tuple(TranslationTask.examples.values())),
    "es": ("Spanish", ("El gato duerme en la silla.", "¿Dónde compraste este libro?")),
    "fi": ("Finnish", ("Kissa nukkuu tuolilla.", "Mistä ostit tämän kirjan?")),
    "fr": ("French", ("Le chat dort sur la chaise.", "Où as-tu acheté ce livre ?")),
    "it": ("Italian", ("Il gatto dorme sulla sedia.", "Dove hai comprato questo libro?")),
    "nl": ("Dutch", ("De kat slaapt op de stoel.", "Waar heb je dit boek gekocht?")),
    "pt": ("Portuguese", ("O gato dorme na cadeira.", "Onde você comprou este livro?")),
    "ru": ("Russian", ("Кошка спит на стуле.", "Где ты купил эту книгу?")),
    "sv": ("Swedish", ("Katten sover på stolen.", "Var köpte du den här boken?")),
}
_THREE_LETTERS = {
    "deu": "de", "eng": "en", "spa": "es", "fin": "fi", "fra": "fr", "ita": "it", "nld": "nl", "por": "pt",
    "rus": "ru", "swe": "sv",
}  # fmt: skip
_ANY_LANGUAGE = ("Anna, Paris, 2024.",)


@dataclass(frozen=True)
class MarianTask(TranslationTask):
    """Translate a sentence between the languages of a converted model.

    subwords        the definition of the tokenizer, see ``PieceTokenizer``.
    longest_source  most source tokens, and longest_target most target tokens, that are reckoned with: chosen at the
                    conversion, as it is not known how long the sentences of the training were.
    languages       as a person reads it, "English to French".
    source_language its code, "en" or "eng"; "" when it is not known.
    """

    name = "marian"

    languages: str
    source_language: str

    @property
    def title(self) -> str:
        return self.languages

    @property
    def prompt(self) -> str:
        language, _ = _LANGUAGES.get(_code(self.source_language), ("the source language", ()))
        codes = self.tokenizer.codes
        return f"a sentence in {language}" + (f", after the language wanted, such as {codes[0]}" if codes else "")

    @property
    def examples(self) -> Mapping[str, str]:
        _, sentences = _LANGUAGES.get(_code(self.source_language), ("", _ANY_LANGUAGE))
        before = f"{self.tokenizer.codes[0]} " if self.tokenizer.codes else ""
        return {sentence: before + sentence for sentence in sentences}

    @cached_property
    def tokenizer(self) -> PieceTokenizer:
        return PieceTokenizer(self.subwords, self.max_positions)


def language(code: str) -> str:
    """What a language is called, or its code where this is not known."""
    return _LANGUAGES[_code(code)][0] if _code(code) in _LANGUAGES else code


def _code(code: str) -> str:
    return _THREE_LETTERS.get(code, code)
