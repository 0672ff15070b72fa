//! What each template finds in rules written by hand, and what must hold for all.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tunesmith_lm::Model;
use tunesmith_rules::{Symbol, Table, import_moses};

use super::templates::{Resources, SETS, TEMPLATES, make};
use super::*;
use crate::Lexicon;

fn resources(folder: &Path) -> Resources {
    let frequent = "pair\tdas\tthe\t9\npair\thaus\thouse\t8\nsource\tja\t3\ntarget\tof\t2\n";
    fs::write(folder.join("frequent.txt"), frequent).unwrap();
    fs::write(folder.join("classes.txt"), "the\tart\nhouse\tnoun\na_b\tart\n").unwrap();
    let tags = "the\tDET\nhouse\tNOUN\nto\tPART\nto house\tPART VERB\n";
    fs::write(folder.join("tags.txt"), tags).unwrap();
    Resources::of_model(folder)
}

fn extras(names: &[&str]) -> Extras {
    let folder = tempfile::tempdir().unwrap();
    make(names, &resources(folder.path())).unwrap()
}

fn written(source: &str, target: &str, links: &[Link]) -> WrittenRule {
    WrittenRule::new(source.split_whitespace(), target.split_whitespace(), links, &[])
}

/// Names with their values, sorted.
fn taken(collected: &mut Collected) -> Vec<(String, f32)> {
    let row: Vec<_> = collected.take().collect();
    let name = |id| collected.names.name(id).unwrap().to_owned();
    let mut named: Vec<_> = row.into_iter().map(|(id, value)| (name(id), value)).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    named
}

fn on_rule(name: &str, source: &str, target: &str, links: &[Link]) -> Vec<String> {
    let written = written(source, target, links);
    let mut out = Collected::default();
    extras(&[name]).rule[0].find(&written.rule(), &mut out);
    taken(&mut out).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn rules_have_names() {
    assert_eq!(on_rule("rule-id", "das haus", "the house", &[]), ["PT:das_haus~the_house"]);
    let swapped = on_rule("rule-id", "[X,1] von [X,2]", "[X,2] 's [X,1]", &[(1, 1)]);
    assert_eq!(swapped, ["PT:[X,1]_von_[X,2]~[X,2]_'s_[X,1]"]);
    assert_eq!(on_rule("rule-id", "a_b ~", "", &[]), ["PT:a&#95;b_&#126;~"]);
}

#[test]
fn words_are_translated_left_out_or_added() {
    let rule = ("das haus ja", "the house of [X,1] of", &[(0, 0), (1, 1)][..]);
    let found = |name| on_rule(name, rule.0, rule.1, rule.2);
    assert_eq!(found("pairs"), ["WP:das~the", "WP:haus~house"]);
    assert_eq!(found("deletions"), ["WD:ja"]);
    assert_eq!(found("insertions"), ["WI:das~of", "WI:haus~of", "WI:ja~of"]);
    assert_eq!(found("frequent-deletions"), ["FD:ja"]);
    assert_eq!(found("frequent-insertions"), ["FI:of"]);
    assert!(on_rule("frequent-deletions", "das haus", "the", &[(0, 0)]).is_empty());
    // Links of gaps, and behind the rule, are no words.
    assert!(on_rule("pairs", "[X,1] a", "[X,1] b", &[(0, 0), (0, 1), (7, 1)]).is_empty());
}

#[test]
fn runs_of_words_are_one_in_a_shape() {
    let shape = on_rule("shape", "das alte [X,1] von [X,2] [X,1]", "[X,2] a b", &[]);
    assert_eq!(shape, ["RS:w_[X,1]_w_[X,2]_[X,1]~[X,2]_w"]);
}

#[test]
fn a_phrase_lies_in_eight_ways() {
    let written = written("das", "the", &[]);
    let mut out = Collected::default();
    let mut all = HashMap::new();
    for side in Neighbour::ALL {
        for lies in Orientation::ALL {
            extras(&["order"]).order[0].find(&written.rule(), side, lies, &mut out);
            all.insert((side, lies), taken(&mut out));
        }
    }
    let names = |side, lies| -> Vec<&str> {
        all[&(side, lies)].iter().map(|(name, _)| name.as_str()).collect()
    };
    let swapped = ["LO:nonmonotone:das~the", "LO:previous-swap:das~the"];
    assert_eq!(names(Neighbour::Previous, Orientation::Swap), swapped);
    let next = ["LO:next-discontinuous:das~the"];
    assert_eq!(names(Neighbour::Next, Orientation::Discontinuous), next);
    let distinct: std::collections::HashSet<_> = all.values().flatten().map(|f| &f.0).collect();
    assert_eq!(distinct.len(), 8);
}

#[test]
fn places_show_what_stands_around() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("phrases"), "das haus ||| the house ||| 1 1 1 1 ||| 0-0 1-1 ||| 1 1 1\n").unwrap();
    import_moses(&at("phrases"), None, &at("table")).unwrap();
    let arpa = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n-1\t<s>\n-1\t</s>\n\n\\end\\\n";
    fs::write(at("lm"), arpa).unwrap();
    let (table, lm) = (Table::open(&at("table"), true).unwrap(), Model::load(at("lm")).unwrap());
    let lexicon = Lexicon::new(&table, &lm);
    let sentence = Sentence::new(&crate::Input::plain("das rote haus das"), &table, &lexicon, &lm);
    let words = sentence.source();
    let the = table.target_id("the").unwrap();
    let house = table.target_id("house").unwrap();
    // das [X,1] haus -> [X,1] house the: the gap is moved.
    let rule = Rule {
        source: &[Symbol::Word(words[0]), Symbol::Gap(1), Symbol::Word(words[2])],
        target: &[Symbol::Gap(1), Symbol::Word(house), Symbol::Word(the)],
        links: &[(0, 2), (2, 1)],
        scores: &[],
        words: &sentence,
    };
    let extras = make(&["contexts", "distortion"], &resources(folder.path())).unwrap();
    let mut out = Collected::default();
    let one_word = std::slice::from_ref(&(1..2));
    extras.place.iter().for_each(|place| place.find(&rule, &sentence, 0..3, one_word, &mut out));
    let expected = [
        "CX+1:das~the~<unk>",
        "CX+1:haus~house~das",
        "CX-1:das~the~<s>",
        "CX-1:haus~house~<unk>",
        "SD:moved:1",
    ];
    let names: Vec<_> = taken(&mut out).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, expected);

    let kept = Rule { target: &[Symbol::Word(the), Symbol::Gap(1)], links: &[(0, 0)], ..rule };
    let kept = Rule { source: &rule.source[..2], ..kept };
    extras.place[0].find(&kept, &sentence, 0..12, std::slice::from_ref(&(1..12)), &mut out);
    assert_eq!(taken(&mut out), [("SD:kept:10+".to_owned(), 1.0)]);
}

#[test]
fn tags_are_those_of_the_phrase() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let phrases =
        "x ||| to house ||| 1 1 1 1 ||| ||| 1 1 1\ny ||| the new ||| 1 1 1 1 ||| ||| 1 1 1\n";
    fs::write(at("phrases"), phrases).unwrap();
    import_moses(&at("phrases"), None, &at("table")).unwrap();
    let arpa = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n-1\t<s>\n-1\t</s>\n\n\\end\\\n";
    fs::write(at("lm"), arpa).unwrap();
    let (table, lm) = (Table::open(&at("table"), true).unwrap(), Model::load(at("lm")).unwrap());
    let lexicon = Lexicon::new(&table, &lm);
    let sentence = Sentence::new(&crate::Input::plain("x"), &table, &lexicon, &lm);
    let word = |text: &str| Symbol::Word(table.target_id(text).unwrap());
    let extras = make(&["tag-bigrams"], &resources(folder.path())).unwrap();
    let tags = &extras.string[0];
    let found = |rules: &[Vec<Symbol>]| {
        let mut out = Collected::default();
        let whole = rules.iter().fold(tags.begin(), |front, rule| {
            let target: Vec<Symbol> = [&[Symbol::Gap(1)], &rule[..]].concat();
            tags.join(&target, &[front], &sentence, &mut out)
        });
        tags.end(whole, &sentence, &mut out);
        taken(&mut out).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let (to, house, the, new) = (word("to"), word("house"), word("the"), word("new"));
    // In one phrase, `house` is a verb; the same string in two phrases has the words' own tags.
    assert_eq!(found(&[vec![to, house]]), ["TT:<s>~PART", "TT:PART~VERB", "TT:VERB~</s>"]);
    let apart = found(&[vec![to], vec![house]]);
    assert_eq!(apart, ["TT:<s>~PART", "TT:NOUN~</s>", "TT:PART~NOUN"]);
    let unknown = found(&[vec![the, new, house]]);
    assert_eq!(unknown, ["TT:<s>~DET", "TT:<unk>~NOUN", "TT:DET~<unk>", "TT:NOUN~</s>"]);

    fs::write(at("tags.txt"), "a\tX\nb c\tX\n").unwrap();
    let error = make(&["tag-bigrams"], &Resources::of_model(folder.path())).err().unwrap();
    assert!(error.message.contains("\"b c\" has not as many tags"), "{}", error.message);
    assert!(error.file.is_some() && error.remedy.is_some());
}

#[test]
fn unknown_names_and_missing_files_are_refused() {
    let none = Resources::default();
    let error = make(&["rule-id", "rules"], &none).err().unwrap();
    let remedy = error.remedy.unwrap();
    assert!(error.message.contains("\"rules\""), "{}", error.message);
    assert!(TEMPLATES.iter().all(|template| remedy.contains(template.name)));
    assert!(SETS.iter().all(|set| remedy.contains(set.name)));
    for name in ["contexts", "frequent-insertions", "frequent-deletions", "class-bigrams"] {
        assert!(make(&[name], &none).err().unwrap().remedy.unwrap().contains("tunesmith.training"));
        let empty = tempfile::tempdir().unwrap();
        let error = make(&[name], &Resources::of_model(empty.path())).err().unwrap();
        assert!(error.file.is_some() && error.remedy.is_some(), "{error}");
    }
    assert!(make(&["tag-bigrams"], &none).err().unwrap().remedy.unwrap().contains("--tagged"));
    let both = extras(&["green2013", "pairs", "green2013"]);
    assert_eq!((both.rule.len(), both.order.len(), both.place.len()), (3, 1, 0));
    for set in &SETS {
        extras(&[set.name]);
    }
}

#[test]
fn examples_have_the_prefixes_they_show() {
    let prefixes: std::collections::HashSet<_> =
        TEMPLATES.iter().map(|template| template.example.split(':').next()).collect();
    assert_eq!(prefixes.len(), TEMPLATES.len());
}

/// Words of which some are frequent, some have a class, some need escaping.
const WORDS: [&str; 6] = ["das", "haus", "ja", "the", "of", "a_b"];

fn side() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..5)
}

/// A string put together somehow: words, and strings in the gaps.
#[derive(Debug, Clone)]
enum Tree {
    Words(Vec<u32>),
    Joined(Vec<u32>, Box<Tree>, Vec<u32>, Box<Tree>, Vec<u32>, bool),
}

fn tree() -> impl Strategy<Value = Tree> {
    let words = || prop::collection::vec(0..WORDS.len() as u32, 0..3);
    words().prop_map(Tree::Words).prop_recursive(4, 24, 2, move |inner| {
        (words(), inner.clone(), words(), inner, words(), any::<bool>()).prop_map(
            |(a, one, b, two, c, turned)| {
                Tree::Joined(a, Box::new(one), b, Box::new(two), c, turned)
            },
        )
    })
}

impl Tree {
    /// The target side at the top and its tails, by the numbers of the gaps.
    fn parts(&self) -> (Vec<Symbol>, Vec<&Tree>) {
        match self {
            Tree::Words(words) => (words.iter().map(|&word| Symbol::Word(word)).collect(), vec![]),
            Tree::Joined(a, one, b, two, c, turned) => {
                let gaps = if *turned { [2, 1] } else { [1, 2] };
                let words = |list: &[u32]| list.iter().map(|&word| Symbol::Word(word)).collect();
                let runs: [Vec<Symbol>; 3] = [words(a), words(b), words(c)];
                let [a, b, c] = runs;
                let target = [a, vec![Symbol::Gap(gaps[0])], b, vec![Symbol::Gap(gaps[1])], c];
                let tails = if *turned { vec![&**two, &**one] } else { vec![&**one, &**two] };
                (target.concat(), tails)
            }
        }
    }

    fn string(&self) -> Vec<u32> {
        let (target, tails) = self.parts();
        let part = |symbol: &Symbol| match *symbol {
            Symbol::Word(word) => vec![word],
            Symbol::Gap(number) => tails[usize::from(number) - 1].string(),
        };
        target.iter().flat_map(part).collect()
    }

    fn join(&self, on: &dyn OnString, words: &dyn Spell, out: &mut dyn Sink) -> u64 {
        let (target, tails) = self.parts();
        let tails: Vec<u64> = tails.iter().map(|tail| tail.join(on, words, out)).collect();
        on.join(&target, &tails, words, out)
    }
}

/// A sentence: the beginning, and a string behind it.
fn sentence(on: &dyn OnString, tree: &Tree, words: &dyn Spell, out: &mut dyn Sink) {
    let tails = [on.begin(), tree.join(on, words, out)];
    let whole = on.join(&[Symbol::Gap(1), Symbol::Gap(2)], &tails, words, out);
    on.end(whole, words, out);
}

fn class(word: &str) -> &str {
    match word {
        "<s>" | "</s>" => word,
        "the" | "a_b" => "art",
        _ => "<unk>",
    }
}

proptest! {
    #[test]
    fn bigrams_are_those_of_the_string_however_it_is_joined(tree in tree()) {
        let written = WrittenRule::new([], WORDS, &[], &[]);
        let mut string = vec!["<s>"];
        string.extend(tree.string().iter().map(|&word| WORDS[word as usize]));
        string.push("</s>");
        for (name, prefix) in [("bigrams", "TB"), ("class-bigrams", "TC")] {
            let label = |word| match name {
                "bigrams" => Spelling::word(word).text().to_owned(),
                _ => class(word).to_owned(),
            };
            let mut expected: HashMap<String, f32> = HashMap::new();
            for pair in string.windows(2) {
                let bigram = format!("{prefix}:{}~{}", label(pair[0]), label(pair[1]));
                *expected.entry(bigram).or_default() += 1.0;
            }
            let mut out = Collected::default();
            sentence(&*extras(&[name]).string[0], &tree, &written, &mut out);
            let found: HashMap<String, f32> = taken(&mut out).into_iter().collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn sums_of_weights_are_those_of_the_names(
        source in side(),
        target in side(),
        links in prop::collection::vec((0..5u16, 0..5u16), 0..6),
        tree in tree(),
        seed in any::<u32>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        let extras = make(&all, &resources(folder.path())).unwrap();
        let written = WrittenRule::new(source, target, &links, &[]);
        let string = WrittenRule::new([], WORDS, &[], &[]);
        let tell = |out: &mut dyn Sink| {
            let rule = written.rule();
            extras.rule.iter().for_each(|feature| feature.find(&rule, out));
            for feature in &extras.order {
                for (side, lies) in Neighbour::ALL.into_iter().zip(Orientation::ALL) {
                    feature.find(&rule, side, lies, out);
                }
            }
            extras.string.iter().for_each(|feature| sentence(&**feature, &tree, &string, out));
        };
        let mut out = Collected::default();
        tell(&mut out);
        let found = taken(&mut out);
        // A third of the weights is zero.
        let weight = |at: usize| ((at as u32).wrapping_mul(seed | 1) % 3) as f64 - 1.0;
        let weights = found.iter().enumerate().map(|(at, (name, _))| (name.as_str(), weight(at)));
        let weights = Weights::new(weights);
        let mut total = Total { weights: &weights, sum: 0.0 };
        tell(&mut total);
        let expected: f64 =
            found.iter().enumerate().map(|(at, (_, value))| weight(at) * f64::from(*value)).sum();
        prop_assert!((total.sum - expected).abs() < 1e-9);
    }
}
