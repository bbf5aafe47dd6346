//! Packs the web client and returns the files in memory, each also compressed: per page one script,
//! one stylesheet and scripts for its `import()` calls, below a folder named by their hash, and the
//! pages themselves. Also returns the hashes of inline scripts for the content security policy.
//!
#![doc = include_str!("../README.md")]

mod chunks;
mod compression;
mod graph;
mod pages;
mod source_module;
mod template_literal;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::graph::Graph;
use crate::pages::Page;

/// The folder of the packed files in the addresses, above the folder that is named by their hash.
pub const PACKED_FOLDER: &str = "assets";

/// A file as it is served.
pub struct PackedFile {
    /// The path below the root of the server, without a leading slash.
    pub name: String,
    pub media_type: &'static str,
    /// The hash of the content, in hexadecimal digits.
    pub hash: String,
    /// Whether the name contains the hash of the content, so that the content never changes.
    pub is_hashed: bool,
    pub bytes: Vec<u8>,
    /// The compressed content, if it is smaller.
    pub gzip: Option<Vec<u8>>,
    /// The compressed content, if it is smaller.
    pub brotli: Option<Vec<u8>>,
}

/// The packed client.
pub struct PackedClient {
    /// The files, ordered by name.
    pub files: Vec<PackedFile>,
    /// The SHA-256 hashes of the scripts in the pages, as a content security policy names them.
    pub inline_scripts: BTreeSet<String>,
}

/// Packs the client in `folder`: its pages (`*.html`) with all modules and stylesheets that they
/// need, and the other files next to the pages, which keep their names.
///
/// # Errors
/// Returns an error that names the file when a file cannot be read, a module has an unknown form,
/// or modules import each other in a circle.
pub fn pack(folder: &Path) -> Result<PackedClient> {
    let mut pages = Vec::new();
    let mut others = Vec::new();
    for (name, text) in top_level_files(folder)? {
        match name.strip_suffix(".html") {
            Some(stem) => pages.push(Page::parse(folder, stem, &text)?),
            None => others.push((name, text)),
        }
    }
    let mut hashed = BTreeMap::new();
    let mut inline_scripts = BTreeSet::new();
    for page in &pages {
        let graph = Graph::load(folder, &page.entry)?;
        let mut files = chunks::write(&graph, &page.name)?;
        files.insert(format!("{}.css", page.name), page.read_styles(folder)?);
        for (name, text) in files {
            ensure!(!hashed.contains_key(&name), "two files are named {name}");
            hashed.insert(name, text);
        }
        inline_scripts.extend(page.scripts.iter().map(|script| policy_hash(script)));
    }
    let root = format!("{PACKED_FOLDER}/{}", hash_of(&hashed));

    let mut files = Vec::new();
    for (name, text) in hashed {
        files.push(packed(format!("{root}/{name}"), text, true)?);
    }
    for page in &pages {
        let text = page.write(&format!("/{root}"));
        files.push(packed(format!("{}.html", page.name), text, false)?);
    }
    for (name, text) in others {
        files.push(packed(name, text, false)?);
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(PackedClient {
        files,
        inline_scripts,
    })
}

fn top_level_files(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = read(folder, &name)?;
            files.push((name, text));
        }
    }
    files.sort();
    Ok(files)
}

fn read(folder: &Path, name: &str) -> Result<String> {
    fs::read_to_string(folder.join(name)).with_context(|| format!("{name} cannot be read"))
}

fn packed(name: String, text: String, is_hashed: bool) -> Result<PackedFile> {
    let bytes = text.into_bytes();
    Ok(PackedFile {
        media_type: media_type(&name)?,
        gzip: compression::gzip(&bytes)?,
        brotli: compression::brotli(&bytes)?,
        hash: hex::encode(&Sha256::digest(&bytes)[..16]),
        name,
        is_hashed,
        bytes,
    })
}

/// Returns one hash of all packed files: they name each other, so they change together.
fn hash_of(files: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (name, text) in files {
        for part in [name, text] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    hex::encode(&hash.finalize()[..8])
}

fn policy_hash(script: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(script)))
}

fn media_type(name: &str) -> Result<&'static str> {
    Ok(match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain",
        _ => bail!("{name}: the media type of such a file is not known"),
    })
}

#[cfg(test)]
mod tests;
