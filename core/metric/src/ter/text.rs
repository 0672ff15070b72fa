//! Tercom's normalisation.

use std::borrow::Cow;

use super::Ter;
use crate::tokenize::{is_space, split_marks, split_numbers};

impl Ter {
    /// The text as its words are compared.
    pub(super) fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text.trim_end_matches(is_space));
        if text.is_empty() {
            return text;
        }
        if !self.case_sensitive {
            text = Cow::Owned(text.to_lowercase());
        }
        if self.normalized {
            text = Cow::Owned(normalize(&text));
            if self.asian_support {
                text = Cow::Owned(split_asian(&text));
            }
        }
        if self.no_punct {
            let asian = self.asian_support;
            let dropped = |&c: &char| !(western_mark(c) || asian && asian_mark(c));
            text = Cow::Owned(text.chars().filter(dropped).collect());
        }
        text
    }
}

fn normalize(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for (from, to) in
        [("\n-", ""), ("\n", " "), ("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")]
    {
        if text.contains(from) {
            text = Cow::Owned(text.replace(from, to));
        }
    }
    let text = String::from_utf8(split_marks(&format!(" {text} "))).expect("whole characters");
    split_numbers(text.replace("'s ", " 's ").as_bytes())
}

/// Sets ideographs and East Asian marks apart. (Tercom has rules for kana, too, but they can
/// only match a text without the spaces that were put around it before.)
fn split_asian(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if ideograph(c) || asian_mark(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

fn ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{31c0}'..='\u{31ef}'
        | '\u{2e80}'..='\u{2eff}' | '\u{3200}'..='\u{3f22}' | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe4f}')
}

fn western_mark(c: char) -> bool {
    matches!(c, '.' | ',' | '?' | ':' | ';' | '!' | '"' | '(' | ')')
}

fn asian_mark(c: char) -> bool {
    matches!(c,
        '\u{3001}' | '\u{3002}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}'
        | '\u{30fb}' | '\u{ff61}'..='\u{ff65}' | '\u{ff01}' | '\u{ff02}' | '\u{ff08}'
        | '\u{ff09}' | '\u{ff0c}' | '\u{ff0e}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenize::words;

    fn prepared(ter: &Ter, text: &str) -> String {
        words(&ter.prepare(text)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_do_what_tercom_does() {
        let text = "Tom's 3.5&quot;, (5-6) 東京。";
        assert_eq!(prepared(&Ter::default(), text), "tom's 3.5&quot;, (5-6) 東京。");
        let mut ter = Ter { normalized: true, case_sensitive: true, ..Ter::default() };
        assert_eq!(prepared(&ter, text), "Tom 's 3.5 \" , ( 5 - 6 ) 東京。");
        ter.asian_support = true;
        assert_eq!(prepared(&ter, text), "Tom 's 3.5 \" , ( 5 - 6 ) 東 京 。");
        ter.no_punct = true;
        assert_eq!(prepared(&ter, text), "Tom 's 35 5 - 6 東 京");
    }
}
