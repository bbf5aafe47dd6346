//! The file of a space, read: its documents, then its messages batch by batch.
//!
//! **Invariant:** a stranger's file costs no more than these limits say. What is unpacked is counted
//! while it is unpacked, whatever the zip says of itself; nothing is written to the disk, and no name
//! in it leads anywhere.

use std::fs::File;
use std::io::{BufReader, Read};

use serde::de::DeserializeOwned;
use zip::ZipArchive;

use crate::conversations::chat_reader::{LineReader, RawLine};
use crate::prompt::macros::variables;
use crate::prompt::macros::variables::VariableMap;
use crate::space_transfer::document::Manifest;
use crate::space_transfer::limits::TransferLimits;
use crate::space_transfer::{assets, document, limits, lorebooks};

/// The texts of a batch, which is one transaction.
const MAX_BATCH_BYTES: usize = 256 * 1024;
const MAX_BATCH: usize = 100;

/// Why a file is no space.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("This is no file of a space: {0}.")]
    NotASpace(&'static str),
    #[error("This file was written by a newer version.")]
    NewerVersion,
    #[error("The file unpacks to more than may be.")]
    TooLarge,
    #[error("In {0} something is not as it should be.")]
    Invalid(String),
}

/// Everything but the messages.
#[derive(Debug)]
pub struct FileHead {
    pub space: document::ExportedSpace,
    /// What macros remember for the whole space.
    pub variables: VariableMap,
    pub memberships: Vec<document::ExportedMembership>,
    pub characters: Vec<document::ExportedCharacter>,
    pub presets: Vec<document::ExportedPreset>,
    pub lorebooks: Vec<lorebooks::ArchivedLorebook>,
    pub lorebook_links: Vec<document::ExportedLorebookLink>,
    /// A parent stands before what hangs on it.
    pub conversations: Vec<document::ExportedConversation>,
}

/// What comes out of a file, in order.
#[derive(Debug)]
pub enum ImportEvent {
    Head(Box<FileHead>),
    /// Messages of the conversation with this key.
    Messages(i64, Vec<document::ExportedMessage>),
    /// What has happened in the conversation with this key. All messages are there before.
    History(i64, Vec<document::ExportedHistory>),
    /// One asset more has been looked at.
    AssetChecked,
    /// All of them.
    Assets(assets::SpooledAssets),
}

/// Reads a file to its end, or until `take` wants no more.
///
/// # Errors
/// When it is no file of a space, or too large.
pub fn read(
    file: File,
    n_bytes: u64,
    limits: TransferLimits,
    on_event: &mut dyn FnMut(ImportEvent) -> bool,
) -> Result<(), ReadError> {
    let zip = ZipArchive::new(BufReader::new(file));
    let zip = zip.map_err(|_| ReadError::NotASpace("it is no zip"))?;
    if zip.len() > limits::MAX_ENTRIES {
        return Err(ReadError::TooLarge);
    }
    let mut archive = OpenArchive {
        zip,
        n_bytes_left: limits.unpacked_limit(n_bytes),
        // A picture that is drawn anew may take more room than it took.
        max_asset_bytes: limits.max_unpacked_bytes,
    };
    let head = archive.read_head()?;
    let listed = archive.read_asset_list()?;
    let keys: Vec<i64> = head.conversations.iter().map(|it| it.key).collect();
    if !on_event(ImportEvent::Head(Box::new(head))) {
        return Ok(());
    }
    for key in &keys {
        if !archive.read_messages(*key, on_event)? {
            return Ok(());
        }
    }
    for key in &keys {
        if !archive.read_history(*key, on_event)? {
            return Ok(());
        }
    }
    archive.read_assets(listed, on_event)
}

struct OpenArchive {
    zip: ZipArchive<BufReader<File>>,
    /// How much may still come out.
    n_bytes_left: u64,
    /// How much of it may stay on the disk.
    max_asset_bytes: u64,
}

impl OpenArchive {
    fn read_head(&mut self) -> Result<FileHead, ReadError> {
        let manifest: Manifest = self
            .read_document(document::MANIFEST)
            .map_err(|_| ReadError::NotASpace("it has no manifest"))?;
        if manifest.format != document::FORMAT {
            return Err(ReadError::NotASpace(
                "its manifest speaks of something else",
            ));
        }
        if manifest.version > document::VERSION {
            return Err(ReadError::NewerVersion);
        }
        let lorebooks: Vec<document::ExportedLorebook> = self.read_document(document::LOREBOOKS)?;
        if lorebooks.len() > limits::MAX_CARDS {
            return Err(ReadError::TooLarge);
        }
        let lorebooks = lorebooks.into_iter().map(lorebooks::parse);
        let lorebooks: Option<Vec<_>> = lorebooks.collect();
        let head = FileHead {
            lorebooks: lorebooks.ok_or_else(|| invalid(document::LOREBOOKS))?,
            lorebook_links: self.read_document(document::LOREBOOK_LINKS)?,
            space: self.read_document(document::SPACE)?,
            variables: variables::within_limits(self.read_optional_document(document::VARIABLES)?),
            memberships: self.read_document(document::MEMBERSHIPS)?,
            characters: self.read_document(document::CHARACTERS)?,
            presets: self.read_document(document::PRESETS)?,
            conversations: self.read_document(document::CONVERSATIONS)?,
        };
        if !lorebooks::are_links_valid(&head.lorebook_links) {
            return Err(invalid(document::LOREBOOK_LINKS));
        }
        let too_many = head.memberships.len() > limits::MAX_MEMBERSHIPS
            || head.characters.len() > limits::MAX_CARDS
            || head.presets.len() > limits::MAX_CARDS
            || head.conversations.len() > limits::MAX_CONVERSATIONS;
        match too_many {
            true => Err(ReadError::TooLarge),
            false => Ok(head),
        }
    }

    fn read_asset_list(&mut self) -> Result<Vec<document::ExportedAsset>, ReadError> {
        let listed: Vec<document::ExportedAsset> = self.read_document(document::ASSETS)?;
        match () {
            () if listed.len() > limits::MAX_ASSETS => Err(ReadError::TooLarge),
            () if !assets::are_valid(&listed) => Err(invalid(document::ASSETS)),
            () => Ok(listed),
        }
    }

    /// Looks at every asset, and hands them on together.
    fn read_assets(
        &mut self,
        listed: Vec<document::ExportedAsset>,
        on_event: &mut dyn FnMut(ImportEvent) -> bool,
    ) -> Result<(), ReadError> {
        let mut spooled = assets::SpooledAssets::new(self.max_asset_bytes)
            .ok_or_else(|| invalid(document::ASSETS))?;
        for asset in listed {
            if !spooled.contains(&asset) {
                let name = document::asset_entry(&asset.sha256);
                let bytes = self.read_bytes(&name, limits::MAX_ASSET_BYTES)?;
                if !spooled.store(&asset, bytes) {
                    return Err(invalid(&name));
                }
            }
            spooled.add(asset);
            if !on_event(ImportEvent::AssetChecked) {
                return Ok(());
            }
        }
        on_event(ImportEvent::Assets(spooled));
        Ok(())
    }

    fn read_document<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ReadError> {
        let bytes = self.read_bytes(name, limits::MAX_DOCUMENT_BYTES)?;
        require_no_nul(&bytes, name)?;
        serde_json::from_slice(&bytes).map_err(|_| invalid(name))
    }

    /// A document that older files do not have.
    fn read_optional_document<T: DeserializeOwned + Default>(
        &mut self,
        name: &str,
    ) -> Result<T, ReadError> {
        match self.zip.index_for_name(name) {
            None => Ok(T::default()),
            Some(_) => self.read_document(name),
        }
    }

    fn read_bytes(&mut self, name: &str, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
        let entry = self.zip.by_name(name).map_err(|_| invalid(name))?;
        let most = max_bytes.min(self.n_bytes_left);
        let mut bytes = Vec::new();
        let n_read = entry.take(most + 1).read_to_end(&mut bytes);
        let n_read = n_read.map_err(|_| invalid(name))? as u64;
        if n_read > most {
            return Err(ReadError::TooLarge);
        }
        self.n_bytes_left -= n_read;
        Ok(bytes)
    }

    /// Hands the messages of a conversation on. `false`: nobody wants more.
    fn read_messages(
        &mut self,
        key: i64,
        on_event: &mut dyn FnMut(ImportEvent) -> bool,
    ) -> Result<bool, ReadError> {
        let name = document::messages_entry(key);
        self.read_lines(&name, &mut |batch| {
            on_event(ImportEvent::Messages(key, batch))
        })
    }

    /// Hands on what has happened in a conversation; older files do not tell.
    fn read_history(
        &mut self,
        key: i64,
        on_event: &mut dyn FnMut(ImportEvent) -> bool,
    ) -> Result<bool, ReadError> {
        let name = document::history_entry(key);
        match self.zip.index_for_name(&name) {
            None => Ok(true),
            Some(_) => self.read_lines(&name, &mut |batch| {
                on_event(ImportEvent::History(key, batch))
            }),
        }
    }

    /// Hands the lines of an entry on, batch by batch. `false`: nobody wants more.
    fn read_lines<T: DeserializeOwned>(
        &mut self,
        name: &str,
        on_batch: &mut dyn FnMut(Vec<T>) -> bool,
    ) -> Result<bool, ReadError> {
        let entry = self.zip.by_name(name).map_err(|_| invalid(name))?;
        let allowed = self.n_bytes_left;
        let mut lines = LineReader::new(BufReader::new(entry.take(allowed + 1)));
        let mut batch = Vec::new();
        let mut n_texts = 0;
        while let Some((_, piece)) = lines.next_line().map_err(|_| invalid(name))? {
            let line = match piece {
                RawLine::Line([]) => continue,
                RawLine::Line(line) => line,
                RawLine::TooLong => return Err(ReadError::TooLarge),
            };
            require_no_nul(line, name)?;
            n_texts += line.len();
            batch.push(serde_json::from_slice(line).map_err(|_| invalid(name))?);
            if batch.len() >= MAX_BATCH || n_texts >= MAX_BATCH_BYTES {
                n_texts = 0;
                if !on_batch(std::mem::take(&mut batch)) {
                    return Ok(false);
                }
            }
        }
        let n_read = lines.n_bytes();
        if n_read > allowed {
            return Err(ReadError::TooLarge);
        }
        self.n_bytes_left -= n_read;
        Ok(batch.is_empty() || on_batch(batch))
    }
}

fn invalid(name: &str) -> ReadError {
    ReadError::Invalid(name.to_owned())
}

/// No text of ours holds U+0000, and PostgreSQL takes none.
fn require_no_nul(json: &[u8], name: &str) -> Result<(), ReadError> {
    match json.windows(6).any(|it| it == b"\\u0000") {
        true => Err(ReadError::Invalid(name.to_owned())),
        false => Ok(()),
    }
}
