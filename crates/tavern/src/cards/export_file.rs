//! Writes a character to a temporary JSON, PNG or CharX file that can be imported again. JSON
//! contains only the card; PNG and CharX also contain its avatar and assets.
//!
//! **Invariant:** a file is written to disk. Memory holds only the card, its avatar and one chunk
//! of an asset, however many and large the assets are.

use std::fs::File;
use std::io::{BufWriter, Cursor, Read, Seek, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::cards::avatar_image::AVATAR_PATH;
use crate::cards::card::Card;
use crate::cards::card_assets::AssetLocation;
use crate::cards::card_error::CardError;
use crate::cards::png_chunks::ChunkWriter;
use crate::cards::temp_assets::TempAssets;
use crate::cards::{avatar_image, card_assets, export_document, png, png_chunks, zip_archive};
use crate::documents::limits;

/// The path of an avatar that the card does not list.
const ICON_PATH: &str = "assets/icon/images/main.webp";
/// The bytes of a PNG before other chunks: signature, then length and kind, 13 bytes of data and
/// the checksum of the first chunk.
const HEADER_END: usize = 8 + 8 + 13 + 4;

/// The number of bytes of an asset in memory: whole groups of base64.
const CHUNK_BYTES: usize = 3 * 16 * 1024;

/// The format of an exported card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportVersion {
    V2,
    V3,
}

/// A character to export.
pub struct CardExport {
    pub card: Card,
    /// Its assets; the avatar has the empty name.
    pub assets: TempAssets,
}

impl CardExport {
    /// Returns the card in the given format, by default its own.
    pub fn document(&self, spec: Option<ExportVersion>) -> Value {
        let is_v3 = self.card.spec_version().starts_with('3');
        match spec.unwrap_or(if is_v3 {
            ExportVersion::V3
        } else {
            ExportVersion::V2
        }) {
            ExportVersion::V2 => export_document::export_v2(&self.card),
            ExportVersion::V3 => export_document::export_v3(&self.card),
        }
    }

    /// Writes the card to an anonymous file, which is left positioned at its end.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn as_json(&self, spec: Option<ExportVersion>) -> Result<File, CardError> {
        let file = tempfile::tempfile().map_err(|_| unwritable())?;
        let mut out = BufWriter::new(file);
        serde_json::to_writer(&mut out, &self.document(spec)).map_err(|_| unwritable())?;
        out.into_inner().map_err(|_| unwritable())
    }

    /// Writes the avatar as a PNG with the card in both formats, to an anonymous file positioned at
    /// its end. A card without an avatar gets a placeholder image.
    ///
    /// # Errors
    /// Returns `TooLarge` when the PNG would exceed the limit for imports; an archive has a higher
    /// limit.
    pub fn as_png(&mut self) -> Result<File, CardError> {
        let drawn = match self.assets.read(AVATAR_PATH)? {
            Some(large) => avatar_image::as_png(&large)?,
            None => avatar_image::plain_png(self.card.name())?,
        };
        let mut head = drawn[..HEADER_END].to_vec();
        for (keyword, spec) in [("chara", ExportVersion::V2), ("ccv3", ExportVersion::V3)] {
            let document = self.document(Some(spec));
            let document =
                card_assets::with_container_uris(&document, |it| self.has_asset(it), false);
            let document = document.to_string();
            if document.len() > limits::MAX_BYTES {
                return Err(too_large_for_png());
            }
            push_text_chunk(&mut head, keyword, document.as_bytes());
        }
        let names: Vec<String> = self.other_assets().map(str::to_owned).collect();
        let lengths = names.iter().map(|it| self.asset_length(it).div_ceil(3) * 4);
        let others: u64 = lengths.sum();
        if (head.len() + drawn.len()) as u64 + others > png::MAX_BYTES {
            return Err(too_large_for_png());
        }
        let mut file = tempfile::tempfile().map_err(|_| unwritable())?;
        file.write_all(&head).map_err(|_| unwritable())?;
        drop(head);
        for name in names {
            self.write_asset(&mut file, &name)?;
        }
        file.write_all(&drawn[HEADER_END..])
            .map_err(|_| unwritable())?;
        let n_bytes = file.stream_position().map_err(|_| unwritable())?;
        match n_bytes > png::MAX_BYTES {
            true => Err(too_large_for_png()),
            false => Ok(file),
        }
    }

    /// Writes an asset into a PNG chunk by chunk.
    fn write_asset(&mut self, file: &mut File, name: &str) -> Result<(), CardError> {
        let n_bytes = self.asset_length(name);
        let Some(keyword) = latin1_keyword(&format!("chara-ext-asset_:{name}")) else {
            return Ok(());
        };
        let length = keyword.len() as u64 + 1 + n_bytes.div_ceil(3) * 4;
        let length = u32::try_from(length).map_err(|_| too_large_for_png())?;
        let Some(mut asset) = self.assets.open(name)? else {
            return Ok(());
        };
        let mut write = || -> std::io::Result<()> {
            let mut chunk = ChunkWriter::start(&mut *file, b"tEXt", length)?;
            chunk.push(&keyword)?;
            chunk.push(&[0])?;
            // Three bytes are four base64 characters, so pieces can be encoded separately.
            let mut piece = Vec::with_capacity(CHUNK_BYTES);
            loop {
                piece.clear();
                let n_read = (&mut asset)
                    .take(CHUNK_BYTES as u64)
                    .read_to_end(&mut piece)?;
                if n_read == 0 {
                    return chunk.finish();
                }
                chunk.push(STANDARD.encode(&piece).as_bytes())?;
            }
        };
        write().map_err(|_| unwritable())
    }

    /// Writes an archive with the card as V3, its assets and its avatar, to an anonymous file
    /// positioned at its end.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn as_charx(&mut self) -> Result<File, CardError> {
        let document = self.document(Some(ExportVersion::V3));
        let mut document =
            card_assets::with_container_uris(&document, |it| self.has_asset(it), true);
        let has_picture = self.assets.length(AVATAR_PATH).is_some();
        let adds_icon = has_picture && !self.lists_avatar(&document);
        if adds_icon {
            add_icon(&mut document);
        }
        let mut json = serde_json::to_vec_pretty(&document).map_err(|_| unwritable())?;
        if json.len() > limits::MAX_BYTES {
            json = serde_json::to_vec(&document).map_err(|_| unwritable())?;
        }
        drop(document);
        let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        // Images and audio are already compressed.
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let of_card =
            match zip_archive::is_plausible_size(compressed_size(&json, packed)?, json.len()) {
                true => packed,
                false => stored,
            };
        let file = tempfile::tempfile().map_err(|_| unwritable())?;
        let mut zip = ZipWriter::new(file);
        zip.start_file("card.json", of_card)
            .map_err(from_zip_error)?;
        zip.write_all(&json).map_err(|_| unwritable())?;
        drop(json);
        let icon = adds_icon.then(|| (ICON_PATH.to_owned(), AVATAR_PATH.to_owned()));
        let others = self.other_assets().map(|it| (it.to_owned(), it.to_owned()));
        let entries: Vec<(String, String)> = icon.into_iter().chain(others).collect();
        for (path, name) in entries {
            zip.start_file(path, stored).map_err(from_zip_error)?;
            if let Some(mut asset) = self.assets.open(&name)? {
                std::io::copy(&mut asset, &mut zip).map_err(|_| unwritable())?;
            }
        }
        zip.finish().map_err(from_zip_error)
    }

    fn other_assets(&self) -> impl Iterator<Item = &str> {
        self.assets.names().filter(|it| *it != AVATAR_PATH)
    }

    fn has_asset(&self, path: &str) -> bool {
        path != AVATAR_PATH && self.assets.length(path).is_some()
    }

    fn asset_length(&self, name: &str) -> u64 {
        self.assets.length(name).unwrap_or_default()
    }

    /// Returns whether the exported card already lists its avatar.
    fn lists_avatar(&self, document: &Value) -> bool {
        match card_assets::main_icon(document) {
            Some(AssetLocation::InFile(path)) => self.has_asset(&path),
            Some(AssetLocation::Inline(_)) => true,
            _ => self.has_asset(ICON_PATH),
        }
    }
}

/// Returns the compressed size of bytes.
fn compressed_size(bytes: &[u8], options: SimpleFileOptions) -> Result<u64, CardError> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("x", options).map_err(from_zip_error)?;
    zip.write_all(bytes).map_err(|_| unwritable())?;
    let mut zip = zip.finish_into_readable().map_err(from_zip_error)?;
    let entry = zip.by_index_raw(0).map_err(from_zip_error)?;
    Ok(entry.compressed_size())
}

fn push_text_chunk(file: &mut Vec<u8>, keyword: &str, bytes: &[u8]) {
    let Some(keyword_bytes) = latin1_keyword(keyword) else {
        return;
    };
    let data = [keyword_bytes, vec![0], STANDARD.encode(bytes).into_bytes()].concat();
    png_chunks::push_chunk(file, b"tEXt", &data);
}

/// Returns a keyword in Latin-1, or `None` if PNG does not allow it.
fn latin1_keyword(keyword: &str) -> Option<Vec<u8>> {
    let word: Option<Vec<u8>> = keyword.chars().map(|it| u8::try_from(it).ok()).collect();
    word.filter(|it| it.len() <= 79)
}

fn add_icon(document: &mut Value) {
    let icon = json!({
        "type": "icon", "uri": format!("embeded://{ICON_PATH}"), "name": "main", "ext": "webp",
    });
    let data = document.get_mut("data").and_then(Value::as_object_mut);
    let Some(data) = data else { return };
    match data.get_mut("assets").and_then(Value::as_array_mut) {
        Some(assets) => {
            assets.retain(|it| it["type"] != "icon" || it["name"] != "main");
            assets.insert(0, icon);
        }
        None => {
            data.insert("assets".into(), json!([icon]));
        }
    }
}

fn from_zip_error(_: ZipError) -> CardError {
    unwritable()
}

fn too_large_for_png() -> CardError {
    let reason = "As a PNG, this character would exceed the limit of 20 MiB (5 MiB for the card in \
                  it). Export it as CHARX instead.";
    CardError::TooLarge(reason.into())
}

fn unwritable() -> CardError {
    CardError::reason("The file cannot be written.")
}

#[cfg(test)]
#[path = "export_file_tests.rs"]
mod tests;
