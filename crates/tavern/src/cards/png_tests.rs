//! Tests of irregular PNG files, complete and truncated at every byte.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Cursor, PngAsset, PngCard, SIGNATURE, push_chunk, read, read_asset};

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, kind, data);
    bytes
}

fn text(keyword: &str, json: &str) -> Vec<u8> {
    let data = format!("{keyword}\0{}", STANDARD.encode(json));
    chunk(b"tEXt", data.as_bytes())
}

fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend(chunk(b"IHDR", &[0; 13]));
    bytes.extend(chunks.concat());
    bytes.extend(chunk(b"IEND", b""));
    bytes
}

fn found(chunks: &[Vec<u8>]) -> PngCard {
    read(Cursor::new(file(chunks))).expect("a PNG")
}

#[test]
fn the_first_card_of_each_version_is_used() {
    let pixels = chunk(b"IDAT", b"pixels");
    let found = found(&[
        pixels.clone(),
        text("CHARA", "{1}"),
        pixels,
        text("ccv3", "{2}"),
        text("chara", "{3}"),
        text("ccv3", "{4}"),
    ]);

    assert_eq!(found.v2.as_deref(), Some(&b"{1}"[..]));
    assert_eq!(found.v3.as_deref(), Some(&b"{2}"[..]));
    assert_eq!(found.warnings.len(), 2, "{:?}", found.warnings);
}

#[test]
fn chunk_checksums_match_the_png_format() {
    assert_eq!(chunk(b"IEND", b""), b"\0\0\0\0IEND\xAE\x42\x60\x82");
}

#[test]
fn a_text_past_the_limit_is_refused_and_a_foreign_one_is_not_read() {
    let foreign = chunk(
        b"tEXt",
        &[b"risuai\0".as_slice(), &vec![b'A'; 8_000_000]].concat(),
    );
    let ours = chunk(
        b"tEXt",
        &[b"chara\0".as_slice(), &vec![b'A'; 8_000_000]].concat(),
    );

    assert!(found(&[foreign, text("chara", "{}")]).v2.is_some());
    let refused = read(Cursor::new(file(&[ours]))).expect_err("too large");
    assert!(refused.to_string().contains("5 MiB"), "{refused}");
}

#[test]
fn a_too_large_card_does_not_hide_a_valid_one() {
    let large = |word: &str| {
        let head = format!("{word}\0");
        chunk(b"tEXt", &[head.as_bytes(), &vec![b'A'; 8_000_000]].concat())
    };

    let older = found(&[large("ccv3"), text("chara", "{1}")]);
    let newer = found(&[text("ccv3", "{2}"), large("chara")]);

    assert_eq!(older.v2.as_deref(), Some(&b"{1}"[..]));
    assert!(
        older
            .broken
            .expect("a reason")
            .to_string()
            .contains("5 MiB")
    );
    assert_eq!(newer.v3.as_deref(), Some(&b"{2}"[..]));
}

#[test]
fn only_a_few_broken_cards_are_decompressed() {
    let broken = chunk(b"zTXt", b"ccv3\0\0not packed");
    let good = text("ccv3", "{}");

    let after_few = found(&[broken.clone(), good.clone()]);
    let after_many = found(&[broken.repeat(2), good, text("chara", "{1}")]);

    assert!(after_few.v3.is_some());
    assert!(after_many.v3.is_none());
    assert_eq!(after_many.v2.as_deref(), Some(&b"{1}"[..]));
}

#[test]
fn reading_stops_at_the_chunk_limit() {
    let many = chunk(b"teSt", b"").repeat(100_001);

    let refused = read(Cursor::new(file(&[many]))).expect_err("too many");

    assert!(refused.to_string().contains("100 000"), "{refused}");
}

#[test]
fn a_truncated_file_is_reported_and_its_complete_chunks_are_read() {
    let whole = file(&[
        chunk(b"IDAT", b"pixels"),
        text("chara", "{1}"),
        chunk(b"tIME", b"1234567"),
    ]);
    let card_ends = whole.len() - 12 - 19;

    for end in SIGNATURE.len()..whole.len() - 12 {
        let outcome = read(Cursor::new(&whole[..end]));
        match end < card_ends {
            true => {
                let reason = outcome.expect_err("the card is incomplete").to_string();
                assert!(reason.contains(&format!("byte {end}")), "{reason}");
            }
            false => assert_eq!(outcome.expect("the card").warnings.len(), 1, "at {end}"),
        }
    }
}

#[test]
fn assets_are_found_by_their_paths() {
    let first = text("chara-ext-asset_:joy", "abc");
    let duplicate = text("chara-ext-asset_:joy", "def");
    let bytes = file(&[
        first,
        duplicate,
        text("chara-ext-asset_:", "x"),
        text("chara", "{}"),
    ]);

    let found = read(Cursor::new(&bytes)).expect("a PNG");

    let paths: Vec<&str> = found
        .assets
        .iter()
        .map(|it: &PngAsset| it.path.as_str())
        .collect();
    assert_eq!(paths, ["joy"]);
    assert_eq!(
        read_asset(Cursor::new(&bytes), &found.assets[0]).as_deref(),
        Some(&b"abc"[..])
    );
}

#[test]
fn an_invalid_chunk_is_reported() {
    let mut bytes = file(&[]);
    bytes.truncate(33);
    bytes.extend(b"\xFF\xFF\xFF\xFFtEXtchara");

    let refused = read(Cursor::new(bytes)).expect_err("broken");

    assert!(refused.to_string().contains("byte 33"), "{refused}");
}
