//! The tagger: one action for each word, its tag.

use tunesmith_text::{Error, Result as TextResult};

use crate::{Contexts, Fault, Task};

/// A tag before the first word.
const START: u32 = u32::MAX;
/// What stands for a word or tag outside the sentence.
const OUTSIDE: &str = "<none>";

/// Chooses a tag for each word, from left to right.
pub struct Tagger {
    tags: Vec<String>,
    /// Templates that look at words only.
    fixed: Vec<Fixed>,
    /// Templates that look at tags that were chosen before.
    moving: Vec<Moving>,
}

/// A sentence, its gold tags where they are known, and its contexts by word.
pub struct TaggedSentence {
    words: Words,
    gold: Vec<u32>,
    fixed: Vec<Vec<u32>>,
}

/// Words as they are written, and as features see them.
struct Words {
    forms: Vec<String>,
    normal: Vec<String>,
}

impl Words {
    /// The normal form of the word at a distance from another.
    fn near(&self, place: usize, distance: isize) -> &str {
        let near = place.checked_add_signed(distance).and_then(|place| self.normal.get(place));
        near.map_or(OUTSIDE, String::as_str)
    }
}

/// Position, tag of the last word, tag of the word before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tagged {
    place: u32,
    last: u32,
    before: u32,
}

type Fixed = fn(&Words, usize, &mut Contexts<'_>);
type Moving = fn(&Words, usize, (&str, &str), &mut Contexts<'_>);

/// Templates by name. Those that NLTK's averaged perceptron has stand first, under the same names
/// for words as there: lower case, with marks for years, other numbers and hyphens.
const FIXED: [(&str, Fixed); 21] = [
    ("bias", |_, _, out| out.add(&["bias"])),
    ("word", |words, at, out| out.add(&["word=", words.near(at, 0)])),
    ("word-1", |words, at, out| out.add(&["word-1=", words.near(at, -1)])),
    ("word-2", |words, at, out| out.add(&["word-2=", words.near(at, -2)])),
    ("word+1", |words, at, out| out.add(&["word+1=", words.near(at, 1)])),
    ("word+2", |words, at, out| out.add(&["word+2=", words.near(at, 2)])),
    ("suffix3", |words, at, out| out.add(&["suffix3=", suffix(&words.forms[at], 3)])),
    ("prefix1", |words, at, out| out.add(&["prefix1=", prefix(&words.forms[at], 1)])),
    ("suffix3-1", |words, at, out| out.add(&["suffix3-1=", suffix(words.near(at, -1), 3)])),
    ("suffix3+1", |words, at, out| out.add(&["suffix3+1=", suffix(words.near(at, 1), 3)])),
    ("form", |words, at, out| out.add(&["form=", &words.forms[at]])),
    ("suffix1", |words, at, out| out.add(&["suffix1=", suffix(&words.forms[at], 1)])),
    ("suffix2", |words, at, out| out.add(&["suffix2=", suffix(&words.forms[at], 2)])),
    ("suffix4", |words, at, out| out.add(&["suffix4=", suffix(&words.forms[at], 4)])),
    ("prefix2", |words, at, out| out.add(&["prefix2=", prefix(&words.forms[at], 2)])),
    ("prefix3", |words, at, out| out.add(&["prefix3=", prefix(&words.forms[at], 3)])),
    ("shape", |words, at, out| out.add(&["shape=", &shape(&words.forms[at])])),
    ("shape-1", |words, at, out| {
        let last =
            at.checked_sub(1).map_or_else(|| OUTSIDE.to_owned(), |at| shape(&words.forms[at]));
        out.add(&["shape-1=", &last]);
    }),
    ("first,shape", |words, at, out| {
        out.add(&["first,shape=", if at == 0 { "yes," } else { "no," }, &shape(&words.forms[at])]);
    }),
    ("word-1,word", |words, at, out| {
        out.add(&["word-1,word=", words.near(at, -1), ",", words.near(at, 0)]);
    }),
    ("word,word+1", |words, at, out| {
        out.add(&["word,word+1=", words.near(at, 0), ",", words.near(at, 1)]);
    }),
];
const MOVING: [(&str, Moving); 6] = [
    ("tag-1", |_, _, (last, _), out| out.add(&["tag-1=", last])),
    ("tag-2", |_, _, (_, before), out| out.add(&["tag-2=", before])),
    ("tag-2,tag-1", |_, _, (last, before), out| out.add(&["tag-2,tag-1=", before, ",", last])),
    ("tag-1,word", |words, at, (last, _), out| {
        out.add(&["tag-1,word=", last, ",", words.near(at, 0)]);
    }),
    ("tag-1,word+1", |words, at, (last, _), out| {
        out.add(&["tag-1,word+1=", last, ",", words.near(at, 1)]);
    }),
    ("tag-1,suffix3", |words, at, (last, _), out| {
        out.add(&["tag-1,suffix3=", last, ",", suffix(&words.forms[at], 3)]);
    }),
];

/// The names of all templates.
pub fn template_names() -> Vec<&'static str> {
    let fixed = FIXED.iter().map(|&(name, _)| name);
    fixed.chain(MOVING.iter().map(|&(name, _)| name)).collect()
}

impl Tagger {
    /// Refuses names of templates that do not exist.
    pub fn new(tags: Vec<String>, templates: &[String]) -> TextResult<Self> {
        let (mut fixed, mut moving) = (Vec::new(), Vec::new());
        for name in templates {
            let known = FIXED.iter().find(|(known, _)| known == name);
            let other = MOVING.iter().find(|(known, _)| known == name);
            match (known, other) {
                (Some(&(_, template)), _) => fixed.push(template),
                (None, Some(&(_, template))) => moving.push(template),
                (None, None) => {
                    let remedy = format!("there are {}", template_names().join(", "));
                    return Err(Error::new(format!("no template is named {name:?}")).remedy(remedy));
                }
            }
        }
        if tags.is_empty() || templates.is_empty() {
            return Err(Error::new("a tagger needs tags and templates"));
        }
        Ok(Tagger { tags, fixed, moving })
    }

    /// A sentence to tag, or with all its tags to learn from.
    pub fn sentence(&self, forms: Vec<String>, tags: &[String]) -> TextResult<TaggedSentence> {
        let gold: TextResult<Vec<u32>> = tags
            .iter()
            .map(|tag| match self.tags.iter().position(|known| known == tag) {
                Some(place) => Ok(place as u32),
                None => Err(Error::new(format!("no tag is named {tag:?}"))),
            })
            .collect();
        let gold = gold?;
        if !gold.is_empty() && gold.len() != forms.len() {
            return Err(Error::new(format!("{} words have {} tags", forms.len(), gold.len())));
        }
        let normal = forms.iter().map(|form| normal(form)).collect();
        Ok(TaggedSentence { words: Words { forms, normal }, gold, fixed: Vec::new() })
    }

    pub fn tag(&self, action: u32) -> &str {
        self.tags.get(action as usize).map_or(OUTSIDE, String::as_str)
    }
}

impl Task for Tagger {
    type Input = TaggedSentence;
    type State = Tagged;
    type View = Tagged;

    fn view(&self, state: &Tagged) -> Tagged {
        *state
    }

    fn start(&self, _: &TaggedSentence) -> Result<Tagged, Fault> {
        Ok(Tagged { place: 0, last: START, before: START })
    }

    fn is_end(&self, input: &TaggedSentence, state: &Tagged) -> Result<bool, Fault> {
        Ok(state.place as usize == input.words.forms.len())
    }

    fn actions(&self, _: &TaggedSentence, _: &Tagged, out: &mut Vec<u32>) -> Result<(), Fault> {
        out.extend(0..self.tags.len() as u32);
        Ok(())
    }

    fn apply(&self, _: &TaggedSentence, state: &Tagged, action: u32) -> Result<Tagged, Fault> {
        Ok(Tagged { place: state.place + 1, last: action, before: state.last })
    }

    fn contexts(
        &self,
        input: &TaggedSentence,
        state: &Tagged,
        out: &mut Contexts<'_>,
    ) -> Result<(), Fault> {
        let place = state.place as usize;
        if let Some(fixed) = input.fixed.get(place) {
            out.add_known(fixed);
        }
        let tags = (self.tag(state.last), self.tag(state.before));
        self.moving.iter().for_each(|template| template(&input.words, place, tags, out));
        Ok(())
    }

    fn is_gold(&self, input: &TaggedSentence, state: &Tagged, action: u32) -> Result<bool, Fault> {
        Ok(input.gold.get(state.place as usize) == Some(&action))
    }

    fn prepare(&self, input: &mut TaggedSentence, contexts: &mut Contexts<'_>) {
        let places = 0..input.words.forms.len();
        input.fixed = places
            .map(|place| {
                self.fixed.iter().for_each(|template| template(&input.words, place, contexts));
                contexts.take_ids()
            })
            .collect();
    }
}

/// A word as NLTK's tagger sees it.
fn normal(form: &str) -> String {
    let digits = form.chars().all(|letter| letter.is_numeric());
    if form.contains('-') && !form.starts_with('-') {
        "!HYPHEN".to_owned()
    } else if digits && form.chars().count() == 4 {
        "!YEAR".to_owned()
    } else if form.starts_with(|first: char| first.is_numeric()) {
        "!DIGITS".to_owned()
    } else {
        form.to_lowercase()
    }
}

fn suffix(form: &str, length: usize) -> &str {
    let start = form.char_indices().rev().nth(length - 1).map_or(0, |(start, _)| start);
    &form[start..]
}

fn prefix(form: &str, length: usize) -> &str {
    let end = form.char_indices().nth(length).map_or(form.len(), |(end, _)| end);
    &form[..end]
}

/// `Xx` for capitalised words, `d` for numbers; letters of a kind stand for all that follow them.
fn shape(form: &str) -> String {
    let mut shape = String::new();
    for letter in form.chars() {
        let kind = match letter {
            _ if letter.is_uppercase() => 'X',
            _ if letter.is_alphabetic() => 'x',
            _ if letter.is_numeric() => 'd',
            other => other,
        };
        if !shape.ends_with(kind) {
            shape.push(kind);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_look_as_in_nltk() {
        let seen = ["Well-known", "-", "1984", "12.5", "House"].map(normal);
        assert_eq!(seen, ["!HYPHEN", "-", "!YEAR", "!DIGITS", "house"]);
        assert_eq!((suffix("Häuser", 3), suffix("ab", 3), prefix("Über", 1)), ("ser", "ab", "Ü"));
        assert_eq!((shape("McDonald's-2000").as_str(), shape("").as_str()), ("XxXx'x-d", ""));
    }

    #[test]
    fn templates_that_do_not_exist_are_refused_by_name() {
        let made = Tagger::new(vec!["N".to_owned()], &["wrod".to_owned()]);
        assert!(made.err().is_some_and(|error| error.to_string().contains("wrod")));
        let mut names = template_names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIXED.len() + MOVING.len());
    }
}
