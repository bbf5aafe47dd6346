//! Records the pictures of an import whose bytes are on disk.

use std::collections::HashMap;

use crate::space_transfer::document::ExportedPicture;

/// What is known of the pictures whose bytes are on disk.
#[derive(Debug, Default)]
pub struct SpooledPictures {
    pub drawn: HashMap<String, DrawnPicture>,
    pub listed: Vec<ExportedPicture>,
}

/// A picture that this server has encoded.
#[derive(Clone, Copy, Debug)]
pub struct DrawnPicture {
    pub width: u32,
    pub height: u32,
    pub media_type: &'static str,
    pub n_bytes: usize,
}

impl SpooledPictures {
    /// Returns whether the picture with this hash is stored.
    pub fn contains(&self, sha256: &str) -> bool {
        self.drawn.contains_key(sha256)
    }

    /// Records that a message has a picture whose bytes are stored.
    pub fn add(&mut self, picture: ExportedPicture) {
        self.listed.push(picture);
    }
}
