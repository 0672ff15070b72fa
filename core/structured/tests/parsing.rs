//! The parser's gold derivations rebuild their trees.

use proptest::prelude::*;
use tunesmith_structured::{Gold, Parser, Task};

const TRANSITIONS: [&str; 5] = ["shift", "left a", "left b", "right a", "right b"];

fn parser() -> Parser {
    Parser::new(&TRANSITIONS.map(str::to_owned)).unwrap()
}

/// A random tree: each word but the root, in a random order, takes an earlier one as its head.
fn tree(choices: &[(u32, bool)]) -> (Vec<u32>, Vec<String>) {
    let length = choices.len();
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by_key(|&word| choices[word].0);
    let (mut heads, mut labels) = (vec![0; length], vec!["a".to_owned(); length]);
    for (place, &word) in order.iter().enumerate().skip(1) {
        heads[word] = order[choices[word].0 as usize % place] as u32 + 1;
        labels[word] = if choices[word].1 { "a" } else { "b" }.to_owned();
    }
    (heads, labels)
}

fn is_projective(heads: &[u32]) -> bool {
    let arcs: Vec<(u32, u32)> = (1..).zip(heads).map(|(c, &h)| (c.min(h), c.max(h))).collect();
    // The arc of the root comes from the left end: nothing may pass over it.
    arcs.iter().all(|&(a, b)| arcs.iter().all(|&(c, d)| !(a < c && c < b && b < d)))
}

proptest! {
    #[test]
    fn gold_actions_rebuild_a_projective_tree_and_no_other(
        choices in proptest::collection::vec((0u32..1000, any::<bool>()), 1..8)
    ) {
        let parser = parser();
        let (heads, labels) = tree(&choices);
        let words = vec!["w".to_owned(); heads.len()];
        let input = parser.sentence(words.clone(), words, &heads, labels.clone()).unwrap();
        let gold = Gold::new(&parser, &input).unwrap();
        prop_assert_eq!(gold.is_ok(), is_projective(&heads));
        let Ok(gold) = gold else { return Ok(()) };
        prop_assert_eq!(gold.derivations(), 1.0);
        prop_assert_eq!(gold.length(), 2 * heads.len() - 1);
        let (mut state, mut place, mut actions) = (parser.start(&input).unwrap(), 0, Vec::new());
        for step in 0..gold.length() {
            let mut listed = Vec::new();
            parser.actions(&input, &state, &mut listed).unwrap();
            let right = listed.into_iter().find_map(|a| gold.follow(step, place, a).map(|p| (a, p)));
            let (action, next) = right.unwrap();
            state = parser.apply(&input, &state, action).unwrap();
            place = next;
            actions.push(action);
        }
        let (found, named) = parser.tree(heads.len(), &actions);
        prop_assert_eq!(&found, &heads);
        for ((name, label), head) in named.into_iter().zip(&labels).zip(heads) {
            prop_assert_eq!(name, if head == 0 { "root" } else { label.as_str() });
        }
    }
}

#[test]
fn parsers_that_cannot_finish_are_refused() {
    for bad in [&["shift"][..], &["left a", "right a"], &["shift", "leap a"]] {
        let names: Vec<String> = bad.iter().map(|name| (*name).to_owned()).collect();
        assert!(Parser::new(&names).is_err());
    }
}

#[test]
fn sentences_that_do_not_fit_are_refused() {
    let parser = parser();
    let words = || vec!["w".to_owned(); 2];
    assert!(parser.sentence(words(), vec![], &[], vec![]).is_err());
    assert!(parser.sentence(words(), words(), &[0, 3], words()).is_err());
    assert!(parser.sentence(words(), words(), &[0], vec!["a".to_owned()]).is_err());
    assert!(parser.sentence(words(), words(), &[], vec![]).is_ok());
}
