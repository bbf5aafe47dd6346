//! Defines `AccessReviewer`, which checks whether the sessions, API keys and memberships of this
//! node's sockets are still valid, because a revocation on another node may not have reached this
//! one. `cluster.rs` runs it every 5 seconds.
//!
//! A check runs a few statements for all sockets together. Affected sockets are then notified and
//! re-check their subscriptions.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use base::clock::Clock;
use base::ids::{ApiKeyId, SessionId, SpaceId, UserId};
use realtime::envelope::{Envelope, SocketControl};
use realtime::hub::Hub;
use sea_orm::{ColumnTrait, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::accounts::credential::Credential;
use crate::accounts::{api_key, session, user};
use crate::db::connect::Db;
use crate::rate_limit::socket_limit::SocketLimit;
use crate::spaces::membership;

/// Time between two reviews; below the ten seconds after which a socket without access must receive
/// nothing more.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of ids in one statement.
const BATCH_SIZE: usize = 1000;

/// The access of a user: the account's role, and space, role and status of each membership.
type AccessSnapshot = (String, Vec<(SpaceId, String, String)>);

/// Reviews the sockets of one node.
pub struct AccessReviewer {
    pub db: Db,
    pub hub: Hub,
    pub clock: Clock,
    /// The access of each user at the previous review.
    previous: HashMap<UserId, AccessSnapshot>,
    /// The gap count of the cluster bus at the previous review.
    n_gaps: u64,
}

impl AccessReviewer {
    /// Creates a reviewer without a previous review.
    pub fn new(db: Db, hub: Hub, clock: Clock) -> Self {
        Self {
            db,
            hub,
            clock,
            previous: HashMap::new(),
            n_gaps: 0,
        }
    }

    /// Runs one review.
    ///
    /// # Errors
    /// Returns the database error if a query fails; the remaining checks are then skipped.
    pub async fn review_once(&mut self, sockets: &SocketLimit) -> Result<(), DbErr> {
        let credentials = sockets.credentials();
        let sessions = self.list_valid_sessions(&credentials).await?;
        let keys = self.list_valid_keys(&credentials).await?;
        for (it, user) in credentials {
            let order = match it {
                Credential::Session(id) if !sessions.contains(&id) => {
                    SocketControl::SessionEnded(id)
                }
                Credential::ApiKey(id) if !keys.contains(&id) => SocketControl::KeyRevoked(id),
                _ => continue,
            };
            self.hub.publish_local(Envelope::control(user, order));
        }
        self.review_access().await
    }

    async fn list_valid_sessions(
        &self,
        credentials: &[(Credential, UserId)],
    ) -> Result<HashSet<SessionId>, DbErr> {
        let ids: Vec<SessionId> = credentials
            .iter()
            .filter_map(|(it, _)| it.session())
            .collect();
        let mut open = HashSet::new();
        for some in ids.chunks(BATCH_SIZE) {
            let found: Vec<SessionId> = session::Entity::find()
                .inner_join(user::Entity)
                .filter(session::Column::Id.is_in(some.iter().copied()))
                .filter(session::Column::ExpiresAt.gt(self.clock.now()))
                .filter(user::Column::Status.eq(user::UserStatus::Active))
                .select_only()
                .column(session::Column::Id)
                .into_tuple()
                .all(self.db.reader())
                .await?;
            open.extend(found);
        }
        Ok(open)
    }

    async fn list_valid_keys(
        &self,
        credentials: &[(Credential, UserId)],
    ) -> Result<HashSet<ApiKeyId>, DbErr> {
        let ids: Vec<ApiKeyId> = credentials
            .iter()
            .filter_map(|(it, _)| it.api_key())
            .collect();
        let mut open = HashSet::new();
        for some in ids.chunks(BATCH_SIZE) {
            let found: Vec<ApiKeyId> = api_key::Entity::find()
                .inner_join(user::Entity)
                .filter(api_key::Column::Id.is_in(some.iter().copied()))
                .filter(api_key::Column::RevokedAt.is_null())
                .filter(user::Column::Status.eq(user::UserStatus::Active))
                .select_only()
                .column(api_key::Column::Id)
                .into_tuple()
                .all(self.db.reader())
                .await?;
            open.extend(found);
        }
        Ok(open)
    }

    /// Makes the sockets of a user re-check their subscriptions if the user's access differs from
    /// the previous review. A user without a previous review is included if the cluster bus is
    /// disconnected or missed messages, because a change since then may have been missed.
    async fn review_access(&mut self) -> Result<(), DbErr> {
        let user_ids = self.hub.subscribed_users();
        let mut found = HashMap::new();
        for some in user_ids.chunks(BATCH_SIZE) {
            self.load_access(some, &mut found).await?;
        }
        let n_missed = self.hub.bus().n_gaps();
        let may_have_missed_events = !self.hub.bus().is_connected() || n_missed != self.n_gaps;
        for (user, rights) in &found {
            let is_unchanged = match self.previous.get(user) {
                Some(known) => known == rights,
                None => !may_have_missed_events,
            };
            if !is_unchanged {
                let order = Envelope::control(*user, SocketControl::RoleLost);
                self.hub.publish_local(order);
            }
        }
        self.previous = found;
        self.n_gaps = n_missed;
        Ok(())
    }

    async fn load_access(
        &self,
        user_ids: &[UserId],
        found: &mut HashMap<UserId, AccessSnapshot>,
    ) -> Result<(), DbErr> {
        let users: Vec<(UserId, String)> = user::Entity::find()
            .filter(user::Column::Id.is_in(user_ids.iter().copied()))
            .select_only()
            .columns([user::Column::Id, user::Column::Role])
            .into_tuple()
            .all(self.db.reader())
            .await?;
        found.extend(users.into_iter().map(|(id, role)| (id, (role, Vec::new()))));
        let memberships: Vec<(UserId, SpaceId, String, String)> = membership::Entity::find()
            .filter(membership::Column::UserId.is_in(user_ids.iter().copied()))
            .order_by_asc(membership::Column::Id)
            .select_only()
            .columns([
                membership::Column::UserId,
                membership::Column::SpaceId,
                membership::Column::Role,
                membership::Column::Status,
            ])
            .into_tuple()
            .all(self.db.reader())
            .await?;
        for (user, space, role, status) in memberships {
            if let Some((_, all)) = found.get_mut(&user) {
                all.push((space, role, status));
            }
        }
        Ok(())
    }
}
