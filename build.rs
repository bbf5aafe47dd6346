//! Packs the web client into the binary: writes the packed files, and a table of them for
//! `src/server/client_files.rs`.

// Cargo reads the output of a build script.
#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use client_packer::PackedFile;

fn main() {
    // Read while the script runs: a target folder that two checkouts share may hold the script
    // that another checkout has compiled.
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let source = Path::new(&package).join("static");
    println!("cargo::rerun-if-changed={}", source.display());
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let client = client_packer::pack(&source)
        .unwrap_or_else(|error| panic!("the client cannot be packed: {error:#}"));
    let mut table = String::from("&[\n");
    for (number, file) in client.files.iter().enumerate() {
        write_file(&mut table, Path::new(&out), number, file);
    }
    table.push_str("]\n");
    let scripts = client.inline_scripts.iter();
    let scripts: String = scripts.map(|hash| format!(" '{hash}'")).collect();
    println!("cargo::rustc-env=CLIENT_INLINE_SCRIPTS={scripts}");
    fs::write(Path::new(&out).join("client_files.rs"), table).expect("OUT_DIR can be written");
}

fn write_file(table: &mut String, out: &Path, number: usize, file: &PackedFile) {
    let include = |bytes: &[u8], encoding: &str| {
        let path = out.join(format!("client_file_{number}{encoding}"));
        fs::write(&path, bytes).expect("OUT_DIR can be written");
        format!("include_bytes!({path:?})")
    };
    let plain = include(&file.bytes, "");
    let compressed = |bytes: &Option<Vec<u8>>, encoding: &str| match bytes {
        Some(bytes) => format!("Some({})", include(bytes, encoding)),
        None => "None".to_owned(),
    };
    let (gzip, brotli) = (
        compressed(&file.gzip, ".gz"),
        compressed(&file.brotli, ".br"),
    );
    let PackedFile {
        name,
        media_type,
        hash,
        is_hashed,
        ..
    } = file;
    writeln!(
        table,
        "ClientFile {{ name: {name:?}, media_type: {media_type:?}, hash: {hash:?}, \
         is_hashed: {is_hashed}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }},"
    )
    .expect("a text can be written");
}
