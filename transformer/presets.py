"""Known models as configs, and where each comes from."""

from .config import TransformerConfig

PRESETS: dict[str, TransformerConfig] = {
    "treatise": TransformerConfig(
        src_vocab_size=5_000,
        tgt_vocab_size=5_000,
        max_len=100,
        final_norm=True,
        embedding_init="xavier",
    ),
    "reversal": TransformerConfig(
        src_vocab_size=12,
        tgt_vocab_size=12,
        d_model=128,
        n_heads=4,
        d_ff=512,
        n_encoder_layers=2,
        n_decoder_layers=2,
        hidden_dropout=0.0,
        norm="pre",
        init="xavier_attention",
    ),
    "config-object": TransformerConfig(
        src_vocab_size=37_000,
        tgt_vocab_size=37_000,
        final_norm=True,
        init="default",
        embedding_init="normal",
        layer_norm="unbiased",
        norm_eps=1e-6,
        output="log_probs",
    ),
    "encoder-tour": TransformerConfig(
        src_vocab_size=10_000,
        tgt_vocab_size=10_000,
        d_model=64,
        n_heads=8,
        d_ff=256,
        n_encoder_layers=4,
        n_decoder_layers=0,
        dropout=0.0,
        norm="pre",
        activation="gelu",
        attention_bias=False,
        init="default",
        embedding_init="normal",
        scale_embeddings=False,
    ),
    "paper-base": TransformerConfig(
        src_vocab_size=37_000,
        tgt_vocab_size=37_000,
        tie_embeddings=True,
    ),
}

PRESET_NOTES: dict[str, str] = {
    "treatise": (
        "Document 000, “The Transformer Architecture: Encoder–Decoder Mechanisms”, part 4: post-LN with the paper's "
        "sizes, one more LayerNorm at the end of each stack and Xavier matrices throughout; 5,000 + 5,000 words. "
        "51,825,544 parameters."
    ),
    "reversal": (
        "Document 001, “Deep Learning: Transformers”: pre-LN and ReLU, 2 + 2 layers, 128 wide, embeddings drawn from "
        "N(0, 1/d_model) for the sake of sqrt(d_model); reverses sequences of 9 symbols. 930,828 parameters."
    ),
    "config-object": (
        "Document 002, “One config object for the whole model”: the paper's sizes; its text says pre-LN, its code is "
        "post-LN. LayerNorm over n - 1 with eps outside the root, N(0, 1) embeddings times sqrt(d_model), "
        "log-probabilities out. 101,009,544 parameters."
    ),
    "encoder-tour": (
        "Document 004, “Transformer Architecture”: a pre-LN encoder alone, 4 layers, 64 wide, 8 heads without biases "
        "in attention, embeddings not scaled. 839,040 parameters."
    ),
    "paper-base": (
        "Vaswani et al. 2017, Table 3, base: post-LN, 6 + 6 layers, 512 wide, 8 heads, one matrix of 37,000 words "
        "for both embeddings and the output (section 3.4). 63,119,496 parameters with the output's bias; the "
        "paper's table says 65 million."
    ),
}
