//! Stores an uploaded picture as an attachment within its owner's quota.

use base::clock::Timestamp;
use base::ids::{AttachmentId, UserId};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ActiveModelTrait, DbErr};
use tavern::pictures::message_picture::MessagePicture;

use crate::accounts::user;
use crate::attachments::attachment;
use crate::attachments::attachment::{ActiveModel, Model};
use crate::characters::quota::{QuotaError, StorageQuota};
use crate::characters::{asset, quota};
use crate::db::connect::Db;

/// An encoded picture to store.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    pub picture: MessagePicture,
    pub file_name: Option<String>,
    pub alt: String,
}

/// Stores a picture that was not posted yet.
///
/// # Errors
/// Returns `Exceeded` when it does not fit into the quota, and `Db` when the database fails; nothing is
/// stored then.
pub async fn create(
    db: &Db,
    quota: StorageQuota,
    new: NewAttachment,
    now: Timestamp,
) -> Result<Model, QuotaError> {
    db.write(move |tx| {
        Box::pin(async move {
            user::lock_row(tx, quota.owner).await?;
            let bytes = i64::try_from(new.picture.full.len()).unwrap_or(i64::MAX);
            let asset_id = asset::store(tx, new.picture.full, now).await?;
            let thumbnail_asset_id = asset::store(tx, new.picture.thumbnail, now).await?;
            let row = ActiveModel {
                id: NotSet,
                owner_id: Set(quota.owner),
                message_id: Set(None),
                position: Set(0),
                asset_id: Set(asset_id),
                thumbnail_asset_id: Set(thumbnail_asset_id),
                file_name: Set(new.file_name),
                alt: Set(new.alt),
                width: Set(new.picture.width.into()),
                height: Set(new.picture.height.into()),
                media_type: Set(new.picture.media_type.to_owned()),
                bytes: Set(bytes),
                created_at: Set(now),
                hidden_at: Set(None),
            };
            let row = row.insert(tx).await?;
            quota::require_quota(tx, quota, 0).await?;
            Ok(row)
        })
    })
    .await
}

/// Sets the description of a picture that its owner has not posted yet. Returns the attachment, or `None` if
/// it was posted or deleted meanwhile.
///
/// # Errors
/// Returns the database error if a statement fails.
pub async fn describe_unposted(
    db: &Db,
    owner: UserId,
    id: AttachmentId,
    alt: String,
) -> Result<Option<Model>, DbErr> {
    db.write(move |tx| {
        Box::pin(async move {
            if !attachment::lock_unposted(tx, owner, &[id]).await? {
                return Ok(None);
            }
            attachment::set_alt(tx, id, alt).await?;
            attachment::find(tx, id).await
        })
    })
    .await
}
