"""Experiments: recipes that run a table or figure of a paper again, and judge its claims.

>>> recipe = read_recipe(find_recipe("eidelman2012-strategies"), "smoke")
>>> recipe.seeds
1
"""

from tunesmith.experiments.claims import Evidence, Judged, overall, verdict
from tunesmith.experiments.fields import SCALES
from tunesmith.experiments.recipe import Recipe, System, find_recipe, read_recipe, shipped
from tunesmith.experiments.runner import Lab
from tunesmith.experiments.tasks import find_task, task_names

__all__ = [
    "SCALES",
    "Evidence",
    "Judged",
    "Lab",
    "Recipe",
    "System",
    "find_recipe",
    "find_task",
    "overall",
    "read_recipe",
    "shipped",
    "task_names",
    "verdict",
]
