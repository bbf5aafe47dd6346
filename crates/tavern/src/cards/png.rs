//! Finds cards and assets in the chunks of a PNG or APNG file, and decodes them: cards to JSON, an
//! asset only when it is requested. Other chunks are skipped by their length.
//!
//! **Invariant:** a scan loads only chunks of a card, each up to its limit. Decompression stops at
//! the same limit, and is attempted for few broken cards. A wrong checksum only causes a warning; a
//! broken card does not hide a valid one.

use std::collections::HashSet;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};

use crate::cards::card_error::CardError;
use crate::cards::png_chunks::{checksum, push_chunk};
use crate::documents::limits;
use crate::import_warning::ImportWarning;

/// The first bytes of every PNG.
pub const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// The maximum size of a PNG, in bytes.
pub const MAX_BYTES: u64 = 20 * 1024 * 1024;
/// The maximum text of a card in a chunk, in bytes: base64 needs four bytes for three.
const MAX_TEXT_BYTES: usize = limits::MAX_BYTES / 3 * 4 + 1024;
const MAX_CHUNKS: usize = 100_000;
const MAX_ASSETS: usize = 1_000;
/// After this many broken cards of a keyword, no more are tried, because each may have to be
/// decompressed.
const MAX_BROKEN: usize = 2;
/// A keyword has 1 to 79 bytes and a terminating zero.
const MAX_KEYWORD_BYTES: usize = 80;
/// The lower-case prefix of an asset's keyword.
const ASSET_PREFIX: &str = "chara-ext-asset_";

/// Accepts common errors of base64 encoders.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The contents of a PNG.
#[derive(Debug, Default)]
pub struct PngCard {
    /// The first `ccv3`, as JSON.
    pub v3: Option<Vec<u8>>,
    /// The first `chara`, as JSON.
    pub v2: Option<Vec<u8>>,
    /// The assets, not loaded yet.
    pub assets: Vec<PngAsset>,
    /// The error of the first card that could not be read.
    pub broken: Option<CardError>,
    pub warnings: Vec<ImportWarning>,
    /// The numbers of broken `ccv3` and `chara` chunks.
    n_broken: [usize; 2],
    paths: HashSet<String>,
}

/// An asset in base64 that is not loaded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PngAsset {
    /// The path that the card writes as `__asset:<path>`.
    pub path: String,
    at: u64,
    length: usize,
}

struct PngChunk {
    kind: [u8; 4],
    /// The offset of its data.
    at: u64,
    length: usize,
}

/// Scans the chunks of a file that starts with the PNG signature.
///
/// # Errors
/// Returns `TooLarge` when a limit is exceeded, and the reason when all cards are broken or the
/// file ends before any card.
pub fn read(file: impl Read + Seek) -> Result<PngCard, CardError> {
    let mut file = BufReader::new(file);
    let n_bytes = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    if n_bytes > MAX_BYTES {
        return Err(too_large("The PNG is larger than 20 MiB."));
    }
    let mut found = PngCard::default();
    let mut at = SIGNATURE.len() as u64;
    file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
    for _ in 0..MAX_CHUNKS {
        let Some(chunk) = next_chunk(&mut file, at, n_bytes)? else {
            return truncated(found, at, n_bytes);
        };
        if chunk.kind == *b"IEND" {
            return finish(found);
        }
        let after = chunk.at + chunk.length as u64 + 4;
        if after > n_bytes {
            let kind = String::from_utf8_lossy(&chunk.kind).into_owned();
            return truncated_in_chunk(found, &kind, n_bytes);
        }
        if [*b"tEXt", *b"zTXt", *b"iTXt"].contains(&chunk.kind) {
            read_text_chunk(&mut file, &chunk, &mut found)?;
        }
        let position = file.stream_position().map_err(unreadable)?;
        let ahead = after.cast_signed() - position.cast_signed();
        file.seek_relative(ahead).map_err(unreadable)?;
        at = after;
    }
    Err(too_large("The PNG has more than 100 000 chunks."))
}

/// Returns the bytes of an asset.
pub fn read_asset(mut file: impl Read + Seek, asset: &PngAsset) -> Option<Vec<u8>> {
    let mut text = vec![0; asset.length];
    file.seek(SeekFrom::Start(asset.at)).ok()?;
    file.read_exact(&mut text).ok()?;
    decode_base64(text)
}

fn finish(mut found: PngCard) -> Result<PngCard, CardError> {
    match found.v3.is_none() && found.v2.is_none() {
        true => found.broken.take().map_or(Ok(found), Err),
        false => Ok(found),
    }
}

fn next_chunk(
    file: &mut (impl Read + Seek),
    at: u64,
    n_bytes: u64,
) -> Result<Option<PngChunk>, CardError> {
    if at + 8 > n_bytes {
        return Ok(None);
    }
    let mut head = [0; 8];
    file.read_exact(&mut head).map_err(unreadable)?;
    let [a, b, c, d, kind @ ..] = head;
    let length = u32::from_be_bytes([a, b, c, d]);
    if length > i32::MAX as u32 || !kind.iter().all(u8::is_ascii_alphabetic) {
        let reason = format!("The PNG is invalid: there is no chunk at byte {at}.");
        return Err(CardError::reason(reason));
    }
    Ok(Some(PngChunk {
        kind,
        at: at + 8,
        length: length as usize,
    }))
}

fn read_text_chunk(
    file: &mut BufReader<impl Read + Seek>,
    chunk: &PngChunk,
    found: &mut PngCard,
) -> Result<(), CardError> {
    let mut head = [0; MAX_KEYWORD_BYTES];
    let head = &mut head[..chunk.length.min(MAX_KEYWORD_BYTES)];
    file.read_exact(head).map_err(unreadable)?;
    let Some(end) = head.iter().position(|it| *it == 0) else {
        return Ok(());
    };
    // Latin-1: each byte is a character.
    let keyword_text: String = head[..end].iter().map(|it| char::from(*it)).collect();
    let keyword = keyword_text.to_lowercase();
    if let Some(path) = keyword.strip_prefix(ASSET_PREFIX) {
        let path = &keyword_text[keyword_text.len() - path.len()..];
        add_asset(path, end, chunk, found);
        return Ok(());
    }
    let is_new = match keyword.as_str() {
        "ccv3" => found.v3.is_none(),
        "chara" => found.v2.is_none(),
        _ => return Ok(()),
    };
    if !is_new {
        let sentence = format!("The PNG has more than one `{keyword}`; the first one is used.");
        let again = ImportWarning::new("png_twice", sentence).with("keyword", keyword);
        if !found.warnings.contains(&again) {
            found.warnings.push(again);
        }
        return Ok(());
    }
    let kind = usize::from(keyword == "chara");
    if found.n_broken[kind] == MAX_BROKEN {
        return Ok(());
    }
    match read_chunk_data(file, chunk, &keyword, found)
        .and_then(|data| chunk_json(chunk, &data, end, &keyword))
    {
        Ok(json) if keyword == "ccv3" => found.v3 = Some(json),
        Ok(json) => found.v2 = Some(json),
        Err(error) => {
            found.n_broken[kind] += 1;
            found.broken.get_or_insert(error);
        }
    }
    Ok(())
}

fn chunk_json(
    chunk: &PngChunk,
    data: &[u8],
    end: usize,
    keyword: &str,
) -> Result<Vec<u8>, CardError> {
    let text = chunk_text(&chunk.kind, data, end)?;
    decode_json(text)
        .ok_or_else(|| CardError::reason(format!("`{keyword}` in the PNG is not base64.")))
}

/// Returns all data of a card chunk.
fn read_chunk_data(
    file: &mut BufReader<impl Read + Seek>,
    chunk: &PngChunk,
    keyword: &str,
    found: &mut PngCard,
) -> Result<Vec<u8>, CardError> {
    if chunk.length > MAX_TEXT_BYTES + MAX_KEYWORD_BYTES {
        return Err(too_large("The card in the PNG is larger than 5 MiB."));
    }
    file.seek(SeekFrom::Start(chunk.at)).map_err(unreadable)?;
    let mut data = vec![0; chunk.length];
    file.read_exact(&mut data).map_err(unreadable)?;
    let mut stated = [0; 4];
    file.read_exact(&mut stated).map_err(unreadable)?;
    if checksum(&chunk.kind, &data) != u32::from_be_bytes(stated) {
        let sentence =
            format!("The checksum of `{keyword}` in the PNG is wrong; it was read anyway.");
        let warning = ImportWarning::new("png_checksum", sentence);
        found.warnings.push(warning.with("keyword", keyword));
    }
    Ok(data)
}

fn add_asset(path: &str, end: usize, chunk: &PngChunk, found: &mut PngCard) {
    let path = path.strip_prefix(':').unwrap_or(path);
    let is_full = found.assets.len() == MAX_ASSETS;
    if chunk.kind != *b"tEXt" || path.is_empty() || is_full || !found.paths.insert(path.to_owned())
    {
        return;
    }
    found.assets.push(PngAsset {
        path: path.to_owned(),
        at: chunk.at + end as u64 + 1,
        length: chunk.length - end - 1,
    });
}

/// Returns the text of a chunk whose keyword ends at `end`.
fn chunk_text(kind: &[u8; 4], data: &[u8], end: usize) -> Result<Vec<u8>, CardError> {
    let rest = &data[end + 1..];
    match kind {
        b"tEXt" => Ok(rest.to_vec()),
        // The compression method, then the text.
        b"zTXt" => inflate(rest.get(1..).unwrap_or_default()),
        _ => {
            let is_compressed = rest.first() == Some(&1);
            let mut after = rest.get(2..).unwrap_or_default().splitn(3, |it| *it == 0);
            // The language, the translated keyword, the text.
            let text = after.nth(2).unwrap_or_default();
            match is_compressed {
                true => inflate(text),
                false => Ok(text.to_vec()),
            }
        }
    }
}

/// Decompresses zlib data by wrapping it in a PNG, because the PNG decoder enforces a limit.
fn inflate(packed: &[u8]) -> Result<Vec<u8>, CardError> {
    let broken = || CardError::reason("The card in the PNG cannot be decompressed.");
    let mut picture = SIGNATURE.to_vec();
    push_chunk(&mut picture, b"IHDR", b"\0\0\0\x01\0\0\0\x01\x08\0\0\0\0");
    push_chunk(&mut picture, b"zTXt", &[b"x\0\0", packed].concat());
    push_chunk(&mut picture, b"IDAT", b"");
    let reader = png::Decoder::new(Cursor::new(picture)).read_info();
    let reader = reader.map_err(|_| broken())?;
    let mut chunks = reader.info().compressed_latin1_text.iter().cloned();
    let mut chunk = chunks.next().ok_or_else(broken)?;
    chunk
        .decompress_text_with_limit(MAX_TEXT_BYTES)
        .map_err(|_| broken())?;
    let text = chunk.get_text().map_err(|_| broken())?;
    // Also Latin-1; other characters are not valid base64.
    Ok(text.chars().map(|it| it as u8).collect())
}

/// Decodes JSON from base64; some tools write it unencoded.
fn decode_json(text: Vec<u8>) -> Option<Vec<u8>> {
    match text.trim_ascii_start().first() {
        Some(b'{') => Some(text),
        _ => decode_base64(text),
    }
}

fn decode_base64(mut text: Vec<u8>) -> Option<Vec<u8>> {
    text.retain(|it| !it.is_ascii_whitespace());
    LENIENT.decode(text).ok()
}

fn truncated(found: PngCard, at: u64, n_bytes: u64) -> Result<PngCard, CardError> {
    match at == n_bytes {
        true => truncated_in_chunk(found, "IEND", n_bytes),
        false => truncated_in_chunk(found, "after the last complete one", n_bytes),
    }
}

/// Accepts a truncated file with a warning if a card was found; otherwise returns where it ends.
fn truncated_in_chunk(mut found: PngCard, kind: &str, n_bytes: u64) -> Result<PngCard, CardError> {
    let sentence =
        format!("The PNG is incomplete: it ends at byte {n_bytes}, in its chunk {kind}.");
    match found.v2.is_some() || found.v3.is_some() {
        true => {
            let warning = ImportWarning::new("png_cut", sentence);
            found.warnings.push(warning.with("n", n_bytes));
            Ok(found)
        }
        false => Err(CardError::reason(sentence)),
    }
}

fn unreadable(_: std::io::Error) -> CardError {
    CardError::reason("The file cannot be read.")
}

fn too_large(reason: &str) -> CardError {
    CardError::TooLarge(reason.into())
}

#[cfg(test)]
#[path = "png_tests.rs"]
mod tests;
