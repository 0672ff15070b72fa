//! What the parser looks at (after Huang & Sagae 2010, Zhang & Nivre 2011).

use super::{NOBODY, ParsedSentence, Parser, Stack, Tree};
use crate::Contexts;

const OUTSIDE: &str = "<none>";
const DISTANCES: [&str; 7] = ["0", "1", "2", "3", "4", "5", "10"];

/// A word as features see it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    form: &'a str,
    tag: &'a str,
}

/// A child of a word on the stack.
#[derive(Clone, Copy)]
struct Child<'a> {
    tag: &'a str,
    label: &'a str,
}

/// The topmost words, their outermost children, and the next words.
pub struct View<'a> {
    top: Seen<'a>,
    below: Seen<'a>,
    third: Seen<'a>,
    next: Seen<'a>,
    second: Seen<'a>,
    last: Seen<'a>,
    top_left: Child<'a>,
    top_right: Child<'a>,
    below_left: Child<'a>,
    below_right: Child<'a>,
    distance: &'a str,
}

impl<'a> View<'a> {
    pub fn new(parser: &'a Parser, input: &'a ParsedSentence, state: &Stack) -> Self {
        let seen = |word: u32| match input.forms.get(word as usize) {
            Some(form) => Seen { form, tag: &input.tags[word as usize] },
            None => Seen { form: OUTSIDE, tag: OUTSIDE },
        };
        let child = |word: u32, action: u32| Child {
            tag: seen(word).tag,
            label: parser.transitions.get(action as usize).map_or(OUTSIDE, |each| each.label()),
        };
        let tree = |depth: usize| {
            let place = state.trees.len().checked_sub(depth + 1);
            let nobody = Tree {
                word: NOBODY,
                left: NOBODY,
                right: NOBODY,
                left_action: NOBODY,
                right_action: NOBODY,
            };
            place.map_or(nobody, |place| state.trees[place])
        };
        let (top, below) = (tree(0), tree(1));
        let apart = if below.word == NOBODY { 0 } else { (top.word - below.word) as usize };
        View {
            top: seen(top.word),
            below: seen(below.word),
            third: seen(tree(2).word),
            next: seen(state.next),
            second: seen(state.next + 1),
            last: seen(state.next.wrapping_sub(1)),
            top_left: child(top.left, top.left_action),
            top_right: child(top.right, top.right_action),
            below_left: child(below.left, below.left_action),
            below_right: child(below.right, below.right_action),
            distance: match apart {
                0..=4 => DISTANCES[apart],
                5..=9 => DISTANCES[5],
                _ => DISTANCES[6],
            },
        }
    }
}

type Template = fn(&View<'_>, &mut Contexts<'_>);

pub const TEMPLATES: [Template; 6] = [single, pairs, triples, children, labels, distances];

/// Single words and tags.
fn single(view: &View<'_>, out: &mut Contexts<'_>) {
    out.add(&["bias"]);
    let places = [("s0", view.top), ("s1", view.below), ("q0", view.next), ("q1", view.second)];
    for (place, seen) in places {
        out.add(&[place, ".w=", seen.form]);
        out.add(&[place, ".t=", seen.tag]);
        out.add(&[place, ".wt=", seen.form, "/", seen.tag]);
    }
    out.add(&["s2.t=", view.third.tag]);
}

/// Two words at once.
fn pairs(view: &View<'_>, out: &mut Contexts<'_>) {
    let View { top, below, next, .. } = view;
    out.add(&["s1.w,s0.w=", below.form, ",", top.form]);
    out.add(&["s1.t,s0.t=", below.tag, ",", top.tag]);
    out.add(&["s1.wt,s0.wt=", below.form, "/", below.tag, ",", top.form, "/", top.tag]);
    out.add(&["s1.t,s0.wt=", below.tag, ",", top.form, "/", top.tag]);
    out.add(&["s1.wt,s0.t=", below.form, "/", below.tag, ",", top.tag]);
    out.add(&["s0.t,q0.t=", top.tag, ",", next.tag]);
    out.add(&["s0.w,q0.t=", top.form, ",", next.tag]);
    out.add(&["s0.t,q0.w=", top.tag, ",", next.form]);
    out.add(&["s1.t,q0.t=", below.tag, ",", next.tag]);
}

/// Three tags at once.
fn triples(view: &View<'_>, out: &mut Contexts<'_>) {
    let View { top, below, third, next, second, last, .. } = view;
    out.add(&["s1.t,s0.t,q0.t=", below.tag, ",", top.tag, ",", next.tag]);
    out.add(&["s1.t,s0.w,q0.t=", below.tag, ",", top.form, ",", next.tag]);
    out.add(&["s1.w,s0.t,q0.t=", below.form, ",", top.tag, ",", next.tag]);
    out.add(&["s0.t,q0.t,q1.t=", top.tag, ",", next.tag, ",", second.tag]);
    out.add(&["s0.w,q0.t,q1.t=", top.form, ",", next.tag, ",", second.tag]);
    out.add(&["s2.t,s1.t,s0.t=", third.tag, ",", below.tag, ",", top.tag]);
    out.add(&["s1.t,q-1.t,s0.t=", below.tag, ",", last.tag, ",", top.tag]);
}

/// The topmost words with the tags of their children.
fn children(view: &View<'_>, out: &mut Contexts<'_>) {
    let (top, below) = (view.top, view.below);
    let all = [
        ("s0l", view.top_left),
        ("s0r", view.top_right),
        ("s1l", view.below_left),
        ("s1r", view.below_right),
    ];
    for (place, child) in all {
        out.add(&["s1.t,s0.t,", place, ".t=", below.tag, ",", top.tag, ",", child.tag]);
    }
    out.add(&["s1.t,s0.w,s0l.t=", below.tag, ",", top.form, ",", view.top_left.tag]);
    out.add(&["s1.w,s0.t,s1r.t=", below.form, ",", top.tag, ",", view.below_right.tag]);
}

/// The topmost words with the labels of their children.
fn labels(view: &View<'_>, out: &mut Contexts<'_>) {
    let all = [
        ("s0", view.top, "l=", view.top_left),
        ("s0", view.top, "r=", view.top_right),
        ("s1", view.below, "l=", view.below_left),
        ("s1", view.below, "r=", view.below_right),
    ];
    for (place, seen, side, child) in all {
        out.add(&[place, ".t,", side, seen.tag, ",", child.label]);
        out.add(&[place, ".w,", side, seen.form, ",", child.label]);
    }
}

/// How far the topmost words are from each other.
fn distances(view: &View<'_>, out: &mut Contexts<'_>) {
    let (top, below, distance) = (view.top, view.below, view.distance);
    out.add(&["s0.t,d=", top.tag, ",", distance]);
    out.add(&["s1.t,d=", below.tag, ",", distance]);
    out.add(&["s1.t,s0.t,d=", below.tag, ",", top.tag, ",", distance]);
    out.add(&["s1.w,s0.w,d=", below.form, ",", top.form, ",", distance]);
}
