//! The constraints of a batch as plain numbers: what one process chooses and another one steps on.

use rustc_hash::FxHashMap;

use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;
use crate::update::Separate;

/// What a visit saw before the step, for learning curves and for gains that follow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Note {
    pub line: u32,
    /// The model's best is known; its statistics, and those of y+ and y-, are in [`Chosen::stats`].
    pub seen: bool,
    /// y+ and y- are known.
    pub paired: bool,
    /// These are whole translations; a partial one is no output that others could be seen in the
    /// context of.
    pub whole: bool,
    /// Gains of the model's best, of y+ and of y-, not multiplied by anything.
    pub model: f64,
    pub oracle: f64,
    pub prediction: f64,
    /// `s(y+) - min s`
    pub spread: f64,
}

/// Constraints that were chosen under one weight vector, and a note of each visit.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// For each round of the selector that the update asks for. Groups are numbers of notes.
    pub rounds: Vec<Rows>,
    pub notes: Vec<Note>,
    /// Three rows for each note that has seen something: of the model's best, of y+ and of y-.
    pub stats: Vec<f64>,
    /// Whether model scores were computed.
    pub scored: bool,
}

impl Separate for Chosen {
    fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Gives the rows away: an update asks for each round once.
    fn separate(&mut self, _model: &Model, round: usize, rows: &mut Rows) -> Result<(), Fault> {
        std::mem::swap(rows, &mut self.rounds[round]);
        self.rounds[round].clear();
        Ok(())
    }
}

/// A part of a batch, and the ids that its features have where it is joined with others: those
/// from `known` on have others.
pub struct Part<'a> {
    pub chosen: &'a Chosen,
    pub known: usize,
    pub ids: &'a [u32],
}

impl Chosen {
    pub fn clear(&mut self, rounds: usize) {
        self.rounds.iter_mut().for_each(Rows::clear);
        self.rounds.resize_with(rounds, Rows::default);
        self.notes.clear();
        self.stats.clear();
    }

    /// The notes that have seen something, with the statistics of the model's best, y+ and y-.
    pub fn seen(&self) -> impl Iterator<Item = (&Note, [&[f64]; 3])> {
        let count = self.notes.iter().filter(|note| note.seen).count();
        let width = self.stats.len() / (3 * count.max(1));
        self.notes.iter().filter(|note| note.seen).enumerate().map(move |(place, note)| {
            let row = |which: usize| &self.stats[(3 * place + which) * width..][..width];
            (note, [row(0), row(1), row(2)])
        })
    }

    /// The batch that parts make, whoever chose them: visits are in the order of `lines`.
    pub fn joined(parts: &[Part<'_>], lines: &[u32]) -> Chosen {
        let rounds = parts.iter().map(|part| part.chosen.rounds.len()).max().unwrap_or(0);
        let mut whole = Chosen::default();
        whole.clear(rounds);
        whole.scored = parts.iter().any(|part| part.chosen.scored);
        let mut visits: FxHashMap<u32, Vec<(usize, usize)>> = FxHashMap::default();
        // Of each visit of each part, if it has seen something.
        let mut stats: Vec<Vec<Option<[&[f64]; 3]>>> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            for (visit, note) in part.chosen.notes.iter().enumerate() {
                visits.entry(note.line).or_default().push((number, visit));
            }
            let mut seen = part.chosen.seen().map(|(_, rows)| rows);
            let own = part.chosen.notes.iter().map(|note| note.seen.then(|| seen.next()).flatten());
            stats.push(own.collect());
        }
        for &(number, visit) in lines.iter().filter_map(|line| visits.get(line)).flatten() {
            let part = &parts[number];
            let group = whole.notes.len() as u32;
            whole.notes.push(part.chosen.notes[visit]);
            for row in stats[number][visit].iter().flatten() {
                whole.stats.extend_from_slice(row);
            }
            for (joined, rows) in whole.rounds.iter_mut().zip(&part.chosen.rounds) {
                // The rows of a part are in the order of its visits.
                let first = rows.groups.partition_point(|&group| (group as usize) < visit);
                let own = (first..rows.len()).take_while(|&row| rows.groups[row] as usize == visit);
                own.for_each(|row| joined.copy(rows, row, group, part.known, part.ids));
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::{Chosen, Note, Part};
    use crate::model::Model;
    use crate::rows::{Kind, Rows};

    fn chosen(lines: &[u32], ids: &[&[u32]]) -> Chosen {
        let model = Model::new(vec![0.0; 10]);
        let mut rows = Rows::default();
        let mut chosen = Chosen::default();
        for (group, (&line, ids)) in lines.iter().zip(ids).enumerate() {
            rows.open(Kind::Margin, group as u32, f64::from(line), f64::NAN, 1.0);
            ids.iter().for_each(|&id| rows.entry(id, f64::from(id + 1), &model));
            let seen = line % 2 == 0;
            chosen.notes.push(Note { line, seen, ..Note::default() });
            if seen {
                chosen.stats.extend([f64::from(line); 6]);
            }
        }
        chosen.rounds.push(rows);
        chosen
    }

    #[test]
    fn parts_are_joined_in_the_order_of_lines_with_common_ids() {
        let one = chosen(&[4, 7], &[&[0, 2, 3], &[1]]);
        let two = chosen(&[2], &[&[1, 2]]);
        // Feature 2 of the second part is feature 2 of both; the first part calls it 3.
        let parts = [
            Part { chosen: &one, known: 2, ids: &[3, 2] },
            Part { chosen: &two, known: 2, ids: &[2] },
        ];
        let whole = Chosen::joined(&parts, &[7, 2, 4]);
        assert_eq!(whole.notes.iter().map(|note| note.line).collect::<Vec<_>>(), [7, 2, 4]);
        let rows = &whole.rounds[0];
        assert_eq!(rows.gains, [7.0, 2.0, 4.0]);
        assert_eq!(rows.groups, [0, 1, 2]);
        assert_eq!(rows.row(0), (&[1][..], &[2.0][..]));
        assert_eq!(rows.row(1), (&[1, 2][..], &[2.0, 3.0][..]));
        assert_eq!(rows.row(2), (&[0, 2, 3][..], &[1.0, 4.0, 3.0][..]));
        let seen: Vec<_> = whole.seen().map(|(note, rows)| (note.line, rows[2].to_vec())).collect();
        assert_eq!(seen, [(2, vec![2.0; 2]), (4, vec![4.0; 2])]);
    }
}
