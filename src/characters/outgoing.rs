//! Characters as files, on their way out. What went in comes out, and can come in again.

use crate::characters::archive;
use crate::characters::attachment::PICTURE;
use crate::characters::card;
use crate::characters::card::Card;
use crate::characters::card::CardError;
use crate::characters::export;
use crate::characters::listed;
use crate::characters::listed::Place;
use crate::characters::picture;
use crate::characters::png;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::json;
use std::io::Cursor;
use std::io::Write;
use zip::CompressionMethod;
use zip::ZipWriter;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

/// Where a picture goes that the card does not list.
const ICON: &str = "assets/icon/images/main.webp";
/// What stands before the data in a PNG: length and kind of the first chunk, which has 13 bytes,
/// and its checksum.
const AFTER_HEADER: usize = 8 + 8 + 13 + 4;

/// The two forms of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spec {
    V2,
    V3,
}

/// What leaves.
pub struct Character {
    pub card: Card,
    /// Names and bytes; its picture has the empty name.
    pub assets: Vec<(String, Vec<u8>)>,
}

impl Character {
    /// The card alone, in the form that is asked for, else in its own.
    pub fn document(&self, spec: Option<Spec>) -> Value {
        let is_v3 = self.card.spec_version().starts_with('3');
        match spec.unwrap_or(if is_v3 { Spec::V3 } else { Spec::V2 }) {
            Spec::V2 => export::export_v2(&self.card),
            Spec::V3 => export::export_v3(&self.card),
        }
    }

    /// Its picture with the card in it, in both forms. A card without one gets a plain picture.
    ///
    /// # Errors
    /// `TooLarge` where the file would be larger than one that is taken: an archive has room.
    pub fn as_png(&self) -> Result<Vec<u8>, CardError> {
        let drawn = match self.picture() {
            Some(large) => picture::as_png(large)?,
            None => picture::plain_png(self.card.name())?,
        };
        let mut file = drawn[..AFTER_HEADER].to_vec();
        for (keyword, spec) in [("chara", Spec::V2), ("ccv3", Spec::V3)] {
            let document = self.document(Some(spec));
            let document = listed::renamed(&document, |it| self.has(it), false);
            let document = document.to_string();
            if document.len() > card::MAX_BYTES {
                return Err(too_large_for_png());
            }
            push_text(&mut file, keyword, document.as_bytes());
        }
        let others: usize = self.others().map(|(_, it)| it.len().div_ceil(3) * 4).sum();
        if (file.len() + others + drawn.len()) as u64 > png::MAX_BYTES {
            return Err(too_large_for_png());
        }
        for (name, bytes) in self.others() {
            push_text(&mut file, &format!("chara-ext-asset_:{name}"), bytes);
        }
        file.extend(&drawn[AFTER_HEADER..]);
        match file.len() as u64 > png::MAX_BYTES {
            true => Err(too_large_for_png()),
            false => Ok(file),
        }
    }

    /// An archive with the card as V3, its assets, and its picture.
    pub fn as_charx(&self) -> Result<Vec<u8>, CardError> {
        let document = self.document(Some(Spec::V3));
        let mut document = listed::renamed(&document, |it| self.has(it), true);
        let icon = self
            .picture()
            .filter(|_| !self.lists_its_picture(&document));
        if icon.is_some() {
            list_icon(&mut document);
        }
        let mut json = serde_json::to_vec_pretty(&document).map_err(|_| unwritable())?;
        if json.len() > card::MAX_BYTES {
            json = serde_json::to_vec(&document).map_err(|_| unwritable())?;
        }
        let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        // Pictures and sounds are packed already.
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        let of_card = match archive::is_believed(packed_bytes(&json, packed)?, json.len()) {
            true => packed,
            false => stored,
        };
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let card = [("card.json", json.as_slice(), of_card)];
        let icon = icon.map(|it| (ICON, it, stored));
        let others = self.others().map(|(name, bytes)| (name, bytes, stored));
        for (name, bytes, options) in card.into_iter().chain(icon).chain(others) {
            zip.start_file(name, options).map_err(of_zip)?;
            zip.write_all(bytes).map_err(|_| unwritable())?;
        }
        Ok(zip.finish().map_err(of_zip)?.into_inner())
    }

    fn picture(&self) -> Option<&[u8]> {
        let mut all = self.assets.iter();
        all.find(|it| it.0 == PICTURE).map(|it| it.1.as_slice())
    }

    fn others(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let others = self.assets.iter().filter(|it| it.0 != PICTURE);
        others.map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    fn has(&self, path: &str) -> bool {
        self.others().any(|it| it.0 == path)
    }

    /// Whether somebody who reads the card finds its picture without us.
    fn lists_its_picture(&self, document: &Value) -> bool {
        match listed::main_icon(document) {
            Some(Place::Inside(path)) => self.has(&path),
            Some(Place::Written(_)) => true,
            _ => self.has(ICON),
        }
    }
}

/// How many bytes are left of some when they are packed.
fn packed_bytes(bytes: &[u8], options: SimpleFileOptions) -> Result<u64, CardError> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("x", options).map_err(of_zip)?;
    zip.write_all(bytes).map_err(|_| unwritable())?;
    let mut zip = zip.finish_into_readable().map_err(of_zip)?;
    let entry = zip.by_index_raw(0).map_err(of_zip)?;
    Ok(entry.compressed_size())
}

fn push_text(file: &mut Vec<u8>, keyword: &str, bytes: &[u8]) {
    // Keywords are Latin-1 and short; what is not has no place in a PNG.
    let word: Option<Vec<u8>> = keyword.chars().map(|it| u8::try_from(it).ok()).collect();
    let Some(word) = word.filter(|it| it.len() <= 79) else {
        return;
    };
    let data = [word, vec![0], STANDARD.encode(bytes).into_bytes()].concat();
    png::push_chunk(file, b"tEXt", &data);
}

fn list_icon(document: &mut Value) {
    let icon = json!({
        "type": "icon", "uri": format!("embeded://{ICON}"), "name": "main", "ext": "webp",
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

fn of_zip(_: ZipError) -> CardError {
    unwritable()
}

fn too_large_for_png() -> CardError {
    let reason = "As a PNG this character would be larger than the 20 MiB that a PNG may have \
                  (5 MiB for the card in it): take CHARX.";
    CardError::TooLarge(reason.into())
}

fn unwritable() -> CardError {
    CardError::because("The card cannot be packed.")
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
