"""What the Saturation page says beside its pictures."""

from typing import Any

import streamlit as st
import torch

from transformer import expected_slope, sigmoid_slope, typical_gap

_ROWS = "Points: mean over random rows; bars: the middle 80 % of them, cut at the floor."
_NORMAL = (
    "Line: an integral over independent normal logits, which dot products become as d_k grows; at small d_k the "
    "points may leave it."
)
_SLOPES = (
    "Full: at a gap of one standard deviation (exact). Dashed: median, dotted: mean, both over normal gaps. "
    "Points: measured; bars of the chosen one: the middle 80 % of "
)

NOTES = {
    "variance": f"Line: d_k and 1, exact for components of variance 1 (Eq. 1.3, 1.4). {_ROWS}",
    "gap": f"Line: 2 d_k and 2, exact (Eq. 1.4c). {_ROWS}",
    "entropy": f"{_NORMAL} {_ROWS}",
    "largest": f"{_NORMAL} {_ROWS}",
    "trace": f"{_NORMAL} {_ROWS} Trace: Eq. 1.4b.",
    "typical": f"{_SLOPES}16 batches.",
    "median": f"{_SLOPES}gaps.",
    "mean": f"{_SLOPES}16 batches.",
}


def equations() -> None:
    """What the pictures show, with the treatise's numbers, and the longer argument behind a closed heading."""
    left, right = st.columns(2, gap="medium")
    left.latex(
        r"\begin{aligned} \mathrm{Var}(q \cdot k) &= d_k & (1.3) \\ "
        r"\mathrm{Var}(q \cdot k / \sqrt{d_k}) &= 1 & (1.4) \\ "
        r"\mathrm{Var}(z_1 - z_2) &= 2 d_k & (1.4c) \end{aligned}"
    )
    right.latex(
        r"\begin{aligned} J_{ij} = \frac{\partial s_i}{\partial z_j} &= s_i (\delta_{ij} - s_j) & (1.4a) \\ "
        r"\mathrm{tr}\,J &= 1 - \lVert s \rVert^2 & (1.4b) \end{aligned}"
    )
    with st.expander("Why √d_k?"):
        st.write(
            "The paper suspects that long dot products push softmax where it is flat (3.2.1, note 4). In numbers: a "
            "dot product adds up d_k independent terms of mean 0 and variance 1, so its variance is d_k, and that of "
            "the gap between two keys 2 d_k. Divided by √d_k both stop growing. J is all that a change of the logits "
            "can do to the weights. Its columns sum to zero, because weight only moves between keys, and its trace "
            "says how much can move at all: nothing once one key has everything."
        )
        st.write(
            "With two keys the trace is 2 σ′(gap). At a gap of one standard deviation, √(2 d_k), σ′ is about "
            f"e^(−√(2 d_k)): at d_k = 64 the division keeps {_typical_ratio(64):,.0f} times the gradient, which the "
            "treatise rounds to 13,000. That is the typical pair, not the average one. σ′ is a bump of area 1 about "
            "gap 0, so its mean over gaps N(0, 2 d_k) tends to their density at 0:"
        )
        st.latex(r"\mathbb{E}\,\sigma'(\Delta) \;\to\; \frac{1}{\sqrt{2\pi \cdot 2 d_k}} = \frac{1}{\sqrt{4 \pi d_k}}")
        st.write(
            f"So the ratio of means at d_k = 64 is only {expected_slope(2) / expected_slope(2 * 64):.1f}. Both are "
            "true: the rare pair that nearly ties still learns, the typical pair hardly does. Document 001 gives the "
            "same Jacobian."
        )


def _typical_ratio(d_k: int) -> float:
    gaps = torch.tensor([typical_gap(d_k), typical_gap(d_k, scaled=False)], dtype=torch.float64)
    scaled, plain = sigmoid_slope(gaps).tolist()
    return scaled / plain


def about_runs(about: dict[str, Any]) -> str:
    """How the measured trainings were made."""
    task, settings, config = about["task"], about["settings"], about["config"]
    return (
        f"Measured: reversing {task['min_len']} to {task['max_len']} symbols; {config['n_encoder_layers']} + "
        f"{config['n_decoder_layers']} layers, {config['norm']}-LN, d_model 64 (128 for d_k 128), d_ff 4 d_model; "
        f"{settings['steps']} steps of {settings['batch_size']}, Adam, learning rate {settings['lr']:g} after "
        f"{settings['warmup']} steps, then straight to 0. All runs again: python -m transformer.scaling. The shown one "
        "without the division, seed 0:"
    )
