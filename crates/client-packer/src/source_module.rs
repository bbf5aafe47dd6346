//! Parses the text of one module of the client: returns its imports and exports, and its code
//! without comments, indentation, `import` and `export`. Rejects every form of the two that it does
//! not know.
//!
//! An `import` or `export` begins at the start of a line. The known forms are `import A, { b, c as d }
//! from "./x.js"`, `import("./x.js")`, and `export` or `export default` before a class, a function,
//! a `const` or, for `export default`, a value. An exported variable never changes.

use anyhow::{Context, Result, bail, ensure};

use crate::template_literal::ends_in_template;

/// The name of a default export that has no name of its own.
const UNNAMED_DEFAULT: &str = "$default";
const DYNAMIC_IMPORT: &str = "import(\"";

/// A module of the client.
#[derive(Debug)]
pub struct SourceModule {
    pub imports: Vec<Import>,
    /// The modules that are loaded by `import()`, as written.
    pub dynamic_imports: Vec<String>,
    /// The exported names, each with the name of its variable.
    pub exports: Vec<(String, String)>,
    pub code: String,
}

/// A static import: the module as written, and the imported names, each with its local name.
#[derive(Debug)]
pub struct Import {
    pub from: String,
    pub names: Vec<(String, String)>,
}

impl SourceModule {
    pub fn parse(text: &str) -> Result<SourceModule> {
        let mut module = SourceModule {
            imports: Vec::new(),
            dynamic_imports: Vec::new(),
            exports: Vec::new(),
            code: String::new(),
        };
        // Lines of a template are kept as they are: white space and comments are part of its text.
        let mut is_in_template = false;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if is_in_template {
                module.push_line(line);
            } else if line.starts_with("import ") {
                let mut statement = line.to_owned();
                while !statement.ends_with('"') {
                    let next = lines.next().context("an import does not end")?;
                    statement.push_str(next);
                }
                module.imports.push(parse_import(&statement)?);
                continue;
            } else if line.trim_start().starts_with("//") || line.trim().is_empty() {
                continue;
            } else if let Some(exported) = line.strip_prefix("export ") {
                let line = module.parse_export(exported)?;
                module.push_line(&line);
            } else {
                let is_known = !["import", "export"].contains(&leading_name(line))
                    || line.starts_with(DYNAMIC_IMPORT);
                ensure!(is_known, "unknown form: {line}");
                module.push_line(line.trim_start());
            }
            is_in_template = ends_in_template(line, is_in_template)?;
        }
        ensure!(!is_in_template, "a template does not end");
        require_known_calls(&module.code)?;
        module.dynamic_imports = find_dynamic_imports(&module.code)?;
        Ok(module)
    }

    /// Returns the code, in which each `import()` is replaced by what `load` returns for its module.
    pub fn code_with(&self, load: impl Fn(&str) -> Result<String>) -> Result<String> {
        let mut parts = self.code.split(DYNAMIC_IMPORT);
        let mut code = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = split_dynamic_import(part)?;
            code.push_str(&load(name)?);
            code.push_str(rest);
        }
        Ok(code)
    }

    fn push_line(&mut self, line: &str) {
        self.code.push_str(line);
        self.code.push('\n');
    }

    /// Records what a line exports; `exported` is the line without `export`. Returns its code.
    fn parse_export(&mut self, exported: &str) -> Result<String> {
        let (is_default, declaration) = match exported.strip_prefix("default ") {
            Some(declaration) => (true, declaration),
            None => (false, exported),
        };
        let kinds: &[&str] = match is_default {
            true => &["class ", "function ", "async function "],
            false => &["class ", "function ", "async function ", "const "],
        };
        let rest = kinds.iter().find_map(|kind| declaration.strip_prefix(kind));
        let name = rest.map(leading_name).filter(|name| !name.is_empty());
        let name = name.filter(|name| *name != "extends");
        match (name, is_default) {
            (Some(name), true) => self.exports.push(("default".to_owned(), name.to_owned())),
            (Some(name), false) => self.exports.push((name.to_owned(), name.to_owned())),
            (None, true) => {
                let exported = ("default".to_owned(), UNNAMED_DEFAULT.to_owned());
                self.exports.push(exported);
                return Ok(format!("const {UNNAMED_DEFAULT} = {declaration}"));
            }
            (None, false) => bail!("unknown form: export {exported}"),
        }
        Ok(declaration.to_owned())
    }
}

fn parse_import(statement: &str) -> Result<Import> {
    let unknown = || format!("unknown form: {statement}");
    let (clause, path) = statement
        .strip_prefix("import ")
        .and_then(|it| it.split_once(" from \""))
        .with_context(unknown)?;
    let mut names = Vec::new();
    let mut clause = clause.trim();
    if !clause.starts_with('{') {
        let (default, rest) = clause.split_once(',').unwrap_or((clause, ""));
        ensure!(leading_name(default) == default, unknown());
        names.push(("default".to_owned(), default.to_owned()));
        clause = rest.trim();
    }
    if !clause.is_empty() {
        let list = clause
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'))
            .with_context(unknown)?;
        for item in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (name, local) = item.split_once(" as ").unwrap_or((item, item));
            ensure!(leading_name(name) == name, unknown());
            names.push((name.to_owned(), local.to_owned()));
        }
    }
    Ok(Import {
        from: path.trim_end_matches('"').to_owned(),
        names,
    })
}

/// Fails on `import.meta` and on an `import()` whose argument is not a string in double quotes.
fn require_known_calls(code: &str) -> Result<()> {
    for line in code.lines() {
        let is_known = |(at, _): (usize, &str)| {
            let before = line[..at].chars().next_back();
            let is_other_name = before.is_some_and(|it| is_name_part(it) || it == '.' || it == '#');
            is_other_name || line[at..].starts_with(DYNAMIC_IMPORT)
        };
        let mut calls = line
            .match_indices("import(")
            .chain(line.match_indices("import.meta"));
        ensure!(calls.all(is_known), "unknown form: {line}");
    }
    Ok(())
}

fn find_dynamic_imports(code: &str) -> Result<Vec<String>> {
    code.split(DYNAMIC_IMPORT)
        .skip(1)
        .map(|part| split_dynamic_import(part).map(|(name, _)| name.to_owned()))
        .collect()
}

/// Splits the text after `import("` into the module and what follows the call.
fn split_dynamic_import(part: &str) -> Result<(&str, &str)> {
    part.split_once("\")")
        .context("import() names its module as a string")
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|it| !is_name_part(it)).unwrap_or(text.len());
    &text[..end]
}

fn is_name_part(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_' || it == '$'
}
