//! Opens an untrusted zip archive, checks its entries, and reads requested files into memory within
//! limits. Nothing is extracted to disk.
//!
//! **Invariant:** the sizes stated in an archive are never trusted: reading stops at the limits.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::ZipArchive;
use zip::result::ZipError;

use crate::cards::card_error::CardError;

/// The maximum number of entries.
pub const MAX_ENTRIES: usize = 1_000;
/// The maximum number of bytes read in total.
const MAX_TOTAL: u64 = 200 * 1024 * 1024;
/// The maximum number of bytes read to find and parse the directory: an archive may have a second
/// end record with a larger directory, after the one that was checked.
const MAX_DIRECTORY_READ: u64 = 4 * 1024 * 1024;
/// The maximum size of the directory, in bytes.
const MAX_DIRECTORY_BYTES: u64 = 1024 * 1024;
/// The maximum compression ratio, and the size in bytes up to which it is not checked.
const MAX_RATIO: u64 = 100;
const RATIO_EXEMPT_BYTES: u64 = 64 * 1024;
/// The end record: its signature, 18 bytes, a comment of at most 64 KiB.
const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const MAX_COMMENT: u64 = 0xFFFF;

/// An archive that passed all checks.
pub struct CardArchive {
    zip: ZipArchive<LimitedReader>,
    /// The number of bytes that may still be read.
    bytes_left: u64,
}

impl CardArchive {
    /// Opens and checks an archive. Other data may precede it.
    ///
    /// # Errors
    /// Returns an error when it is not a valid archive, or has too many entries, encrypted entries,
    /// links, or paths that lead outside.
    pub fn open(mut file: File) -> Result<Self, CardError> {
        let n_bytes = file.seek(SeekFrom::End(0)).map_err(|_| unreadable())?;
        let tail = read_tail(&mut file, n_bytes).map_err(|_| unreadable())?;
        require_small_directory(find_end_record(&tail).ok_or_else(unreadable)?)?;
        let left = Rc::new(Cell::new(MAX_DIRECTORY_READ));
        let rationed = LimitedReader {
            file: BufReader::new(file),
            bytes_left: left.clone(),
        };
        let zip = ZipArchive::new(rationed).map_err(from_zip_error)?;
        left.set(u64::MAX);
        let archive = Self {
            zip,
            bytes_left: MAX_TOTAL.min(max_unpacked(n_bytes)),
        };
        archive.require_plain_entries()?;
        Ok(archive)
    }

    /// Returns the names of all files.
    pub fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().flatten();
        let files = names.filter(|it| !it.ends_with('/'));
        files.map(|it| it.into_owned()).collect()
    }

    /// Returns whether a file of this name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// Returns the bytes of a file, if it exists.
    ///
    /// # Errors
    /// Returns an error when it is broken, or exceeds `max_bytes` or the compression ratio.
    pub fn read(&mut self, name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, CardError> {
        let Some(index) = self.zip.index_for_name(name) else {
            return Ok(None);
        };
        let entry = self.zip.by_index(index).map_err(from_zip_error)?;
        let most = max_bytes
            .min(max_unpacked(entry.compressed_size()))
            .min(self.bytes_left);
        let mut bytes = Vec::new();
        let n_read = entry
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(|_| unreadable())?;
        if n_read as u64 > most {
            let shown: String = name.chars().take(100).collect();
            let reason = format!("`{shown}` in the archive is too large.");
            return Err(CardError::TooLarge(reason));
        }
        self.bytes_left -= n_read as u64;
        Ok(Some(bytes))
    }

    fn require_plain_entries(&self) -> Result<(), CardError> {
        if self.zip.len() > MAX_ENTRIES || self.zip.has_duplicate_names() {
            return Err(too_many_entries());
        }
        for index in 0..self.zip.len() {
            let entry = self.zip.by_index_data(index).map_err(from_zip_error)?;
            let name = entry.name().map_err(from_zip_error)?;
            let reason = match () {
                () if entry.encrypted() => "The archive is encrypted.",
                () if entry.is_symlink() => "The archive contains links.",
                () if escapes_root(&name) => "The archive contains paths that lead outside of it.",
                () => continue,
            };
            return Err(CardError::reason(reason));
        }
        Ok(())
    }
}

/// Returns whether a file of this size is within the compression ratio.
pub fn is_plausible_size(n_packed: u64, n_bytes: usize) -> bool {
    n_bytes as u64 <= max_unpacked(n_packed)
}

fn max_unpacked(n_packed: u64) -> u64 {
    n_packed.saturating_mul(MAX_RATIO).max(RATIO_EXEMPT_BYTES)
}

/// A reader that fails after a number of bytes.
struct LimitedReader {
    file: BufReader<File>,
    bytes_left: Rc<Cell<u64>>,
}

impl Read for LimitedReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n_read = self.file.read(into)?;
        let left = self.bytes_left.get().checked_sub(n_read as u64);
        let left = left.ok_or_else(|| std::io::Error::other("limit reached"))?;
        self.bytes_left.set(left);
        Ok(n_read)
    }
}

impl Seek for LimitedReader {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

/// Returns whether a file ends with the end record of an archive.
pub fn is_archive(file: &mut File) -> bool {
    let n_bytes = file.seek(SeekFrom::End(0)).unwrap_or_default();
    read_tail(file, n_bytes).is_ok_and(|tail| find_end_record(&tail).is_some())
}

fn read_tail(file: &mut File, n_bytes: u64) -> std::io::Result<Vec<u8>> {
    let max_bytes = END_BYTES as u64 + MAX_COMMENT;
    file.seek(SeekFrom::Start(n_bytes.saturating_sub(max_bytes)))?;
    let mut tail = Vec::new();
    file.take(max_bytes).read_to_end(&mut tail)?;
    file.rewind()?;
    Ok(tail)
}

/// Returns the end record, if its comment extends to the end of the file.
fn find_end_record(tail: &[u8]) -> Option<&[u8]> {
    let starts = 0..=tail.len().checked_sub(END_BYTES)?;
    let records = starts.rev().map(|at| &tail[at..]);
    let mut records = records.filter(|it| it.starts_with(&END_SIGNATURE));
    records.find(|it| usize::from(u16_at(it, 20)) + END_BYTES == it.len())
}

/// Checks the size of the directory before it is read into memory.
fn require_small_directory(end: &[u8]) -> Result<(), CardError> {
    let n_entries = usize::from(u16_at(end, 10));
    let list = u64::from(u16_at(end, 12)) | (u64::from(u16_at(end, 14)) << 16);
    match n_entries > MAX_ENTRIES || list > MAX_DIRECTORY_BYTES {
        true => Err(too_many_entries()),
        false => Ok(()),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Returns whether a path leads outside the archive's root.
pub fn escapes_root(name: &str) -> bool {
    let is_absolute = name.starts_with('/') || name.contains(['\\', ':', '\0']);
    is_absolute || name.split('/').any(|it| it == "..")
}

fn from_zip_error(error: ZipError) -> CardError {
    match error {
        ZipError::UnsupportedArchive(_) => {
            CardError::reason("The archive is encrypted, or packed in a way that is not read here.")
        }
        _ => unreadable(),
    }
}

fn unreadable() -> CardError {
    CardError::reason("The archive cannot be read.")
}

fn too_many_entries() -> CardError {
    let reason = format!("The archive has more than {MAX_ENTRIES} entries, or duplicate names.");
    CardError::TooLarge(reason)
}

#[cfg(test)]
#[path = "zip_archive_tests.rs"]
mod tests;
