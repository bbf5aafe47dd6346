//! Finds who receives the events of a memory: the subscribers of the space, or only the sockets of the people
//! who may see it.
//!
//! **Invariant:** an event about a memory reaches only people who can list the memory. A removed member
//! is no recipient.

use std::collections::HashMap;

use base::ids::{MembershipId, MemoryId, SpaceId, UserId};
use realtime::topic::Topic;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter};

use crate::memories::memory_audience;
use crate::spaces::membership;
use crate::spaces::membership::{MembershipKind, MembershipStatus};

/// The properties of a memory that decide who may see it.
#[derive(Clone, Copy, Debug)]
pub struct MemoryScope {
    pub id: MemoryId,
    pub owner: Option<MembershipId>,
    /// Whether only its audience may know it.
    pub has_audience: bool,
}

/// The owners and audiences of some memories of a space.
pub struct Recipients {
    space: SpaceId,
    members: HashMap<MembershipId, membership::Model>,
    audiences: HashMap<MemoryId, Vec<MembershipId>>,
}

impl Recipients {
    /// Loads the members who own these memories or belong to their audiences. Executes no statement if
    /// they belong to everyone.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load(
        db: &impl ConnectionTrait,
        space: SpaceId,
        memories: &[MemoryScope],
    ) -> Result<Self, DbErr> {
        let audiences = load_audiences(db, memories).await?;
        let owners = memories.iter().filter_map(|it| it.owner);
        let mut ids: Vec<MembershipId> = owners
            .chain(audiences.values().flatten().copied())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let members = match ids.is_empty() {
            true => Vec::new(),
            false => {
                let found = membership::Entity::find()
                    .filter(membership::Column::SpaceId.eq(space))
                    .filter(membership::Column::Id.is_in(ids));
                found.all(db).await?
            }
        };
        Ok(Self {
            space,
            members: members.into_iter().map(|it| (it.id, it)).collect(),
            audiences,
        })
    }

    /// Returns the topics to which the events of a memory are published: the space if everyone there may see
    /// it, otherwise each person who may see it.
    pub fn topics(&self, memory: MemoryScope) -> Vec<Topic> {
        let owner = match memory.owner {
            None => None,
            Some(id) => match self.members.get(&id) {
                Some(member) if member.kind == MembershipKind::Character => None,
                // Only this person may see it; no one, if the person is no longer a member.
                _ => Some(id),
            },
        };
        if !memory.has_audience && owner.is_none() {
            return vec![Topic::Space(self.space)];
        }
        let candidates: Vec<MembershipId> = match memory.has_audience {
            true => self.audiences.get(&memory.id).cloned().unwrap_or_default(),
            false => owner.into_iter().collect(),
        };
        let allowed = candidates
            .into_iter()
            .filter(|it| owner.is_none_or(|owner| owner == *it));
        allowed
            .filter_map(|it| self.active_user(it))
            .map(Topic::User)
            .collect()
    }

    fn active_user(&self, id: MembershipId) -> Option<UserId> {
        let member = self.members.get(&id)?;
        let is_active = member.status == MembershipStatus::Active;
        member.user_id.filter(|_| is_active)
    }
}

async fn load_audiences(
    db: &impl ConnectionTrait,
    memories: &[MemoryScope],
) -> Result<HashMap<MemoryId, Vec<MembershipId>>, DbErr> {
    let mut audiences: HashMap<MemoryId, Vec<MembershipId>> = HashMap::new();
    let with_audience = memories.iter().filter(|it| it.has_audience);
    let ids: Vec<MemoryId> = with_audience.map(|it| it.id).collect();
    if ids.is_empty() {
        return Ok(audiences);
    }
    let rows = memory_audience::Entity::find()
        .filter(memory_audience::Column::MemoryId.is_in(ids))
        .all(db)
        .await?;
    for row in rows {
        let members = audiences.entry(row.memory_id).or_default();
        members.push(row.space_membership_id);
    }
    Ok(audiences)
}
