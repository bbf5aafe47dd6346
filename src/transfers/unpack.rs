//! The file of a space, read: its documents, then its messages batch by batch.
//!
//! **Invariant:** a stranger's file costs no more than these limits say. What is unpacked is counted
//! while it is unpacked, whatever the zip says of itself; nothing is written to the disk, and no name
//! in it leads anywhere.

use crate::conversations::chat_reader::LineReader;
use crate::conversations::chat_reader::RawLine;
use crate::prompt::macros::variables;
use crate::prompt::macros::variables::VariableMap;
use crate::transfers::assets;
use crate::transfers::books;
use crate::transfers::document;
use crate::transfers::document::Manifest;
use crate::transfers::limits;
use crate::transfers::limits::Limits;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::BufReader;
use std::io::Read;
use zip::ZipArchive;

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
    /// What macros remember for the whole space.
    pub variables: VariableMap,
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
    /// What has happened in the conversation with this key. All messages are there before.
    Past(i64, Vec<document::Past>),
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
    limits: Limits,
    take: &mut dyn FnMut(Step) -> bool,
) -> Result<(), UnpackError> {
    let zip = ZipArchive::new(BufReader::new(file));
    let zip = zip.map_err(|_| UnpackError::Not("it is no zip"))?;
    if zip.len() > limits::MAX_ENTRIES {
        return Err(UnpackError::TooLarge);
    }
    let mut parcel = Parcel {
        zip,
        left: limits.out_of(n_bytes),
        // A picture that is drawn anew may take more room than it took.
        keeps: limits.unpacked,
    };
    let head = parcel.head()?;
    let listed = parcel.assets_listed()?;
    let keys: Vec<i64> = head.conversations.iter().map(|it| it.key).collect();
    if !take(Step::Head(Box::new(head))) {
        return Ok(());
    }
    for key in &keys {
        if !parcel.messages(*key, take)? {
            return Ok(());
        }
    }
    for key in &keys {
        if !parcel.past(*key, take)? {
            return Ok(());
        }
    }
    parcel.assets(listed, take)
}

struct Parcel {
    zip: ZipArchive<BufReader<File>>,
    /// How much may still come out.
    left: u64,
    /// How much of it may stay on the disk.
    keeps: u64,
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
        if lorebooks.len() > limits::MAX_CARDS {
            return Err(UnpackError::TooLarge);
        }
        let lorebooks = lorebooks.into_iter().map(books::judge);
        let lorebooks: Option<Vec<_>> = lorebooks.collect();
        let head = Head {
            lorebooks: lorebooks.ok_or_else(|| broken(document::LOREBOOKS))?,
            lorebook_links: self.document(document::LOREBOOK_LINKS)?,
            space: self.document(document::SPACE)?,
            variables: variables::within_limits(self.later_document(document::VARIABLES)?),
            seats: self.document(document::SEATS)?,
            characters: self.document(document::CHARACTERS)?,
            presets: self.document(document::PRESETS)?,
            conversations: self.document(document::CONVERSATIONS)?,
        };
        if !books::are_in_order(&head.lorebook_links) {
            return Err(broken(document::LOREBOOK_LINKS));
        }
        let too_many = head.seats.len() > limits::MAX_SEATS
            || head.characters.len() > limits::MAX_CARDS
            || head.presets.len() > limits::MAX_CARDS
            || head.conversations.len() > limits::MAX_CONVERSATIONS;
        match too_many {
            true => Err(UnpackError::TooLarge),
            false => Ok(head),
        }
    }

    fn assets_listed(&mut self) -> Result<Vec<document::Asset>, UnpackError> {
        let listed: Vec<document::Asset> = self.document(document::ASSETS)?;
        match () {
            () if listed.len() > limits::MAX_ASSETS => Err(UnpackError::TooLarge),
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
        let mut kept =
            assets::Arrived::nothing(self.keeps).ok_or_else(|| broken(document::ASSETS))?;
        for asset in listed {
            if !kept.has(&asset) {
                let name = document::bytes_of(&asset.sha256);
                let bytes = self.bytes(&name, limits::MAX_ASSET)?;
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
        let bytes = self.bytes(name, limits::MAX_DOCUMENT)?;
        refuse_nul(&bytes, name)?;
        serde_json::from_slice(&bytes).map_err(|_| broken(name))
    }

    /// A document that older files do not have.
    fn later_document<T: DeserializeOwned + Default>(
        &mut self,
        name: &str,
    ) -> Result<T, UnpackError> {
        match self.zip.index_for_name(name) {
            None => Ok(T::default()),
            Some(_) => self.document(name),
        }
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
        self.lines(&name, &mut |batch| take(Step::Messages(key, batch)))
    }

    /// Hands on what has happened in a conversation; older files do not tell.
    fn past(&mut self, key: i64, take: &mut dyn FnMut(Step) -> bool) -> Result<bool, UnpackError> {
        let name = document::past_of(key);
        match self.zip.index_for_name(&name) {
            None => Ok(true),
            Some(_) => self.lines(&name, &mut |batch| take(Step::Past(key, batch))),
        }
    }

    /// Hands the lines of an entry on, batch by batch. `false`: nobody wants more.
    fn lines<T: DeserializeOwned>(
        &mut self,
        name: &str,
        take: &mut dyn FnMut(Vec<T>) -> bool,
    ) -> Result<bool, UnpackError> {
        let entry = self.zip.by_name(name).map_err(|_| broken(name))?;
        let allowed = self.left;
        let mut lines = LineReader::new(BufReader::new(entry.take(allowed + 1)));
        let mut batch = Vec::new();
        let mut n_texts = 0;
        while let Some((_, piece)) = lines.next_line().map_err(|_| broken(name))? {
            let line = match piece {
                RawLine::Line([]) => continue,
                RawLine::Line(line) => line,
                RawLine::TooLong => return Err(UnpackError::TooLarge),
            };
            refuse_nul(line, name)?;
            n_texts += line.len();
            batch.push(serde_json::from_slice(line).map_err(|_| broken(name))?);
            if batch.len() >= MAX_BATCH || n_texts >= MAX_BATCH_BYTES {
                n_texts = 0;
                if !take(std::mem::take(&mut batch)) {
                    return Ok(false);
                }
            }
        }
        let n_read = lines.n_bytes();
        if n_read > allowed {
            return Err(UnpackError::TooLarge);
        }
        self.left -= n_read;
        Ok(batch.is_empty() || take(batch))
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
