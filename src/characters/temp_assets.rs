//! The assets of a character on disk, while a file is read or made: they are many and large.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use crate::characters::card::CardError;

/// The largest asset.
pub const MAX_ASSET: u64 = 25 * 1024 * 1024;

/// Named pieces in a file that nobody else can find.
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
    /// An empty one.
    pub fn new() -> Result<Self, CardError> {
        Ok(Self {
            file: tempfile::tempfile().map_err(unreadable)?,
            ranges: Vec::new(),
            end: 0,
        })
    }

    /// Adds a piece.
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

    /// Adds bytes to the piece that was added last.
    ///
    /// # Errors
    /// When the disk is full.
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

    /// How many bytes a piece has, if there is one of this name.
    pub fn length(&self, name: &str) -> Option<u64> {
        let piece = self.ranges.iter().find(|it| it.name == name);
        piece.map(|it| it.length)
    }

    /// A piece to be read from its beginning, if there is one of this name.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(&mut self, name: &str) -> Result<Option<impl Read + '_>, CardError> {
        let Some(piece) = self.ranges.iter().find(|it| it.name == name) else {
            return Ok(None);
        };
        self.file
            .seek(SeekFrom::Start(piece.offset))
            .map_err(unreadable)?;
        Ok(Some((&self.file).take(piece.length)))
    }

    /// How many bytes all pieces have together.
    pub fn n_bytes(&self) -> u64 {
        self.end
    }

    /// The names, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|it| it.name.as_str())
    }

    /// The bytes of a piece.
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
    CardError::reason("The file cannot be kept while it is read.")
}
