"""What the Saturation page says beside its pictures."""

from typing import Any

import streamlit as st

_ROWS = "Points: mean over random rows; bars: the middle 80 % of them."
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


def why() -> None:
    """The argument in equations, behind a closed heading."""
    with st.expander("Why √d_k?"):
        st.write(
            "A dot product of d_k independent terms of mean 0 and variance 1 has variance d_k, so the gap between two "
            "keys has variance 2 d_k. Divided by √d_k both stop growing."
        )
        st.latex(
            r"\mathrm{Var}(q \cdot k) = d_k \quad (1.3) \qquad \mathrm{Var}\!\left(\tfrac{q \cdot k}{\sqrt{d_k}}\right)"
            r" = 1 \quad (1.4) \qquad \mathrm{Var}(z_1 - z_2) = 2 d_k \quad (1.4c)"
        )
        st.write(
            "What a logit can change is the softmax’s Jacobian. Its columns sum to zero, because weights only move "
            "between keys, and its trace says how much can move at all: nothing once one key has everything."
        )
        st.latex(
            r"\frac{\partial s_i}{\partial z_j} = s_i (\delta_{ij} - s_j) \quad (1.4a) \qquad "
            r"\mathrm{tr}\,J = 1 - \lVert s \rVert^2 \quad (1.4b)"
        )
        st.write(
            "With two keys the trace is 2 σ′(gap). At a gap of one standard deviation, √(2 d_k), this falls like "
            "e^(−√(2 d_k)): 12,891 times at d_k = 64, which the treatise rounds to 13,000. That is the typical pair, "
            "not the average. σ′ is a bump of area 1 about gap 0, so its mean over gaps N(0, 2 d_k) tends to their "
            "density at 0:"
        )
        st.latex(r"\mathbb{E}\,\sigma'(\Delta) \;\to\; \frac{1}{\sqrt{2\pi \cdot 2 d_k}} = \frac{1}{\sqrt{4 \pi d_k}}")
        st.write(
            "So the ratio of means at d_k = 64 is only about 5. Both are true: the rare pair that nearly ties still "
            "learns, the typical pair hardly does. Equations: treatise 1.2; document 001 gives the same Jacobian."
        )


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
