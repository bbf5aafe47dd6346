//! Defines `TempAssets`, which stores the assets of a character by name in one anonymous temporary
//! file during an import or export, because there may be many, and they may be large. Does not
//! limit their size.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use crate::cards::card_error::CardError;

/// The maximum size of an asset, in bytes.
pub const MAX_ASSET: u64 = 25 * 1024 * 1024;

/// Assets by name, in an anonymous temporary file.
#[derive(Debug)]
pub struct TempAssets {
    file: File,
    ranges: Vec<AssetRange>,
    end: u64,
}

#[derive(Debug)]
struct AssetRange {
    name: String,
    offset: u64,
    length: u64,
}

impl TempAssets {
    /// Creates an empty file.
    pub fn new() -> Result<Self, CardError> {
        Ok(Self {
            file: tempfile::tempfile().map_err(unreadable)?,
            ranges: Vec::new(),
            end: 0,
        })
    }

    /// Adds an asset.
    pub fn push(&mut self, name: &str, bytes: &[u8]) -> Result<(), CardError> {
        self.file
            .seek(SeekFrom::Start(self.end))
            .map_err(unreadable)?;
        self.file.write_all(bytes).map_err(unreadable)?;
        let length = bytes.len() as u64;
        self.ranges.push(AssetRange {
            name: name.to_owned(),
            offset: self.end,
            length,
        });
        self.end += length;
        Ok(())
    }

    /// Appends bytes to the last asset.
    ///
    /// # Errors
    /// Returns an error when the disk is full.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), CardError> {
        self.file
            .seek(SeekFrom::Start(self.end))
            .map_err(unreadable)?;
        self.file.write_all(bytes).map_err(unreadable)?;
        let length = bytes.len() as u64;
        if let Some(piece) = self.ranges.last_mut() {
            piece.length += length;
        }
        self.end += length;
        Ok(())
    }

    /// Returns the size of an asset in bytes, if it exists.
    pub fn length(&self, name: &str) -> Option<u64> {
        let piece = self.ranges.iter().find(|it| it.name == name);
        piece.map(|it| it.length)
    }

    /// Returns a reader of an asset, if it exists.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn open(&mut self, name: &str) -> Result<Option<impl Read + '_>, CardError> {
        let Some(piece) = self.ranges.iter().find(|it| it.name == name) else {
            return Ok(None);
        };
        self.file
            .seek(SeekFrom::Start(piece.offset))
            .map_err(unreadable)?;
        Ok(Some((&self.file).take(piece.length)))
    }

    /// Returns the total size in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.end
    }

    /// Returns the names in the order of insertion.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|it| it.name.as_str())
    }

    /// Returns the bytes of an asset, if it exists.
    pub fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, CardError> {
        let Some(mut piece) = self.open(name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        piece.read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(Some(bytes))
    }
}

fn unreadable(_: std::io::Error) -> CardError {
    CardError::reason("The file cannot be stored temporarily.")
}
