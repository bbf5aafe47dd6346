//! Characters as they arrive: the card, its picture and its assets, together.

use crate::accounts::user;
use crate::characters::asset;
use crate::characters::attachment;
use crate::characters::attachment::PICTURE;
use crate::characters::card;
use crate::characters::card::Card;
use crate::characters::card::CardError;
use crate::characters::character;
use crate::characters::character::Model;
use crate::characters::listed;
use crate::characters::listed::Place;
use crate::characters::parcel::Parcel;
use crate::characters::picture::Picture;
use crate::characters::room;
use crate::characters::room::Full;
use crate::characters::room::RoomError;
use crate::characters::room::Shelf;
use crate::characters::spool::Spool;
use crate::clock::Timestamp;
use crate::db::connect::Db;
use crate::ids::AssetId;
use crate::ids::CharacterId;
use sea_orm::ActiveModelTrait;
use sea_orm::ActiveValue::Set;
use sea_orm::ActiveValue::Unchanged;
use sea_orm::ConnectionTrait;
use sea_orm::DatabaseTransaction;
use sea_orm::DbErr;

/// Why something was not put on the shelf.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    #[error(transparent)]
    Card(#[from] CardError),
    #[error(transparent)]
    Full(#[from] Full),
    #[error(transparent)]
    Db(#[from] DbErr),
}

impl From<RoomError> for ShelfError {
    fn from(error: RoomError) -> Self {
        match error {
            RoomError::Full(full) => Self::Full(full),
            RoomError::Db(error) => Self::Db(error),
        }
    }
}

/// Puts a card alone on a shelf, also one that stands there already.
///
/// # Errors
/// When there is no room for it, or the database fails.
pub async fn make(db: &Db, shelf: Shelf, card: Card, now: Timestamp) -> Result<Model, ShelfError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, shelf.owner).await?;
            let made = character::blank(shelf.owner, card, now).insert(tx).await?;
            room::must_fit(tx, shelf, 0).await?;
            Ok(made)
        })
    })
    .await
}

/// Gives a character another card. One that is no longer than the one before always fits.
///
/// # Errors
/// When there is no room for it, or the database fails.
pub async fn replace(db: &Db, of: &Model, limit: u64, card: Card) -> Result<Model, ShelfError> {
    let id = of.id;
    let grows = card.document.to_string().len() > of.card.to_string().len();
    let owner = of.owner_id.filter(|_| grows);
    db.write(move |tx| {
        Box::pin(async move {
            let changed = character::rewrite(tx, id, card).await?;
            if let Some(owner) = owner {
                user::lock_row(tx, owner).await?;
                room::must_fit(tx, Shelf { owner, limit }, 0).await?;
            }
            Ok(changed)
        })
    })
    .await
}

/// Who is on the shelf now.
pub struct Arrival {
    pub character: Model,
    /// Not when the same card was there already; then nothing is stored but a picture that it lacks.
    pub is_new: bool,
}

/// Puts what was in a file on a shelf, once: of two that bring the same at once, one finds it there.
///
/// Assets go in one by one before the character does, so that nobody else waits for long to write:
/// those that a crash or a refusal leaves behind are swept away.
///
/// # Errors
/// When a file cannot be read again, there is no room for it, or the database fails.
pub async fn put(
    db: &Db,
    shelf: Shelf,
    mut parcel: Parcel,
    now: Timestamp,
) -> Result<Arrival, ShelfError> {
    let hash = card::content_hash(&parcel.card.document);
    let known = character::of_hash(db.reader(), shelf.owner, &hash).await?;
    let brings_face = parcel.picture.is_some();
    if let Some(character) = known.filter(|it| it.avatar_id.is_some() || !brings_face) {
        return Ok(Arrival {
            character,
            is_new: false,
        });
    }
    room::must_fit(db.reader(), shelf, parcel.n_bytes()).await?;
    let kept = keep_all(db, &mut parcel.assets, now).await?;
    let (card, picture) = (parcel.card, parcel.picture);
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, shelf.owner).await?;
            if let Some(known) = character::of_hash(tx, shelf.owner, &hash).await? {
                return Ok(Arrival {
                    character: with_face(tx, known, picture, shelf, now).await?,
                    is_new: false,
                });
            }
            let mut made = character::blank(shelf.owner, card, now).insert(tx).await?;
            for (name, id) in kept {
                attachment::attach(tx, made.id, &name, id).await?;
            }
            if let Some(picture) = picture {
                made = hang(tx, made.id, picture, now).await?;
            }
            room::must_fit(tx, shelf, 0).await?;
            Ok(Arrival {
                character: made,
                is_new: true,
            })
        })
    })
    .await
}

/// The same card came without a picture before: it gets the one that comes with it now.
async fn with_face(
    tx: &DatabaseTransaction,
    known: Model,
    picture: Option<Picture>,
    shelf: Shelf,
    now: Timestamp,
) -> Result<Model, ShelfError> {
    let Some(picture) = picture.filter(|_| known.avatar_id.is_none()) else {
        return Ok(known);
    };
    let shown = hang(tx, known.id, picture, now).await?;
    room::must_fit(tx, shelf, 0).await?;
    Ok(shown)
}

async fn keep_all(
    db: &Db,
    assets: &mut Spool,
    now: Timestamp,
) -> Result<Vec<(String, AssetId)>, ShelfError> {
    let names: Vec<String> = assets.names().map(str::to_owned).collect();
    let mut kept = Vec::new();
    for name in names {
        if let Some(bytes) = assets.read(&name)? {
            let id = db
                .write(move |tx| Box::pin(async move { asset::keep(tx, bytes, now).await }))
                .await?;
            kept.push((name, id));
        }
    }
    Ok(kept)
}

/// Gives a character another picture. It becomes the main icon of its card too, if that is one of
/// its assets; one that is written into the card makes room for it.
///
/// # Errors
/// When there is no room for it, or the database fails.
pub async fn give_picture(
    db: &Db,
    id: CharacterId,
    limit: u64,
    picture: Picture,
    now: Timestamp,
) -> Result<Model, ShelfError> {
    db.write(move |tx| {
        Box::pin(async move {
            let of = character::lock(tx, id).await?;
            if let Some(owner) = of.owner_id {
                user::lock_row(tx, owner).await?;
            }
            match listed::main_icon(&of.card) {
                Some(Place::Inside(icon)) if attachment::has(tx, id, &icon).await? => {
                    let large = asset::keep(tx, picture.large.clone(), now).await?;
                    attachment::attach(tx, id, &icon, large).await?;
                }
                Some(Place::Written(_)) => forget_icon(tx, &of).await?,
                _ => {}
            }
            let shown = hang(tx, id, picture, now).await?;
            if let Some(owner) = of.owner_id {
                room::must_fit(tx, Shelf { owner, limit }, 0).await?;
            }
            Ok(shown)
        })
    })
    .await
}

/// Takes the picture from a character, also where its card lists it. Its other assets stay.
///
/// # Errors
/// When the database fails.
pub async fn take_picture(db: &Db, id: CharacterId) -> Result<Model, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            let of = character::lock(tx, id).await?;
            forget_icon(tx, &of).await?;
            attachment::detach(tx, id, PICTURE).await?;
            show(tx, id, None).await
        })
    })
    .await
}

/// Has a card list no picture of its own, and lets go of the one that it listed.
async fn forget_icon(tx: &impl ConnectionTrait, of: &Model) -> Result<(), DbErr> {
    let Some((document, place)) = listed::without_main_icon(&of.card) else {
        return Ok(());
    };
    if let Place::Inside(path) = place
        && !listed::paths(&document).contains(&path)
    {
        attachment::detach(tx, of.id, &path).await?;
    }
    let card = Card::from_document(document);
    let card = card.map_err(|it| DbErr::Custom(it.to_string()))?;
    character::rewrite(tx, of.id, card).await.map(|_| ())
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
