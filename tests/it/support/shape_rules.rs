//! The rules for the layout of the source code, as pure functions of a path and a text.
//!
//! A module may use lower layers and itself, but no other module of its layer or of a higher one.
//! `architecture.rs` applies the rules to the source tree and to small invalid inputs.

use std::collections::HashSet;
use std::fmt;

use crate::support::layer_rules::{module_of, uses_other_protocol, wrong_layer};
use crate::support::rust_source::RustSource;

/// The maximum number of lines in a file.
const MAX_LINES: usize = 400;

/// A violated rule: where it is and what to do.
#[derive(Debug, PartialEq)]
pub struct Violation {
    /// The file, relative to the root of the repository.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The rule, and what to do.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.rule)
    }
}

/// The file that is checked.
pub struct File<'a> {
    pub path: &'a str,
    pub text: &'a str,
    pub source: RustSource,
}

impl File<'_> {
    /// Returns a violation of `rule` in this line.
    pub fn violation(&self, line: usize, rule: impl Into<String>) -> Violation {
        Violation {
            path: self.path.to_owned(),
            line,
            rule: rule.into(),
        }
    }

    /// Returns a violation for each occurrence of these words in the code.
    fn forbid(&self, words: &[&str], rule: &str) -> Vec<Violation> {
        let places = words
            .iter()
            .flat_map(|word| self.source.code.match_indices(word));
        places
            .map(|(offset, _)| self.violation(self.source.line_of(offset), rule))
            .collect()
    }
}

/// Checks all rules for one file. Paths are relative to the root of the repository, with `/`.
pub fn check(path: &str, text: &str) -> Vec<Violation> {
    let file = File {
        path,
        text,
        source: RustSource::parse(text),
    };
    let mut found = too_long(&file);
    if path.ends_with(".rs") {
        found.extend(missing_module_doc(&file));
        if !path.starts_with("migration/") {
            found.extend(split_imports(&file));
        }
        if path.ends_with("/mod.rs") {
            found.extend(code_in_mod_file(&file));
        }
    }
    if path.starts_with("src/") && path.ends_with(".rs") {
        found.extend(wrong_layer(&file));
        found.extend(uses_other_protocol(&file));
        found.extend(changes_run_status(&file));
    }
    if path.ends_with(".rs") && (path.starts_with("src/") || path.starts_with("crates/")) {
        found.extend(forbidden_calls(&file));
    }
    if path.starts_with("migration/") {
        found.extend(database_clock_reads(&file));
    }
    found
}

fn too_long(file: &File) -> Vec<Violation> {
    let lines = file.text.lines().count();
    if lines <= MAX_LINES {
        return Vec::new();
    }
    vec![file.violation(
        lines,
        format!("a file has at most {MAX_LINES} lines; name its second half and move it there"),
    )]
}

fn missing_module_doc(file: &File) -> Vec<Violation> {
    if file.text.starts_with("//!") {
        return Vec::new();
    }
    vec![file.violation(1, "every file opens with `//!` and says what it is for")]
}

fn code_in_mod_file(file: &File) -> Vec<Violation> {
    // Attributes of the whole module belong to its header.
    let is_header =
        |line: &str| line.is_empty() || line.starts_with("//!") || line.starts_with("#!");
    let is_module = |line: &str| line.starts_with("pub mod ") && line.ends_with(';');
    // Modules of a test binary need no `pub`, and two binaries may share one by path.
    let is_test_module = |line: &str| {
        file.path.starts_with("tests/") && (line.starts_with("mod ") || line.starts_with("#[path"))
    };
    let lines = file.text.lines().enumerate();
    let odd =
        lines.filter(|(_, line)| !is_header(line) && !is_module(line) && !is_test_module(line));
    let rule = "a mod.rs holds its `//!` page and `pub mod` lines, nothing else";
    odd.map(|(at, _)| file.violation(at + 1, rule)).collect()
}

/// Imports are grouped by module: a file has one `use` for each module and visibility.
fn split_imports(file: &File) -> Vec<Violation> {
    let rule = "one `use` for each module: merge this one with the earlier import";
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (offset, _) in file.source.code.match_indices("use ") {
        let code = &file.source.code;
        let line_start = code[..offset].rfind('\n').map_or(0, |at| at + 1);
        let Some(statement) = code[offset..].split(';').next() else {
            continue;
        };
        let prefix = &code[line_start..offset];
        let is_top_level = prefix.is_empty() || prefix == "pub ";
        let path = statement.trim_start_matches("use ");
        let module = match path.split_once('{') {
            Some((module, _)) => module.trim_end_matches("::"),
            None => path.rsplit_once("::").map_or("", |(module, _)| module),
        };
        let is_attributed = code[..line_start].trim_end().ends_with(']');
        let is_single_name = module.is_empty() || path.contains(" as ");
        if !is_top_level || is_single_name || is_attributed {
            continue;
        }
        if !seen.insert((prefix.to_owned(), module.to_owned())) {
            found.push(file.violation(file.source.line_of(offset), rule));
        }
    }
    found
}

/// Calls that are allowed in one file or module only.
fn forbidden_calls(file: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    let module = module_of(file.path);
    if module != "db" {
        let rule = "a transaction is opened in src/db/ only: call db::write, which survives a canceled request";
        found.extend(file.forbid(
            &[".begin(", ".begin_with", ".transaction(", ".transaction_"],
            rule,
        ));
    }
    if file.path != "crates/base/src/clock.rs" {
        let rule = "the time comes from crates/base/src/clock.rs, so that a test can set it";
        found.extend(file.forbid(&["Utc::now", "Local::now", "SystemTime::now"], rule));
    }
    found.extend(database_clock_reads(file));
    if file.path != "crates/outbound-http/src/client.rs" {
        let rule =
            "calls are made by crates/outbound-http/src/client.rs only, which checks where they go";
        found.extend(file.forbid(
            &[
                " Client::new(",
                ":Client::new(",
                "Client::builder(",
                "reqwest::get(",
                "TcpStream::connect",
            ],
            rule,
        ));
    }
    if file.path.starts_with("crates/") {
        let rule = "a crate knows neither the application nor its web framework";
        found.extend(file.forbid(&["troupe::", "actix_web::", "actix_ws::"], rule));
    }
    let rule = "an error that the database did not report is a variant of the module's own error";
    found.extend(file.forbid(&["DbErr::Custom"], rule));
    let mounts = [
        "src/web/openapi/endpoint.rs",
        "src/web/v1/http/mounting.rs",
        "src/web/middleware/run_to_completion.rs",
    ];
    if module == "web" && !mounts.contains(&file.path) {
        let rule = "a handler is mounted as an endpoint with its description: list it in the `routes.rs` of its protocol";
        found.extend(file.forbid(&["web::resource(", ".route(", ".default_service("], rule));
    }
    if module == "web" {
        let rule = "the web layers do not use sea-orm: call a finder in the module of the table";
        found.extend(file.forbid(&["sea_orm", "::Entity::", "::Column::"], rule));
        let rule = "a handler spawns no task: its runtime ends with its thread; hand the work to the engine";
        found.extend(file.forbid(&["tokio::spawn", "task::spawn("], rule));
    }
    found
}

/// SQL functions that return the time, in lower case; `now()` in Rust code follows no space.
const TIMES_OF_SQL: [&str; 8] = [
    "clock_timestamp",
    "current_timestamp",
    "localtimestamp",
    "transaction_timestamp",
    "unixepoch",
    "julianday",
    "strftime",
    " now()",
];

/// Only heartbeats use the clock of the database, so that a wrong clock affects nothing else.
fn database_clock_reads(file: &File) -> Vec<Violation> {
    if file.path == "src/db/backend.rs" {
        return Vec::new();
    }
    let rule = "the database's clock is asked in db/backend.rs only, for leases and the offset of the node";
    let text = file.source.with_literals.to_lowercase();
    let reads = TIMES_OF_SQL.iter().flat_map(|it| text.match_indices(it));
    reads
        .map(|(at, _)| file.violation(text[..at].matches('\n').count() + 1, rule))
        .collect()
}

/// `conversation_runs` is written in one file, whose statements name the expected state.
fn changes_run_status(file: &File) -> Vec<Violation> {
    if file.path == "src/runs/store/queue.rs" {
        return Vec::new();
    }
    let rule =
        "a run moves in runs/store/queue.rs only, by a statement that names the state it expects";
    let mut words = vec![
        "col_expr(run::Column::",
        "value(run::Column::",
        "run::ActiveModel",
        "run::Entity::update",
        "run::Entity::insert",
        "table(run::Entity",
        "run::Entity as ",
    ];
    if file.path == "src/runs/store/run.rs" {
        words.extend([
            "col_expr(Column::",
            "value(Column::",
            "Entity::update",
            "Entity::insert",
            "Set(",
        ]);
    }
    let mut found = file.forbid(&words, rule);
    for (offset, _) in file.source.with_literals.match_indices("conversation_runs") {
        let before: String = file.source.with_literals[..offset]
            .chars()
            .rev()
            .take(40)
            .collect();
        let before: String = before
            .chars()
            .rev()
            .map(|sign| {
                if sign.is_alphanumeric() {
                    sign.to_ascii_lowercase()
                } else {
                    ' '
                }
            })
            .collect();
        let verb = before.split_whitespace().collect::<Vec<_>>().join(" ");
        if verb.ends_with("update") || verb.ends_with("insert into") {
            found.push(file.violation(file.source.line_of(offset), rule));
        }
    }
    found
}
