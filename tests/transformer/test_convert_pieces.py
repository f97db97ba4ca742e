"""Pieces and spaces of sentencepiece, cut here as sentencepiece cuts them."""

import json
import random

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from transformers import MarianTokenizer

from tests.transformer.marian import ENGLISH, FRENCH, fresh_model, read_tokenizer, spm, write_tokenizer
from transformer import BOS, EOS, PAD, PieceTokenizer
from transformer.charsmap import Charsmap, tidy
from transformer.convert.folder import MarianFolder, read_folder
from transformer.convert.settings import id_order, symbols_of
from transformer.convert.spm import read_spm
from transformer.pieces import UNK
from transformer.subwords import SURROGATES

CODES = (">>fra<<", ">>oci<<")
ODD = [
    "", " ", "\t\n", "  The   cat \n sees\tthe tea.  ", "The\u00a0cat\u202fsees", "<pad>", "</s>", "<unk> <s>",
    "the <pad> cat</s>", "Élodie", "E\u0301lodie", "naïve", "nai\u0308ve", "“The book”…", "‘it’s’", "«le livre »",
    "😀", "The 😀😀 cat 👩\u200d👩\u200d👧", "ждёт", "The cat ждёт", "жж cat", "１２ ３４５ ﬁ ｈ\u0354 Ǆ",
    "\u00a8 x", "▁", "▁▁The▁ ▁cat▁", "a▁", "\x00\x07", "\x07 ", "\ufeffThe", "日本語 テキスト", "\ud83d broken \ude00",
    "The cat" * 40, "œ Œ ß ẞ", "İstanbul", "½ ² ™", ">>", ">>fra<<", ">>fra<< The cat", ">>fra<<The cat",
    ">>xyz<< The cat", "The >>fra<< cat", " >>fra<< x", "<<x>>", "$a$ `b` __c__",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> MarianFolder:
    path = tmp_path_factory.mktemp("marian")
    fresh_model(write_tokenizer(path, CODES)).save_pretrained(path)
    return read_folder(path)


@pytest.fixture(scope="module")
def theirs(folder) -> MarianTokenizer:
    return read_tokenizer(folder.path)


@pytest.fixture(scope="module")
def ours(folder) -> PieceTokenizer:
    source = folder.source
    definition = PieceTokenizer.define(
        source.pieces, source.charsmap, source.dummy_prefix, source.single_spaces, symbols_of(folder)
    )
    return PieceTokenizer(definition, 512)


# the same as the library


@pytest.mark.parametrize("text", [*ODD, *ENGLISH[::9], *FRENCH[::9]], ids=ascii)
def test_a_text_is_cut_as_the_library_cuts_it(text, ours, theirs, folder):
    order = id_order(folder)
    # The library, too, can be told that typed text is never a special token.
    expected = theirs(SURROGATES.sub("\ufffd", text), split_special_tokens=True).input_ids
    assert [order[i] for i in ours.encode(text)] == expected


def test_ids_become_the_text_that_the_library_writes(ours, theirs, folder):
    order, draw = id_order(folder), random.Random(1)
    for n in range(200):
        ids = [draw.choice(range(UNK + 1, ours.vocab_size)) for _ in range(n % 13)]
        expected = theirs.decode([order[i] for i in ids], skip_special_tokens=True)
        assert ours.decode([BOS, *ids, EOS, PAD]) == expected
    for text in ENGLISH:
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs(text).input_ids, skip_special_tokens=True)


def test_any_text_is_tidied_as_sentencepiece_does_it(folder):
    reference = sentencepiece.SentencePieceProcessor(model_file=str(folder.path / "source.spm"))
    table, draw = Charsmap.read(folder.source.charsmap), random.Random(2)
    ranges = [(0, 0x250), (0x300, 0x370), (0x1E00, 0x1F00), (0x2000, 0x2070), (0x2581, 0x2582), (0x3040, 0x3130),
              (0xAC00, 0xAC80), (0xFB00, 0xFB10), (0xFF00, 0xFF70), (0x1F1E6, 0x1F200), (0x1F600, 0x1F620)]  # fmt: skip
    for n in range(3_000):
        text = "".join(draw.choice(" \t a") if draw.random() < 0.3 else chr(draw.randrange(*draw.choice(ranges)))
                       for _ in range(n % 12))  # fmt: skip
        assert tidy(text, table, dummy_prefix=True, single_spaces=True) == reference.normalize(text)


@pytest.mark.parametrize("dummy_prefix", [True, False])
@pytest.mark.parametrize("single_spaces", [True, False])
@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc_cf"])
def test_other_rules_are_followed(dummy_prefix, single_spaces, rule, tmp_path):
    model = spm(ENGLISH, 50, add_dummy_prefix=dummy_prefix, remove_extra_whitespaces=single_spaces,
                normalization_rule_name=rule)  # fmt: skip
    (tmp_path / "a.spm").write_bytes(model)
    read, reference = read_spm(tmp_path / "a.spm"), sentencepiece.SentencePieceProcessor(model_proto=model)
    assert (read.dummy_prefix, read.single_spaces) == (dummy_prefix, single_spaces)
    definition = PieceTokenizer.define(
        read.pieces,
        read.charsmap,
        read.dummy_prefix,
        read.single_spaces,
        ["<unk>", *(piece for piece, _ in read.pieces)],
    )
    tokenizer = PieceTokenizer(definition, 512)
    for text in ["", " ", "  The cat  sees\u00a0 tea ", "ÉLODIE’S ½", "x"]:
        expected = [
            piece if reference.piece_to_id(piece) else "<unk>" for piece in reference.encode(text, out_type=str)
        ]
        symbols = json.loads(definition)["symbols"]
        assert [symbols[i - UNK] for i in tokenizer.encode(text)[:-1]] == expected


def test_an_spm_file_is_read_as_its_own_library_reads_it(folder):
    model = sentencepiece_model_pb2.ModelProto.FromString((folder.path / "source.spm").read_bytes())
    read = folder.source
    assert read.pieces == [(piece.piece, piece.score) for piece in model.pieces if piece.type == 1]
    assert len(model.pieces) - len(read.pieces) == 3  # <unk>, <s>, </s>
    assert read.charsmap == model.normalizer_spec.precompiled_charsmap
    assert (read.dummy_prefix, read.single_spaces) == (True, True)


# as a tokenizer of this project


def test_ids_are_in_this_projects_order(ours, folder):
    assert ours.vocab_size == len(folder.symbols) + 1  # PAD's row stands for BOS as well
    assert ours.vocabulary()[:4] == ("<pad>", "<bos>", "<eos>", "<unk>")
    assert id_order(folder)[:5] == [folder.pad, folder.pad, 0, 1, 2]
    assert folder.symbols[folder.pad] == "<pad>"
    assert ours.codes == CODES


def test_typed_text_never_becomes_a_special_token(ours):
    for text in ("<pad>", "</s>", "<bos>", "<eos>", "<s>"):
        ids = ours.encode(text)
        assert ids[-1] == EOS
        assert not {PAD, BOS, EOS} & set(ids[:-1])


def test_labels_mark_what_no_space_stands_before(ours):
    assert ours.labels(ours.encode(">>fra<< bread 😀")) == [">>fra<<", *ours.split("bread")[:-1], "▁", "<unk>", "<eos>"]
    assert ours.split("bread")[0] == "b"
    assert all(label.startswith("·") for label in ours.split("bread")[1:-1])
    assert ours.decode(ours.encode("a 😀 tea")) == "a <unk> tea"


def test_too_long_a_text_and_an_unknown_id_are_refused(ours):
    few = PieceTokenizer(ours.definition, 5)
    assert len(few.encode("a a")) <= 5
    with pytest.raises(ValueError, match=r"tokens are too many: this model takes at most 5\."):
        few.encode("The cat sees")
    with pytest.raises(ValueError, match=f"token id {ours.vocab_size} is outside the vocabulary of {ours.vocab_size}"):
        ours.decode([ours.vocab_size])


@pytest.mark.parametrize(
    "change",
    [
        {"pieces": None}, {"pieces": [["a"]]}, {"pieces": [["a", "x"]]}, {"pieces": [[1, 0.5]]}, {"charsmap": 3},
        {"charsmap": "é"}, {"charsmap": "/////w=="}, {"symbols": []}, {"symbols": [1]}, {"dummy_prefix": "yes"},
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_definition_is_refused(change, ours):
    with pytest.raises(ValueError, match="the definition of the pieces cannot be read"):
        PieceTokenizer(json.dumps(json.loads(ours.definition) | change), 64)
    for text in ("{", "[]", "{}"):
        with pytest.raises(ValueError, match="the definition of the pieces cannot be read"):
            PieceTokenizer(text, 64)


def test_a_damaged_table_of_characters_never_breaks_a_text(folder):
    draw, good = random.Random(3), bytearray(folder.source.charsmap)
    for _ in range(20):
        bad = good.copy()
        for place in draw.choices(range(4, len(bad)), k=len(bad) // 3):
            bad[place] = draw.randrange(256)
        table = Charsmap.read(bytes(bad))
        for text in ODD[:30:3]:
            tidy(text, table, dummy_prefix=True, single_spaces=True)
