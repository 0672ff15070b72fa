//! Rules written down by hand, to see what features make of them.

use tunesmith_align::Link;
use tunesmith_rules::Symbol;
use tunesmith_text::Names;

use super::Rule;
use crate::{Spell, Spelling};

/// A rule in words; gaps are `[X,1]` and `[X,2]`.
pub struct WrittenRule {
    source: Side,
    target: Side,
    links: Vec<Link>,
    scores: Vec<f32>,
}

#[derive(Default)]
struct Side {
    symbols: Vec<Symbol>,
    words: Names,
    spellings: Vec<Spelling>,
}

impl Side {
    fn new<'w>(words: impl IntoIterator<Item = &'w str>) -> Side {
        let mut side = Side::default();
        for word in words {
            let symbol = match word {
                "[X,1]" => Symbol::Gap(1),
                "[X,2]" => Symbol::Gap(2),
                _ => {
                    let id = side.words.intern(word);
                    if id as usize == side.spellings.len() {
                        side.spellings.push(Spelling::word(word));
                    }
                    Symbol::Word(id)
                }
            };
            side.symbols.push(symbol);
        }
        side
    }
}

impl WrittenRule {
    pub fn new<'w>(
        source: impl IntoIterator<Item = &'w str>,
        target: impl IntoIterator<Item = &'w str>,
        links: &[Link],
        scores: &[f32],
    ) -> WrittenRule {
        WrittenRule {
            source: Side::new(source),
            target: Side::new(target),
            links: links.to_vec(),
            scores: scores.to_vec(),
        }
    }

    pub fn rule(&self) -> Rule<'_> {
        Rule {
            source: &self.source.symbols,
            target: &self.target.symbols,
            links: &self.links,
            scores: &self.scores,
            words: self,
        }
    }
}

impl Spell for WrittenRule {
    fn source(&self, word: u32) -> &Spelling {
        &self.source.spellings[word as usize]
    }

    fn target(&self, word: u32) -> &Spelling {
        &self.target.spellings[word as usize]
    }
}
