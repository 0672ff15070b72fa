"""Learning with any search that builds its output step by step.

A `Task` says what states, actions and features are; `train` learns its weights with a beam search
and updates that fix violations; a `Model` predicts. `Tagger` and `Parser` are tasks of the core.

>>> model = train(Tagger(), [(("a", "dog", "barks"), ("DET", "NOUN", "VERB"))])
>>> model.predict([("a", "dog", "barks")])
[('DET', 'NOUN', 'VERB')]
"""

from tunesmith.structured.conllu import Sentence, Word, read_conllu, write_conllu
from tunesmith.structured.model import Model
from tunesmith.structured.scoring import Scores, score
from tunesmith.structured.tasks import Parser, Tagger, Task, Tree
from tunesmith.structured.training import Pass, Training, train

__all__ = [
    "Model",
    "Parser",
    "Pass",
    "Scores",
    "Sentence",
    "Tagger",
    "Task",
    "Training",
    "Tree",
    "Word",
    "read_conllu",
    "score",
    "train",
    "write_conllu",
]
