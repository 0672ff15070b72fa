//! One sentence in Pharaoh format: `0-0 1-2`, source position first.

use crate::Link;

/// The links of a line, in its order. `lengths` are the numbers of source and target words where
/// they are known. Refuses what is no pair of numbers and what lies outside the sentence.
pub fn parse(line: &[u8], lengths: Option<(usize, usize)>) -> Result<Vec<Link>, String> {
    let mut links = Vec::new();
    parse_into(line, lengths, &mut links)?;
    Ok(links)
}

/// As [`parse`], into a buffer that is cleared first.
pub fn parse_into(
    line: &[u8],
    lengths: Option<(usize, usize)>,
    links: &mut Vec<Link>,
) -> Result<(), String> {
    links.clear();
    for token in line.split(|&byte| byte == b' ' || byte == b'\t') {
        if token.is_empty() {
            continue;
        }
        let dash = token.iter().position(|&byte| byte == b'-');
        let pair = dash.and_then(|at| Some((digits(&token[..at])?, digits(&token[at + 1..])?)));
        let Some((source, target)) = pair else {
            return Err(format!("{} is not a link such as 3-4", shown(token)));
        };
        if let Some((words, others)) = lengths {
            for (side, position, length) in [("source", source, words), ("target", target, others)]
            {
                if position as usize >= length {
                    return Err(format!(
                        "{} lies outside the {side} sentence of {length} words",
                        shown(token)
                    ));
                }
            }
        }
        match (u16::try_from(source), u16::try_from(target)) {
            (Ok(source), Ok(target)) => links.push((source, target)),
            _ => return Err(format!("{} lies beyond word 65,535", shown(token))),
        }
    }
    Ok(())
}

fn digits(token: &[u8]) -> Option<u32> {
    if token.is_empty() || token.len() > 9 {
        return None;
    }
    token.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0'))
    })
}

fn shown(token: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(token).chars().take(40).collect();
    format!("{text:?}")
}

/// Appends a line without its end.
pub fn format(links: &[Link], out: &mut Vec<u8>) {
    for (position, (source, target)) in links.iter().enumerate() {
        let gap = if position == 0 { "" } else { " " };
        out.extend_from_slice(format!("{gap}{source}-{target}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_link_is_named() {
        for token in ["1", "1-", "-1", "a-b", "1-2-3", "1--2", "+1-2", "9999999999-0", "1:2"] {
            let message = parse(format!("0-0 {token}").as_bytes(), None).unwrap_err();
            assert!(message.contains(token), "{message}");
        }
        assert!(parse(b"0-70000", None).unwrap_err().contains("65,535"));
        assert!(parse(b"3-0", Some((3, 9))).unwrap_err().contains("source sentence of 3 words"));
        assert!(parse(b"0-9", Some((3, 9))).unwrap_err().contains("target sentence of 9 words"));
        assert_eq!(parse(b"  2-8\t0-0 ", Some((3, 9))).unwrap(), [(2, 8), (0, 0)]);
        assert!(parse(b"", Some((0, 0))).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn written_links_are_read_back(links in proptest::collection::vec(any::<Link>(), 0..20)) {
            let mut line = Vec::new();
            format(&links, &mut line);
            prop_assert_eq!(parse(&line, None).unwrap(), links);
        }

        #[test]
        fn arbitrary_bytes_never_panic(line in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&line, Some((5, 5)));
        }
    }
}
