//! How much text a person's spaces may store beside their cards (`LIMIT_STORED_MIB_PER_USER`).
//!
//! The text of a conversation is counted in its own row, under its own lock, so that no two
//! conversations wait for each other to count. It counts for the owner of the space.

use std::time::Duration;

use moka::sync::Cache;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect,
    RelationTrait,
};

use crate::characters::quota;
use crate::characters::quota::{QuotaError, StorageQuota};
use crate::conversations::conversation;
use crate::ids::{ConversationId, UserId};
use crate::spaces::space;

/// An owner with so much room is not measured again for [`ROOMY_FOR`]: far more than can be posted
/// in that time.
const SKIP_CHECK_FREE_BYTES: u64 = 16 * 1024 * 1024;
const SKIP_CHECK_FOR: Duration = Duration::from_secs(5);
/// The most conversations that are remembered.
const MAX_CACHED: u64 = 10_000;

/// The limit, and the conversations whose owners are known to be far from it. Cloning gives another
/// handle on the same one.
#[derive(Clone)]
pub struct TextQuota {
    limit: u64,
    far_below_limit: Cache<ConversationId, ()>,
}

impl TextQuota {
    /// A limit in bytes; 0 is none.
    pub fn new(limit: u64) -> Self {
        let cache = Cache::builder();
        Self {
            limit,
            far_below_limit: cache
                .max_capacity(MAX_CACHED)
                .time_to_live(SKIP_CHECK_FOR)
                .build(),
        }
    }

    /// Whether a text fits that is to be posted in a conversation.
    ///
    /// # Errors
    /// [`RoomError::Full`] when it does not.
    pub async fn require_for_post(
        &self,
        db: &impl ConnectionTrait,
        id: ConversationId,
        text: &str,
    ) -> Result<(), QuotaError> {
        if self.limit == 0 || self.far_below_limit.contains_key(&id) {
            return Ok(());
        }
        let Some(owner) = find_owner(db, id).await? else {
            return Ok(());
        };
        let quota = self.storage_quota(owner);
        let more = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if quota::require_quota(db, quota, SKIP_CHECK_FREE_BYTES)
            .await
            .is_ok()
        {
            self.far_below_limit.insert(id, ());
            return Ok(());
        }
        quota::require_quota(db, quota, more).await
    }

    /// Whether so many bytes fit for this owner of a space.
    ///
    /// # Errors
    /// [`RoomError::Full`] when they do not.
    pub async fn require(
        &self,
        db: &impl ConnectionTrait,
        owner: Option<UserId>,
        bytes: i64,
    ) -> Result<(), QuotaError> {
        match owner {
            Some(owner) => {
                let more = u64::try_from(bytes).unwrap_or(0);
                quota::require_quota(db, self.storage_quota(owner), more).await
            }
            None => Ok(()),
        }
    }

    fn storage_quota(&self, owner: UserId) -> StorageQuota {
        StorageQuota {
            owner,
            limit: self.limit,
        }
    }
}

async fn find_owner(
    db: &impl ConnectionTrait,
    id: ConversationId,
) -> Result<Option<UserId>, DbErr> {
    let owner: Option<Option<UserId>> = conversation::Entity::find()
        .join(JoinType::InnerJoin, conversation::Relation::Space.def())
        .filter(conversation::Column::Id.eq(id))
        .select_only()
        .column(space::Column::OwnerId)
        .into_tuple()
        .one(db)
        .await?;
    Ok(owner.flatten())
}
