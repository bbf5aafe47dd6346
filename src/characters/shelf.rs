//! Characters as they arrive: the card, its picture and its assets, together.

use crate::characters::asset;
use crate::characters::attachment;
use crate::characters::attachment::PICTURE;
use crate::characters::card;
use crate::characters::card::CardError;
use crate::characters::character;
use crate::characters::character::Model;
use crate::characters::listed;
use crate::characters::listed::Place;
use crate::characters::parcel::Parcel;
use crate::characters::picture::Picture;
use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::ids::AssetId;
use crate::ids::CharacterId;
use crate::ids::UserId;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::Set;
use sea_orm::ActiveValue::Unchanged;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;

/// Why something was not put on the shelf.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    #[error(transparent)]
    Card(#[from] CardError),
    #[error(transparent)]
    Db(#[from] DbErr),
}

/// Who is on the shelf now.
pub struct Arrival {
    pub character: Model,
    /// Not when the same card was there already; then nothing is stored.
    pub is_new: bool,
}

/// Puts what was in a file on a shelf.
///
/// Assets go in one by one before the character does: one that a crash leaves behind is found by
/// its hash when the file comes again.
pub async fn put(
    db: &Db,
    owner: UserId,
    mut parcel: Parcel,
    now: Timestamp,
) -> Result<Arrival, ShelfError> {
    let hash = card::content_hash(&parcel.card.document);
    if let Some(character) = character::of_hash(db.reader(), owner, &hash).await? {
        return Ok(Arrival {
            character,
            is_new: false,
        });
    }
    let names: Vec<String> = parcel.assets.names().map(str::to_owned).collect();
    let mut kept: Vec<(String, AssetId)> = Vec::new();
    for name in names {
        if let Some(bytes) = parcel.assets.read(&name)? {
            let id = db
                .write(move |tx| Box::pin(async move { asset::keep(tx, bytes, now).await }))
                .await?;
            kept.push((name, id));
        }
    }
    let (card, picture) = (parcel.card, parcel.picture);
    let character = db
        .write(move |tx| {
            Box::pin(async move {
                let mut made = character::blank(owner, card, now).insert(tx).await?;
                for (name, id) in kept {
                    attachment::attach(tx, made.id, &name, id).await?;
                }
                if let Some(picture) = picture {
                    made = hang(tx, made.id, picture, now).await?;
                }
                Ok::<_, DbErr>(made)
            })
        })
        .await?;
    Ok(Arrival {
        character,
        is_new: true,
    })
}

/// Gives a character another picture. It becomes the main icon of its card too, if that is one of
/// its assets.
pub async fn give_picture(
    db: &Db,
    of: &Model,
    picture: Picture,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let id = of.id;
    let icon = match listed::main_icon(&of.card) {
        Some(Place::Inside(path)) => Some(path),
        _ => None,
    };
    db.write(move |tx| {
        Box::pin(async move {
            if let Some(icon) = icon
                && attachment::has(tx, id, &icon).await?
            {
                let large = asset::keep(tx, picture.large.clone(), now).await?;
                attachment::attach(tx, id, &icon, large).await?;
            }
            hang(tx, id, picture, now).await
        })
    })
    .await
}

/// Takes the picture from a character.
pub async fn take_picture(db: &Db, id: CharacterId) -> Result<Model, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            attachment::detach(tx, id, PICTURE).await?;
            show(tx, id, None).await
        })
    })
    .await
}

/// Gives a character a picture, in both sizes.
pub async fn hang(
    tx: &impl ConnectionTrait,
    id: CharacterId,
    picture: Picture,
    now: Timestamp,
) -> Result<Model, DbErr> {
    let hash = asset::hash_of(&picture.small);
    let large = asset::keep(tx, picture.large, now).await?;
    attachment::attach(tx, id, PICTURE, large).await?;
    let small = asset::keep(tx, picture.small, now).await?;
    show(tx, id, Some((small, hash))).await
}

async fn show(
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
