"""Folders of small Marian models with random weights, written by the library whose format it is."""

import io
import json
import shutil
import warnings
from itertools import product
from pathlib import Path

import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

from tests.transformer.small import seeded

ENGLISH = [
    " ".join(words)
    for words in product(
        ("The cat", "My friend", "Élodie's dog", "A naïve boy"), ("sees", "likes", "wants", "12 345"),
        ("the tea.", "the house!", "bread?", "“the book”…", "a café - or two"),
    )
]  # fmt: skip
FRENCH = [
    " ".join(words)
    for words in product(
        ("Le chat", "Mon ami", "Le chien d'Élodie", "Un garçon naïf"), ("voit", "aime", "veut", "ждёт"),
        ("le thé.", "la maison !", "du pain ?", "« le livre »…", "l'œuf"),
    )
]  # fmt: skip

# Sizes that differ and do not divide one another, as far as heads allow.
SIZES = {
    "d_model": 14, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 7,
    "decoder_attention_heads": 7, "encoder_ffn_dim": 23, "decoder_ffn_dim": 23, "max_position_embeddings": 61,
}  # fmt: skip


def spm(sentences: list[str], vocab_size: int = 70, **options) -> bytes:
    """A sentencepiece model of these sentences."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, vocab_size=vocab_size, character_coverage=1.0,
        hard_vocab_limit=False, minloglevel=2, num_threads=1, **options,
    )  # fmt: skip
    return model.getvalue()


def write_tokenizer(folder: Path, codes: tuple[str, ...] = ()) -> int:
    """source.spm, target.spm and one vocab.json for both, in Marian's order. Returns the number of symbols."""
    symbols = {"</s>": 0, "<unk>": 1}
    for name, sentences in (("source.spm", ENGLISH), ("target.spm", FRENCH)):
        model = spm(sentences)
        (folder / name).write_bytes(model)
        read = sentencepiece.SentencePieceProcessor(model_proto=model)
        for i in range(3, read.get_piece_size()):
            symbols.setdefault(read.id_to_piece(i), len(symbols))
    for symbol in (*codes, "<pad>"):
        symbols.setdefault(symbol, len(symbols))
    (folder / "vocab.json").write_text(json.dumps(symbols), encoding="utf-8")
    settings = {"source_lang": "en", "target_lang": "fr"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return len(symbols)


def fresh_model(n_symbols: int, **changes) -> MarianMTModel:
    """A model with random weights; what changes is a setting of its config."""
    pad = n_symbols - 1
    settings = {"activation_function": "swish", "scale_embedding": True, "vocab_size": n_symbols, "dropout": 0.0}
    config = MarianConfig(
        **(SIZES | settings | changes),
        pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=None,
        attn_implementation="eager",  # which gives its weights too
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = MarianMTModel(config).eval()
    model.generation_config = GenerationConfig(
        bad_words_ids=[[pad]], pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad
    )
    return model


@torch.no_grad()
def unsettle(model: MarianMTModel) -> MarianMTModel:
    """Move every parameter to where a forgotten or a misplaced one would show; the tables of sinusoids stay."""
    generator = seeded(5)
    for name, p in model.named_parameters():
        if "embed_positions" not in name:
            p.add_(0.4 * torch.randn(p.shape, generator=generator))
    model.final_logits_bias.normal_(generator=generator)
    return model


def teach(model: MarianMTModel, tokenizer: MarianTokenizer, steps: int) -> MarianMTModel:
    """Train on the sentences above until it translates them; then make PAD what it would write if it were allowed."""
    pad = model.config.pad_token_id
    pairs = tokenizer(ENGLISH, text_target=FRENCH, return_tensors="pt", padding=True)
    labels = pairs["labels"].masked_fill(pairs["labels"] == pad, -100)
    model.final_logits_bias.normal_(generator=seeded(5))
    optimizer, generator = torch.optim.Adam(model.parameters()), seeded(6)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 0.01 * min(1, (step + 1) / 30)
        rows = torch.randperm(len(labels), generator=generator)[:8]
        loss = model(pairs["input_ids"][rows], pairs["attention_mask"][rows], labels=labels[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.final_logits_bias[0, pad] = 99.0
    return model


def copy(folder: Path, to: Path, *left_out: str) -> Path:
    """The folder once more, without the files of these names."""
    shutil.copytree(folder, to, ignore=lambda _, __: left_out)
    return to


def read_tokenizer(folder: Path) -> MarianTokenizer:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses", UserWarning)
        return MarianTokenizer.from_pretrained(folder)
