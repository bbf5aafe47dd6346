//! Checks that the links of the pages lead somewhere and that the files which they name exist, so
//! that a moved file or a renamed heading is noticed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folders of which pages name files.
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

/// The endings of the files that pages name.
const ENDINGS: [&str; 5] = [".rs", ".js", ".mjs", ".md", ".toml"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The paths of all files in a folder, from the root of the repository.
fn files_in(folder: &str) -> Vec<String> {
    let mut waiting = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let path = path.strip_prefix(root()).expect("it is below the root");
            found.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    found
}

/// The pages with their texts, without code blocks.
fn pages() -> Vec<(String, String)> {
    let in_folders = ["docs", "migration"].into_iter().flat_map(files_in);
    let pages = in_folders.filter(|it| it.ends_with(".md"));
    let pages: Vec<_> = pages.chain(["README.md".to_owned()]).collect();
    assert!(pages.len() > 10, "{pages:?}");
    pages
        .into_iter()
        .map(|page| {
            let text = fs::read_to_string(root().join(&page)).expect("a page can be read");
            let outside_code = text.split("\n```").step_by(2);
            let text = outside_code.collect::<Vec<_>>().join("\n");
            (page, text)
        })
        .collect()
}

/// The anchor of a heading: `## Add a table` is `add-a-table`.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'))
        .map(|it| if it == ' ' { '-' } else { it })
        .collect()
}

/// The targets of the links of a page, except those on other servers.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|it| it.split(')').next())
        .filter(|it| !it.contains("://"))
}

/// Resolves `..` in a path.
fn resolve(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
        whole
    })
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        for target in link_targets(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(&page).parent().expect("a file is in a folder");
            let file = match file {
                "" => PathBuf::from(&page),
                file => resolve(&folder.join(file)),
            };
            if !root().join(&file).exists() {
                wrong.push(format!("{page}: no file {target}"));
                continue;
            }
            if heading.is_empty() {
                continue;
            }
            let linked = fs::read_to_string(root().join(&file)).expect("a page can be read");
            let headings = linked.lines().filter(|it| it.starts_with('#'));
            let mut anchors = headings.map(|it| anchor(it.trim_start_matches('#').trim()));
            if !anchors.any(|it| it == heading) {
                wrong.push(format!("{page}: no heading {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_that_a_page_names_exists() {
    let files: BTreeSet<String> = FOLDERS.into_iter().flat_map(files_in).collect();
    // A page may leave out the first folders: `runs/store/queue.rs` is `src/runs/store/queue.rs`.
    let exists = |name: &str| {
        let ending = format!("/{name}");
        root().join(name).is_file() || files.iter().any(|it| it.ends_with(&ending))
    };
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        let named = text.split('`').skip(1).step_by(2);
        let named = named.filter(|it| ENDINGS.iter().any(|ending| it.ends_with(ending)));
        // `<order>.rs` stands for a file to add.
        let named = named.filter(|it| !it.contains(['<', ' ']));
        for name in named.filter(|it| !exists(it)) {
            wrong.push(format!("{page}: no file {name}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
