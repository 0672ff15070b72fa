//! A sentence as it comes in: words, and what the user says about some of them.

use std::borrow::Cow;
use std::ops::Range;

use tunesmith_text::{Error, Result, Watch};

/// A sentence to translate: its words, and translations that are given for some of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Input<'a> {
    pub words: Vec<Cow<'a, str>>,
    pub given: Vec<Given>,
    pub placeholders: Vec<Placeholder>,
    /// No phrase may reach across these places (each before the word of that number).
    pub walls: Vec<usize>,
    /// Spans that must be translated as a whole before anything else.
    pub zones: Vec<Range<usize>>,
    pub stop: Stop<'a>,
}

/// Who may end a search before it is done, if anybody: what it finds then is not to be used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop<'a>(Option<&'a Watch>);

impl<'a> Stop<'a> {
    pub fn by(watch: &'a Watch) -> Stop<'a> {
        Stop(Some(watch))
    }

    pub fn is_asked(self) -> bool {
        self.0.is_some_and(Watch::is_stopped)
    }
}

/// Sentences are the same whoever may stop their search.
impl PartialEq for Stop<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A translation that the user gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    pub span: Range<usize>,
    pub words: Vec<String>,
    /// Added to the score: the logarithm of a probability.
    pub score: f32,
    /// No other phrase may touch the span.
    pub exclusive: bool,
}

/// A word that stands for something that the model need not know.
#[derive(Debug, Clone, PartialEq)]
pub struct Placeholder {
    /// Its place in the sentence.
    pub at: usize,
    /// What translations have in its place.
    pub word: String,
    /// What comes out instead.
    pub entity: String,
}

/// The most words that are marked together: they are not cut, however long they are.
const LONGEST: usize = 1000;

/// What markup in the input means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Markup {
    /// Nothing: tags are words.
    #[default]
    None,
    /// Given translations are the only ones for their words.
    Exclusive,
    /// They compete with those of the model.
    Inclusive,
    /// Tags are taken out and forgotten.
    Ignore,
}

impl Markup {
    pub const ALL: [(&'static str, Markup); 4] = [
        ("none", Markup::None),
        ("exclusive", Markup::Exclusive),
        ("inclusive", Markup::Inclusive),
        ("ignore", Markup::Ignore),
    ];
}

impl<'a> Input<'a> {
    pub fn plain(text: &'a str) -> Input<'a> {
        let words = text.split_whitespace().map(Cow::Borrowed).collect();
        Input { words, ..Input::default() }
    }

    /// Reads markup as Moses does:
    /// `<np translation="the house||a house" prob="0.8||0.2">das haus</np>` gives translations,
    /// `<wall/>` is a place that no phrase may reach across, `<zone>das haus</zone>` must be
    /// translated as a whole, `<ne entity="100" translation="@num@">@num@</ne>` is a placeholder:
    /// the model translates the word inside, and where the translation (the word itself if none is
    /// told) comes out, the entity is put. XML's entities, such as `&lt;` and `&#39;`, are characters.
    pub fn parse(text: &'a str, markup: Markup) -> Result<Input<'a>> {
        let mut input = Input::default();
        if markup == Markup::None {
            return Ok(Input::plain(text));
        }
        let mut open: Vec<(Tag<'a>, usize)> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            input.read(&rest[..at]);
            let end = end_of_tag(&rest[at..]).ok_or_else(|| bad("a tag is not closed by >"))? + at;
            let inside = rest[at + 1..end].trim();
            rest = &rest[end + 1..];
            if let Some(name) = inside.strip_prefix('/') {
                let (tag, start) =
                    open.pop().filter(|(tag, _)| tag.name == name.trim()).ok_or_else(|| {
                        bad(&format!("</{}> closes nothing that is open", name.trim()))
                    })?;
                if markup != Markup::Ignore {
                    input.close(&tag, start, markup)?;
                }
                continue;
            }
            let (inside, alone) = match inside.strip_suffix('/') {
                Some(inside) => (inside, true),
                None => (inside, false),
            };
            let tag = Tag::parse(inside)?;
            let place = input.words.len();
            match (alone, tag.name) {
                (false, _) => open.push((tag, place)),
                (true, _) if markup == Markup::Ignore => {}
                (true, "wall") => input.walls.push(place),
                // There is nothing inside.
                (true, _) => input.close(&tag, place, markup)?,
            }
        }
        input.read(rest);
        // What the user translates as a whole has no walls inside.
        let Input { walls, given, .. } = &mut input;
        let whole = given.iter().filter(|given| given.exclusive).map(|given| &given.span);
        walls.retain(|wall| !whole.clone().any(|span| span.start < *wall && *wall < span.end));
        match open.pop() {
            Some((tag, _)) => Err(bad(&format!("<{}> is never closed", tag.name))),
            None => Ok(input),
        }
    }

    /// Adds words that stand between tags.
    fn read(&mut self, text: &'a str) {
        self.words.extend(text.split_whitespace().map(unescaped));
    }

    fn close(&mut self, tag: &Tag<'a>, start: usize, markup: Markup) -> Result<()> {
        let span = start..self.words.len();
        let too_long = || bad(&format!("<{}> has more than {LONGEST} words inside", tag.name));
        if tag.name == "zone" {
            self.zones.push(Some(span).filter(|span| span.len() <= LONGEST).ok_or_else(too_long)?);
            return Ok(());
        }
        let translations = tag.get("translation").or(tag.get("english"));
        if let Some(entity) = tag.get("entity").filter(|_| span.len() == 1) {
            let word = translations.map_or(self.words[start].clone(), unescaped);
            let (word, entity) = (word.trim().to_owned(), unescaped(entity).trim().to_owned());
            if word.is_empty() || word.contains("||") || word.contains(char::is_whitespace) {
                return Err(bad(&format!("{word:?} in <{}> is not one word", tag.name)));
            }
            if entity.is_empty() {
                return Err(bad(&format!("the entity of <{}> is empty", tag.name)));
            }
            self.placeholders.push(Placeholder { at: start, word, entity });
            return Ok(());
        }
        let Some(translations) = tag.get("entity").or(translations) else { return Ok(()) };
        if span.is_empty() {
            return Err(bad(&format!("<{}> has no words inside", tag.name)));
        }
        if span.len() > LONGEST {
            return Err(too_long());
        }
        let translations: Vec<&str> = translations.split("||").collect();
        let probabilities: Vec<f32> = match tag.get("prob") {
            None => vec![1.0; translations.len()],
            Some(text) => text
                .split("||")
                .map(|number| number.trim().parse().ok().filter(|p: &f32| *p > 0.0 && *p <= 1.0))
                .collect::<Option<_>>()
                .ok_or_else(|| bad("prob is not a list of probabilities"))?,
        };
        if probabilities.len() != translations.len() {
            return Err(bad("there are not as many probabilities as translations"));
        }
        for (translation, probability) in translations.iter().zip(probabilities) {
            let translation = unescaped(translation);
            let words: Vec<String> = translation.split_whitespace().map(str::to_owned).collect();
            if words.len() > usize::from(u16::MAX) {
                return Err(bad(&format!(
                    "a translation in <{}> has {} words",
                    tag.name,
                    words.len()
                )));
            }
            self.given.push(Given {
                span: span.clone(),
                words,
                score: probability.ln(),
                exclusive: markup == Markup::Exclusive,
            });
        }
        Ok(())
    }

    /// Whether a phrase of the model may cover a span.
    pub fn allows(&self, span: &Range<usize>) -> bool {
        let meets = |other: &Range<usize>| other.start < span.end && span.start < other.end;
        let within = |a: &Range<usize>, b: &Range<usize>| a.start >= b.start && a.end <= b.end;
        self.walls.iter().all(|&wall| wall <= span.start || wall >= span.end)
            && self
                .zones
                .iter()
                .all(|zone| !meets(zone) || within(span, zone) || within(zone, span))
            && !self.given.iter().any(|given| given.exclusive && meets(&given.span))
    }

    /// Pieces of at most about `limit` words, cut behind punctuation where there is some and never
    /// inside what the user marked, be it longer than a piece.
    pub fn pieces(&self, limit: usize) -> Vec<Input<'a>> {
        let limit = limit.max(2);
        if self.words.len() <= limit {
            return vec![self.clone()];
        }
        let may_cut = |cut: &usize| {
            let splits = |span: &Range<usize>| span.start < *cut && *cut < span.end;
            !self.zones.iter().any(splits) && !self.given.iter().any(|given| splits(&given.span))
        };
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < self.words.len() {
            let mut end = self.words.len();
            if end - start > limit {
                let ends = |word: &str| word.chars().all(|letter| letter.is_ascii_punctuation());
                let (half, most) = (start + limit / 2, start + limit);
                let mut cuts = (half..=most).rev().filter(may_cut);
                let behind = cuts.clone().find(|&cut| ends(&self.words[cut - 1]));
                let anywhere = (start + 1..half).rev().chain(most + 1..end).find(may_cut);
                end = behind.or_else(|| cuts.next()).or(anywhere).unwrap_or(end);
            }
            pieces.push(self.piece(start..end));
            start = end;
        }
        pieces
    }

    fn piece(&self, range: Range<usize>) -> Input<'a> {
        let inside = |span: &Range<usize>| span.start >= range.start && span.end <= range.end;
        let moved = |span: &Range<usize>| span.start - range.start..span.end - range.start;
        Input {
            words: self.words[range.clone()].to_vec(),
            given: (self.given.iter().filter(|given| inside(&given.span)))
                .map(|given| Given { span: moved(&given.span), ..given.clone() })
                .collect(),
            placeholders: (self.placeholders.iter().filter(|one| range.contains(&one.at)))
                .map(|one| Placeholder { at: one.at - range.start, ..one.clone() })
                .collect(),
            walls: (self.walls.iter().filter(|wall| range.contains(wall)))
                .map(|wall| wall - range.start)
                .collect(),
            zones: self.zones.iter().filter(|zone| inside(zone)).map(moved).collect(),
            stop: self.stop,
        }
    }
}

struct Tag<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Tag<'a> {
    fn parse(text: &'a str) -> Result<Tag<'a>> {
        let text = text.trim();
        let (name, mut rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if name.is_empty() {
            return Err(bad("a tag without a name"));
        }
        let mut attributes = Vec::new();
        rest = rest.trim_start();
        while !rest.is_empty() {
            let wrong = || bad(&format!("an attribute of <{name}> is not name=\"value\""));
            let (key, after) = rest.split_once('=').ok_or_else(wrong)?;
            let after = after.trim_start();
            let quote =
                after.chars().next().filter(|c| matches!(c, '"' | '\'')).ok_or_else(wrong)?;
            let (value, after) = after[1..].split_once(quote).ok_or_else(wrong)?;
            attributes.push((key.trim(), value));
            rest = after.trim_start();
        }
        Ok(Tag { name, attributes })
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.attributes.iter().find(|attribute| attribute.0 == key).map(|attribute| attribute.1)
    }
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let named = rest.find(';').and_then(|end| Some((entity(&rest[1..end])?, end + 1)));
        let (letter, length) = named.unwrap_or(('&', 1));
        plain.push(letter);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain.into()
}

/// What XML writes between & and ;.
fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            let number = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            char::from_u32(number.ok()?)
        }
    }
}

/// Where the > of a tag is; one in quotes is part of a value.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices().find_map(|(at, letter)| {
        match (quote, letter) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        None
    })
}

fn bad(message: &str) -> Error {
    Error::new(format!("the markup cannot be read: {message}"))
        .remedy("write <tag translation=\"…\">words</tag>, and &lt; for a < that opens no tag")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translations_are_given() {
        let text = "das ist <np translation=\"the house||a house\" prob='0.8||0.2'>das haus</np> !";
        let input = Input::parse(text, Markup::Exclusive).unwrap();
        assert_eq!(input.words, ["das", "ist", "das", "haus", "!"]);
        assert_eq!(input.given.len(), 2);
        assert_eq!(input.given[1].span, 2..4);
        assert_eq!(input.given[1].words, ["a", "house"]);
        assert!((input.given[1].score - 0.2f32.ln()).abs() < 1e-6);
        assert!(!input.allows(&(3..5)) && input.allows(&(0..2)));
    }

    #[test]
    fn walls_and_zones_stop_phrases() {
        let input = Input::parse("a <wall/> b <zone> c d </zone> e", Markup::Inclusive).unwrap();
        assert_eq!(input.words, ["a", "b", "c", "d", "e"]);
        assert!(!input.allows(&(0..2)) && input.allows(&(1..4)) && input.allows(&(2..3)));
        assert!(!input.allows(&(3..5)) && input.allows(&(2..5)));
    }

    #[test]
    fn bad_markup_is_refused() {
        let given = ["<n translation=\"x\"></n>", "<n translation=\"x\"/>", "a <n entity='x' /> b"];
        for text in ["<a", "<a>b", "b</a>", "<a b>c</a>", "< >a</ >"].into_iter().chain(given) {
            assert!(Input::parse(text, Markup::Exclusive).is_err(), "{text}");
        }
        assert_eq!(Input::parse("a <br/> b", Markup::Exclusive).unwrap(), Input::plain("a b"));
        assert_eq!(Input::parse(given[1], Markup::Ignore).unwrap(), Input::plain(""));
        assert_eq!(Input::parse("a < b", Markup::None).unwrap().words, ["a", "<", "b"]);
        assert_eq!(Input::parse("<x>a</x>", Markup::Ignore).unwrap(), Input::plain("a"));
    }

    #[test]
    fn escapes_are_characters() {
        let text = "3 &lt; 5 <n translation=\"a > b &amp; &amp;lt;\">x&amp;y</n>";
        let input = Input::parse(text, Markup::Exclusive).unwrap();
        assert_eq!(input.words, ["3", "<", "5", "x&y"]);
        assert_eq!(input.given[0].words, ["a", ">", "b", "&", "&lt;"]);
        assert_eq!(Input::parse("&lt;", Markup::None).unwrap().words, ["&lt;"]);
        let text = "&apos;s &#39;&#x27; &amp;apos; & &c; &#x110000; &;";
        let input = Input::parse(text, Markup::Exclusive).unwrap();
        assert_eq!(input.words, ["'s", "''", "&apos;", "&", "&c;", "&#x110000;", "&;"]);
    }

    #[test]
    fn a_word_stands_for_an_entity() {
        let text = "es kostet <ne translation=\"@num@\" entity=\"100\">@num@</ne> <ne entity='€'>@cur@</ne>";
        let input = Input::parse(text, Markup::Exclusive).unwrap();
        assert!(input.given.is_empty() && input.allows(&(1..4)));
        let told: Vec<_> =
            input.placeholders.iter().map(|p| (p.at, &*p.word, &*p.entity)).collect();
        assert_eq!(told, [(2, "@num@", "100"), (3, "@cur@", "€")]);
        assert_eq!(input.piece(2..4).placeholders[1].at, 1);
    }

    #[test]
    fn what_is_given_as_a_whole_has_no_walls() {
        let text = "<wall/> a <n translation=\"x\"><wall/> b <wall/> c <wall/></n> d";
        assert_eq!(Input::parse(text, Markup::Exclusive).unwrap().walls, [0, 1, 3]);
        assert_eq!(Input::parse(text, Markup::Inclusive).unwrap().walls, [0, 1, 2, 3]);
    }

    #[test]
    fn nothing_is_cut_that_was_marked() {
        let text = "a <n translation=\"x\">b c d e</n> f g <zone> h i j k l m n o </zone> p q";
        for limit in 2..20 {
            let input = Input::parse(text, Markup::Exclusive).unwrap();
            let pieces = input.pieces(limit);
            let words: Vec<_> = pieces.iter().flat_map(|piece| piece.words.clone()).collect();
            assert_eq!(words, input.words);
            assert_eq!(pieces.iter().map(|piece| piece.given.len()).sum::<usize>(), 1, "{limit}");
            assert_eq!(pieces.iter().map(|piece| piece.zones.len()).sum::<usize>(), 1, "{limit}");
        }
    }

    #[test]
    fn long_sentences_are_cut_behind_punctuation() {
        let text = "a b c , d e f g h i j . k";
        let pieces = Input::plain(text).pieces(5);
        let words: Vec<_> = pieces.iter().flat_map(|piece| piece.words.clone()).collect();
        assert_eq!(words.join(" "), text);
        assert!(pieces.iter().all(|piece| piece.words.len() <= 5));
        assert_eq!(pieces[0].words.last().map(|word| &**word), Some(","));
    }
}
