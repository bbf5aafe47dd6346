//! Parses a page (HTML), joins its stylesheets into one, inserts its icon and its scripts that are
//! not modules into it, and returns it with the addresses of the packed files.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::read;
use crate::source_module::SourceModule;

/// The icon of a page, which is small enough to be a part of it.
const ICON: (&str, &str) = ("<link rel=\"icon\" href=\"/", "\" type=\"image/svg+xml\">");

/// How a page names the module that it starts.
const MODULE: &str = "<script type=\"module\" src=\"/";

/// A page of the client.
pub struct Page {
    /// The file name without `.html`.
    pub name: String,
    /// The module that the page starts.
    pub entry: String,
    /// The scripts that run before the first paint and become part of the page.
    pub scripts: Vec<String>,
    styles: Vec<String>,
    /// The lines of the page, without those that name stylesheets.
    lines: Vec<String>,
}

impl Page {
    /// Reads a page, and the scripts that become part of it.
    pub fn parse(folder: &Path, name: &str, text: &str) -> Result<Page> {
        let mut page = Page {
            name: name.to_owned(),
            entry: String::new(),
            scripts: Vec::new(),
            styles: Vec::new(),
            lines: Vec::new(),
        };
        for line in text.lines().map(str::trim) {
            if let Some(path) = between(line, "<link rel=\"stylesheet\" href=\"/", "\">") {
                page.styles.push(path.to_owned());
                continue;
            }
            if let Some(path) = between(line, MODULE, "\"></script>") {
                ensure!(page.entry.is_empty(), "{name}.html starts two modules");
                page.entry = path.to_owned();
            }
            if let Some(path) = between(line, "<script src=\"/", "\"></script>") {
                let script = SourceModule::parse(&read(folder, path)?)?.code;
                page.lines.push(format!("<script>{script}</script>"));
                page.scripts.push(script);
            } else if let Some(path) = between(line, ICON.0, ICON.1) {
                let icon = BASE64_STANDARD.encode(read(folder, path)?);
                let address = format!("data:image/svg+xml;base64,{icon}");
                let line = format!("<link rel=\"icon\" href=\"{address}\">");
                page.lines.push(line);
            } else if !line.is_empty() && between(line, "<!-- ", " -->").is_none() {
                // The sources are not served: an address of one that is not replaced is an error.
                let is_source = line.contains("\"/js/") || line.contains("\"/css/");
                let is_entry = line.starts_with(MODULE);
                ensure!(!is_source || is_entry, "{name}.html: unknown form: {line}");
                page.lines.push(line.to_owned());
            }
        }
        ensure!(!page.entry.is_empty(), "{name}.html starts no module");
        ensure!(!page.styles.is_empty(), "{name}.html has no stylesheet");
        Ok(page)
    }

    /// Returns the stylesheets of the page as one, in order, without comments and indentation.
    pub fn read_styles(&self, folder: &Path) -> Result<String> {
        let mut all = String::new();
        for path in &self.styles {
            let text = without_comments(&read(folder, path)?).with_context(|| path.clone())?;
            for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
                all.push_str(line);
                all.push('\n');
            }
        }
        Ok(all)
    }

    /// Returns the page with the packed files, which are below `root`.
    pub fn write(&self, root: &str) -> String {
        let mut text = String::new();
        for line in &self.lines {
            if !line.starts_with(MODULE) {
                text.push_str(&format!("{line}\n"));
                continue;
            }
            let style = format!("{root}/{}.css", self.name);
            text.push_str(&format!("<link rel=\"stylesheet\" href=\"{style}\">\n"));
            let script = format!("{root}/{}.js", self.name);
            text.push_str(&format!(
                "<script type=\"module\" src=\"{script}\"></script>\n"
            ));
        }
        text
    }
}

fn between<'a>(line: &'a str, start: &str, end: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix(end)
}

fn without_comments(text: &str) -> Result<String> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        let end = comment.split_once("*/");
        rest = end.context("a comment does not end")?.1;
    }
    kept.push_str(rest);
    Ok(kept)
}
