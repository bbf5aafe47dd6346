//! Checks that new text fits into the storage quota of the space's owner
//! (`LIMIT_STORED_MIB_PER_USER`), which also counts the owner's cards.
//!
//! Each conversation counts its text in its own row, under its own lock, so that conversations do
//! not wait for each other. The text counts for the owner of the space.

use std::time::Duration;

use base::ids::{ConversationId, UserId};
use moka::sync::Cache;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QuerySelect,
    RelationTrait,
};

use crate::characters::quota;
use crate::characters::quota::{QuotaError, StorageQuota};
use crate::conversations::conversation;
use crate::spaces::space;

/// An owner with this much free quota is not checked again for [`SKIP_CHECK_FOR`]; much less can be
/// posted in that time.
const SKIP_CHECK_FREE_BYTES: u64 = 16 * 1024 * 1024;
const SKIP_CHECK_FOR: Duration = Duration::from_secs(5);
/// Maximum number of cached conversations.
const MAX_CACHED: u64 = 10_000;

/// The limit, and a cache of the conversations whose owners are far below it. Cheap to clone;
/// clones share the cache.
#[derive(Clone)]
pub struct TextQuota {
    limit: u64,
    far_below_limit: Cache<ConversationId, ()>,
}

impl TextQuota {
    /// Creates a quota of `limit` bytes; 0 is unlimited.
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

    /// Requires that a text to be posted in a conversation fits into the quota.
    ///
    /// # Errors
    /// Returns [`QuotaError::Exceeded`] if it does not fit, [`QuotaError::Db`] if a query fails.
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

    /// Requires that this many bytes fit into the quota of a space's owner.
    ///
    /// # Errors
    /// Returns [`QuotaError::Exceeded`] if they do not fit, [`QuotaError::Db`] if a query fails.
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

/// Adds to the size of the texts stored in a conversation.
pub async fn add_text_bytes(
    tx: &impl ConnectionTrait,
    id: ConversationId,
    bytes: i64,
) -> Result<(), DbErr> {
    conversation::Entity::update_many()
        .col_expr(
            conversation::Column::TextBytes,
            Expr::col(conversation::Column::TextBytes).add(bytes),
        )
        .filter(conversation::Column::Id.eq(id))
        .exec(tx)
        .await
        .map(drop)
}
