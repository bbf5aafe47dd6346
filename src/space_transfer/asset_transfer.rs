//! Lists the avatars and other assets of a space's characters for an export, and imports such
//! assets: keeps them on disk until they are stored in the database. `export_writer.rs` exports
//! their bytes; `picture_transfer.rs` does the same for the pictures of messages.
//!
//! **Invariant:** imported avatars are re-encoded, like all other untrusted avatars. An avatar that
//! this server has encoded stays unchanged. Other assets are stored as they are in the file.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;

use base::clock::Timestamp;
use base::ids::{AssetId, CharacterId};
use parking_lot::Mutex;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use tavern::cards::avatar_image::{AVATAR_PATH, AvatarImage};
use tavern::cards::temp_assets::TempAssets;
use tavern::cards::{avatar_image, zip_archive};

use crate::characters::{asset, card_store, character_asset};
use crate::conversations::chats::import_writer::ChatImportError;
use crate::space_transfer::document;
use crate::space_transfer::import_data::invalid_file;
use crate::space_transfer::pictures::spooled_pictures::SpooledPictures;
use crate::spaces::membership;

/// The maximum length of an asset's path, in bytes.
const MAX_PATH_BYTES: usize = 255;

/// Returns the assets of the characters of these memberships, except their cards.
///
/// # Errors
/// Returns `DbErr` when the database fails.
pub async fn export(
    db: &impl ConnectionTrait,
    memberships: &[membership::Model],
) -> Result<Vec<document::ExportedAsset>, DbErr> {
    use character_asset::Column;
    let links = character_asset::Entity::find()
        .filter(Column::CharacterId.is_in(memberships.iter().filter_map(|it| it.character_id)))
        .order_by_asc(Column::CharacterId)
        .order_by_asc(Column::Name)
        .all(db)
        .await?;
    let hashes: Vec<(AssetId, String)> = asset::Entity::find()
        .select_only()
        .columns([asset::Column::Id, asset::Column::Sha256])
        .filter(asset::Column::Id.is_in(links.iter().map(|it| it.asset_id)))
        .into_tuple()
        .all(db)
        .await?;
    let hashes: HashMap<_, _> = hashes.into_iter().collect();
    let assets = links.into_iter().filter_map(|it| {
        Some(document::ExportedAsset {
            character: it.character_id.0,
            sha256: hashes.get(&it.asset_id)?.clone(),
            path: it.name,
        })
    });
    Ok(assets.collect())
}

/// Returns whether each asset has a unique path without traversal.
pub fn are_valid(assets: &[document::ExportedAsset]) -> bool {
    let mut seen = HashSet::new();
    assets.iter().all(|it| {
        it.path.len() <= MAX_PATH_BYTES
            && !zip_archive::escapes_root(&it.path)
            && is_hash(&it.sha256)
            && seen.insert((it.character, &it.path))
    })
}

/// Returns whether this can be the hash of an asset.
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Imported assets, on disk until they are stored in the database.
#[derive(Debug)]
pub struct SpooledAssets {
    spool: Mutex<TempAssets>,
    assets: Vec<document::ExportedAsset>,
    pub pictures: SpooledPictures,
    /// How many more bytes may be kept for all assets together.
    n_bytes_left: u64,
}

fn large_name(sha256: &str) -> String {
    format!("{sha256}.large")
}

fn small_name(sha256: &str) -> String {
    format!("{sha256}.small")
}

impl SpooledAssets {
    /// Creates an empty store for at most `max_bytes`; `None` if no temporary file can be created.
    pub fn new(max_bytes: u64) -> Option<Self> {
        Some(Self {
            spool: Mutex::new(TempAssets::new().ok()?),
            assets: Vec::new(),
            pictures: SpooledPictures::default(),
            n_bytes_left: max_bytes,
        })
    }

    /// Returns whether the bytes of this asset are already stored.
    pub fn contains(&self, asset: &document::ExportedAsset) -> bool {
        let name = match asset.path.as_str() {
            AVATAR_PATH => large_name(&asset.sha256),
            _ => asset.sha256.clone(),
        };
        self.spool.lock().names().any(|it| it == name)
    }

    /// Stores the bytes of an asset. Returns `false` if an avatar is not an image, or the limit is
    /// reached.
    pub fn store(&mut self, asset: &document::ExportedAsset, bytes: Vec<u8>) -> bool {
        let parts = match asset.path.as_str() {
            AVATAR_PATH => match avatar_image::re_encode(Cursor::new(bytes)) {
                Ok(rendered) => vec![
                    (large_name(&asset.sha256), rendered.large),
                    (small_name(&asset.sha256), rendered.small),
                ],
                Err(_) => return false,
            },
            _ => vec![(asset.sha256.clone(), bytes)],
        };
        self.store_parts(parts)
    }

    /// Stores bytes under their names. Returns `false` if the limit is reached.
    pub fn store_parts(&mut self, parts: Vec<(String, Vec<u8>)>) -> bool {
        parts.into_iter().all(|(name, bytes)| {
            let n_bytes_left = self.n_bytes_left.checked_sub(bytes.len() as u64);
            self.n_bytes_left = n_bytes_left.unwrap_or(0);
            n_bytes_left.is_some() && self.spool.get_mut().push(&name, &bytes).is_ok()
        })
    }

    /// Records that a character has an asset whose bytes are stored.
    pub fn add(&mut self, asset: document::ExportedAsset) {
        self.assets.push(asset);
    }

    /// Returns the bytes that are stored under a name.
    ///
    /// # Errors
    /// Returns an error if there are none, or the disk fails.
    pub fn read_bytes(&self, name: &str) -> Result<Vec<u8>, ChatImportError> {
        let found = self
            .spool
            .lock()
            .read(name)
            .map_err(std::io::Error::other)?;
        found.ok_or_else(|| invalid_file(document::ASSETS))
    }

    /// Writes the assets of the characters. Returns the hashes of their avatars.
    ///
    /// # Errors
    /// Returns an error if a character is missing or the database fails.
    pub async fn attach_to_characters(
        &self,
        tx: &impl ConnectionTrait,
        character_ids: &HashMap<i64, CharacterId>,
        now: Timestamp,
    ) -> Result<HashMap<CharacterId, String>, ChatImportError> {
        let mut pictures = HashMap::new();
        let mut all: Vec<&document::ExportedAsset> = self.assets.iter().collect();
        // A fixed order, so that concurrent imports with the same images lock them in the same
        // order.
        all.sort_by_key(|it| &it.sha256);
        for it in all {
            let card = character_ids.get(&it.character).copied();
            let card = card.ok_or_else(|| invalid_file(document::ASSETS))?;
            if it.path == AVATAR_PATH {
                let picture = AvatarImage {
                    large: self.read_bytes(&large_name(&it.sha256))?,
                    small: self.read_bytes(&small_name(&it.sha256))?,
                };
                let shown = card_store::attach_avatar(tx, card, picture, now).await?;
                pictures.extend(shown.avatar_hash.map(|hash| (card, hash)));
            } else {
                let kept = asset::store(tx, self.read_bytes(&it.sha256)?, now).await?;
                character_asset::attach(tx, card, &it.path, kept).await?;
            }
        }
        Ok(pictures)
    }
}
