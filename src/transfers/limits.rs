//! How large the file of a space may be: the same for what goes out and for what comes in, so that
//! nothing leaves a house that it would not take back.

use crate::characters::temp_assets;

/// How many times its size a file may unpack to, and yet no more than [`Limits::unpacked`].
const MAX_RATIO: u64 = 100;
/// So much may come out of however small a file.
const ALWAYS_ALLOWED: u64 = 16 * 1024 * 1024;
/// A text packs well: how much may come out of a file of the greatest size.
const TEXT_RATIO: u64 = 10;

/// The most entries of a zip.
pub const MAX_ENTRIES: usize = 20_000;
/// The largest document, in bytes.
pub const MAX_DOCUMENT: u64 = 32 * 1024 * 1024;
/// The largest asset, in bytes.
pub const MAX_ASSET: u64 = temp_assets::MAX_ASSET;
pub const MAX_SEATS: usize = 2_000;
/// The same for books and presets.
pub const MAX_CARDS: usize = 500;
pub const MAX_CONVERSATIONS: usize = 5_000;
pub const MAX_ASSETS: usize = 2_000;

/// What a house takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest file, in bytes.
    pub file: u64,
    /// How much comes out of it at most, in bytes.
    pub unpacked: u64,
}

impl Limits {
    /// Of a house that takes files of so many MiB.
    pub fn of_mib(mib: u64) -> Self {
        let file = mib * 1024 * 1024;
        Self {
            file,
            unpacked: (file * TEXT_RATIO).max(ALWAYS_ALLOWED),
        }
    }

    /// How much may come out of a file of this size, in bytes. What packs better is a bomb.
    pub fn out_of(self, n_bytes: u64) -> u64 {
        let allowed = n_bytes.saturating_mul(MAX_RATIO).max(ALWAYS_ALLOWED);
        allowed.min(self.unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn a_small_file_unpacks_to_a_little_and_a_large_one_to_ten_times_its_size() {
        let limits = Limits::of_mib(100);

        assert_eq!(limits.out_of(10), 16 * 1024 * 1024);
        assert_eq!(limits.out_of(1024 * 1024), 100 * 1024 * 1024);
        assert_eq!(limits.out_of(limits.file), 1000 * 1024 * 1024);
    }
}
