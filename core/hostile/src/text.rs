//! Readers of text.

use std::io::Cursor;

use tunesmith_align::{Heuristic, symmetrise_files};
use tunesmith_formats::{Format, Options, Reader};
use tunesmith_lm::{Estimate, Model, estimate};
use tunesmith_rules::{Corpus, Frequent, Reading, Table, import_cdec, import_moses};
use tunesmith_search::{Input, Markup};
use tunesmith_text::{Classes, Lines, Watch};

use crate::binary::walk;
use crate::{Folder, kept, note, parts};

fn opened(bytes: &[u8]) -> tunesmith_text::Result<Lines> {
    Lines::new("bytes", Cursor::new(bytes.to_vec()))
}

pub fn lines(bytes: &[u8]) -> bool {
    let Ok(mut lines) = opened(bytes) else { return false };
    loop {
        match lines.next() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Reads strictly and leniently, whole and in parts.
fn lists(bytes: &[u8], format: Format) -> bool {
    let mut accepted = false;
    for (skip_bad, keyed, limit) in
        [(false, false, None), (true, false, Some(2)), (true, true, None)]
    {
        let Ok(lines) = opened(bytes) else { return false };
        let options = Options { format, skip_bad, keyed, ..Options::default() };
        let Some(mut reader) = kept(Reader::new(lines, options)) else { return false };
        while let Some(Some(pools)) = kept(reader.read(limit)) {
            assert!(pools.values().iter().all(|value| value.is_finite()));
            note((pools.sentences().min(9), pools.hypotheses().min(9)));
            accepted = true;
        }
    }
    accepted
}

pub fn moses(bytes: &[u8]) -> bool {
    lists(bytes, Format::Moses)
}

pub fn cdec(bytes: &[u8]) -> bool {
    lists(bytes, Format::Cdec)
}

pub fn columns_seed() -> Vec<u8> {
    b"0 ||| a ||| A= 1 ||| 1\n0 ||| b ||| A= 2 ||| 2\n\x000.5\n0.25\n".to_vec()
}

/// A list with a file of numbers beside it.
pub fn columns(bytes: &[u8]) -> bool {
    let [list, numbers] = parts(bytes);
    let folder = Folder::new();
    let file = folder.file("numbers", numbers);
    let Ok(lines) = opened(list) else { return false };
    let options = Options { column_files: vec![("n".into(), file)], ..Options::default() };
    let Some(mut reader) = kept(Reader::new(lines, options)) else { return false };
    kept(reader.read(None)).is_some_and(|pools| pools.is_some())
}

pub fn input_seed() -> Vec<u8> {
    b"a <np translation=\"x y||z\" prob=\"0.5||0.5\">b c</np> <wall/> <zone>d e</zone>".to_vec()
}

/// A line with markup, as a decoder gets it.
pub fn input(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut accepted = false;
    for markup in [Markup::None, Markup::Exclusive, Markup::Inclusive, Markup::Ignore] {
        if let Some(input) = kept(Input::parse(text, markup)) {
            accepted |= !input.pieces(3).is_empty();
        }
    }
    accepted
}

pub fn classes(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    kept(Classes::read(folder.file("classes", bytes)))
        .is_some_and(|classes| classes.iter().all(|(word, _)| classes.of(word).is_some()))
}

pub fn frequent_seed() -> Vec<u8> {
    b"pair\tdas\tthe\t17\nsource\tja\t3\ntarget\tof\t5\n".to_vec()
}

pub fn frequent(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    kept(Frequent::read(folder.file("frequent", bytes))).is_some()
}

/// Links of both directions.
pub fn links(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let file = folder.file("links", bytes);
    let heuristic = Heuristic::GrowDiagFinalAnd;
    kept(symmetrise_files(&file, &file, None, heuristic, &folder.at("out"))).is_some()
}

pub fn corpus_seed() -> Vec<u8> {
    b"a b\nc\n\0x y\nz\n\x000-0 1-1\n0-0\n".to_vec()
}

/// Two texts and their alignment.
pub fn corpus(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let [source, target, links] = parts::<3>(bytes);
    let (source, target) = (folder.file("source", source), folder.file("target", target));
    let links = folder.file("links", links);
    let read = |skip_bad| {
        let reading = Reading { skip_bad, ..Reading::default() };
        let corpus = Corpus::read(&source, &target, &links, &reading);
        kept(corpus).is_some_and(|corpus| {
            let sentences = (0..corpus.len()).map(|at| corpus.sentence(at));
            sentences.for_each(|each| assert!(each.source.len() <= bytes.len()));
            true
        })
    };
    read(true) | read(false)
}

pub fn phrases_seed() -> Vec<u8> {
    b"a ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1\na b ||| x y ||| 1 1 1 1 ||| 0-0 1-1 |||\n"
        .to_vec()
}

/// A phrase table of Moses.
pub fn phrases(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let out = folder.at("out");
    let made = import_moses(&folder.file("phrases", bytes), None, &out);
    kept(made).is_some() && walk(&Table::open(&out, true).expect("a table that was just made"))
}

pub fn reordering_seed() -> Vec<u8> {
    b"a ||| x ||| 0.5 0.5 0.5 0.5 ||| 0-0 |||\n\0a ||| x ||| 0.2 0.4 0.4 0.2 0.4 0.4\n".to_vec()
}

/// A phrase table of Moses and its reordering table.
pub fn reordering(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let [phrases, orders] = parts(bytes);
    let (phrases, orders) = (folder.file("phrases", phrases), folder.file("orders", orders));
    let out = folder.at("out");
    let made = import_moses(&phrases, Some(&orders), &out);
    kept(made).is_some() && walk(&Table::open(&out, true).expect("a table that was just made"))
}

pub fn grammar_seed() -> Vec<u8> {
    b"[X] ||| a [X,1] ||| x [X,1] ||| A=1 B=2 ||| 0-0\n[X] ||| b ||| y ||| A=1 B=2\n".to_vec()
}

/// A grammar of cdec.
pub fn grammar(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    let out = folder.at("out");
    let made = import_cdec(&folder.file("grammar", bytes), &out);
    kept(made).is_some() && walk(&Table::open(&out, true).expect("a table that was just made"))
}

pub fn arpa_seed() -> Vec<u8> {
    b"\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.3\n-1\t</s>\n-0.5\ta\t-0.2\n\n\
      \\2-grams:\n-0.3\t<s> a\n-0.4\ta </s>\n\n\\end\\\n"
        .to_vec()
}

pub fn arpa(bytes: &[u8]) -> bool {
    let folder = Folder::new();
    kept(Model::load(folder.file("arpa", bytes))).is_some_and(|model| crate::binary::ask(&model))
}

/// Text that a language model is estimated from.
pub fn sentences(bytes: &[u8]) -> bool {
    let options = Estimate { order: 2, memory: 1 << 20, ..Estimate::default() };
    kept(estimate([opened(bytes)], &options, &Watch::default())).is_some()
}
