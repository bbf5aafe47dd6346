//! Whether those who listen on this node still may, found out by looking: for when nobody could
//! tell this node that a session ended, or a seat was lost, on another one.
//!
//! A few statements for all sockets together, every few seconds; sockets that are told to do so
//! then look for themselves.

use crate::accounts::api_key;
use crate::accounts::session;
use crate::accounts::socket_limit::CredentialId;
use crate::accounts::socket_limit::SocketLimit;
use crate::accounts::user;
use crate::clock::Clock;
use crate::db::connect::Db;
use crate::ids::ApiKeyId;
use crate::ids::SessionId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::realtime::event::Envelope;
use crate::realtime::event::SocketControl;
use crate::realtime::hub::Hub;
use crate::spaces::membership;
use sea_orm::ColumnTrait;
use sea_orm::DbErr;
use sea_orm::EntityTrait;
use sea_orm::QueryFilter;
use sea_orm::QueryOrder;
use sea_orm::QuerySelect;
use std::collections::HashMap;
use std::collections::HashSet;
use std::time::Duration;

/// Between two looks; below the ten seconds that somebody may go on listening who may not.
pub const EVERY: Duration = Duration::from_secs(5);

/// Ids in one statement.
const AT_ONCE: usize = 1000;

/// What a person may hear, as far as the database tells: a role, and seats.
type Rights = (String, Vec<(SpaceId, String, String)>);

/// Looks after the sockets of one node.
pub struct Watch {
    pub db: Db,
    pub hub: Hub,
    pub clock: Clock,
    /// What each person had at the last look.
    known: HashMap<UserId, Rights>,
    /// How often something of other nodes had been missed by then.
    n_missed: u64,
}

impl Watch {
    /// Nothing is known yet.
    pub fn new(db: Db, hub: Hub, clock: Clock) -> Self {
        Self {
            db,
            hub,
            clock,
            known: HashMap::new(),
            n_missed: 0,
        }
    }

    /// Looks once.
    ///
    /// # Errors
    /// When the database fails: then nobody is told anything.
    pub async fn look(&mut self, sockets: &SocketLimit) -> Result<(), DbErr> {
        let shown = sockets.credentials();
        let sessions = self.open_sessions(&shown).await?;
        let keys = self.open_keys(&shown).await?;
        for (it, user) in shown {
            let order = match it {
                CredentialId::Session(id) if !sessions.contains(&id) => {
                    SocketControl::SessionEnded(id)
                }
                CredentialId::Key(id) if !keys.contains(&id) => SocketControl::KeyRevoked(id),
                _ => continue,
            };
            self.hub.publish_local(Envelope::control(user, order));
        }
        self.look_at_rights().await
    }

    async fn open_sessions(
        &self,
        of: &[(CredentialId, UserId)],
    ) -> Result<HashSet<SessionId>, DbErr> {
        let ids: Vec<SessionId> = of.iter().filter_map(|(it, _)| it.session()).collect();
        let mut open = HashSet::new();
        for some in ids.chunks(AT_ONCE) {
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

    async fn open_keys(&self, of: &[(CredentialId, UserId)]) -> Result<HashSet<ApiKeyId>, DbErr> {
        let ids: Vec<ApiKeyId> = of.iter().filter_map(|(it, _)| it.key()).collect();
        let mut open = HashSet::new();
        for some in ids.chunks(AT_ONCE) {
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

    /// Whose rights are not those of the last look is to look again at what they hear. So is who
    /// is new here while other nodes are not heard, or not all of it: nobody would have told of a change since.
    async fn look_at_rights(&mut self) -> Result<(), DbErr> {
        let people = self.hub.subscribed_users();
        let mut found = HashMap::new();
        for some in people.chunks(AT_ONCE) {
            self.read_rights(some, &mut found).await?;
        }
        let n_missed = self.hub.bus().n_gaps();
        let is_deaf = !self.hub.bus().is_connected() || n_missed != self.n_missed;
        for (user, rights) in &found {
            let is_as_before = match self.known.get(user) {
                Some(known) => known == rights,
                None => !is_deaf,
            };
            if !is_as_before {
                let order = Envelope::control(*user, SocketControl::RoleLost);
                self.hub.publish_local(order);
            }
        }
        self.known = found;
        self.n_missed = n_missed;
        Ok(())
    }

    async fn read_rights(
        &self,
        of: &[UserId],
        found: &mut HashMap<UserId, Rights>,
    ) -> Result<(), DbErr> {
        let users: Vec<(UserId, String)> = user::Entity::find()
            .filter(user::Column::Id.is_in(of.iter().copied()))
            .select_only()
            .columns([user::Column::Id, user::Column::Role])
            .into_tuple()
            .all(self.db.reader())
            .await?;
        found.extend(users.into_iter().map(|(id, role)| (id, (role, Vec::new()))));
        let seats: Vec<(UserId, SpaceId, String, String)> = membership::Entity::find()
            .filter(membership::Column::UserId.is_in(of.iter().copied()))
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
        for (user, space, role, status) in seats {
            if let Some((_, all)) = found.get_mut(&user) {
                all.push((space, role, status));
            }
        }
        Ok(())
    }
}
