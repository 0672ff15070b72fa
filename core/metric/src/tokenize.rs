//! sacreBLEU's tokenisers: text in, the same text with its tokens set apart by white space out.

use std::borrow::Cow;

use unicode_properties::{GeneralCategoryGroup as Group, UnicodeGeneralCategory};

/// White space as sacreBLEU's language sees it: Unicode's, and the separators U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The words of a text, none of them empty.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The tokenisers that need no data files and no dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tokenizer {
    /// White space alone.
    None,
    /// mteval-v13a, sacreBLEU's default.
    #[default]
    V13a,
    /// mteval-v14 with Unicode classes.
    Intl,
    /// Every character is a token.
    Char,
}

impl Tokenizer {
    /// The tokeniser sacreBLEU calls `name`, if it is one of these.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Tokenizer::None),
            "13a" => Some(Tokenizer::V13a),
            "intl" => Some(Tokenizer::Intl),
            "char" => Some(Tokenizer::Char),
            _ => None,
        }
    }

    /// The text with white space between its tokens; [`words`] splits it.
    pub fn apply<'a>(self, text: &'a str) -> Cow<'a, str> {
        let text = text.trim_end_matches(is_space);
        match self {
            Tokenizer::None => Cow::Borrowed(text),
            Tokenizer::V13a => Cow::Owned(v13a(text)),
            Tokenizer::Intl => Cow::Owned(intl(text)),
            Tokenizer::Char => Cow::Owned(text.chars().flat_map(|c| [c, ' ']).collect()),
        }
    }
}

/// Writes `text` with every neighbouring pair that the two tests accept set apart: a space
/// between the two, and one behind (`behind`) or in front. Pairs are found left to right and
/// share no element, as in a global substitution.
pub(crate) fn split_pairs<T: Copy>(
    text: &[T],
    space: T,
    first: impl Fn(T) -> bool,
    second: impl Fn(T) -> bool,
    behind: bool,
) -> Vec<T> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 2);
    let mut position = 0;
    while position < text.len() {
        let head = text[position];
        position += 1;
        let tail = text.get(position).copied().filter(|&tail| first(head) && second(tail));
        match tail {
            Some(tail) if behind => out.extend([head, space, tail, space]),
            Some(tail) => out.extend([space, head, space, tail]),
            None => {
                out.push(head);
                continue;
            }
        }
        position += 1;
    }
    out
}

/// The Western rules that mteval-v13a and Tercom share, in two steps with room for Tercom's
/// possessives between them. Bytes do: no rule looks inside a character.
pub(crate) fn split_marks(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    for &byte in text.as_bytes() {
        match byte {
            b'{'..=b'~' | b'['..=b'`' | b' '..=b'&' | b'('..=b'+' | b':'..=b'@' | b'/' => {
                out.extend([b' ', byte, b' ']);
            }
            _ => out.push(byte),
        }
    }
    out
}

/// The second step: periods and commas that are not inside a number, dashes after a digit.
pub(crate) fn split_numbers(text: &[u8]) -> String {
    let digit = |byte: u8| byte.is_ascii_digit();
    let other = |byte: u8| !byte.is_ascii_digit();
    let stop = |byte: u8| byte == b'.' || byte == b',';
    let text = split_pairs(text, b' ', other, stop, true);
    let text = split_pairs(&text, b' ', stop, other, false);
    let text = split_pairs(&text, b' ', digit, |byte| byte == b'-', true);
    String::from_utf8(text).expect("spaces go between whole characters")
}

fn v13a(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for (from, to) in [
        ("<skipped>", ""),
        ("-\n", ""),
        ("\n", " "),
        ("&quot;", "\""),
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
    ] {
        if text.contains(from) {
            text = Cow::Owned(text.replace(from, to));
        }
    }
    split_numbers(&split_marks(&format!(" {text} ")))
}

fn intl(text: &str) -> String {
    let with_group = |c: char| (c, c.general_category_group());
    let is = |group: Group| move |(_, other): (char, Group)| other == group;
    let is_not = |group: Group| move |(_, other): (char, Group)| other != group;
    let space = with_group(' ');
    let text: Vec<(char, Group)> = text.chars().map(with_group).collect();
    let text = split_pairs(&text, space, is_not(Group::Number), is(Group::Punctuation), true);
    let text = split_pairs(&text, space, is(Group::Punctuation), is_not(Group::Number), false);
    let mut out = String::with_capacity(text.len() * 2);
    for (c, group) in text {
        if group == Group::Symbol {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokenizer: Tokenizer, text: &str) -> String {
        words(&tokenizer.apply(text)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn mteval_13a_splits_marks_but_not_numbers() {
        let text = "It's 3.14, i.e. $5-6 (\"pi\") &amp; <skipped>more..";
        assert_eq!(
            tokens(Tokenizer::V13a, text),
            "It's 3.14 , i . e . $ 5 - 6 ( \" pi \" ) & more . ."
        );
    }

    #[test]
    fn international_leaves_the_last_period_of_a_number_as_mteval_does() {
        assert_eq!(
            tokens(Tokenizer::Intl, "„Im Jahr 1984.“ 5 € 1984."),
            "„ Im Jahr 1984 . “ 5 € 1984."
        );
    }

    #[test]
    fn characters_and_blanks() {
        assert_eq!(tokens(Tokenizer::Char, "añ b "), "a ñ b");
        for tokenizer in [Tokenizer::None, Tokenizer::V13a, Tokenizer::Intl, Tokenizer::Char] {
            assert_eq!(tokens(tokenizer, " \u{1c}\u{3000}\n"), "");
        }
    }
}
