//! The parser: arc-standard transitions that build a projective tree with one root.

use tunesmith_text::{Error, Result as TextResult};

use crate::{Contexts, Fault, Task};

mod templates;

use templates::TEMPLATES;

/// No word.
const NOBODY: u32 = u32::MAX;

/// What the parser does with its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// Puts the next word onto the stack.
    Shift,
    /// The topmost word becomes the head of the one below it, which leaves.
    Left(String),
    /// The word below becomes the head of the topmost one, which leaves.
    Right(String),
}

/// Builds a tree from left to right. The word that is left at the end is the root.
pub struct Parser {
    transitions: Vec<Transition>,
}

/// A sentence with tags, and its gold tree where it is known.
pub struct ParsedSentence {
    forms: Vec<String>,
    tags: Vec<String>,
    /// Gold heads, `NOBODY` for the root.
    heads: Vec<u32>,
    labels: Vec<String>,
    /// The last word that has each word as its head; 0 if there is none.
    last_child: Vec<u32>,
}

/// The words on the stack with their outermost children, and the next word. What was attached
/// further inside no longer matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stack {
    trees: Vec<Tree>,
    next: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tree {
    word: u32,
    left: u32,
    right: u32,
    /// The actions that attached these children: they know the labels.
    left_action: u32,
    right_action: u32,
}

impl Transition {
    /// `shift`, `left LABEL` or `right LABEL`; without labels `left` and `right`.
    pub fn parse(text: &str) -> TextResult<Self> {
        let (name, label) = text.split_once(' ').unwrap_or((text, ""));
        match name {
            "shift" if label.is_empty() => Ok(Transition::Shift),
            "left" => Ok(Transition::Left(label.to_owned())),
            "right" => Ok(Transition::Right(label.to_owned())),
            _ => Err(Error::new(format!("no transition is named {text:?}"))
                .remedy("use shift, left LABEL, right LABEL")),
        }
    }

    fn label(&self) -> &str {
        match self {
            Transition::Shift => "",
            Transition::Left(label) | Transition::Right(label) => label,
        }
    }
}

impl Parser {
    /// Refuses transitions with which some sentence could not be finished.
    pub fn new(transitions: &[String]) -> TextResult<Self> {
        let made: TextResult<Vec<Transition>> =
            transitions.iter().map(|text| Transition::parse(text)).collect();
        let transitions = made?;
        let has_arc = transitions.iter().any(|each| *each != Transition::Shift);
        if !transitions.contains(&Transition::Shift) || !has_arc {
            let error = Error::new("a parser needs the transition shift, and left or right");
            return Err(error.remedy("train on a sentence of two words or more"));
        }
        Ok(Parser { transitions })
    }

    /// A sentence to parse, or with a tree (heads from one, 0 for the root) to learn from.
    pub fn sentence(
        &self,
        forms: Vec<String>,
        tags: Vec<String>,
        heads: &[u32],
        labels: Vec<String>,
    ) -> TextResult<ParsedSentence> {
        let length = forms.len();
        let fits = |count: usize| count == 0 || count == length;
        if tags.len() != length || !fits(heads.len()) || heads.len() != labels.len() {
            return Err(Error::new("words, tags, heads and labels differ in number"));
        }
        if heads.iter().any(|&head| head as usize > length) {
            return Err(Error::new("a head is outside the sentence"));
        }
        let heads: Vec<u32> =
            heads.iter().map(|head| head.checked_sub(1).unwrap_or(NOBODY)).collect();
        let mut last_child = vec![0; length];
        for (child, &head) in heads.iter().enumerate() {
            if let Some(last) = last_child.get_mut(head as usize) {
                *last = child as u32;
            }
        }
        Ok(ParsedSentence { forms, tags, heads, labels, last_child })
    }

    /// The tree that actions build: heads from one, 0 for the root, and labels.
    pub fn tree(&self, length: usize, actions: &[u32]) -> (Vec<u32>, Vec<&str>) {
        let (mut heads, mut labels) = (vec![0; length], vec!["root"; length]);
        let (mut stack, mut next) = (Vec::new(), 0);
        for &action in actions {
            let transition = &self.transitions[action as usize];
            if *transition == Transition::Shift {
                stack.push(next);
                next += 1;
                continue;
            }
            let (Some(top), Some(below)) = (stack.pop(), stack.pop()) else { break };
            let (head, child): (usize, usize) = match transition {
                Transition::Left(_) => (top, below),
                _ => (below, top),
            };
            heads[child] = head as u32 + 1;
            labels[child] = transition.label();
            stack.push(head);
        }
        (heads, labels)
    }

    /// The gold transition of a state that only gold ones led to.
    fn oracle(&self, input: &ParsedSentence, state: &Stack) -> Option<u32> {
        let head = |word: u32| input.heads.get(word as usize).copied();
        let find = |wanted: &Transition| {
            self.transitions.iter().position(|each| each == wanted).map(|place| place as u32)
        };
        if let [.., below, top] = &state.trees[..] {
            if head(below.word) == Some(top.word) {
                return find(&Transition::Left(input.labels[below.word as usize].clone()));
            }
            let complete = input.last_child[top.word as usize] < state.next;
            if complete && head(top.word) == Some(below.word) {
                return find(&Transition::Right(input.labels[top.word as usize].clone()));
            }
        }
        if (state.next as usize) < input.heads.len() { find(&Transition::Shift) } else { None }
    }
}

impl Task for Parser {
    type Input = ParsedSentence;
    type State = Stack;
    /// The two topmost trees, the word below them, and the next word.
    type View = (Option<Tree>, Option<Tree>, Option<u32>, u32);

    fn view(&self, state: &Stack) -> Self::View {
        let mut trees = state.trees.iter().rev().copied();
        (trees.next(), trees.next(), trees.next().map(|tree| tree.word), state.next)
    }

    fn start(&self, _: &ParsedSentence) -> Result<Stack, Fault> {
        Ok(Stack { trees: Vec::new(), next: 0 })
    }

    fn is_end(&self, input: &ParsedSentence, state: &Stack) -> Result<bool, Fault> {
        Ok(state.next as usize == input.forms.len() && state.trees.len() < 2)
    }

    fn actions(
        &self,
        input: &ParsedSentence,
        state: &Stack,
        out: &mut Vec<u32>,
    ) -> Result<(), Fault> {
        let (shifts, reduces) = ((state.next as usize) < input.forms.len(), state.trees.len() >= 2);
        for (action, transition) in self.transitions.iter().enumerate() {
            if if *transition == Transition::Shift { shifts } else { reduces } {
                out.push(action as u32);
            }
        }
        Ok(())
    }

    fn apply(&self, _: &ParsedSentence, state: &Stack, action: u32) -> Result<Stack, Fault> {
        let mut trees = Vec::with_capacity(state.trees.len() + 1);
        trees.extend_from_slice(&state.trees);
        let mut next = state.next;
        match &self.transitions[action as usize] {
            Transition::Shift => {
                let (left, right) = (NOBODY, NOBODY);
                let (left_action, right_action) = (NOBODY, NOBODY);
                trees.push(Tree { word: next, left, right, left_action, right_action });
                next += 1;
            }
            Transition::Left(_) => {
                if let (Some(mut top), Some(below)) = (trees.pop(), trees.pop()) {
                    (top.left, top.left_action) = (below.word, action);
                    trees.push(top);
                }
            }
            Transition::Right(_) => {
                if let (Some(top), Some(below)) = (trees.pop(), trees.last_mut()) {
                    (below.right, below.right_action) = (top.word, action);
                }
            }
        }
        Ok(Stack { trees, next })
    }

    fn contexts(
        &self,
        input: &ParsedSentence,
        state: &Stack,
        out: &mut Contexts<'_>,
    ) -> Result<(), Fault> {
        let view = templates::View::new(self, input, state);
        TEMPLATES.iter().for_each(|template| template(&view, out));
        Ok(())
    }

    fn is_gold(&self, input: &ParsedSentence, state: &Stack, action: u32) -> Result<bool, Fault> {
        Ok(self.oracle(input, state) == Some(action))
    }
}
