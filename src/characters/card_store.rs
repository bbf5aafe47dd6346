//! Creates characters from cards and changes their cards, avatars and assets, within the storage
//! quota of the owner.

use base::clock::Timestamp;
use base::ids::{AssetId, CharacterId};
use sea_orm::ActiveValue::{Set, Unchanged};
use sea_orm::{ActiveModelTrait, ConnectionTrait, DatabaseTransaction, DbErr};
use tavern::cards::avatar_image::{AVATAR_PATH, AvatarImage};
use tavern::cards::card::Card;
use tavern::cards::card_assets::AssetLocation;
use tavern::cards::card_error::CardError;
use tavern::cards::card_file::CardFile;
use tavern::cards::temp_assets::TempAssets;
use tavern::cards::{card, card_assets};

use crate::accounts::user;
use crate::characters::character::Model;
use crate::characters::quota::{QuotaError, QuotaExceeded, StorageQuota};
use crate::characters::{asset, character, character_asset, quota};
use crate::db::connect::Db;

/// Why a card was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreCardError {
    #[error(transparent)]
    Card(#[from] CardError),
    /// The card that is already stored cannot be changed.
    #[error("the stored card is invalid: {0}")]
    StoredCard(CardError),
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    #[error(transparent)]
    Db(#[from] DbErr),
}

impl From<QuotaError> for StoreCardError {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(full) => Self::QuotaExceeded(full),
            QuotaError::Db(error) => Self::Db(error),
        }
    }
}

/// Creates a character from a card without assets. The library may contain the same card twice.
///
/// # Errors
/// Returns `QuotaExceeded` when the owner's quota is exceeded, and `Db` when the database fails.
pub async fn create(
    db: &Db,
    quota: StorageQuota,
    card: Card,
    now: Timestamp,
) -> Result<Model, StoreCardError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            let made = character::new_row(quota.owner, card, now)
                .insert(tx)
                .await?;
            quota::require_quota(tx, quota, 0).await?;
            Ok(made)
        })
    })
    .await
}

/// Replaces the card of a character. A card that is not longer than the previous one is always
/// accepted.
///
/// # Errors
/// Returns `QuotaExceeded` when the owner's quota is exceeded, and `Db` when the database fails.
pub async fn replace(
    db: &Db,
    current: &Model,
    limit: u64,
    card: Card,
) -> Result<Model, StoreCardError> {
    let id = current.id;
    let grows = card.document.to_string().len() > current.card.to_string().len();
    let owner = current.owner_id.filter(|_| grows);
    db.write(move |tx| {
        Box::pin(async move {
            let changed = character::update_document(tx, id, card).await?;
            if let Some(owner) = owner {
                user::lock_row(tx, owner).await?;
                quota::require_quota(tx, StorageQuota { owner, limit }, 0).await?;
            }
            Ok(changed)
        })
    })
    .await
}

/// The character after an import.
pub struct StoredCard {
    pub character: Model,
    /// `false` if the same card existed; then only a missing avatar was added.
    pub is_new: bool,
}

/// Stores the contents of a card file, once per owner, even if imported twice at the same time.
///
/// Assets are inserted one by one before the character, to keep write transactions short. Assets
/// left by a crash or a refusal are removed by garbage collection.
///
/// # Errors
/// Returns `Card` when an asset cannot be read back, `QuotaExceeded` when the owner's quota is
/// exceeded, and `Db` when the database fails.
pub async fn store(
    db: &Db,
    quota: StorageQuota,
    mut card_file: CardFile,
    now: Timestamp,
) -> Result<StoredCard, StoreCardError> {
    let hash = card::content_hash(&card_file.card.document);
    let known = character::find_by_hash(db.reader(), quota.owner, &hash).await?;
    let has_avatar = card_file.avatar.is_some();
    if let Some(character) = known.filter(|it| it.avatar_id.is_some() || !has_avatar) {
        return Ok(StoredCard {
            character,
            is_new: false,
        });
    }
    quota::require_quota(db.reader(), quota, card_file.n_bytes()).await?;
    let stored_assets = store_assets(db, &mut card_file.assets, now).await?;
    let (card, picture) = (card_file.card, card_file.avatar);
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            if let Some(known) = character::find_by_hash(tx, quota.owner, &hash).await? {
                return Ok(StoredCard {
                    character: add_missing_avatar(tx, known, picture, quota, now).await?,
                    is_new: false,
                });
            }
            let mut made = character::new_row(quota.owner, card, now)
                .insert(tx)
                .await?;
            for (name, id) in stored_assets {
                character_asset::attach(tx, made.id, &name, id).await?;
            }
            if let Some(picture) = picture {
                made = attach_avatar(tx, made.id, picture, now).await?;
            }
            quota::require_quota(tx, quota, 0).await?;
            Ok(StoredCard {
                character: made,
                is_new: true,
            })
        })
    })
    .await
}

/// Adds the avatar of this import to an existing character without one.
async fn add_missing_avatar(
    tx: &DatabaseTransaction,
    known: Model,
    picture: Option<AvatarImage>,
    quota: StorageQuota,
    now: Timestamp,
) -> Result<Model, StoreCardError> {
    let Some(picture) = picture.filter(|_| known.avatar_id.is_none()) else {
        return Ok(known);
    };
    let shown = attach_avatar(tx, known.id, picture, now).await?;
    quota::require_quota(tx, quota, 0).await?;
    Ok(shown)
}

async fn store_assets(
    db: &Db,
    assets: &mut TempAssets,
    now: Timestamp,
) -> Result<Vec<(String, AssetId)>, StoreCardError> {
    let names: Vec<String> = assets.names().map(str::to_owned).collect();
    let mut stored = Vec::new();
    for name in names {
        if let Some(bytes) = assets.read(&name)? {
            let id = db
                .write(move |tx| Box::pin(async move { asset::store(tx, bytes, now).await }))
                .await?;
            stored.push((name, id));
        }
    }
    Ok(stored)
}

/// Replaces the avatar of a character. It also replaces the main icon of the card if that is a
/// stored asset; an icon embedded in the card is removed.
///
/// # Errors
/// Returns `QuotaExceeded` when the owner's quota is exceeded, and `Db` when the database fails.
pub async fn set_avatar(
    db: &Db,
    id: CharacterId,
    limit: u64,
    picture: AvatarImage,
    now: Timestamp,
) -> Result<Model, StoreCardError> {
    db.write(move |tx| {
        Box::pin(async move {
            let character = character::lock(tx, id).await?;
            if let Some(owner) = character.owner_id {
                user::lock_row(tx, owner).await?;
            }
            match card_assets::main_icon(&character.card) {
                Some(AssetLocation::InFile(icon))
                    if character_asset::exists(tx, id, &icon).await? =>
                {
                    let large = asset::store(tx, picture.large.clone(), now).await?;
                    character_asset::attach(tx, id, &icon, large).await?;
                }
                Some(AssetLocation::Inline(_)) => remove_listed_icon(tx, &character).await?,
                _ => {}
            }
            let shown = attach_avatar(tx, id, picture, now).await?;
            if let Some(owner) = character.owner_id {
                quota::require_quota(tx, StorageQuota { owner, limit }, 0).await?;
            }
            Ok(shown)
        })
    })
    .await
}

/// Deletes the avatar of a character, including the main icon in the card. Other assets are kept.
///
/// # Errors
/// Returns an error when the database fails.
pub async fn delete_avatar(db: &Db, id: CharacterId) -> Result<Model, StoreCardError> {
    db.write(move |tx| {
        Box::pin(async move {
            let character = character::lock(tx, id).await?;
            remove_listed_icon(tx, &character).await?;
            character_asset::detach(tx, id, AVATAR_PATH).await?;
            Ok(update_avatar_columns(tx, id, None).await?)
        })
    })
    .await
}

/// Replaces the card's main icon by the default one and detaches its asset.
async fn remove_listed_icon(
    tx: &impl ConnectionTrait,
    character: &Model,
) -> Result<(), StoreCardError> {
    let Some((document, place)) = card_assets::without_main_icon(&character.card) else {
        return Ok(());
    };
    if let AssetLocation::InFile(path) = place
        && !card_assets::embedded_paths(&document).contains(&path)
    {
        character_asset::detach(tx, character.id, &path).await?;
    }
    let card = Card::from_document(document);
    let card = card.map_err(StoreCardError::StoredCard)?;
    character::update_document(tx, character.id, card).await?;
    Ok(())
}

/// Sets the avatar of a character, in both sizes.
pub async fn attach_avatar(
    tx: &impl ConnectionTrait,
    id: CharacterId,
    picture: AvatarImage,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let hash = asset::sha256_hex(&picture.small);
    let large = asset::store(tx, picture.large, now).await?;
    character_asset::attach(tx, id, AVATAR_PATH, large).await?;
    let small = asset::store(tx, picture.small, now).await?;
    update_avatar_columns(tx, id, Some((small, hash))).await
}

async fn update_avatar_columns(
    tx: &impl ConnectionTrait,
    id: CharacterId,
    avatar: Option<(AssetId, String)>,
) -> Result<Model, DbErr> {
    let (asset, hash) = avatar.unzip();
    let row = character::ActiveModel {
        id: Unchanged(id),
        avatar_id: Set(asset),
        avatar_hash: Set(hash),
        ..Default::default()
    };
    row.update(tx).await
}
