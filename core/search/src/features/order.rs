//! Eight ways in which each phrase may lie to its neighbours (LO of Green et al. 2013): monotone,
//! swap, discontinuous to the previous and to the next phrase, and the coarser monotone or not to
//! the previous one: `LO:previous-swap:das_haus~the_house`, `LO:nonmonotone:das_haus~the_house`.

use super::{Neighbour, OnOrder, Orientation, Rule, Sink};
use crate::Spelling;

static PREVIOUS: [Spelling; 3] = [
    Spelling::constant("LO:previous-monotone:"),
    Spelling::constant("LO:previous-swap:"),
    Spelling::constant("LO:previous-discontinuous:"),
];
static NEXT: [Spelling; 3] = [
    Spelling::constant("LO:next-monotone:"),
    Spelling::constant("LO:next-swap:"),
    Spelling::constant("LO:next-discontinuous:"),
];
static COARSE: [Spelling; 2] =
    [Spelling::constant("LO:monotone:"), Spelling::constant("LO:nonmonotone:")];

pub struct Order;

impl OnOrder for Order {
    fn find(&self, rule: &Rule<'_>, side: Neighbour, lies: Orientation, out: &mut dyn Sink) {
        match side {
            Neighbour::Previous => {
                out.add_rule(&PREVIOUS[lies as usize], rule, 1.0);
                let coarse = usize::from(lies != Orientation::Monotone);
                out.add_rule(&COARSE[coarse], rule, 1.0);
            }
            Neighbour::Next => out.add_rule(&NEXT[lies as usize], rule, 1.0),
        }
    }
}
