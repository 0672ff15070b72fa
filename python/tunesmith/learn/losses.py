"""Losses of the margin m = w·(f(y+) - f(y-)) of a constraint.

| name       | value                          | slope dL/dm                     |
| ---------- | ------------------------------ | ------------------------------- |
| `hinge`    | max(0, ΔG - m)                 | -1 where ΔG > m, else 0         |
| `logistic` | log(1 + exp(-m))               | -1 / (1 + exp(m))               |
| `softmax`  | log(1 + Σ_j exp(-m_j))         | -exp(-m_j) / (1 + Σ exp(-m_j))  |
| `linear`   | -m                             | -1                              |

`softmax` runs over the constraints of one sentence, which share y+. `linear` is for selectors
whose row already is a gradient (`selectors.Expected`: the expected gain). The ramp loss
-max(s - c) + max(s + c) is the hinge with y+ pinned while y- moves (`HopeFear(pinned=…)`).
The kernels are in core/solve/src/loss.rs; an update of your own can use any other loss.
"""

from __future__ import annotations

from typing import Literal

Loss = Literal["hinge", "logistic", "softmax", "linear"]
