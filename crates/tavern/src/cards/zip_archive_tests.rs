//! Tests of malicious zip archives.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{CardArchive, CardError, File, Seek, ZipArchive, is_archive};

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("free disk space");
    file.rewind().expect("file is seekable");
    file
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default())
            .expect("an entry");
        zip.write_all(bytes).expect("its bytes");
    }
    zip.finish().expect("an archive").into_inner()
}

fn open(bytes: &[u8]) -> Result<CardArchive, CardError> {
    CardArchive::open(on_disk(bytes))
}

#[test]
fn only_requested_files_are_read() {
    let bytes = zip_of(&[("a", b"one"), ("b/c", b"two")]);
    let mut archive = open(&bytes).expect("an archive");

    assert_eq!(archive.names(), ["a", "b/c"]);
    assert_eq!(archive.read("b/c", 3).expect("two"), Some(b"two".to_vec()));
    assert_eq!(archive.read("c", 3).expect("nothing"), None);
    assert!(
        archive.read("a", 2).is_err(),
        "three bytes exceed a limit of two"
    );
}

#[test]
fn an_entry_may_not_exceed_the_compression_ratio() {
    let zeros = vec![0; 8 * 1024 * 1024];
    let bytes = zip_of(&[("bomb", &zeros), ("small", &zeros[..60_000])]);
    let mut archive = open(&bytes).expect("an archive");

    let refused = archive.read("bomb", u64::MAX >> 1).expect_err("a bomb");

    assert!(refused.to_string().contains("is too large"), "{refused}");
    assert!(
        archive.read("small", 100_000).is_ok(),
        "small entries may exceed the ratio"
    );
}

#[test]
fn an_archive_of_many_small_bombs_exceeds_the_total() {
    let zeros = vec![0; 60_000];
    let names: Vec<String> = (0..900).map(|it| it.to_string()).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), &zeros[..])).collect();
    let bytes = zip_of(&files);
    let allowed = bytes.len() * 100;
    let mut archive = open(&bytes).expect("an archive");

    let mut n_read = 0;
    for name in &names {
        match archive.read(name, 100_000) {
            Ok(bytes) => n_read += bytes.map_or(0, |it| it.len()),
            Err(_) => break,
        }
    }

    assert!(n_read <= allowed, "{n_read} of {allowed}");
}

#[test]
fn names_that_escape_the_root_are_refused() {
    for name in ["../x", "a/../../x", "/x", "a\\x", "c:x"] {
        assert!(open(&zip_of(&[(name, b"")])).is_err(), "{name}");
    }
    assert!(open(&zip_of(&[("a/..b/x..", b"")])).is_ok());
}

#[test]
fn too_many_entries_are_refused_before_they_are_listed() {
    let names: Vec<String> = (0..1_001).map(|it| it.to_string()).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|it| (it.as_str(), &b""[..])).collect();

    assert!(matches!(open(&zip_of(&files)), Err(CardError::TooLarge(_))));
    assert!(open(&zip_of(&files[..1_000])).is_ok());
}

#[test]
fn an_archive_is_recognized_by_its_end_record() {
    let bytes = zip_of(&[("a", b"one")]);
    let behind = [b"\xFF\xD8 a picture".as_slice(), &bytes].concat();

    assert!(is_archive(&mut on_disk(&behind)));
    assert!(open(&behind).expect("an archive").contains("a"));
    assert!(!is_archive(&mut on_disk(&bytes[..bytes.len() - 1])));
    for cut in 0..bytes.len() {
        assert!(open(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    assert!(
        ZipArchive::new(Cursor::new(&bytes)).is_ok(),
        "the complete archive is valid"
    );
}

/// The small end record states one entry; the large one after it has the real directory.
#[test]
fn a_second_end_record_cannot_bypass_the_entry_limit() {
    let mut bytes = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0a".to_vec();
    let start = bytes.len() as u64;
    let n_entries = 200_000_u64;
    for i in 0..n_entries {
        bytes.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0");
        bytes.extend([0; 12]);
        bytes.extend(b"\x07\0");
        bytes.extend([0; 16]);
        bytes.extend(format!("{i:07}").bytes());
    }
    let (end, size) = (bytes.len() as u64, bytes.len() as u64 - start);
    bytes.extend(b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0\0\0\0\0\0\0\0\0");
    for number in [n_entries, n_entries, size, start] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(end.to_le_bytes());
    bytes.extend(b"\x01\0\0\0");
    bytes.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x2e\0\0\0\xFF\xFF\xFF\xFF\0\0");

    let refused = open(&bytes).err().expect("it is refused");

    assert_eq!(refused.to_string(), "The archive cannot be read.");
}
