"""How text becomes rows: the pieces of a source, and the rows that the encoder reads for them."""

import math

import streamlit as st

from app.code import code
from app.live import pack, rows_panel
from app.rows_run import merging, rows
from transformer import Checkpoint, SubwordTokenizer, merge_steps
from transformer.model import Embedding

KEY = "rows"
DIGITS = 8  # numbers of each row that are shown in digits


def show(checkpoint: Checkpoint, src: list[int]) -> None:
    """Under a closed heading: the source's pieces, how they were cut, and their rows."""
    config, cut = checkpoint.config, isinstance(checkpoint.tokenizer, SubwordTokenizer)
    adds = config.positional in ("sinusoidal", "learned")
    with st.expander("How text becomes rows"):
        rows_panel(key=KEY, data=panel_data(checkpoint, src))
        st.write(
            "A model reads no letters. Each piece has a number, its id, and the id picks one row of a matrix that "
            "training has filled: the same id, the same row, wherever it stands. "
            + ("What tells places apart is added to it. " if adds else "")
            + "From here on every layer is given (S, d_model) and gives (S, d_model): the text has made S, and d_model "
            "was chosen (004, steps 1 and 2)."
        )
        st.latex(_equation(config.scale_embeddings, adds))
        code(*([merge_steps] if cut else []), Embedding.parts)


def _equation(scales: bool, adds: bool) -> str:
    """Eq. 2.7 as far as the model follows it."""
    number = r" \qquad (2.7)" if scales and adds else ""
    return r"X^{(0)} = \mathrm{Embed}(x)" + (r"\cdot\sqrt{D}" if scales else "") + (" + PE" if adds else "") + number


def panel_data(checkpoint: Checkpoint, src: list[int]) -> bytes:
    """The block that the panel draws."""
    model, config, tokenizer = checkpoint.model, checkpoint.config, checkpoint.tokenizer
    found = rows(model, src)
    matrix = model.src_embedding.token.weight.detach().numpy()
    arrays = {"looked_up": matrix[src, :DIGITS], "tokens": found.tokens, "stream": found.stream}
    if found.positions is not None:
        arrays["positions"] = found.positions
    header = {
        "ids": src,
        "pieces": tokenizer.pieces(src),
        "words": [[word.start, word.stop] for word in tokenizer.words(src)],
        "merging": merging(tokenizer, src),
        "merges": tokenizer.n_merges if isinstance(tokenizer, SubwordTokenizer) else 0,
        "vocabulary": config.src_vocab_size,
        "width": config.d_model,
        "max_len": config.max_len,
        "positional": config.positional,
        "scale": math.sqrt(config.d_model) if config.scale_embeddings else None,
        "digits": min(DIGITS, config.d_model),
        "residual": found.residual,
    }
    return pack(header, arrays)
