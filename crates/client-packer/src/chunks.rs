//! Distributes the modules of a page to few scripts ("chunks") and returns their texts: one chunk
//! for what the page needs at once, and one for each group of modules that the same `import()`
//! calls need.
//!
//! In a chunk, each module is a function that is called once, and its exports are an object in a
//! variable that is named after its path. Chunks import these variables from each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use crate::graph::{Graph, resolve};

/// The chunk of each module.
type ChunkOf = BTreeMap<String, String>;

/// Returns the chunks of a page by their file names, which begin with the name of the page.
pub fn write(graph: &Graph, page: &str) -> Result<BTreeMap<String, String>> {
    let chunk_of = distribute(graph, page)?;
    let names: BTreeSet<&String> = chunk_of.values().collect();
    let texts = names
        .into_iter()
        .map(|name| Ok((name.clone(), write_chunk(graph, &chunk_of, name)?)));
    texts.collect()
}

/// Returns the chunk of each module.
fn distribute(graph: &Graph, page: &str) -> Result<ChunkOf> {
    let mut roots = BTreeSet::new();
    for path in &graph.order {
        roots.extend(graph.dynamic_imports(path)?);
    }
    let at_once = graph.reached(&graph.entry)?;
    let mut users: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for root in &roots {
        for path in graph.reached(root)?.difference(&at_once) {
            users.entry(path.clone()).or_default().insert(root);
        }
    }
    let mut groups: BTreeMap<BTreeSet<&String>, Vec<&String>> = BTreeMap::new();
    for (path, users) in &users {
        groups.entry(users.clone()).or_default().push(path);
    }
    let mut chunk_of = BTreeMap::new();
    for path in at_once {
        chunk_of.insert(path, format!("{page}.js"));
    }
    let (mut n_shared, mut names) = (0, BTreeSet::new());
    for (group, paths) in groups {
        let root = paths.iter().find(|path| group.contains(**path));
        let name = match root {
            Some(root) => chunk_name(page, root),
            None => {
                n_shared += 1;
                format!("{page}-shared-{n_shared}.js")
            }
        };
        ensure!(names.insert(name.clone()), "two scripts are named {name}");
        for path in paths {
            chunk_of.insert(path.clone(), name.clone());
        }
    }
    let mut variables = BTreeSet::new();
    for path in chunk_of.keys() {
        let variable = variable(path);
        ensure!(
            variables.insert(variable.clone()),
            "two modules are named {variable}"
        );
    }
    Ok(chunk_of)
}

/// Names a chunk after its page and its root: `js/admin/page.js` is in `index-admin-page.js`.
fn chunk_name(page: &str, root: &str) -> String {
    let mut parts = root.trim_start_matches("js/").rsplit('/');
    let file = parts.next().unwrap_or(root);
    match parts.next() {
        Some(folder) => format!("{page}-{folder}-{file}"),
        None => format!("{page}-{file}"),
    }
}

fn write_chunk(graph: &Graph, chunk_of: &ChunkOf, name: &str) -> Result<String> {
    let is_here = |path: &String| chunk_of.get(path).is_some_and(|it| it == name);
    let mut imported: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut exported = BTreeSet::new();
    let mut body = String::new();
    for path in &graph.order {
        let imports = graph.imports(path)?;
        for module in &imports {
            match (is_here(path), is_here(module)) {
                (true, false) => {
                    let chunk = find(chunk_of, module)?;
                    imported.entry(chunk).or_default().insert(variable(module));
                }
                (false, true) => {
                    exported.insert(variable(module));
                }
                _ => {}
            }
        }
        let later = graph.dynamic_imports(path)?;
        exported.extend(later.iter().filter(|it| is_here(it)).map(|it| variable(it)));
        if is_here(path) {
            write_module(&mut body, graph, chunk_of, path)?;
        }
    }
    let mut text = String::new();
    for (chunk, variables) in imported {
        writeln!(text, "import{{{}}}from\"./{chunk}\";", join(&variables))?;
    }
    text.push_str(&body);
    if !exported.is_empty() {
        writeln!(text, "export{{{}}};", join(&exported))?;
    }
    Ok(text)
}

fn write_module(text: &mut String, graph: &Graph, chunk_of: &ChunkOf, path: &str) -> Result<()> {
    let module = graph.module(path)?;
    writeln!(text, "const {}=(()=>{{", variable(path))?;
    for import in &module.imports {
        let from = variable(&resolve(path, &import.from)?);
        writeln!(text, "const{{{}}}={from};", pairs(&import.names))?;
    }
    let load = |name: &str| {
        let target = resolve(path, name)?;
        let own = find(chunk_of, &target)?;
        let mut needed = vec![own];
        for module in graph.reached(&target)? {
            let chunk = find(chunk_of, &module)?;
            // The chunk of this module is here already.
            if !needed.contains(&chunk) && chunk != find(chunk_of, path)? {
                needed.push(chunk);
            }
        }
        let calls: Vec<_> = needed
            .iter()
            .map(|it| format!("import(\"./{it}\")"))
            .collect();
        let (calls, variable) = (calls.join(","), variable(&target));
        Ok(format!(
            "Promise.all([{calls}]).then((it)=>it[0].{variable})"
        ))
    };
    text.push_str(&module.code_with(load)?);
    writeln!(text, "return{{{}}}\n}})();", pairs(&module.exports))?;
    Ok(())
}

fn find<'a>(chunk_of: &'a ChunkOf, path: &str) -> Result<&'a str> {
    let found = chunk_of.get(path).map(String::as_str);
    found.with_context(|| format!("{path} is in no chunk"))
}

/// Writes the properties of an object or of a pattern.
fn pairs(names: &[(String, String)]) -> String {
    let pair = |(name, local): &(String, String)| match name == local {
        true => name.clone(),
        false => format!("{name}:{local}"),
    };
    names.iter().map(pair).collect::<Vec<_>>().join(",")
}

fn join(names: &BTreeSet<String>) -> String {
    names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns the variable that holds the exports of a module.
fn variable(path: &str) -> String {
    let is_part = |it: char| it.is_ascii_alphanumeric();
    let stem = path.trim_start_matches("js/").trim_end_matches(".js");
    let name = stem.replace(|it| !is_part(it), "_");
    format!("${name}")
}
