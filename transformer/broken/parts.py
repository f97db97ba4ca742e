"""The breakages as data: what is changed against the intact twin, what to predict, and why it goes as it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..tokenizer import EOS

# How much of the intact twin's exact match is left: at least this is "as good", less than that is "next to nothing".
# One source in nine is empty, and a model that ends at once gets it right.
AS_GOOD, NEXT_TO_NOTHING = 0.95, 0.15


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one twin is made and used: what differs from a known model, its training and ordinary decoding.

    base      the settings of ``transformer.train`` to start from.
    config    fields of TransformerConfig.
    settings  fields of TrainSettings.
    decoding  padding, dropout, start: as in ``teacher_forced_loss``, for decoding too.
    """

    base: Literal["quick", "document"] = "quick"
    config: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    decoding: Mapping[str, Any] = field(default_factory=dict)

    def __or__(self, other: "Recipe") -> "Recipe":
        """This recipe with the other's changes on top."""
        return Recipe(
            base=self.base,
            config={**self.config, **other.config},
            settings={**self.settings, **other.settings},
            decoding={**self.decoding, **other.decoding},
        )


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part to break. ``change`` is what the broken twin has on top of the intact one.

    answers  what could happen, from the least damage to the most, in the order of ``outcome``.
    why      the reason, with the equation in which the part stands.
    seeds    those of the shipped results.
    """

    title: str
    done: str
    question: str
    answers: tuple[str, str, str]
    why: str
    intact: Recipe = Recipe()
    change: Recipe
    seeds: tuple[int, ...] = (0, 1, 2)

    @property
    def broken(self) -> Recipe:
        return self.intact | self.change


def outcome(intact: float, broken: float) -> int:
    """Which answer came true, from both twins' exact match: 0 as good, 1 worse, 2 next to nothing left."""
    if broken >= AS_GOOD * intact:
        return 0
    return 1 if broken >= NEXT_TO_NOTHING * intact else 2


_WIDE = Recipe(config={"d_model": 128, "d_ff": 512, "n_heads": 1})
_DEEP = {"n_encoder_layers": 6, "n_decoder_layers": 6}

PARTS: dict[str, Part] = {
    "causal": Part(
        title="Causal mask",
        done="trained without the causal mask: the decoder may look at the tokens that it is to predict",
        question="In training the decoder may now read the whole right answer. How does it decode?",
        answers=(
            "As well as its twin: seeing more cannot hurt.",
            "Worse, but it has learned something.",
            "Hardly anything comes out right.",
        ),
        why="It learned to copy the next token from its own input instead of finding it in the source. At decoding "
        "that token does not exist yet. A loss near 0 proved nothing (Eq. 3.1 and 3.2).",
        change=Recipe(settings={"causal": False}),
    ),
    "positions": Part(
        title="Positions",
        done="no positional encoding is added to the embeddings",
        question="Attention sees a set of tokens and no order. Can such a model reverse a sequence?",
        answers=(
            "Yes: the causal mask gives order enough.",
            "Sometimes, for instance when there is little to mix up.",
            "Next to never.",
        ),
        why="Self-attention is equivariant: permuted tokens give permuted outputs. What is right is then mostly what "
        "no order can spoil: nothing, one symbol, or all symbols alike (Eq. 2.5 to 2.7).",
        change=Recipe(config={"positional": "none"}),
    ),
    "embeddings": Part(
        title="Embeddings' start",
        done="embeddings start as N(0, 1) and are still multiplied by √d_model",
        question="Embeddings now start √d_model = 8 times as large, beside positions of the old size. What happens?",
        answers=("Nothing: training finds its own scale.", "It lags behind its twin.", "It does not learn."),
        why="√d_model was meant to lift N(0, 1/d_model) to the size of the positions. On N(0, 1) it drowns them: order "
        "is whispered, and Adam needs long to turn the embeddings down (Eq. 2.7).",
        change=Recipe(config={"embedding_init": "normal"}),
    ),
    "scale": Part(
        title="1/√d_k",
        done="scores are not divided by √d_k, with one head as wide as 128",
        question="Without the division scores of a head of width 128 are √128 = 11 times as large. What happens?",
        answers=("Nothing: W_Q and W_K can shrink.", "It learns more slowly.", "It does not learn."),
        why="q·k has variance d_k. Softmax then starts saturated, and a saturated softmax passes hardly any gradient "
        "by which W_Q and W_K could shrink (Eq. 1.3 and 1.4).",
        intact=_WIDE,
        change=Recipe(config={"scale_scores": False}),
    ),
    "residual": Part(
        title="Residual connections",
        done="each sublayer replaces the stream instead of adding to it",
        question="What a sublayer does not hand on is now gone. What happens in a model of one layer?",
        answers=("Nothing: one layer is not deep.", "It gets worse.", "It does not learn."),
        why="A token's own identity now has to pass through attention, which hands on mixtures, and gradients have no "
        "straight way back (Eq. 2.3 without its X).",
        change=Recipe(config={"residual": False}),
    ),
    "ffn": Part(
        title="Feed-forward network",
        done="no feed-forward network in any layer",
        question="That takes away most of a layer's parameters. Is reversing possible without?",
        answers=("Nearly as well as with it.", "Worse.", "Not at all."),
        why="Reversing moves tokens, and moving is attention's work. The feed-forward network works at each position "
        "by itself (Eq. 2.4): it stores and transforms, which this task asks little of.",
        change=Recipe(config={"ffn": False}),
    ),
    "heads": Part(
        title="Many heads",
        done="one head of width 64 in place of four of width 16",
        question="One wide head has as many parameters as four narrow ones. What is lost?",
        answers=("Nothing, on this task.", "It gets worse.", "It does not learn."),
        why="Heads let one position look at several places at once (Eq. 1.5 and 1.6). Reversal needs one place at a "
        "time, so one head can do; a task with two things to look up at once cannot.",
        change=Recipe(config={"n_heads": 1}),
    ),
    "warmup": Part(
        title="Warmup, post-LN",
        done="post-LN, 6 + 6 layers, the full learning rate from the first step",
        question="Both are post-LN with 6 + 6 layers. One starts at the full learning rate. What happens?",
        answers=("Nothing: Adam adapts.", "It gets worse.", "It does not learn."),
        why="With post-LN the last layers' gradients are large at the start; full steps then push the model where "
        "gradients vanish (Eq. 2.2; Xiong et al. 2020). See the gradient norms below.",
        intact=Recipe(config={"norm": "post", **_DEEP}),
        change=Recipe(settings={"warmup": 1}),
    ),
    "pre-ln": Part(
        title="Pre-LN, when deep",
        done="LayerNorm after the sum (post-LN) in place of before the sublayer (pre-LN), 12 + 12 layers",
        question="The original order, LayerNorm after each sum, with 12 + 12 layers, same warmup. What happens?",
        answers=("As good: warmup is enough.", "It gets worse.", "It does not learn."),
        why="Pre-LN keeps X untouched as a term of the sum, a straight way for gradients through all layers (Eq. 2.3). "
        "Post-LN normalises that way at each sum (Eq. 2.2) and wants smaller steps when deep.",
        intact=Recipe(config={"n_encoder_layers": 12, "n_decoder_layers": 12}),
        change=Recipe(config={"norm": "post"}),
    ),
    "padding": Part(
        title="Padding mask",
        done="padding may be attended, in training and in decoding",
        question="Sources of 0 to 8 symbols are filled up to 8 with PAD. Now PAD may be attended. What happens?",
        answers=(
            "Nothing: it learns to overlook PAD.",
            "It gets worse: some of its attention goes to nothing.",
            "It does not learn.",
        ),
        why="PAD is a token like any other, and a model can learn to overlook it, or even to count it. What it cannot "
        "do is keep its answers when the padding changes: see the same model without padding (Eq. 3.3).",
        change=Recipe(settings={"padding": False}, decoding={"padding": False}),
    ),
    "padding-decoding": Part(
        title="Padding mask, decoding only",
        done="trained with the padding mask, decoded without",
        question="The mask is there in training and forgotten when decoding a batch. What happens?",
        answers=("Nothing: it learned to overlook PAD.", "It gets worse.", "Hardly anything comes out right."),
        why="It never had to learn what PAD is: masked keys get no weight and so no gradient. Its embedding is still "
        "noise, and now attention looks at it. Only sources of full length are safe (Eq. 1.2).",
        change=Recipe(decoding={"padding": False}),
    ),
    "dropout": Part(
        title="Dropout off at decoding",
        done="dropout 0.1 stays on while decoding: eval() was forgotten",
        question="A tenth of all numbers is still zeroed at random while it decodes. What happens?",
        answers=(
            "Nothing: it trained like that.",
            "Now and then a token goes wrong.",
            "Hardly anything comes out right.",
        ),
        why="Training with noise makes it robust, not immune: each token is another draw, and one wrong token spoils "
        "an answer. The same source decoded twice need not give the same (Eq. 2.2 has Dropout in it).",
        intact=Recipe(config={"dropout": 0.1}),
        change=Recipe(decoding={"dropout": True}),
    ),
    "start": Part(
        title="The right start token",
        done="decoding starts from EOS, training did from BOS",
        question="Some libraries start from <eos>. This model was trained from <bos>. What happens?",
        answers=(
            "Nothing: the first position alone says enough.",
            "Some answers go wrong.",
            "Hardly anything comes out right.",
        ),
        why="<eos> never stood in the decoder's input, so its embedding is still noise, in the one place that every "
        "later token can look back to (Eq. 3.6). How much it hurts is chance: compare the seeds.",
        change=Recipe(decoding={"start": EOS}),
    ),
    "document": Part(
        title="Document 001's experiment",
        done="the embeddings' start again, in document 001's own model and 6,000 steps",
        question="It reports a loss of 0.0985 against 0.0059, and 244 against 256 of 256 right. Does that hold?",
        answers=("The difference is hardly there.", "Yes: it gets worse by about that much.", "It is far worse."),
        why="Embeddings that start √128 = 11 times too large drown the positions; 6,000 steps do not wholly mend it "
        "(Eq. 2.7). The document's losses are of single training batches, with dropout on: compare the curves' ends.",
        intact=Recipe(base="document"),
        change=Recipe(config={"embedding_init": "normal"}),
        seeds=(0,),
    ),
}
