//! Reads the export file of a space and passes its content to a callback: the documents, then the
//! messages, run history, memories and summaries in batches, then the assets.
//!
//! **Invariant:** an untrusted file uses no more resources than the limits allow. Bytes are counted
//! while they are unpacked, whatever the zip declares; no entry is extracted to a path, and names
//! in the file are never used as paths.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use serde::de::DeserializeOwned;
use tavern::chats::line_reader::{LineReader, RawLine};
use tavern::macros::variables;
use zip::ZipArchive;

use crate::memories::transfer::line_reader::NumberedLine;
use crate::memories::transfer::summary_import::NumberedSummary;
use crate::memories::transfer::{line_reader, summary_line};
use crate::space_transfer::document::Manifest;
use crate::space_transfer::import_data::FileHead;
use crate::space_transfer::limits::TransferLimits;
use crate::space_transfer::pictures::picture_transfer;
use crate::space_transfer::{asset_transfer, document, limits, lorebook_transfer};

/// The text bytes of a batch, which is one transaction.
const MAX_BATCH_BYTES: usize = 256 * 1024;
const MAX_BATCH: usize = 100;

/// Why a file is not a valid space file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("This is not a space file: {0}.")]
    NotASpace(&'static str),
    #[error("This file was written by a newer version.")]
    NewerVersion,
    #[error("The unpacked file is too large.")]
    TooLarge,
    #[error("Invalid content in {0}.")]
    Invalid(String),
}

/// The parts of a file, in order.
#[derive(Debug)]
pub enum ImportEvent {
    Head(Box<FileHead>),
    /// Messages of the conversation with this key.
    Messages(i64, Vec<document::ExportedMessage>),
    /// History of the conversation with this key. Follows all messages.
    History(i64, Vec<document::ExportedHistory>),
    /// Lines of memories, after the whole history.
    Memories(Vec<NumberedLine>),
    /// Lines of summaries, after the memories.
    Summaries(Vec<NumberedSummary>),
    /// One more asset was checked.
    AssetChecked,
    /// All assets.
    Assets(asset_transfer::SpooledAssets),
}

/// Reads a file to its end, or until `on_event` returns `false`.
///
/// # Errors
/// Returns an error if the file is not a space file, or too large.
pub fn read(
    file: File,
    n_bytes: u64,
    limits: TransferLimits,
    on_event: &mut dyn FnMut(ImportEvent) -> bool,
) -> Result<(), ReadError> {
    let zip = ZipArchive::new(BufReader::new(file));
    let zip = zip.map_err(|_| ReadError::NotASpace("it is not a zip file"))?;
    if zip.len() > limits::MAX_ENTRIES {
        return Err(ReadError::TooLarge);
    }
    let mut archive = OpenArchive {
        zip,
        n_bytes_left: limits.unpacked_limit(n_bytes),
        // A re-encoded image may be larger than the original.
        max_asset_bytes: limits.max_unpacked_bytes,
    };
    let head = archive.read_head()?;
    let listed = archive.read_asset_list()?;
    let pictures = archive.read_picture_list()?;
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
    if !archive.read_memories(on_event)? || !archive.read_summaries(on_event)? {
        return Ok(());
    }
    archive.read_assets(listed, pictures, on_event)
}

struct OpenArchive {
    zip: ZipArchive<BufReader<File>>,
    /// How many more bytes may be unpacked.
    n_bytes_left: u64,
    /// How many of them may be kept on disk.
    max_asset_bytes: u64,
}

impl OpenArchive {
    fn read_head(&mut self) -> Result<FileHead, ReadError> {
        let manifest: Manifest = self
            .read_document(document::MANIFEST)
            .map_err(|_| ReadError::NotASpace("it has no manifest"))?;
        if manifest.format != document::FORMAT {
            return Err(ReadError::NotASpace("its manifest has another format"));
        }
        if manifest.version > document::VERSION {
            return Err(ReadError::NewerVersion);
        }
        let lorebooks: Vec<document::ExportedLorebook> = self.read_document(document::LOREBOOKS)?;
        if lorebooks.len() > limits::MAX_CARDS {
            return Err(ReadError::TooLarge);
        }
        let lorebooks = lorebooks.into_iter().map(lorebook_transfer::parse);
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
        if !lorebook_transfer::are_links_valid(&head.lorebook_links) {
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
            () if !asset_transfer::are_valid(&listed) => Err(invalid(document::ASSETS)),
            () => Ok(listed),
        }
    }

    fn read_picture_list(&mut self) -> Result<Vec<document::ExportedPicture>, ReadError> {
        let listed: Vec<document::ExportedPicture> =
            self.read_optional_document(document::PICTURES)?;
        match () {
            () if listed.len() > limits::MAX_PICTURES => Err(ReadError::TooLarge),
            () if !picture_transfer::are_valid(&listed) => Err(invalid(document::PICTURES)),
            () => Ok(listed),
        }
    }

    /// Checks every asset and every picture, and passes them on together.
    fn read_assets(
        &mut self,
        listed: Vec<document::ExportedAsset>,
        pictures: Vec<document::ExportedPicture>,
        on_event: &mut dyn FnMut(ImportEvent) -> bool,
    ) -> Result<(), ReadError> {
        let mut spooled = asset_transfer::SpooledAssets::new(self.max_asset_bytes)
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
        for picture in pictures {
            if !spooled.pictures.contains(&picture.sha256) {
                let name = document::asset_entry(&picture.sha256);
                let bytes = self.read_bytes(&name, limits::MAX_ASSET_BYTES)?;
                if !picture_transfer::spool(&mut spooled, &picture.sha256, bytes) {
                    return Err(invalid(&name));
                }
            }
            spooled.pictures.add(picture);
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

    /// Reads a document that older files do not have.
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

    /// Passes on the messages of a conversation. Returns `false` if the receiver is gone.
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

    /// Passes on the history of a conversation; missing in older files.
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

    /// Sends the lines of memories, which older files do not have. An invalid line is not an error. Returns `false`
    /// if the receiver is gone.
    fn read_memories(
        &mut self,
        on_event: &mut dyn FnMut(ImportEvent) -> bool,
    ) -> Result<bool, ReadError> {
        self.read_optional_file(document::MEMORIES, &mut |file| {
            line_reader::read(file, &mut |batch| on_event(ImportEvent::Memories(batch)))
        })
    }

    /// Reads the lines of summaries, if the file has any.
    fn read_summaries(
        &mut self,
        on_event: &mut dyn FnMut(ImportEvent) -> bool,
    ) -> Result<bool, ReadError> {
        let parse = |number: u64, line: RawLine<'_>| NumberedSummary {
            number,
            summary: summary_line::read(line),
        };
        self.read_optional_file(document::SUMMARIES, &mut |file| {
            let mut on_batch = |batch| on_event(ImportEvent::Summaries(batch));
            line_reader::read_batches(file, parse, &mut on_batch)
        })
    }

    /// Passes an entry to `read` if the file has it; older files do not. `read` returns how many bytes it has
    /// read, or `None` if the receiver is gone. Returns `false` if the receiver is gone.
    fn read_optional_file(
        &mut self,
        name: &str,
        read: &mut dyn FnMut(&mut dyn BufRead) -> std::io::Result<Option<u64>>,
    ) -> Result<bool, ReadError> {
        if self.zip.index_for_name(name).is_none() {
            return Ok(true);
        }
        let entry = self.zip.by_name(name).map_err(|_| invalid(name))?;
        let allowed = self.n_bytes_left;
        let mut file = BufReader::new(entry.take(allowed + 1));
        let Some(n_read) = read(&mut file).map_err(|_| invalid(name))? else {
            return Ok(false);
        };
        if n_read > allowed {
            return Err(ReadError::TooLarge);
        }
        self.n_bytes_left -= n_read;
        Ok(true)
    }

    /// Passes on the lines of an entry in batches. Returns `false` if the receiver is gone.
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

/// Refuses U+0000, which PostgreSQL does not accept in a string.
fn require_no_nul(json: &[u8], name: &str) -> Result<(), ReadError> {
    match json.windows(6).any(|it| it == b"\\u0000") {
        true => Err(ReadError::Invalid(name.to_owned())),
        false => Ok(()),
    }
}
