//! The sparse features by name: which there are, and how they are turned on.
//!
//! A new template is a type in a file of its own that implements one of the interfaces of
//! [`features`](super), and a row here.

use std::path::{Path, PathBuf};

use tunesmith_rules::Frequent;
use tunesmith_text::{Classes, Error, Result};

use super::Extras;
use super::bigrams::{AsClasses, AsTags, AsWords, Bigrams};
use super::distortion::Distortion;
use super::frequent::{Contexts, FrequentDeletions, FrequentInsertions};
use super::order::Order;
use super::pairs::{Deletions, Insertions, Pairs};
use super::rule_id::RuleId;
use super::shape::Shape;

/// A kind of feature.
pub struct Template {
    /// What turns it on.
    pub name: &'static str,
    /// One of its features.
    pub example: &'static str,
    pub about: &'static str,
    add: fn(&Resources, &mut Extras) -> Result<()>,
}

/// Several templates under one name: those of a paper.
pub struct Set {
    pub name: &'static str,
    pub templates: &'static [&'static str],
    pub about: &'static str,
}

/// Files that some templates need.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    /// The most frequent words and pairs, as [`Frequent`] writes them.
    pub frequent: Option<PathBuf>,
    /// The classes of target words, as [`Classes`] writes them.
    pub classes: Option<PathBuf>,
    /// The tags of words and phrases in the format of [`Classes`], words and tags with a space
    /// between them.
    pub tags: Option<PathBuf>,
}

impl Resources {
    /// Where a model directory has them: `frequent.txt`, `classes.txt`, `tags.txt`.
    pub fn of_model(folder: &Path) -> Resources {
        let file = |name| Some(folder.join(name));
        Resources {
            frequent: file("frequent.txt"),
            classes: file("classes.txt"),
            tags: file("tags.txt"),
        }
    }

    fn frequent(&self) -> Result<Frequent> {
        let remedy = "train the model again in its folder, or see tunesmith.training.frequent";
        Frequent::read(given(&self.frequent, "a file of frequent words", remedy)?)
    }

    fn classes(&self) -> Result<Classes> {
        let remedy = "train the model again in its folder, or see tunesmith.training.classes";
        Classes::read(given(&self.classes, "a file of word classes", remedy)?)
    }

    fn tags(&self) -> Result<AsTags> {
        let remedy = "train with --tagged, or see tunesmith structured tags";
        let path = given(&self.tags, "a file of tags", remedy)?;
        AsTags::new(&Classes::read(path)?).map_err(|phrase| {
            let message = format!("{phrase:?} has not as many tags as words");
            let remedy = "write words and tags with one space between them";
            Error::new(message).at(path.display().to_string(), None).remedy(remedy)
        })
    }
}

fn given<'a>(path: &'a Option<PathBuf>, what: &str, remedy: &str) -> Result<&'a Path> {
    match path {
        None => Err(Error::new(format!("the template wants {what}")).remedy(remedy)),
        Some(path) if !path.exists() => {
            let message = format!("there is not {what}, which the template wants");
            Err(Error::new(message).at(path.display().to_string(), None).remedy(remedy))
        }
        Some(path) => Ok(path),
    }
}

/// All templates.
pub static TEMPLATES: [Template; 13] = [
    Template {
        name: "rule-id",
        example: "PT:das_haus~the_house",
        about: "each rule or phrase pair",
        add: |_, extras| on_rule(extras, RuleId),
    },
    Template {
        name: "pairs",
        example: "WP:haus~house",
        about: "linked words within a rule",
        add: |_, extras| on_rule(extras, Pairs),
    },
    Template {
        name: "deletions",
        example: "WD:ja",
        about: "source words of a rule without a link",
        add: |_, extras| on_rule(extras, Deletions),
    },
    Template {
        name: "insertions",
        example: "WI:haus~of",
        about: "target words of a rule without a link, with each of its source words",
        add: |_, extras| on_rule(extras, Insertions),
    },
    Template {
        name: "order",
        example: "LO:previous-swap:das_haus~the_house",
        about: "eight ways for each phrase to lie to its neighbours",
        add: |_, extras| {
            extras.order.push(Box::new(Order));
            Ok(())
        },
    },
    Template {
        name: "bigrams",
        example: "TB:the~house",
        about: "neighbouring target words",
        add: |_, extras| {
            extras.string.push(Box::new(Bigrams(AsWords)));
            Ok(())
        },
    },
    Template {
        name: "class-bigrams",
        example: "TC:<s>~17",
        about: "classes of neighbouring target words; wants classes.txt",
        add: |resources, extras| {
            extras.string.push(Box::new(Bigrams(AsClasses::new(&resources.classes()?))));
            Ok(())
        },
    },
    Template {
        name: "tag-bigrams",
        example: "TT:DET~NOUN",
        about: "tags of neighbouring target words, each in its phrase; wants tags.txt",
        add: |resources, extras| {
            extras.string.push(Box::new(Bigrams(resources.tags()?)));
            Ok(())
        },
    },
    Template {
        name: "shape",
        example: "RS:w_[X,1]~[X,1]_w",
        about: "the sequence of words and gaps of a rule",
        add: |_, extras| on_rule(extras, Shape),
    },
    Template {
        name: "distortion",
        example: "SD:moved:3",
        about: "whether what fills a gap is moved, by its number of words",
        add: |_, extras| {
            extras.place.push(Box::new(Distortion));
            Ok(())
        },
    },
    Template {
        name: "contexts",
        example: "CX-1:haus~house~das",
        about: "the source words beside those of frequent pairs; wants frequent.txt",
        add: |resources, extras| {
            extras.place.push(Box::new(Contexts::new(&resources.frequent()?)));
            Ok(())
        },
    },
    Template {
        name: "frequent-insertions",
        example: "FI:of",
        about: "target words without a link that often have none; wants frequent.txt",
        add: |resources, extras| on_rule(extras, FrequentInsertions::new(&resources.frequent()?)),
    },
    Template {
        name: "frequent-deletions",
        example: "FD:ja",
        about: "source words without a link that often have none; wants frequent.txt",
        add: |resources, extras| on_rule(extras, FrequentDeletions::new(&resources.frequent()?)),
    },
];

/// The templates of the papers.
pub static SETS: [Set; 6] = [
    Set {
        name: "eidelman2012",
        templates: &["pairs", "insertions", "bigrams"],
        about: "word pairs, insertions and target bigrams of Eidelman 2012",
    },
    Set {
        name: "eidelman2013",
        templates: &[
            "rule-id",
            "shape",
            "distortion",
            "contexts",
            "frequent-insertions",
            "frequent-deletions",
        ],
        about: "the sparse features of Eidelman, Marton & Resnik 2013",
    },
    Set {
        name: "green2013",
        templates: &["rule-id", "pairs", "deletions", "order"],
        about: "PT, AL and LO of Green et al. 2013",
    },
    Set {
        name: "hasler2011",
        templates: &["bigrams"],
        about: "target bigrams of Hasler, Haddow & Koehn 2011",
    },
    Set {
        name: "hasler2011-classes",
        templates: &["class-bigrams"],
        about: "the same over classes of words",
    },
    Set {
        name: "hasler2011-tags",
        templates: &["tag-bigrams"],
        about: "the same over parts of speech",
    },
];

fn on_rule(extras: &mut Extras, template: impl super::OnRule + 'static) -> Result<()> {
    extras.rule.push(Box::new(template));
    Ok(())
}

/// The features of these templates and sets; what is named twice is there once. Refuses names that
/// are neither, and files that a template needs and that cannot be read.
pub fn make(names: &[impl AsRef<str>], resources: &Resources) -> Result<Extras> {
    let mut chosen: Vec<&str> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        match SETS.iter().find(|set| set.name == name) {
            Some(set) => chosen.extend(set.templates),
            None => chosen.push(name),
        }
    }
    if let Some(unknown) = chosen.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        let sets: Vec<&str> = SETS.iter().map(|set| set.name).collect();
        let remedy = format!("use {}, or a set: {}", known.join(", "), sets.join(", "));
        return Err(Error::new(format!("no features are named {unknown:?}")).remedy(remedy));
    }
    let mut extras = Extras::default();
    for template in TEMPLATES.iter().filter(|template| chosen.contains(&template.name)) {
        (template.add)(resources, &mut extras)?;
    }
    Ok(extras)
}

fn is_known(name: &str) -> bool {
    TEMPLATES.iter().any(|template| template.name == name)
}
