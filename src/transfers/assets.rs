//! The pictures and other assets of a space's characters in its file.
//!
//! **Invariant:** a picture that comes in is drawn anew like any other of a stranger's. One that we
//! have drawn comes out of that as it was.

use crate::characters::asset;
use crate::characters::avatar_image;
use crate::characters::avatar_image::AvatarImage;
use crate::characters::card_store;
use crate::characters::character_asset;
use crate::characters::character_asset::AVATAR_PATH;
use crate::characters::temp_assets::TempAssets;
use crate::characters::zip_archive;
use crate::clock::Timestamp;
use crate::conversations::import_writer::ChatImportError;
use crate::ids::AssetId;
use crate::ids::CharacterId;
use crate::spaces::membership;
use crate::transfers::document;
use crate::transfers::rows::broken;
use parking_lot::Mutex;
use sea_orm::ColumnTrait;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use std::collections::HashMap;
use std::collections::HashSet;
use std::io::Cursor;

/// The longest path of an asset, in bytes.
const MAX_PATH: usize = 255;

/// What the characters at these seats have beside their cards.
///
/// # Errors
/// When the database fails.
pub async fn leaving(
    db: &impl ConnectionTrait,
    seats: &[membership::Model],
) -> Result<Vec<document::Asset>, DbErr> {
    use character_asset::Column;
    let links = character_asset::Entity::find()
        .filter(Column::CharacterId.is_in(seats.iter().filter_map(|it| it.character_id)))
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
        Some(document::Asset {
            character: it.character_id.0,
            sha256: hashes.get(&it.asset_id)?.clone(),
            path: it.name,
        })
    });
    Ok(assets.collect())
}

/// Whether each has a path of its own that leads nowhere.
pub fn are_in_order(assets: &[document::Asset]) -> bool {
    let mut seen = HashSet::new();
    assets.iter().all(|it| {
        it.path.len() <= MAX_PATH
            && !zip_archive::escapes_root(&it.path)
            && it.sha256.len() == 64
            && it.sha256.bytes().all(|it| it.is_ascii_hexdigit())
            && seen.insert((it.character, &it.path))
    })
}

/// What came in, on the disk until it is stored.
#[derive(Debug)]
pub struct Arrived {
    spool: Mutex<TempAssets>,
    assets: Vec<document::Asset>,
    /// How many bytes more of all assets together may be kept.
    left: u64,
}

fn large(sha256: &str) -> String {
    format!("{sha256}.large")
}

fn small(sha256: &str) -> String {
    format!("{sha256}.small")
}

impl Arrived {
    /// Nothing yet, and never more than so many bytes. `None`: there is no place for it on the disk.
    pub fn nothing(most: u64) -> Option<Self> {
        Some(Self {
            spool: Mutex::new(TempAssets::new().ok()?),
            assets: Vec::new(),
            left: most,
        })
    }

    /// Whether these bytes are at hand already.
    pub fn has(&self, asset: &document::Asset) -> bool {
        let name = match asset.path.as_str() {
            AVATAR_PATH => large(&asset.sha256),
            _ => asset.sha256.clone(),
        };
        self.spool.lock().names().any(|it| it == name)
    }

    /// Keeps the bytes of an asset. `false`: they are no picture where one is due, or too many.
    pub fn keep(&mut self, asset: &document::Asset, bytes: Vec<u8>) -> bool {
        let pieces = match asset.path.as_str() {
            AVATAR_PATH => match avatar_image::re_encode(Cursor::new(bytes)) {
                Ok(drawn) => vec![
                    (large(&asset.sha256), drawn.large),
                    (small(&asset.sha256), drawn.small),
                ],
                Err(_) => return false,
            },
            _ => vec![(asset.sha256.clone(), bytes)],
        };
        pieces.into_iter().all(|(name, bytes)| {
            let left = self.left.checked_sub(bytes.len() as u64);
            self.left = left.unwrap_or(0);
            left.is_some() && self.spool.get_mut().push(&name, &bytes).is_ok()
        })
    }

    /// Says that a character has an asset of which the bytes are at hand.
    pub fn name(&mut self, asset: document::Asset) {
        self.assets.push(asset);
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, ChatImportError> {
        let found = self
            .spool
            .lock()
            .read(name)
            .map_err(std::io::Error::other)?;
        found.ok_or_else(|| broken(document::ASSETS))
    }

    /// Gives the characters what is theirs. Answers the hashes of their pictures.
    ///
    /// # Errors
    /// When there is no such character, or the database fails.
    pub async fn give(
        &self,
        tx: &impl ConnectionTrait,
        cards: &HashMap<i64, CharacterId>,
        now: Timestamp,
    ) -> Result<HashMap<CharacterId, String>, ChatImportError> {
        let mut pictures = HashMap::new();
        let mut all: Vec<&document::Asset> = self.assets.iter().collect();
        // Two spaces with the same pictures at once ask for them in the same order.
        all.sort_by_key(|it| &it.sha256);
        for it in all {
            let card = cards.get(&it.character).copied();
            let card = card.ok_or_else(|| broken(document::ASSETS))?;
            if it.path == AVATAR_PATH {
                let picture = AvatarImage {
                    large: self.bytes(&large(&it.sha256))?,
                    small: self.bytes(&small(&it.sha256))?,
                };
                let shown = card_store::attach_avatar(tx, card, picture, now).await?;
                pictures.extend(shown.avatar_hash.map(|hash| (card, hash)));
            } else {
                let kept = asset::store(tx, self.bytes(&it.sha256)?, now).await?;
                character_asset::attach(tx, card, &it.path, kept).await?;
            }
        }
        Ok(pictures)
    }
}
