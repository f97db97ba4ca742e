"""What to expect of a softmax over n keys whose logits are independent N(0, variance), by integrals.

Dot products of d_k independent terms tend to this as d_k grows, with variance d_k, or 1 when divided by sqrt(d_k).
An average over n logits is an n-fold integral; 1/Z = int exp(-t Z) dt and its like bring it down to two, because
E exp(-t Z) is L(t)^n with L(t) = E exp(-t e^z). The remaining integrals are sums over fine, even grids.
Each raises ValueError for a variance that is not positive.
"""

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional as F

STEP = 1 / 8
REACH = 9.0  # deviations; a normal variable is further out with probability 2e-19


def expected_slope(variance: float) -> float:
    """E sigma'(gap) of a gap N(0, variance). For a wide one 1 / sqrt(2 pi variance): 1 / sqrt(4 pi d_k) at 2 d_k."""
    gap = _grid(-40.0, 40.0)
    density = _density(gap, _deviation(variance))
    return float((torch.sigmoid(gap) * torch.sigmoid(-gap) * density).sum() * STEP)


def median_slope(variance: float) -> float:
    """The median of sigma'(gap), gap N(0, variance): sigma' falls with |gap|, whose median is 0.6745 deviations."""
    gap = _deviation(variance) * math.sqrt(2) * float(torch.erfinv(torch.tensor(0.5, dtype=torch.float64)))
    return math.exp(-gap) / (1 + math.exp(-gap)) ** 2


def expected_trace(n_keys: int, variance: float) -> float:
    """E [1 - |s|^2]. From 1/Z^2 = int t exp(-t Z) dt: E |s|^2 = n int t L''(t) L(t)^(n-1) dt."""
    _, laplace, second, step = _laplace(variance)
    return float(1 - n_keys * (second * laplace ** (n_keys - 1)).sum() * step)


def expected_entropy(n_keys: int, variance: float) -> float:
    """E of the row's entropy, in nats: E ln Z - E sum s_i z_i, and E sum s_i z_i = variance E [1 - |s|^2] (Stein).

    E ln Z = int (exp(-t) - L(t)^n) / t dt.
    """
    u, laplace, _, step = _laplace(variance)
    log_sum = ((-u.exp()).exp() - laplace**n_keys).sum() * step
    return float(log_sum - variance * expected_trace(n_keys, variance))


def expected_largest(n_keys: int, variance: float) -> float:
    """E of the largest weight, 1 / (1 + sum of exp(z_i - m) over the other keys), m being the largest logit.

    n int phi(m) int exp(-t) G(m, t)^(n-1) dt dm, with G(m, t) = E [exp(-t exp(z - m)); z < m]. G is
    P(z < m) - int_0^inf (1 - exp(-t exp(-w))) phi(m - w) dw, whose integrand soon ends however wide phi is.
    """
    deviation = _deviation(variance)
    m = torch.linspace(-REACH, REACH, 145, dtype=torch.float64) * deviation
    u = _grid(-40.0, 4.0)
    # w ends where phi or the integrand does, and starts where it does not: Simpson's rule.
    w = torch.linspace(0.0, min(45.0, 2 * REACH * deviation), 361, dtype=torch.float64)
    simpson = torch.full_like(w, float(w[1]) / 3)
    simpson[1:-1:2] *= 4
    simpson[2:-1:2] *= 2
    lost = -torch.expm1(-(u[:, None] - w).exp())  # (U, W)
    below = 0.5 * torch.erfc(-m / (deviation * math.sqrt(2)))
    under = (below - (lost * simpson) @ _density(m - w[:, None], deviation)).clamp(min=0)  # G, (U, M)
    inner = ((u - u.exp()).exp()[:, None] * under ** (n_keys - 1)).sum(dim=0) * STEP
    return float(n_keys * (_density(m, deviation) * inner).sum() * (m[1] - m[0]))


@functools.lru_cache(maxsize=1)
def _laplace(variance: float) -> tuple[Tensor, Tensor, Tensor, float]:
    """u = ln t on an even grid, L(t) and t^2 L''(t) there, each (U,), and the grid's step."""
    deviation = _deviation(variance)
    step = min(1 / 3, deviation / 8)  # at 1/2 the sums already err by 5e-7
    reach, least = math.ceil(REACH * deviation / step), math.ceil((REACH * deviation + 40) / step)
    z = torch.arange(-reach, reach + 1, dtype=torch.float64) * step
    # ln(t e^z) = ln t + z takes its values on one grid, so each sum over z is a correlation with the density.
    x = torch.arange(-least - reach, 2 * reach + math.ceil(5 / step) + 1, dtype=torch.float64) * step
    kernel = (_density(z, deviation) * step).view(1, 1, -1)
    both = torch.stack(((-x.exp()).exp(), (2 * x - x.exp()).exp())).unsqueeze(1)
    laplace, second = F.conv1d(both, kernel).squeeze(1)
    u = (torch.arange(len(laplace), dtype=torch.float64) - least) * step
    return u, laplace, second, step


def _deviation(variance: float) -> float:
    if not variance > 0:
        raise ValueError(f"a variance of {variance} has no normal density; it must be more than 0")
    return math.sqrt(variance)


def _grid(start: float, end: float) -> Tensor:
    return torch.linspace(start, end, round((end - start) / STEP) + 1, dtype=torch.float64)


def _density(x: Tensor, deviation: float) -> Tensor:
    return torch.exp(-0.5 * (x / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
