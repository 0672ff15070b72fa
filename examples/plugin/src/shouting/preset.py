"""`--tuner timid-mira`: MIRA with very small steps."""

from typing import Annotated

from tunesmith.learn.online import Learner, Online, Schedule
from tunesmith.learn.options import Doc
from tunesmith.learn.selectors import HopeFear
from tunesmith.learn.updates import PassiveAggressive
from tunesmith.presets import preset


@preset
def timid_mira(*, c: Annotated[float, Doc("C, the largest step")] = 1e-4):
    """1-best MIRA that hardly dares to move."""
    learner = Learner(selector=HopeFear(), update=PassiveAggressive(c))
    return Online(learner=learner, schedule=Schedule(passes=3))
