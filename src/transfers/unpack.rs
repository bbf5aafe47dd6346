//! The file of a space, read: its documents, then its messages batch by batch.
//!
//! **Invariant:** a stranger's file costs no more than these limits say. What is unpacked is counted
//! while it is unpacked, whatever the zip says of itself; nothing is written to the disk, and no name
//! in it leads anywhere.

use crate::characters::spool;
use crate::conversations::chat_reader::Lines;
use crate::conversations::chat_reader::Piece;
use crate::transfers::assets;
use crate::transfers::books;
use crate::transfers::document;
use crate::transfers::document::Manifest;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::BufReader;
use std::io::Read;
use zip::ZipArchive;

/// The largest file.
pub const MAX_FILE: u64 = 100 * 1024 * 1024;

const MAX_ENTRIES: usize = 10_000;
const MAX_DOCUMENT: u64 = 32 * 1024 * 1024;
const MAX_UNPACKED: u64 = 1024 * 1024 * 1024;
/// A text packs well; what packs a hundred times better than that is a bomb.
const MAX_RATIO: u64 = 100;
/// So much may come out of however small a file.
const ALWAYS_ALLOWED: u64 = 16 * 1024 * 1024;

const MAX_SEATS: usize = 2_000;
const MAX_CARDS: usize = 500;
const MAX_CONVERSATIONS: usize = 5_000;
const MAX_ASSETS: usize = 2_000;
/// The texts of a batch, which is one transaction.
const MAX_BATCH_BYTES: usize = 256 * 1024;
const MAX_BATCH: usize = 100;

/// Why a file is no space.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("This is no file of a space: {0}.")]
    Not(&'static str),
    #[error("This file was written by a newer version.")]
    Newer,
    #[error("The file unpacks to more than may be.")]
    TooLarge,
    #[error("In {0} something is not as it should be.")]
    Broken(String),
}

/// Everything but the messages.
#[derive(Debug)]
pub struct Head {
    pub space: document::Space,
    pub seats: Vec<document::Seat>,
    pub characters: Vec<document::Character>,
    pub presets: Vec<document::Preset>,
    pub lorebooks: Vec<books::Arrived>,
    pub lorebook_links: Vec<document::LorebookLink>,
    /// A parent stands before what hangs on it.
    pub conversations: Vec<document::Conversation>,
}

/// What comes out of a file, in order.
#[derive(Debug)]
pub enum Step {
    Head(Box<Head>),
    /// Messages of the conversation with this key.
    Messages(i64, Vec<document::Message>),
    /// One asset more has been looked at.
    Asset,
    /// All of them.
    Assets(assets::Arrived),
}

/// Reads a file to its end, or until `take` wants no more.
///
/// # Errors
/// When it is no file of a space, or too large.
pub fn read(
    file: File,
    n_bytes: u64,
    take: &mut dyn FnMut(Step) -> bool,
) -> Result<(), UnpackError> {
    let zip = ZipArchive::new(BufReader::new(file));
    let zip = zip.map_err(|_| UnpackError::Not("it is no zip"))?;
    if zip.len() > MAX_ENTRIES {
        return Err(UnpackError::TooLarge);
    }
    let allowed = n_bytes.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED);
    let mut parcel = Parcel {
        zip,
        left: allowed.min(MAX_UNPACKED),
    };
    let head = parcel.head()?;
    let listed = parcel.assets_listed()?;
    let keys: Vec<i64> = head.conversations.iter().map(|it| it.key).collect();
    if !take(Step::Head(Box::new(head))) {
        return Ok(());
    }
    for key in keys {
        if !parcel.messages(key, take)? {
            return Ok(());
        }
    }
    parcel.assets(listed, take)
}

struct Parcel {
    zip: ZipArchive<BufReader<File>>,
    /// How much may still come out.
    left: u64,
}

impl Parcel {
    fn head(&mut self) -> Result<Head, UnpackError> {
        let manifest: Manifest = self
            .document(document::MANIFEST)
            .map_err(|_| UnpackError::Not("it has no manifest"))?;
        if manifest.format != document::FORMAT {
            return Err(UnpackError::Not("its manifest speaks of something else"));
        }
        if manifest.version > document::VERSION {
            return Err(UnpackError::Newer);
        }
        let lorebooks: Vec<document::Lorebook> = self.document(document::LOREBOOKS)?;
        if lorebooks.len() > MAX_CARDS {
            return Err(UnpackError::TooLarge);
        }
        let lorebooks = lorebooks.into_iter().map(books::judge);
        let lorebooks: Option<Vec<_>> = lorebooks.collect();
        let head = Head {
            lorebooks: lorebooks.ok_or_else(|| broken(document::LOREBOOKS))?,
            lorebook_links: self.document(document::LOREBOOK_LINKS)?,
            space: self.document(document::SPACE)?,
            seats: self.document(document::SEATS)?,
            characters: self.document(document::CHARACTERS)?,
            presets: self.document(document::PRESETS)?,
            conversations: self.document(document::CONVERSATIONS)?,
        };
        if !books::are_in_order(&head.lorebook_links) {
            return Err(broken(document::LOREBOOK_LINKS));
        }
        let too_many = head.seats.len() > MAX_SEATS
            || head.characters.len() > MAX_CARDS
            || head.presets.len() > MAX_CARDS
            || head.conversations.len() > MAX_CONVERSATIONS;
        match too_many {
            true => Err(UnpackError::TooLarge),
            false => Ok(head),
        }
    }

    fn assets_listed(&mut self) -> Result<Vec<document::Asset>, UnpackError> {
        let listed: Vec<document::Asset> = self.document(document::ASSETS)?;
        match () {
            () if listed.len() > MAX_ASSETS => Err(UnpackError::TooLarge),
            () if !assets::are_in_order(&listed) => Err(broken(document::ASSETS)),
            () => Ok(listed),
        }
    }

    /// Looks at every asset, and hands them on together.
    fn assets(
        &mut self,
        listed: Vec<document::Asset>,
        take: &mut dyn FnMut(Step) -> bool,
    ) -> Result<(), UnpackError> {
        let mut kept = assets::Arrived::nothing().ok_or_else(|| broken(document::ASSETS))?;
        for asset in listed {
            if !kept.has(&asset) {
                let name = document::bytes_of(&asset.sha256);
                let bytes = self.bytes(&name, spool::MAX_PIECE)?;
                if !kept.keep(&asset, bytes) {
                    return Err(broken(&name));
                }
            }
            kept.name(asset);
            if !take(Step::Asset) {
                return Ok(());
            }
        }
        take(Step::Assets(kept));
        Ok(())
    }

    fn document<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, UnpackError> {
        let bytes = self.bytes(name, MAX_DOCUMENT)?;
        refuse_nul(&bytes, name)?;
        serde_json::from_slice(&bytes).map_err(|_| broken(name))
    }

    fn bytes(&mut self, name: &str, most: u64) -> Result<Vec<u8>, UnpackError> {
        let entry = self.zip.by_name(name).map_err(|_| broken(name))?;
        let most = most.min(self.left);
        let mut bytes = Vec::new();
        let n_read = entry.take(most + 1).read_to_end(&mut bytes);
        let n_read = n_read.map_err(|_| broken(name))? as u64;
        if n_read > most {
            return Err(UnpackError::TooLarge);
        }
        self.left -= n_read;
        Ok(bytes)
    }

    /// Hands the messages of a conversation on. `false`: nobody wants more.
    fn messages(
        &mut self,
        key: i64,
        take: &mut dyn FnMut(Step) -> bool,
    ) -> Result<bool, UnpackError> {
        let name = document::messages_of(key);
        let entry = self.zip.by_name(&name).map_err(|_| broken(&name))?;
        let allowed = self.left;
        let mut lines = Lines::of(BufReader::new(entry.take(allowed + 1)));
        let mut batch = Vec::new();
        let mut n_texts = 0;
        while let Some((_, piece)) = lines.next_line().map_err(|_| broken(&name))? {
            let line = match piece {
                Piece::Line([]) => continue,
                Piece::Line(line) => line,
                Piece::TooLong => return Err(UnpackError::TooLarge),
            };
            refuse_nul(line, &name)?;
            n_texts += line.len();
            let message: document::Message =
                serde_json::from_slice(line).map_err(|_| broken(&name))?;
            batch.push(message);
            if batch.len() >= MAX_BATCH || n_texts >= MAX_BATCH_BYTES {
                n_texts = 0;
                if !take(Step::Messages(key, std::mem::take(&mut batch))) {
                    return Ok(false);
                }
            }
        }
        let n_read = lines.n_bytes();
        if n_read > allowed {
            return Err(UnpackError::TooLarge);
        }
        self.left -= n_read;
        Ok(batch.is_empty() || take(Step::Messages(key, batch)))
    }
}

fn broken(name: &str) -> UnpackError {
    UnpackError::Broken(name.to_owned())
}

/// No text of ours holds U+0000, and PostgreSQL takes none.
fn refuse_nul(json: &[u8], name: &str) -> Result<(), UnpackError> {
    match json.windows(6).any(|it| it == b"\\u0000") {
        true => Err(UnpackError::Broken(name.to_owned())),
        false => Ok(()),
    }
}
