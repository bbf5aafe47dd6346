//! Presence: collects which members are present in each conversation, on this node and on others,
//! and publishes each change.
//!
//! Nothing is stored. Changes are collected for a short time before they are published, because
//! each arrival and departure is sent to all present members.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base::ids::{ConversationId, MembershipId};
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::cluster::signal::ClusterSignal;
use crate::envelope::{Envelope, Event};
use crate::hub::Hub;
use crate::presence_table::{PresenceState, PresenceTable, PresentMember};
use crate::remote_presence::{REPORT_INTERVAL, RemotePresence};
use crate::topic::Topic;

/// Between two updates; the first change after a quiet time is published immediately.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(250);

/// The complete list of present members.
#[derive(Debug, Serialize, ToSchema)]
pub struct PresenceUpdated {
    pub conversation_id: ConversationId,
    pub members: Vec<PresentMember>,
}

impl Event for PresenceUpdated {
    fn name(&self) -> &'static str {
        "presence_updated"
    }
}

/// The presence on all nodes; publishes its changes. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Presence {
    hub: Hub,
    /// Of this node.
    table: Arc<Mutex<PresenceTable>>,
    remote: Arc<Mutex<RemotePresence>>,
    /// Conversations with unpublished changes, and whether other nodes must be notified too.
    changed: Arc<Mutex<HashMap<ConversationId, bool>>>,
    wakeup: Arc<Notify>,
}

impl Presence {
    /// Starts with no one present. Publishes changes until shutdown.
    pub fn start(hub: Hub, shutdown: &Shutdown) -> Self {
        let presence = Self {
            hub,
            table: Arc::default(),
            remote: Arc::default(),
            changed: Arc::default(),
            wakeup: Arc::default(),
        };
        let publisher = presence.clone();
        let stopping = shutdown.stopping.clone();
        shutdown.spawn(async move {
            stopping
                .run_until_cancelled(publisher.publish_changes())
                .await;
        });
        presence
    }

    /// As [`PresenceTable::join`].
    pub fn join(&self, at: ConversationId, membership: MembershipId, away: bool) {
        let is_seen = self.table.lock().join(at, membership, away);
        self.mark_changed(at, is_seen);
    }

    /// As [`PresenceTable::leave`].
    pub fn leave(&self, at: ConversationId, membership: MembershipId, away: bool) {
        let is_seen = self.table.lock().leave(at, membership, away);
        self.mark_changed(at, is_seen);
    }

    /// As [`PresenceTable::set_away`].
    pub fn set_away(&self, at: ConversationId, membership: MembershipId, away: bool) {
        let is_seen = self.table.lock().set_away(at, membership, away);
        self.mark_changed(at, is_seen);
    }

    /// Returns the present members, on all nodes, by membership.
    pub fn members(&self, at: ConversationId) -> Vec<PresentMember> {
        let mut all: BTreeMap<MembershipId, PresenceState> = BTreeMap::new();
        let remote = self.remote.lock();
        let local = self.table.lock().members(at);
        for it in local.into_iter().chain(remote.users(at)) {
            let state = all.entry(it.membership_id).or_insert(it.state);
            if it.state == PresenceState::Online {
                *state = PresenceState::Online;
            }
        }
        let present = |(membership_id, state)| PresentMember {
            membership_id,
            state,
        };
        all.into_iter().map(present).collect()
    }

    /// Sends the complete presence of this node to the other nodes.
    pub fn broadcast(&self) {
        let table = self.table.lock();
        self.hub.bus().publish(ClusterSignal::Presence {
            is_complete: true,
            conversations: table.conversations().collect(),
        });
    }

    /// Applies the presence that another node reported.
    pub fn apply_remote(
        &self,
        node: Uuid,
        is_complete: bool,
        conversations: Vec<(ConversationId, Vec<PresentMember>)>,
    ) {
        let now = Instant::now();
        let changed = self
            .remote
            .lock()
            .apply(node, is_complete, conversations, now);
        self.mark_remote_changes(changed);
    }

    /// Removes a node that has closed.
    pub fn remove_node(&self, node: Uuid) {
        let changed = self.remote.lock().remove_node(node);
        self.mark_remote_changes(changed);
    }

    /// Reports to the other nodes periodically and removes silent ones, while it is polled.
    pub async fn run(&self) {
        loop {
            tokio::time::sleep(REPORT_INTERVAL).await;
            self.broadcast();
            let changed = self.remote.lock().expire(Instant::now());
            self.mark_remote_changes(changed);
        }
    }

    fn mark_changed(&self, at: ConversationId, is_seen: bool) {
        if is_seen {
            self.changed.lock().insert(at, true);
            self.wakeup.notify_one();
        }
    }

    fn mark_remote_changes(&self, changed: Vec<ConversationId>) {
        if changed.is_empty() {
            return;
        }
        let mut all = self.changed.lock();
        for at in changed {
            all.entry(at).or_insert(false);
        }
        self.wakeup.notify_one();
    }

    async fn publish_changes(self) {
        loop {
            self.wakeup.notified().await;
            let changed = std::mem::take(&mut *self.changed.lock());
            for (conversation_id, is_ours) in changed {
                if is_ours {
                    let own_members = self.table.lock().members(conversation_id);
                    self.hub.bus().publish(ClusterSignal::Presence {
                        is_complete: false,
                        conversations: vec![(conversation_id, own_members)],
                    });
                }
                let members = self.members(conversation_id);
                let event = PresenceUpdated {
                    conversation_id,
                    members,
                };
                let topic = Topic::Conversation(conversation_id);
                self.hub.publish_local(Envelope::plain(topic, &event));
            }
            tokio::time::sleep(PUBLISH_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ids::{ConversationId, MembershipId};
    use base::shutdown::Shutdown;

    use super::Presence;
    use crate::envelope::Payload;
    use crate::hub::Hub;
    use crate::outbox::{NextItem, Outbox};
    use crate::topic::Topic;

    const HERE: ConversationId = ConversationId(7);
    const ANN: MembershipId = MembershipId(1);
    const BOB: MembershipId = MembershipId(2);

    #[tokio::test(start_paused = true)]
    async fn simultaneous_changes_are_published_together() {
        let (hub, shutdown, outbox) = (Hub::new(), Shutdown::new(), Outbox::new());
        hub.subscribe(Topic::Conversation(HERE), &outbox);
        let presence = Presence::start(hub, &shutdown);
        presence.join(HERE, ANN, false);
        presence.join(HERE, BOB, true);
        presence.leave(HERE, BOB, true);

        let NextItem::Envelope(envelope) = outbox.next().await else {
            panic!("the change was not published");
        };
        let Payload::Frame { json, rev: None } = &envelope.payload else {
            panic!("the event is not a frame without a revision");
        };
        assert_eq!(
            &**json,
            r#"{"type":"presence_updated","conversation_id":7,"members":[{"membership_id":1,"state":"online"}]}"#
        );
        shutdown.stopping.cancel();
        shutdown.wait().await;
        assert!(outbox.try_next().is_none());
    }
}
