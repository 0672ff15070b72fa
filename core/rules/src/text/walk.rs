//! All rules of a table, sorted as the lines of text that they become.

use tunesmith_text::{AtomicWriter, Result};

use crate::code::Symbol;
use crate::table::{Entry, Node, Table};

/// Bytes of text to gather before writing.
const BUFFER: usize = 1 << 18;
const BAR: &str = "|||";

/// Ranks of symbols in the order of their spelling, with the bars that end a side.
struct Ranks {
    words: Vec<u32>,
    gaps: [u32; 3],
    bar: u32,
}

impl Ranks {
    fn new<'t>(words: impl Iterator<Item = Option<&'t str>>) -> Self {
        let mut order: Vec<(&str, usize)> = words.map(Option::unwrap_or_default).zip(3..).collect();
        order.extend([(BAR, 0), ("[X,1]", 1), ("[X,2]", 2)]);
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (rank, (_, at)) in order.iter().enumerate() {
            ranks[*at] = rank as u32;
        }
        let words = ranks.split_off(3);
        Ranks { words, gaps: [ranks[0], ranks[1], ranks[2]], bar: ranks[0] }
    }

    fn of(&self, symbol: Symbol) -> u32 {
        match symbol {
            Symbol::Gap(number) => self.gaps.get(number as usize).copied().unwrap_or(self.bar),
            Symbol::Word(id) => self.words.get(id as usize).copied().unwrap_or(self.bar),
        }
    }

    fn side(&self, symbols: impl Iterator<Item = Symbol>) -> Vec<u32> {
        symbols.map(|symbol| self.of(symbol)).chain([self.bar]).collect()
    }
}

/// Writes a line for each rule, in the order in which `sort` would put lines that start with
/// source and target; `line` appends it without its end.
pub fn write_lines(
    table: &Table,
    out: &mut AtomicWriter,
    mut line: impl FnMut(&[Symbol], &Entry<'_>, &mut String),
) -> Result<()> {
    let sources = Ranks::new((0..table.source_words() as u32).map(|id| table.source_word(id)));
    let targets = Ranks::new((0..table.target_words() as u32).map(|id| table.target_word(id)));
    let mut text = String::new();
    let mut path = Vec::new();
    visit(table, table.root(), &sources, &mut path, &mut |path, node| {
        let mut entries: Vec<(Vec<u32>, Entry<'_>)> =
            table.entries(node).map(|entry| (targets.side(entry.target()), entry)).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, entry) in &entries {
            line(path, entry, &mut text);
            text.push('\n');
        }
        if text.len() > BUFFER {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
        Ok(())
    })?;
    out.write_all(text.as_bytes())
}

/// Goes down the trie; the rules of a node come among its children where the bars sort.
fn visit(
    table: &Table,
    node: Node,
    ranks: &Ranks,
    path: &mut Vec<Symbol>,
    see: &mut impl FnMut(&[Symbol], Node) -> Result<()>,
) -> Result<()> {
    let mut children: Vec<(u32, Symbol, Node)> =
        table.children(node).map(|(symbol, child)| (ranks.of(symbol), symbol, child)).collect();
    children.sort_unstable_by_key(|child| child.0);
    let own = children.partition_point(|child| child.0 < ranks.bar);
    for (number, (_, symbol, child)) in children.iter().enumerate() {
        if number == own {
            see(path, node)?;
        }
        path.push(*symbol);
        visit(table, *child, ranks, path, see)?;
        path.pop();
    }
    if own == children.len() {
        see(path, node)?;
    }
    Ok(())
}
