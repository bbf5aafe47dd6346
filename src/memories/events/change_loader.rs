//! Loads changes as envelopes to publish: memories that changed at or after a version of their space,
//! summaries that became out of date, and the state of the background work.
//!
//! Everything is read after the commit, so each event contains the newest state, and an event about an
//! earlier change never overwrites a later state.

use base::clock::{Clock, Timestamp};
use base::ids::{ConversationId, MembershipId, MemoryId, SpaceId};
use realtime::envelope::Envelope;
use realtime::topic::Topic;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter,
    QueryOrder, QuerySelect,
};

use crate::db::connect::Db;
use crate::memories::embedding::model_choice::EmbeddingChoice;
use crate::memories::events::memory_events::{
    MemoriesForgotten, MemoryDeleted, MemoryStateChanged, MemoryUpdated, SummaryUpdated,
};
use crate::memories::events::recipients::{MemoryScope, Recipients};
use crate::memories::memory;
use crate::memories::memory::Column;
use crate::memories::summaries::summary;
use crate::memories::summaries::summary::SummaryStatus;
use crate::memories::tasks::task_queue;
use crate::providers::provider_factory::ProviderFactory;
use crate::spaces::space;

/// The maximum number of memories that are announced one by one. After a larger change, pages read
/// their lists again.
const MAX_SINGLE_EVENTS: i64 = 20;
/// The maximum number of summaries that one change makes out of date and that are announced: the running
/// summary and its parts.
const MAX_SUMMARIES: u64 = 20;

/// Loads events. Cheap to clone.
#[derive(Clone)]
pub struct ChangeLoader {
    pub db: Db,
    pub clock: Clock,
    pub models: ProviderFactory,
}

/// Changed memories of the same owner and audience.
#[derive(Debug, FromQueryResult)]
struct ChangedGroup {
    space_membership_id: Option<MembershipId>,
    audience_hash: String,
    deleted_at: Option<Timestamp>,
    /// The id of one of them.
    id: MemoryId,
    n: i64,
}

impl ChangedGroup {
    fn scope(&self) -> MemoryScope {
        MemoryScope {
            id: self.id,
            owner: self.space_membership_id,
            has_audience: !self.audience_hash.is_empty(),
        }
    }
}

impl ChangeLoader {
    /// Returns the events of the memories that changed at or after this version of the space's
    /// memories. A change of more than `MAX_SINGLE_EVENTS` memories is one event for each group of
    /// recipients.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load_memories(
        &self,
        space: SpaceId,
        since_version: i64,
    ) -> Result<Vec<Envelope>, DbErr> {
        let db = self.db.reader();
        let groups = list_groups(db, space, since_version).await?;
        let n_changed: i64 = groups.iter().map(|it| it.n).sum();
        match n_changed <= MAX_SINGLE_EVENTS {
            true => load_single(db, space, since_version).await,
            false => self.load_bulk(space, &groups).await,
        }
    }

    async fn load_bulk(
        &self,
        space: SpaceId,
        groups: &[ChangedGroup],
    ) -> Result<Vec<Envelope>, DbErr> {
        let scopes: Vec<MemoryScope> = groups.iter().map(ChangedGroup::scope).collect();
        let recipients = Recipients::load(self.db.reader(), space, &scopes).await?;
        let mut forgotten: Vec<(Topic, u64)> = Vec::new();
        let mut reloading: Vec<Topic> = Vec::new();
        for group in groups {
            for topic in recipients.topics(group.scope()) {
                if group.deleted_at.is_none() {
                    reloading.push(topic);
                    continue;
                }
                let n = group.n.unsigned_abs();
                match forgotten.iter_mut().find(|(it, _)| *it == topic) {
                    Some((_, sum)) => *sum += n,
                    None => forgotten.push((topic, n)),
                }
            }
        }
        let mut envelopes: Vec<Envelope> = forgotten
            .into_iter()
            .map(|(topic, count)| forgotten_event(topic, space, count))
            .collect();
        let mut is_known = Vec::new();
        reloading.retain(|it| {
            let is_new = !is_known.contains(it);
            is_known.push(*it);
            is_new
        });
        if let Some(state) = self.load_state_event(space).await? {
            let event = MemoryStateChanged {
                reload: true,
                ..state
            };
            let all = reloading.into_iter();
            envelopes.extend(all.map(|topic| Envelope::plain(topic, &event)));
        }
        Ok(envelopes)
    }

    /// Returns the event of the state of a space; none if the space is being deleted.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load_state(&self, space: SpaceId) -> Result<Vec<Envelope>, DbErr> {
        let state = self.load_state_event(space).await?;
        let topic = Topic::Space(space);
        Ok(state.iter().map(|it| Envelope::plain(topic, it)).collect())
    }

    async fn load_state_event(&self, id: SpaceId) -> Result<Option<MemoryStateChanged>, DbErr> {
        let db = self.db.reader();
        let Some(space) = space::find_visible(db, id).await? else {
            return Ok(None);
        };
        let tasks = task_queue::count_for_space(db, id).await?;
        let choice = EmbeddingChoice::load(db, &space.settings).await?;
        let client = choice.as_ref().and_then(|it| it.known_client(&self.models));
        let open_for = client.and_then(|it| it.breaker_open_for());
        let now = self.clock.now();
        let breaker_until = open_for.map(|it| {
            let left = i64::try_from(it.as_millis()).unwrap_or(i64::MAX);
            Timestamp(now.0.saturating_add(left))
        });
        let is_paused = choice.is_some_and(|it| it.is_paused());
        Ok(Some(MemoryStateChanged {
            space_id: id,
            degraded: breaker_until.is_some() || is_paused,
            breaker_until,
            pending: tasks.queued,
            failed: tasks.failed,
            reload: false,
        }))
    }

    /// Returns the events of the summaries in use that cover one of these messages and are out of date.
    ///
    /// # Errors
    /// Returns an error when the database fails.
    pub async fn load_outdated_summaries(
        &self,
        conversation: ConversationId,
        (from_seq, to_seq): (i64, i64),
    ) -> Result<Vec<Envelope>, DbErr> {
        let outdated = summary::Entity::find()
            .filter(summary::Column::ConversationId.eq(conversation))
            .filter(summary::Column::Status.eq(SummaryStatus::Stale))
            .filter(summary::Column::FromSeq.lte(to_seq))
            .filter(summary::Column::ToSeq.gte(from_seq))
            .limit(MAX_SUMMARIES)
            .all(self.db.reader())
            .await?;
        Ok(outdated.iter().map(summary_event).collect())
    }
}

/// Returns the event of a summary, for subscribers of its conversation.
pub fn summary_event(summary: &summary::Model) -> Envelope {
    let conversation_id = summary.conversation_id;
    let event = SummaryUpdated {
        conversation_id,
        summary: summary.view(),
    };
    Envelope::plain(Topic::Conversation(conversation_id), &event)
}

/// Returns the event of memories that were forgotten.
pub fn forgotten_event(topic: Topic, space_id: SpaceId, count: u64) -> Envelope {
    Envelope::plain(topic, &MemoriesForgotten { space_id, count })
}

async fn list_groups(
    db: &impl ConnectionTrait,
    space: SpaceId,
    since_version: i64,
) -> Result<Vec<ChangedGroup>, DbErr> {
    memory::Entity::find()
        .filter(is_changed(space, since_version))
        .select_only()
        .columns([
            Column::SpaceMembershipId,
            Column::AudienceHash,
            Column::DeletedAt,
        ])
        .column_as(Column::Id.min(), "id")
        .column_as(Column::Id.count(), "n")
        .group_by(Column::SpaceMembershipId)
        .group_by(Column::AudienceHash)
        .group_by(Column::DeletedAt)
        .into_model()
        .all(db)
        .await
}

fn is_changed(space: SpaceId, since_version: i64) -> Condition {
    Condition::all()
        .add(Column::SpaceId.eq(space))
        .add(Column::SpaceVersion.gte(since_version))
}

async fn load_single(
    db: &impl ConnectionTrait,
    space: SpaceId,
    since_version: i64,
) -> Result<Vec<Envelope>, DbErr> {
    let changed = memory::Entity::find()
        .filter(is_changed(space, since_version))
        // More memories may have changed since the count; they have announcements of their own.
        .order_by_asc(Column::SpaceVersion)
        .order_by_asc(Column::Id)
        .limit(MAX_SINGLE_EVENTS.unsigned_abs())
        .all(db)
        .await?;
    let scope_of = |it: &memory::Model| MemoryScope {
        id: it.id,
        owner: it.space_membership_id,
        has_audience: !it.audience_hash.is_empty(),
    };
    let scopes: Vec<MemoryScope> = changed.iter().map(scope_of).collect();
    let recipients = Recipients::load(db, space, &scopes).await?;
    let stored = changed.iter().filter(|it| it.deleted_at.is_none());
    let stored: Vec<MemoryId> = stored.map(|it| it.id).collect();
    // The memories of a conversation that is being deleted are left out.
    let visible: Vec<MemoryId> = match stored.is_empty() {
        true => Vec::new(),
        false => {
            let found = memory::list_in_space(db, space, stored).await?;
            found.into_iter().map(|it| it.id).collect()
        }
    };
    let mut envelopes = Vec::new();
    for row in &changed {
        for topic in recipients.topics(scope_of(row)) {
            if row.deleted_at.is_some() {
                let event = MemoryDeleted {
                    space_id: space,
                    memory_id: row.id,
                };
                envelopes.push(Envelope::plain(topic, &event));
            } else if visible.contains(&row.id) {
                let event = MemoryUpdated {
                    space_id: space,
                    memory: row.view(),
                };
                envelopes.push(Envelope::plain(topic, &event));
            }
        }
    }
    Ok(envelopes)
}
