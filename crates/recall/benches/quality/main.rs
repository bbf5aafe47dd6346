//! Measures which memories a search finds: asks the questions of `questions.tsv` in a space with the
//! memories of `facts.tsv`, and counts the questions with a correct memory among the first five. Each
//! question is searched for by two texts, as in a prompt. Every second question is held out: a change
//! of the search may be based only on the other half.
//!
//! With the argument `--misses`, also prints the questions without a correct memory in a prompt, except
//! those that are held out. The figures do not depend on the machine. Nothing is asserted.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::HashMap;

use base::ids::MemoryId;
use recall::entry::{EmbeddedMemory, MemoryEntry, RecallScope};
use recall::index::{MemoryChange, MemoryIndex};
use recall::quantized_vector::QuantizedVector;
use recall::query::QueryText;
use recall::search::{RecallRules, search};

const FACTS: &str = include_str!("facts.tsv");
const QUESTIONS: &str = include_str!("questions.tsv");

/// The groups of questions. Those of the last group have no correct memory: a search should recall none.
const GROUPS: [&str; 4] = ["reworded", "paraphrased", "follow_up", "no_answer"];

/// How memories are searched: whether by words, by vectors, and with the threshold of prompts.
struct Method {
    name: &'static str,
    uses_words: bool,
    uses_vectors: bool,
    has_threshold: bool,
}

impl Method {
    const fn new(name: &'static str, uses: (bool, bool), has_threshold: bool) -> Self {
        Self {
            name,
            uses_words: uses.0,
            uses_vectors: uses.1,
            has_threshold,
        }
    }
}

const METHODS: [Method; 4] = [
    Method::new("words", (true, false), false),
    Method::new("vectors", (false, true), false),
    Method::new("fusion", (true, true), false),
    Method::new("prompts", (true, true), true),
];

struct Question {
    group: &'static str,
    is_held_out: bool,
    right: Vec<MemoryId>,
    /// The newest message, and the newest messages together.
    texts: [String; 2],
    /// The authors of the latter.
    authors: String,
    /// The newest messages, each with the name of its author.
    labelled: String,
}

impl Question {
    /// Returns whether one of its correct memories was recalled; for a question without one, whether any
    /// memory was.
    fn is_met_by(&self, recalled: &[MemoryId]) -> bool {
        match self.right.is_empty() {
            true => !recalled.is_empty(),
            false => self.right.iter().any(|it| recalled.contains(it)),
        }
    }
}

fn main() {
    let (ids, index) = index();
    let questions = questions(&ids);
    let names = METHODS.iter().map(|it| format!("{:>9}", it.name));
    println!("{} memories, {} questions", index.len(), questions.len());
    println!(
        "{:22}{} {:>22}",
        "",
        names.collect::<String>(),
        "memories in a prompt"
    );
    for group in GROUPS {
        for is_held_out in [false, true] {
            let is_asked = |it: &&Question| it.group == group && it.is_held_out == is_held_out;
            let asked: Vec<&Question> = questions.iter().filter(is_asked).collect();
            let half = if is_held_out { "held out" } else { "" };
            println!("{group:12} {half:9}{}", figures(&index, &asked));
        }
    }
    if std::env::args().any(|it| it == "--misses") {
        print_misses(&index, &questions);
    }
}

/// Returns the number of questions with a hit, for each method, and the mean number of memories that
/// the last method recalls.
fn figures(index: &MemoryIndex, asked: &[&Question]) -> String {
    let mut line = String::new();
    let mut n_recalled = 0;
    for method in &METHODS {
        let found: Vec<_> = asked.iter().map(|it| recalled(index, it, method)).collect();
        let met = asked.iter().zip(&found).filter(|(it, of)| it.is_met_by(of));
        line += &format!("{:>9}", format!("{}/{}", met.count(), asked.len()));
        n_recalled = found.iter().map(Vec::len).sum();
    }
    let mean = f64::from(u32::try_from(n_recalled).unwrap()) / asked.len() as f64;
    format!("{line} {mean:>22.1}")
}

fn print_misses(index: &MemoryIndex, questions: &[Question]) {
    let prompts = METHODS.last().unwrap();
    for question in questions.iter().filter(|it| !it.is_held_out) {
        let is_met = question.is_met_by(&recalled(index, question, prompts));
        if is_met == question.right.is_empty() {
            println!(
                "{}: {} ({})",
                question.group, question.texts[1], question.authors
            );
        }
    }
}

fn recalled(index: &MemoryIndex, question: &Question, method: &Method) -> Vec<MemoryId> {
    let vectors = [&question.texts[0], &question.labelled].map(|it| local_embedding::embed(it));
    let authors = ["", &question.authors];
    let texts = question.texts.iter().zip(authors).zip(&vectors);
    let queries: Vec<QueryText<'_>> = texts
        .map(|((text, authors), vector)| QueryText {
            text: if method.uses_words { text } else { "" },
            authors: if method.uses_words { authors } else { "" },
            vector: method.uses_vectors.then_some(vector),
            provider_vector: None,
        })
        .collect();
    let of_prompts = RecallRules {
        cosine_range: local_embedding::COSINE_RANGE,
        ..RecallRules::default()
    };
    let rules = match method.has_threshold {
        true => of_prompts,
        false => RecallRules {
            threshold: 0.0,
            ..of_prompts
        },
    };
    let found = search(index, &RecallScope::default(), &queries, &rules, &|| false);
    let recalled = found.iter().filter(|it| it.rank.is_some());
    recalled.map(|it| it.memory.id).collect()
}

/// Returns the index, and the id of each memory by its name in the file.
fn index() -> (HashMap<&'static str, MemoryId>, MemoryIndex) {
    let mut ids = HashMap::new();
    let mut changes = Vec::new();
    for (row, id) in rows(FACTS).zip(1..) {
        let [name, content] = row[..] else {
            panic!("a memory has two columns: {row:?}");
        };
        let id = MemoryId(id);
        assert!(ids.insert(name, id).is_none(), "{name} exists twice");
        changes.push(MemoryChange::Stored(EmbeddedMemory {
            vector: Some(QuantizedVector::new(&local_embedding::embed(content))),
            ..MemoryEntry::new(id, content).into()
        }));
    }
    (ids, MemoryIndex::default().with_changes(1, changes))
}

fn questions(ids: &HashMap<&str, MemoryId>) -> Vec<Question> {
    let question = |(n, row): (usize, Vec<&'static str>)| {
        let [group, right, messages] = row[..] else {
            panic!("a question has three columns: {row:?}");
        };
        let labelled = messages.split(" / ");
        let (authors, texts): (Vec<&str>, Vec<&str>) = labelled
            .clone()
            .map(|it| it.split_once(": ").unwrap())
            .unzip();
        let right = right.split(',').filter(|it| *it != "-");
        Question {
            group: GROUPS.into_iter().find(|it| *it == group).unwrap(),
            is_held_out: n % 2 == 1,
            right: right.map(|it| ids[it]).collect(),
            texts: [texts[texts.len() - 1].to_owned(), texts.join("\n")],
            authors: authors.join("\n"),
            labelled: labelled.collect::<Vec<_>>().join("\n"),
        }
    };
    rows(QUESTIONS).enumerate().map(question).collect()
}

/// Returns the columns of each line of a file, except those of the first line.
fn rows(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines().skip(1).map(|it| it.split('\t').collect())
}
