//! Where the fields of a `|||` line begin and end, also when the text itself holds a `|||`.

use std::ops::Range;

use memchr::memchr_iter;
use tunesmith_text::{Error, Number, number};

use crate::Format;

/// What is wrong with a line: a reason to count it under, what to say and what to do.
#[derive(Debug)]
pub(crate) struct Fault {
    pub reason: &'static str,
    pub message: String,
    pub remedy: &'static str,
    /// File and line, where they are not those of the list.
    pub place: Option<(String, u64)>,
}

impl Fault {
    pub fn new(reason: &'static str, message: impl Into<String>, remedy: &'static str) -> Self {
        Fault { reason, message: message.into(), remedy, place: None }
    }

    pub fn error(self, file: &str, line: u64) -> Error {
        let (file, line) = self.place.unwrap_or_else(|| (file.to_owned(), line));
        Error::new(self.message).at(file, Some(line)).remedy(self.remedy)
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    pub id: Range<usize>,
    pub text: Range<usize>,
    pub features: Range<usize>,
    pub score: Range<usize>,
    /// Everything behind the score.
    pub extra: Range<usize>,
}

fn space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

pub(crate) fn trim(line: &[u8], mut range: Range<usize>) -> Range<usize> {
    while range.start < range.end && space(line[range.start]) {
        range.start += 1;
    }
    while range.start < range.end && space(line[range.end - 1]) {
        range.end -= 1;
    }
    range
}

pub(crate) fn tokens(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    field.split(|&byte| space(byte)).filter(|token| !token.is_empty())
}

/// A separator is a `|||` with white space, or an end of the line, on both sides. `glued` ones may
/// touch anything but a further bar, which could belong to either side.
fn separators(line: &[u8], glued: bool, out: &mut Vec<usize>) {
    out.clear();
    let mut after = 0;
    let beside = |byte: u8| if glued { byte != b'|' } else { space(byte) };
    for at in memchr_iter(b'|', line) {
        if at < after || line.get(at..at + 3) != Some(b"|||") {
            continue;
        }
        let opens = at == 0 || beside(line[at - 1]);
        let closes = line.get(at + 3).is_none_or(|&byte| beside(byte));
        if opens && closes {
            out.push(at);
            after = at + 3;
        }
    }
}

/// Splits a line. Where separators between spaces give too few fields, glued ones count too. With
/// more than four fields the features are found by what they look like: the last field with labels
/// that has a number behind it (in Travatar's lists before it), else the first of nothing but
/// numbers. What stands between the id and the features, or the score before them, is the text;
/// what stands behind both is extra.
pub(crate) fn split(
    line: &[u8],
    format: Format,
    scratch: &mut Vec<usize>,
) -> Result<Fields, Fault> {
    separators(line, false, scratch);
    if scratch.len() < 3 {
        separators(line, true, scratch);
    }
    let count = scratch.len() + 1;
    if count < 4 {
        return Err(Fault::new(
            "missing fields",
            match format {
                Format::Moses | Format::Cdec => {
                    format!("found {count} of the 4 fields id ||| text ||| features ||| score")
                }
                Format::Travatar => {
                    format!("found {count} of the 4 fields id ||| text ||| score ||| features")
                }
            },
            "separate the fields with ||| between spaces; a list without scores can give 0",
        ));
    }
    let field = |index: usize| {
        let start = if index == 0 { 0 } else { scratch[index - 1] + 3 };
        trim(line, start..scratch.get(index).copied().unwrap_or(line.len()))
    };
    // The first of the two fields that are features and score.
    let at = if count == 4 { 2 } else { find_features(line, format, count, &field) };
    let (features, score) = match format {
        Format::Moses | Format::Cdec => (at, at + 1),
        Format::Travatar => (at + 1, at),
    };
    Ok(Fields {
        id: field(0),
        text: trim(line, scratch[0] + 3..scratch[at - 1]),
        features: field(features),
        score: field(score),
        extra: scratch
            .get(at + 1)
            .map_or(line.len()..line.len(), |&end| trim(line, end + 3..line.len())),
    })
}

/// Tells a list that has the score before the features, where they are expected behind it.
pub(crate) fn swapped(line: &[u8], fields: &Fields, format: Format) -> Option<Fault> {
    let score = &line[fields.score.clone()];
    let mut before = tokens(&line[fields.features.clone()]);
    let alone = before.next().is_some_and(is_number) && before.next().is_none();
    if format == Format::Travatar || !alone {
        return None;
    }
    let remedy = if tokens(score).all(|token| is_label(token, Format::Cdec)) {
        "read it with --format travatar"
    } else if tokens(score).any(|token| is_label(token, Format::Moses)) {
        "write features, then the score; or features as Name=value, and use --format travatar"
    } else {
        return None;
    };
    let message = "the score stands before the features, as Travatar and qaware-decode write them";
    (!score.is_empty()).then(|| Fault::new("missing fields", message, remedy))
}

fn find_features(
    line: &[u8],
    format: Format,
    count: usize,
    field: &impl Fn(usize) -> Range<usize>,
) -> usize {
    let (features, score) = if format == Format::Travatar { (1, 0) } else { (0, 1) };
    let scored = |index: usize| matches!(number(&line[field(index + score)]), Number::Finite(_));
    let labelled = |index: usize| {
        let bytes = &line[field(index + features)];
        let mut labels = tokens(bytes).filter(|token| is_label(token, format)).peekable();
        labels.peek().is_some()
            && match format {
                Format::Moses => tokens(bytes).last().is_some_and(is_number),
                Format::Cdec | Format::Travatar => {
                    tokens(bytes).all(|token| is_label(token, format))
                }
            }
    };
    let bare = |index: usize| tokens(&line[field(index + features)]).all(is_number);
    (2..count - 1)
        .rev()
        .find(|&index| scored(index) && labelled(index))
        .or_else(|| (2..count - 1).find(|&index| scored(index) && bare(index)))
        .unwrap_or(2)
}

fn is_number(token: &[u8]) -> bool {
    number(token) != Number::Text
}

fn is_label(token: &[u8], format: Format) -> bool {
    match format {
        Format::Moses => token.len() > 1 && matches!(token.last(), Some(b'=' | b':')),
        Format::Cdec | Format::Travatar => {
            memchr::memrchr(b'=', token).is_some_and(|at| at > 0 && is_number(&token[at + 1..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str, format: Format) -> [&str; 5] {
        let fields = split(line.as_bytes(), format, &mut Vec::new()).unwrap();
        [fields.id, fields.text, fields.features, fields.score, fields.extra]
            .map(|range| &line[range])
    }

    #[test]
    fn plain_lines() {
        assert_eq!(
            parts("0 ||| a b  ||| LM0= -1 ||| -2", Format::Moses),
            ["0", "a b", "LM0= -1", "-2", ""]
        );
        assert_eq!(
            parts("7 |||  ||| LM0= -1 ||| -2 ||| 0=0 1=1 ||| 0-0 1-1 ", Format::Moses),
            ["7", "", "LM0= -1", "-2", "0=0 1=1 ||| 0-0 1-1"]
        );
        assert_eq!(parts("0 ||| ||| ||| 1", Format::Moses), ["0", "", "", "1", ""]);
        assert_eq!(parts("0 ||| ||| ||| 1 |||", Format::Cdec), ["0", "", "", "1", ""]);
    }

    #[test]
    fn separators_inside_the_text() {
        assert_eq!(
            parts("0 ||| a ||| b ||| LM0= -1 TM0= 2 3 ||| -2", Format::Moses),
            ["0", "a ||| b", "LM0= -1 TM0= 2 3", "-2", ""]
        );
        assert_eq!(
            parts("0 ||| a ||| 5 ||| 6 ||| LM0= -1 ||| -2 ||| 0-0", Format::Moses),
            ["0", "a ||| 5 ||| 6", "LM0= -1", "-2", "0-0"]
        );
        assert_eq!(
            parts("0 ||| ||| ||| ||| A=1 B=2 ||| -2", Format::Cdec),
            ["0", "||| |||", "A=1 B=2", "-2", ""]
        );
        assert_eq!(parts("0 ||| a|||b |||| ||| A=1 ||| 2", Format::Cdec)[1], "a|||b ||||");
    }

    #[test]
    fn numbers_without_labels_are_taken_at_the_first_place() {
        assert_eq!(
            parts("0 ||| a ||| -1 -2 ||| -3 ||| 5", Format::Moses),
            ["0", "a", "-1 -2", "-3", "5"]
        );
        assert_eq!(
            parts("0 ||| a ||| b ||| -1 -2 ||| -3", Format::Moses),
            ["0", "a ||| b", "-1 -2", "-3", ""]
        );
    }

    #[test]
    fn separators_without_spaces() {
        for line in [
            "0|||a b|||LM0= -1|||-2",
            "0 |||a b||| LM0= -1 |||-2",
            "0\t|||\ta b\t|||LM0=\t-1|||  -2",
        ] {
            let [id, text, features, score, extra] = parts(line, Format::Moses);
            assert_eq!([id, text, score, extra], ["0", "a b", "-2", ""]);
            assert_eq!(tokens(features.as_bytes()).collect::<Vec<_>>(), [&b"LM0="[..], b"-1"]);
        }
        assert_eq!(
            parts("0|||a|||b|||LM0= -1|||-2|||0-0", Format::Moses),
            ["0", "a|||b", "LM0= -1", "-2", "0-0"]
        );
        assert_eq!(parts("0|||a|||A=1|||-2", Format::Cdec), ["0", "a", "A=1", "-2", ""]);
    }

    #[test]
    fn the_score_comes_first_in_travatar() {
        assert_eq!(
            parts("0 ||| a b ||| -2 ||| A=1 B=2", Format::Travatar),
            ["0", "a b", "A=1 B=2", "-2", ""]
        );
        assert_eq!(
            parts("0 ||| a ||| b ||| -2 ||| A=1 ||| (S (X a) (X b))", Format::Travatar),
            ["0", "a ||| b", "A=1", "-2", "(S (X a) (X b))"]
        );
        assert_eq!(parts("0 ||| a ||| -2 |||", Format::Travatar), ["0", "a", "", "-2", ""]);
    }

    #[test]
    fn a_score_in_the_wrong_place_is_named() {
        for (line, format, remedy) in [
            ("0 ||| a ||| -2 ||| A=1 B=2", Format::Moses, "--format travatar"),
            ("0 ||| a ||| -2 ||| A=1 ||| (S a)", Format::Cdec, "--format travatar"),
            ("0 ||| a ||| -2 ||| lm= 1 tm= 2 3", Format::Moses, "then the score"),
        ] {
            let fields = split(line.as_bytes(), format, &mut Vec::new()).unwrap();
            let fault = swapped(line.as_bytes(), &fields, format).unwrap();
            assert!(fault.remedy.contains(remedy), "{}", fault.remedy);
        }
        for line in ["0 ||| a ||| -1 ||| x", "0 ||| a ||| -1 |||", "0 ||| a ||| lm= 1 ||| x=1"] {
            let fields = split(line.as_bytes(), Format::Moses, &mut Vec::new()).unwrap();
            assert!(swapped(line.as_bytes(), &fields, Format::Moses).is_none());
        }
    }

    #[test]
    fn too_few_fields() {
        for line in ["", "0", "0 ||| a", "0 ||| a ||| LM0= 1", "0|||a||||LM0= 1|||2"] {
            let fault = split(line.as_bytes(), Format::Moses, &mut Vec::new()).unwrap_err();
            assert_eq!(fault.reason, "missing fields");
        }
    }
}
