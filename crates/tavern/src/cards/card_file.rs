//! Reads a card with its avatar and assets from a JSON or YAML file, a PNG, or an archive (CharX or
//! BYAF).
//! The format is detected from the content of the file, not from its name.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};

use crate::cards::avatar_image::AvatarImage;
use crate::cards::card::Card;
use crate::cards::card_assets::AssetLocation;
use crate::cards::card_error::CardError;
use crate::cards::importers::risu_files;
use crate::cards::png::PngCard;
use crate::cards::temp_assets::TempAssets;
use crate::cards::zip_archive::CardArchive;
use crate::cards::{
    avatar_image, byaf, card, card_assets, export_document, png, temp_assets, zip_archive,
};
use crate::documents::document::Document;
use crate::documents::{document, limits};
use crate::import_warning::ImportWarning;
use crate::macros::syntax::unknown_macros;

/// The maximum size of a file, in bytes.
pub const MAX_BYTES: u64 = 100 * 1024 * 1024;
/// The maximum length of an asset's path, in bytes.
const MAX_PATH: usize = 255;
/// The maximum size of all assets together, in bytes.
const MAX_ASSET_BYTES: usize = 100 * 1024 * 1024;
const CARD_PATH: &str = "card.json";

/// The contents of a card file.
#[derive(Debug)]
pub struct CardFile {
    /// The card, with the warnings of the whole file.
    pub card: Card,
    pub avatar: Option<AvatarImage>,
    /// The other assets, by the paths that the card states.
    pub assets: TempAssets,
}

impl CardFile {
    /// Returns the total size in bytes.
    pub fn n_bytes(&self) -> u64 {
        let picture = self.avatar.as_ref();
        let drawn = picture.map_or(0, |it| it.large.len() + it.small.len());
        let document = self.card.document.to_string().len();
        self.assets.n_bytes() + (document + drawn) as u64
    }
}

/// Reads a file that is positioned at its start. Blocks, so it must run on a blocking thread.
///
/// # Errors
/// Returns `NotACard` when the file is invalid, and `TooLarge` when a limit is exceeded.
pub fn read(mut file: File) -> Result<CardFile, CardError> {
    let mut head = Vec::new();
    let first = (&mut file).take(8).read_to_end(&mut head);
    first.and_then(|_| file.rewind()).map_err(unreadable)?;
    let begins_as_json = matches!(head.trim_ascii_start().first(), Some(b'{' | b'[' | 0xEF));
    let mut card_file = match head.as_slice() {
        head if head == png::SIGNATURE => from_png(file)?,
        _ if !begins_as_json && zip_archive::is_archive(&mut file) => from_archive(file)?,
        [0xFF, 0xD8, ..] | [b'R', b'I', b'F', b'F', ..] | [b'G', b'I', b'F', ..] => {
            let reason = "This image contains no card. Only PNG images can contain cards.";
            return Err(CardError::reason(reason));
        }
        [b'P', b'K', ..] => {
            let reason = "The archive is invalid: its end is missing.";
            return Err(CardError::reason(reason));
        }
        _ => from_text(file)?,
    };
    card_file.card.require_content()?;
    warn_unavailable(&mut card_file.card);
    let unknown = find_unknown_macros(&card_file.card);
    card_file.card.warnings.extend(unknown);
    Ok(card_file)
}

fn from_text(file: File) -> Result<CardFile, CardError> {
    let mut bytes = Vec::new();
    let most = limits::MAX_BYTES as u64 + 1;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let mut card = read_document(document::read(&bytes)?)?;
    let picture = match card_assets::main_icon(&card.document) {
        Some(AssetLocation::Inline(bytes)) => render_avatar(&mut card, Cursor::new(bytes)),
        _ => None,
    };
    Ok(CardFile {
        card,
        avatar: picture,
        assets: TempAssets::new()?,
    })
}

fn read_document(document: Document) -> Result<Card, CardError> {
    let mut card = Card::from_document(document.value)?;
    card.warnings.extend(document.warning);
    Ok(card)
}

fn from_png(mut file: File) -> Result<CardFile, CardError> {
    let mut found = png::read(&file)?;
    let mut card = choose_card(&mut found)?;
    card.warnings.append(&mut found.warnings);
    let mut assets = TempAssets::new()?;
    let named: HashSet<String> = card_assets::embedded_paths(&card.document)
        .into_iter()
        .collect();
    for asset in &found.assets {
        if named.contains(&asset.path)
            && let Some(bytes) = png::read_asset(&file, asset)
        {
            assets.push(&asset.path, &bytes)?;
        }
    }
    warn_missing_assets(&mut card, &assets);
    file.rewind().map_err(unreadable)?;
    let picture = render_avatar(&mut card, BufReader::new(file));
    Ok(CardFile {
        card,
        avatar: picture,
        assets,
    })
}

/// Returns the newer of two cards. Returns the older one if the newer is broken or derived from it.
fn choose_card(found: &mut PngCard) -> Result<Card, CardError> {
    let (v3, v2) = (found.v3.take(), found.v2.take());
    let broken = found.broken.take();
    let (newer, v2) = match (v3, v2) {
        (Some(v3), Some(v2)) if is_export_of(&v2, &v3) => (None, Some(v2)),
        (Some(v3), v2) => (Some(Card::parse(&v3)), v2),
        (None, v2) => (broken.map(Err), v2),
    };
    let error_of_newer = match newer {
        Some(Ok(card)) => return Ok(card),
        Some(Err(error)) => Some(error),
        None => None,
    };
    let Some(v2) = v2 else {
        let usual = "This PNG contains no card.";
        return Err(error_of_newer.unwrap_or_else(|| CardError::reason(usual)));
    };
    let mut card = Card::parse(&v2)?;
    if let Some(error) = error_of_newer {
        let sentence =
            format!("The newer card in the file cannot be read; the older one was used: {error}");
        card.warnings
            .push(ImportWarning::new("newer_card_unreadable", sentence));
    }
    Ok(card)
}

/// Returns whether the V3 card was derived from the V2 card: an exported PNG of a V2 card contains
/// both, and must be imported as V2 again. Holds only one document in memory at a time.
fn is_export_of(v2: &[u8], v3: &[u8]) -> bool {
    let demanded = |it: &Card| it.document.pointer("/data/group_only_greetings").is_some();
    let older = Card::parse(v2).ok().filter(|it| !demanded(it));
    let Some(expected) = older.map(|it| card::content_hash(&export_document::into_v3(it))) else {
        return false;
    };
    Card::parse(v3).is_ok_and(|it| card::content_hash(&it.document) == expected)
}

fn from_archive(file: File) -> Result<CardFile, CardError> {
    let mut in_front = file.try_clone().map_err(unreadable)?;
    let mut archive = CardArchive::open(file)?;
    if !archive.contains(CARD_PATH) && archive.contains(byaf::MANIFEST) {
        let (mut card, picture) = byaf::read(&mut archive)?;
        let picture = picture.and_then(|it| render_avatar(&mut card, Cursor::new(it)));
        return Ok(CardFile {
            card,
            avatar: picture,
            assets: TempAssets::new()?,
        });
    }
    let json = archive.read(CARD_PATH, limits::MAX_BYTES as u64)?;
    let json = json.ok_or_else(|| {
        CardError::reason("The archive has no `card.json`: it is not a character card.")
    })?;
    let card = document::read_json(&json).map_err(CardError::from);
    let card = card.and_then(read_document);
    let mut card = card.map_err(|error| archive_card_error(&error))?;
    let mut assets = read_assets(&mut archive, &mut card)?;
    let icon = match card_assets::main_icon(&card.document) {
        Some(AssetLocation::InFile(path)) => assets.read(&path)?,
        Some(AssetLocation::Inline(bytes)) => Some(bytes),
        _ => None,
    };
    let picture = match icon {
        Some(bytes) => render_avatar(&mut card, Cursor::new(bytes)),
        None => {
            in_front.rewind().map_err(unreadable)?;
            avatar_image::re_encode(BufReader::new(in_front)).ok()
        }
    };
    Ok(CardFile {
        card,
        avatar: picture,
        assets,
    })
}

fn archive_card_error(error: &CardError) -> CardError {
    CardError::reason(format!("The `card.json` of the archive: {error}"))
}

/// Extracts the assets that the card lists and the archive contains.
fn read_assets(archive: &mut CardArchive, card: &mut Card) -> Result<TempAssets, CardError> {
    let mut assets = TempAssets::new()?;
    let mut n_bytes = 0;
    let in_archive = archive.names();
    let opaque = risu_files::kept_paths(&in_archive);
    let mut paths = card_assets::embedded_paths(&card.document);
    paths.extend(opaque.iter().map(|it| (*it).to_owned()));
    for path in paths {
        if path.len() > MAX_PATH {
            continue;
        }
        if let Some(bytes) = archive.read(&path, temp_assets::MAX_ASSET)? {
            n_bytes += bytes.len();
            if n_bytes > MAX_ASSET_BYTES {
                let reason = "The assets of the card are larger than 100 MiB.";
                return Err(CardError::TooLarge(reason.into()));
            }
            assets.push(&path, &bytes)?;
        }
    }
    let kept: Vec<&str> = assets.names().collect();
    let names = in_archive.iter();
    let ignored: Vec<&String> = names
        .filter(|it| *it != CARD_PATH && !kept.contains(&it.as_str()))
        .collect();
    let opaque: Vec<&str> = opaque.into_iter().filter(|it| kept.contains(it)).collect();
    card.warnings.extend(risu_files::warning(&opaque));
    if let Some(first) = ignored.first() {
        let (n, first) = (ignored.len(), first.chars().take(60).collect::<String>());
        let sentence =
            format!("Files that the card does not use were skipped: {n}, such as `{first}`.");
        let warning = ImportWarning::new("files_left_out", sentence).with("n", n);
        card.warnings.push(warning.with("name", first));
    }
    warn_missing_assets(card, &assets);
    Ok(assets)
}

fn warn_missing_assets(card: &mut Card, assets: &TempAssets) {
    let kept: HashSet<&str> = assets.names().collect();
    let named = card_assets::embedded_paths(&card.document);
    let is_missing = |it: &&String| !kept.contains(it.as_str());
    let missing = named.iter().filter(is_missing).count();
    if missing > 0 {
        let sentence = format!("Assets of the card are not in the file: {missing}.");
        let warning = ImportWarning::new("assets_missing", sentence).with("n", missing);
        card.warnings.push(warning);
    }
}

fn warn_unavailable(card: &mut Card) {
    let places = card_assets::locations(&card.document);
    let elsewhere = places
        .iter()
        .filter(|it| **it == AssetLocation::Remote)
        .count();
    if elsewhere > 0 {
        let sentence = format!("Assets on other servers were not downloaded: {elsewhere}.");
        let warning = ImportWarning::new("assets_elsewhere", sentence).with("n", elsewhere);
        card.warnings.push(warning);
    }
    if let Some(world) = card.linked_world() {
        let world: String = world.chars().take(100).collect();
        let sentence = format!(
            "The card is linked to the lorebook \"{world}\", which is not in the file. Import \
             the lorebook separately."
        );
        let warning = ImportWarning::new("lorebook_elsewhere", sentence).with("name", world);
        card.warnings.push(warning);
    }
}

/// Returns a warning for each field with unknown macros.
fn find_unknown_macros(card: &Card) -> Vec<ImportWarning> {
    let fields = [
        ("description", card.description()),
        ("personality", card.personality()),
        ("scenario", card.scenario()),
        ("first_mes", card.first_mes()),
        ("mes_example", card.mes_example()),
        ("system_prompt", card.system_prompt()),
        (
            "post_history_instructions",
            card.post_history_instructions(),
        ),
        (
            "alternate_greetings",
            &card.alternate_greetings().join("\n"),
        ),
        (
            "group_only_greetings",
            &card.group_only_greetings().join("\n"),
        ),
        (
            "depth_prompt",
            &card.depth_prompt().map_or_else(String::new, |it| it.prompt),
        ),
        ("character_book", &card.lore_texts().join("\n")),
    ];
    let fields = fields.iter();
    fields
        .filter_map(|(field, text)| unknown_macros::warning(field, text))
        .collect()
}

/// Returns `None` and adds a warning if the image is invalid: the card is imported without it.
fn render_avatar(card: &mut Card, file: impl std::io::BufRead + Seek) -> Option<AvatarImage> {
    match avatar_image::re_encode(file) {
        Ok(picture) => Some(picture),
        Err(error) => {
            let sentence = format!("The picture was skipped: {error}");
            card.warnings.push(match error {
                CardError::TooLarge(_) => ImportWarning::new("picture_too_large", sentence),
                CardError::NotACard(_) => ImportWarning::new("picture_unreadable", sentence),
            });
            None
        }
    }
}

fn unreadable(_: std::io::Error) -> CardError {
    CardError::reason("The file cannot be read.")
}

#[cfg(test)]
#[path = "card_file_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "card_document_tests.rs"]
mod document_tests;

#[cfg(test)]
#[path = "card_file_cost_tests.rs"]
mod cost_tests;
