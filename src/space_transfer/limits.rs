//! How large the file of a space may be: the same for what goes out and for what comes in, so that
//! nothing leaves a house that it would not take back.

use crate::characters::temp_assets;

/// How many times its size a file may unpack to, and yet no more than [`Limits::unpacked`].
const MAX_RATIO: u64 = 100;
/// So much may come out of however small a file.
const MIN_UNPACKED_BYTES: u64 = 16 * 1024 * 1024;
/// A text packs well: how much may come out of a file of the greatest size.
const TEXT_RATIO: u64 = 10;

/// The most entries of a zip.
pub const MAX_ENTRIES: usize = 20_000;
/// The largest document, in bytes.
pub const MAX_DOCUMENT_BYTES: u64 = 32 * 1024 * 1024;
/// The largest asset, in bytes.
pub const MAX_ASSET_BYTES: u64 = temp_assets::MAX_ASSET;
pub const MAX_MEMBERSHIPS: usize = 2_000;
/// The same for books and presets.
pub const MAX_CARDS: usize = 500;
pub const MAX_CONVERSATIONS: usize = 5_000;
pub const MAX_ASSETS: usize = 2_000;

/// What a house takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferLimits {
    /// The largest file, in bytes.
    pub max_file_bytes: u64,
    /// How much comes out of it at most, in bytes.
    pub max_unpacked_bytes: u64,
}

impl TransferLimits {
    /// Of a house that takes files of so many MiB.
    pub fn from_mib(mib: u64) -> Self {
        let max_file_bytes = mib * 1024 * 1024;
        Self {
            max_file_bytes,
            max_unpacked_bytes: (max_file_bytes * TEXT_RATIO).max(MIN_UNPACKED_BYTES),
        }
    }

    /// How much may come out of a file of this size, in bytes. What packs better is a bomb.
    pub fn unpacked_limit(self, n_bytes: u64) -> u64 {
        let allowed = n_bytes.saturating_mul(MAX_RATIO).max(MIN_UNPACKED_BYTES);
        allowed.min(self.max_unpacked_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::TransferLimits;

    #[test]
    fn a_small_file_unpacks_to_a_little_and_a_large_one_to_ten_times_its_size() {
        let limits = TransferLimits::from_mib(100);

        assert_eq!(limits.unpacked_limit(10), 16 * 1024 * 1024);
        assert_eq!(limits.unpacked_limit(1024 * 1024), 100 * 1024 * 1024);
        assert_eq!(
            limits.unpacked_limit(limits.max_file_bytes),
            1000 * 1024 * 1024
        );
    }
}
