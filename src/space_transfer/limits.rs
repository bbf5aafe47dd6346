//! Size limits of space export files: the same for exports and imports, so that every exported file
//! can be imported again.

use tavern::cards::temp_assets;

/// The unpacked size of a file, as a multiple of its size; at most
/// [`TransferLimits::max_unpacked_bytes`].
const MAX_RATIO: u64 = 100;
/// Even the smallest file may unpack to this size.
const MIN_UNPACKED_BYTES: u64 = 16 * 1024 * 1024;
/// Text compresses well: the unpacked size of the largest allowed file, as a multiple of its size.
const TEXT_RATIO: u64 = 10;

/// The maximum number of entries of a zip.
pub const MAX_ENTRIES: usize = 20_000;
/// The maximum size of a document, in bytes.
pub const MAX_DOCUMENT_BYTES: u64 = 32 * 1024 * 1024;
/// The maximum size of an asset, in bytes.
pub const MAX_ASSET_BYTES: u64 = temp_assets::MAX_ASSET;
pub const MAX_MEMBERSHIPS: usize = 2_000;
/// The same limit applies to lorebooks and presets.
pub const MAX_CARDS: usize = 500;
pub const MAX_CONVERSATIONS: usize = 5_000;
pub const MAX_ASSETS: usize = 2_000;
/// The maximum number of pictures of messages.
pub const MAX_PICTURES: usize = 10_000;

/// The configured size limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferLimits {
    /// The maximum file size, in bytes.
    pub max_file_bytes: u64,
    /// The maximum unpacked size, in bytes.
    pub max_unpacked_bytes: u64,
}

impl TransferLimits {
    /// Returns the limits for files of at most `mib` MiB.
    pub fn from_mib(mib: u64) -> Self {
        let max_file_bytes = mib * 1024 * 1024;
        Self {
            max_file_bytes,
            max_unpacked_bytes: (max_file_bytes * TEXT_RATIO).max(MIN_UNPACKED_BYTES),
        }
    }

    /// Returns the maximum unpacked size of a file of this size. A higher ratio indicates a zip
    /// bomb.
    pub fn unpacked_limit(self, n_bytes: u64) -> u64 {
        let allowed = n_bytes.saturating_mul(MAX_RATIO).max(MIN_UNPACKED_BYTES);
        allowed.min(self.max_unpacked_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::TransferLimits;

    #[test]
    fn the_unpacked_limit_grows_with_the_file_and_is_at_most_ten_times_the_maximum_size() {
        let limits = TransferLimits::from_mib(100);

        assert_eq!(limits.unpacked_limit(10), 16 * 1024 * 1024);
        assert_eq!(limits.unpacked_limit(1024 * 1024), 100 * 1024 * 1024);
        assert_eq!(
            limits.unpacked_limit(limits.max_file_bytes),
            1000 * 1024 * 1024
        );
    }
}
