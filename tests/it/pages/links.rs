//! Checks that the targets of all links in the pages exist, and the files and items that pages and
//! comments name, so that a moved file, a renamed heading or a renamed function is detected.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folders with files that pages name.
const FOLDERS: [&str; 9] = [
    "benches",
    "bin",
    "crates",
    "docs",
    "fuzz",
    "migration",
    "src",
    "static",
    "tests",
];

/// The extensions of files that pages name.
const EXTENSIONS: [&str; 5] = [".rs", ".js", ".mjs", ".md", ".toml"];

/// Words that begin the definition of an item.
const DEFINITIONS: [&str; 8] = [
    "fn", "struct", "enum", "trait", "const", "static", "type", "mod",
];

/// The first segments of paths to items of the standard library and of dependencies.
const FOREIGN: [&str; 4] = ["clippy", "std", "tokio", "utoipa"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the paths of all files in a folder, relative to the repository.
fn files_in(folder: &str) -> Vec<String> {
    let mut pending = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("the folder entry can be read").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let path = path
                .strip_prefix(root())
                .expect("the path is below the root");
            found.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    found
}

/// Returns the pages with their texts, without code blocks.
fn pages() -> Vec<(String, String)> {
    let in_folders = ["docs", "migration"].into_iter().flat_map(files_in);
    let pages = in_folders.filter(|it| it.ends_with(".md"));
    let pages: Vec<_> = pages.chain(["README.md".to_owned()]).collect();
    assert!(pages.len() > 10, "{pages:?}");
    pages
        .into_iter()
        .map(|page| {
            let text = read(&page);
            let outside_code = text.split("\n```").step_by(2);
            let text = outside_code.collect::<Vec<_>>().join("\n");
            (page, text)
        })
        .collect()
}

/// Returns the anchor of a heading: `## Add a table` is `add-a-table`.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'))
        .map(|it| if it == ' ' { '-' } else { it })
        .collect()
}

/// Returns the targets of the links in a page, except links to other servers.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|it| it.split(')').next())
        .filter(|it| !it.contains("://"))
}

/// Resolves `..` in a path.
fn resolve(path: &Path) -> PathBuf {
    path.components()
        .fold(PathBuf::new(), |mut resolved, part| {
            match part {
                Component::ParentDir => {
                    resolved.pop();
                }
                part => resolved.push(part),
            }
            resolved
        })
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let mut errors = Vec::new();
    for (page, text) in pages() {
        for target in link_targets(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(&page).parent().expect("the page is in a folder");
            let file = match file {
                "" => PathBuf::from(&page),
                file => resolve(&folder.join(file)),
            };
            if !root().join(&file).exists() {
                errors.push(format!("{page}: no file {target}"));
                continue;
            }
            if heading.is_empty() {
                continue;
            }
            let linked = read(&file.to_string_lossy());
            let headings = linked.lines().filter(|it| it.starts_with('#'));
            let mut anchors = headings.map(|it| anchor(it.trim_start_matches('#').trim()));
            if !anchors.any(|it| it == heading) {
                errors.push(format!("{page}: no heading {target}"));
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn every_file_that_a_page_names_exists() {
    let files: BTreeSet<String> = FOLDERS.into_iter().flat_map(files_in).collect();
    // A page may omit the first folders: `runs/store/queue.rs` is `src/runs/store/queue.rs`.
    let exists = |name: &str| {
        let suffix = format!("/{name}");
        root().join(name).is_file() || files.iter().any(|it| it.ends_with(&suffix))
    };
    let mut errors = Vec::new();
    for (page, text) in pages() {
        let named = text.split('`').skip(1).step_by(2);
        let named = named.filter(|it| EXTENSIONS.iter().any(|suffix| it.ends_with(suffix)));
        // `<order>.rs` stands for a file to add, and `~/` for the home folder of a user.
        let named = named.filter(|it| !it.contains(['<', ' ', '~']));
        for name in named.filter(|it| !exists(it)) {
            errors.push(format!("{page}: no file {name}"));
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// Returns the Rust files, each with its comments.
fn comments() -> Vec<(String, String)> {
    let files = FOLDERS.into_iter().flat_map(files_in);
    let sources: Vec<String> = files.filter(|it| it.ends_with(".rs")).collect();
    assert!(sources.len() > 500, "{} files", sources.len());
    sources
        .into_iter()
        .map(|path| {
            let text = read(&path);
            let lines = text.lines().filter_map(|it| it.split_once("//"));
            let comments = lines.map(|(_, it)| it).collect::<Vec<_>>().join("\n");
            (path, comments)
        })
        .collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("the file can be read")
}

/// Returns the items that a text names in backticks with the module before them.
fn named_items(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let quoted = text.lines().flat_map(|it| it.split('`').skip(1).step_by(2));
    let is_name = |it: &str| it.chars().all(|c| c.is_alphanumeric() || c == '_') && !it.is_empty();
    quoted
        .filter_map(|it| it.trim_end_matches("()").split_once("::"))
        .filter(move |(module, item)| is_name(module) && is_name(item))
        .filter(|(module, _)| module.starts_with(char::is_lowercase))
        .filter(|(module, _)| !FOREIGN.contains(module))
}

/// Returns the name of the module in a file. `mod.rs` has the name of its folder, and `lib.rs` that
/// of its crate.
fn module_of(path: &str) -> String {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let path = path.strip_suffix("/src/lib").unwrap_or(path);
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.replace('-', "_")
}

#[test]
fn every_item_that_a_comment_or_page_names_exists() {
    let files = FOLDERS.into_iter().flat_map(files_in);
    let mut items = BTreeSet::new();
    for path in files.filter(|it| it.ends_with(".rs")) {
        let module = module_of(&path);
        let text = read(&path);
        let words: Vec<&str> = text
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .collect();
        for pair in words.windows(2).filter(|it| DEFINITIONS.contains(&it[0])) {
            items.insert((module.clone(), pair[1].to_owned()));
        }
    }
    let mut errors = Vec::new();
    for (path, text) in comments().into_iter().chain(pages()) {
        for (module, item) in named_items(&text) {
            if !items.contains(&(module.to_owned(), item.to_owned())) {
                errors.push(format!("{path}: no item {module}::{item}"));
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
