//! Tests of the cost of small or hostile files: one import may use only so much memory at a time,
//! and allocate only so much in total.

use std::fs::File;
use std::io::{Cursor, Read, Seek, Write};

use allocation_counter::measure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{CardError, CardFile, read};
use crate::cards::png::SIGNATURE;
use crate::cards::png_chunks::push_chunk;

/// The maximum heap size, in bytes.
const MAX_HEAP: u64 = 64 * 1024 * 1024;
/// The maximum total allocation, in bytes; a stand-in for time, which tests cannot measure
/// reliably.
const MAX_ALLOCATED: u64 = 256 * 1024 * 1024;

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("free disk space");
    file.rewind().expect("file is seekable");
    file
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, kind, data);
    bytes
}

/// Compresses bytes with zlib.
fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("x", SimpleFileOptions::default())
        .expect("an entry");
    zip.write_all(bytes).expect("its bytes");
    let mut zip = zip.finish_into_readable().expect("an archive");
    let mut data = vec![0x78, 0x9C];
    let mut entry = zip.by_index_raw(0).expect("the entry");
    entry.read_to_end(&mut data).expect("its bytes");
    let checksum = bytes
        .chunks(5_000)
        .fold((1_u32, 0_u32), |(mut a, mut b), part| {
            for it in part {
                a += u32::from(*it);
                b += a;
            }
            (a % 65_521, b % 65_521)
        });
    data.extend(((checksum.1 << 16) | checksum.0).to_be_bytes());
    data
}

/// Builds a compressed text chunk with this keyword.
fn text(keyword: &str, bytes: &[u8]) -> Vec<u8> {
    let head = [keyword.as_bytes(), b"\0\0"].concat();
    chunk(b"zTXt", &[head, compress(bytes)].concat())
}

fn card(keyword: &str, json: &str) -> Vec<u8> {
    text(keyword, STANDARD.encode(json).as_bytes())
}

/// Builds a PNG of this size, with this number of bits per channel and all pixels zero.
fn picture(width: u32, height: u32, bits: u8, chunks: &[Vec<u8>]) -> Vec<u8> {
    let head = [
        &width.to_be_bytes()[..],
        &height.to_be_bytes(),
        &[bits, 6, 0, 0, 0],
    ]
    .concat();
    let row = 1 + width.min(8_000) as usize * 4 * usize::from(bits / 8);
    // Large files contain less data than they state.
    let is_large = u64::from(width) * u64::from(height) > 10_000_000;
    let n_rows = if is_large { 1 } else { height as usize };
    let mut file = [SIGNATURE.to_vec(), chunk(b"IHDR", &head)].concat();
    file.extend(chunks.concat());
    file.extend(chunk(b"IDAT", &compress(&vec![0; row * n_rows])));
    file.extend(chunk(b"IEND", b""));
    file
}

/// Reads a file and checks its cost.
fn read_within_limits(name: &str, bytes: &[u8]) -> Result<CardFile, CardError> {
    let file = on_disk(bytes);
    let mut outcome = None;
    let cost = measure(|| outcome = Some(read(file)));
    eprintln!("{name}: {} bytes, {cost:?}", bytes.len());
    assert!(cost.bytes_max <= MAX_HEAP, "{name}: {cost:?}");
    assert!(cost.bytes_total <= MAX_ALLOCATED, "{name}: {cost:?}");
    outcome.expect("the file was read")
}

fn card_of_values(value: &str, n: usize, version: u8) -> String {
    let values = vec![value; n].join(",");
    let spec = format!(r#""spec":"chara_card_v{version}""#);
    format!(
        r#"{{{spec},"data":{{"name":"Ada","description":"d","extensions":{{"x":[{values}]}}}}}}"#
    )
}

#[test]
fn two_cards_of_the_largest_size_stay_within_the_memory_limit() {
    for (value, n) in [("0", 249_000), ("[]", 124_000), (r#"{"":0}"#, 35_000)] {
        let both = [
            card("chara", &card_of_values(value, n, 2)),
            card("ccv3", &card_of_values(value, n, 3)),
        ];
        let imported = read_within_limits(value, &picture(1, 1, 8, &both)).expect("a card");
        assert_eq!(imported.card.name(), "Ada", "{value}");
    }
}

#[test]
fn small_objects_in_large_numbers_are_refused() {
    let many = card("chara", &card_of_values(r#"{"":0}"#, 124_000, 2));

    assert!(read_within_limits("objects", &picture(1, 1, 8, &[many])).is_err());
}

#[test]
fn few_chunks_with_a_high_compression_ratio_are_decompressed() {
    let large = vec![b'*'; 6_900_000];
    for keyword in ["ccv3", "chara"] {
        let many = text(keyword, &large).repeat(500);
        let good = card("chara", r#"{"name":"Ada","description":"x"}"#);
        let outcome = read_within_limits(keyword, &picture(1, 1, 8, &[many, good]));
        assert_eq!(outcome.is_ok(), keyword == "ccv3", "{keyword}");
    }
}

#[test]
fn a_large_asset_is_copied_once() {
    let asset = [b"chara-ext-asset_:a\0".as_slice(), &vec![b'A'; 19_000_000]].concat();
    let json = r#"{"spec":"chara_card_v3","data":{"name":"Ada","description":"d","assets":[{"uri":"__asset:a"}]}}"#;
    let chunks = [card("ccv3", json), chunk(b"tEXt", &asset)];

    let imported = read_within_limits("asset", &picture(1, 1, 8, &chunks)).expect("a card");

    assert_eq!(imported.assets.names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn many_chunks_and_many_assets_cost_little() {
    let good = || card("chara", r#"{"name":"Ada","description":"x"}"#);
    let tiny = chunk(b"teSt", b"").repeat(99_900);
    let assets = (0..90_000).map(|n| {
        let data = format!("chara-ext-asset_:{n:05}\0AAAA");
        chunk(b"tEXt", data.as_bytes())
    });
    let frames = chunk(b"fcTL", &[0; 26]).repeat(10_000);

    for (name, chunks) in [
        ("tiny", tiny),
        ("assets", assets.flatten().collect()),
        ("frames", frames),
    ] {
        let imported = read_within_limits(name, &picture(1, 1, 8, &[chunks, good()]));
        assert_eq!(imported.expect("a card").card.name(), "Ada", "{name}");
    }
}

#[test]
fn an_image_of_many_pixels_stays_within_the_memory_limit() {
    let good = card("chara", r#"{"name":"Ada","description":"x"}"#);
    // EXIF in TIFF format with one entry: rotated by 90 degrees.
    let rotation = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let rotation = chunk(b"eXIf", rotation);
    for (name, width, height, bits, has_avatar) in [
        ("wide", 4_000, 2_500, 8, true),
        ("deep", 2_500, 2_000, 16, true),
        ("too deep", 2_500, 2_400, 16, false),
        ("too many", 8_000, 8_000, 8, false),
        ("far too many", 0x7FFF_FFFF, 0x7FFF_FFFF, 8, false),
        ("one line", 8_000, 1, 8, true),
    ] {
        let file = picture(width, height, bits, &[good.clone(), rotation.clone()]);
        let imported = read_within_limits(name, &file).expect("a card");
        assert_eq!(
            imported.avatar.is_some(),
            has_avatar,
            "{name}: {:?}",
            imported.card.warnings
        );
    }
}
