"""Greek names in Latin letters: nobody says which letters stand for which."""

from pathlib import Path

from tunesmith.structured import Training, train

CHUNKS = ("", *"abcdefghiklmnoprstuvxyz", "th", "ch", "ps", "ou", "av", "af", "ev", "ef")
TEMPLATES = (
    lambda word, at, chunk: f"{word[at]} {chunk}",
    lambda word, at, chunk: f"{word[at - 1 : at + 1]} {chunk}",
    lambda word, at, chunk: f"{word[at - 2 : at + 1]} {chunk}",
    lambda word, at, chunk: f"{word[at - 1 : at + 2]} {chunk}",
)


class Transliteration:
    def __init__(self, templates):
        self.templates = templates

    def start(self, word):
        return 2, ""  # letters that are read, after two marks for the start; what is written

    def is_end(self, word, state):
        return state[0] == len(word)

    def actions(self, word, state):
        return CHUNKS

    def apply(self, word, state, chunk):
        return state[0] + 1, state[1] + chunk

    def features(self, word, state, chunk):
        return [template(word, state[0], chunk) for template in self.templates]

    def is_gold(self, word, wanted, state, chunk):
        read, written = self.apply(word, state, chunk)
        return written == wanted if read == len(word) else wanted.startswith(written)

    def output(self, word, chunks):
        return "".join(chunks)


text = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8")
data = [line.split("\t") for line in text.splitlines()]
seen, unseen = ([(f"^^{a}", b) for kind, a, b in data if kind == k] for k in ("train", "test"))
for templates in TEMPLATES[:1], TEMPLATES:
    model = train(Transliteration(templates), seen, Training(beam=4, passes=10))
    right = sum(model.predict([word]) == [wanted] for word, wanted in unseen)
    print(f"{len(templates)} templates: {right} of {len(unseen)} new names right")
