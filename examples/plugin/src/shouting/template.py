"""`--features capitals`: whether a rule keeps the number of words in capitals."""

from tunesmith.decode.templates import Template, register


class Capitals(Template):
    """One feature for rules that keep it, another for those that do not."""

    def find(self, source, target, links, scores):
        kept = len({sum(word.isupper() for word in side) for side in (source, target)}) == 1
        return {"capitals:kept" if kept else "capitals:changed": 1.0}


register("capitals", Capitals)
