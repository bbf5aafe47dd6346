//! Presence: counts the sockets of each member in each conversation.
//!
//! Nothing is stored. Changes are collected for a short time before they are published, because
//! each arrival and departure is sent to all present members.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base::ids::{ConversationId, MembershipId};
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::cluster::signal::ClusterSignal;
use crate::event::{Envelope, Event};
use crate::hub::Hub;
use crate::remote_presence::{REPORT_INTERVAL, RemotePresence};
use crate::topic::Topic;

/// Between two updates; the first change after a quiet time is published immediately.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(250);

/// Whether a present member is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresenceState)]
#[serde(rename_all = "snake_case")]
pub enum PresenceState {
    /// At least one socket is not away.
    Online,
    /// Connected, but every socket is away.
    Away,
}

/// A member who is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Present)]
pub struct PresentMember {
    pub membership_id: MembershipId,
    pub state: PresenceState,
}

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

/// Sockets by conversation and member. Pure: every change returns whether others can see it.
#[derive(Debug, Default)]
pub struct PresenceTable {
    /// Contains a conversation while a member is present.
    conversations: HashMap<ConversationId, BTreeMap<MembershipId, SocketCount>>,
}

/// How many sockets of one member are active, and how many are away.
#[derive(Clone, Copy, Debug, Default)]
struct SocketCount {
    online: u32,
    away: u32,
}

impl PresenceTable {
    /// Adds a socket of the member.
    pub fn join(&mut self, at: ConversationId, membership: MembershipId, away: bool) -> bool {
        self.update(at, membership, |it| *it.counter_mut(away) += 1)
    }

    /// Removes a socket; `away` is its last state.
    pub fn leave(&mut self, at: ConversationId, membership: MembershipId, away: bool) -> bool {
        self.update(at, membership, |it| it.decrement(away))
    }

    /// Changes a socket's state; `away` is the new state, which differs from the old one.
    pub fn set_away(&mut self, at: ConversationId, membership: MembershipId, away: bool) -> bool {
        self.update(at, membership, |it| {
            it.decrement(!away);
            *it.counter_mut(away) += 1;
        })
    }

    /// Returns the present members, by membership.
    pub fn members(&self, at: ConversationId) -> Vec<PresentMember> {
        let room = self.conversations.get(&at).into_iter().flatten();
        room.filter_map(|(who, sockets)| {
            let state = sockets.state()?;
            Some(PresentMember {
                membership_id: *who,
                state,
            })
        })
        .collect()
    }

    fn update(
        &mut self,
        at: ConversationId,
        membership: MembershipId,
        change: impl FnOnce(&mut SocketCount),
    ) -> bool {
        let room = self.conversations.entry(at).or_default();
        let sockets = room.entry(membership).or_default();
        let before = sockets.state();
        change(sockets);
        let after = sockets.state();
        if after.is_none() {
            room.remove(&membership);
        }
        if room.is_empty() {
            self.conversations.remove(&at);
        }
        before != after
    }
}

impl SocketCount {
    fn state(self) -> Option<PresenceState> {
        match self {
            Self { online: 1.., .. } => Some(PresenceState::Online),
            Self { away: 1.., .. } => Some(PresenceState::Away),
            _ => None,
        }
    }

    fn counter_mut(&mut self, away: bool) -> &mut u32 {
        match away {
            true => &mut self.away,
            false => &mut self.online,
        }
    }

    fn decrement(&mut self, away: bool) {
        let place = self.counter_mut(away);
        *place = place.saturating_sub(1);
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
        let teller = presence.clone();
        let stopping = shutdown.stopping.clone();
        shutdown.spawn(async move {
            stopping.run_until_cancelled(teller.publish_changes()).await;
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
        let here = self.table.lock().members(at);
        for it in here.into_iter().chain(remote.users(at)) {
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
        let board = self.table.lock();
        let rooms = board
            .conversations
            .keys()
            .map(|at| (*at, board.members(*at)));
        let rooms = rooms.collect();
        self.hub
            .bus()
            .publish(ClusterSignal::Presence { whole: true, rooms });
    }

    /// Applies the presence that another node reported.
    pub fn apply_remote(
        &self,
        node: Uuid,
        whole: bool,
        rooms: Vec<(ConversationId, Vec<PresentMember>)>,
    ) {
        let now = Instant::now();
        let changed = self.remote.lock().apply(node, whole, rooms, now);
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
                    let rooms = vec![(conversation_id, own_members)];
                    let whole = false;
                    self.hub
                        .bus()
                        .publish(ClusterSignal::Presence { whole, rooms });
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
    use proptest::prelude::*;

    use super::{Presence, PresenceState, PresenceTable};
    use crate::event::Payload;
    use crate::hub::Hub;
    use crate::outbox::{NextItem, Outbox};
    use crate::topic::Topic;

    const HERE: ConversationId = ConversationId(7);
    const ANN: MembershipId = MembershipId(1);
    const BOB: MembershipId = MembershipId(2);

    fn members_of(board: &PresenceTable) -> Vec<(i64, PresenceState)> {
        let all = board.members(HERE).into_iter();
        all.map(|it| (it.membership_id.0, it.state)).collect()
    }

    #[test]
    fn a_member_is_online_while_one_socket_is() {
        let mut board = PresenceTable::default();

        assert!(board.join(HERE, ANN, false));
        assert!(!board.join(HERE, ANN, true));
        assert_eq!(members_of(&board), [(1, PresenceState::Online)]);
        assert!(board.set_away(HERE, ANN, true));
        assert_eq!(members_of(&board), [(1, PresenceState::Away)]);
        assert!(!board.leave(HERE, ANN, true));
        assert!(board.leave(HERE, ANN, true));
        assert_eq!(members_of(&board), []);
    }

    #[test]
    fn conversations_are_counted_separately() {
        let mut board = PresenceTable::default();
        board.join(HERE, BOB, false);
        board.join(HERE, ANN, false);
        board.join(ConversationId(8), ANN, true);

        assert_eq!(
            members_of(&board),
            [(1, PresenceState::Online), (2, PresenceState::Online)]
        );
    }

    proptest! {
        #[test]
        fn who_has_left_with_every_socket_leaves_nothing_behind(
            sockets in proptest::collection::vec((0..3i64, 0..3i64, any::<bool>(), any::<bool>()), 0..30),
        ) {
            let mut board = PresenceTable::default();
            for (at, who, away, turns) in &sockets {
                board.join(ConversationId(*at), MembershipId(*who), *away);
                if *turns {
                    board.set_away(ConversationId(*at), MembershipId(*who), !away);
                }
            }
            for (at, who, away, turns) in &sockets {
                board.leave(ConversationId(*at), MembershipId(*who), away ^ turns);
            }
            prop_assert!(board.conversations.is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_one_moment_are_published_together() {
        let (hub, shutdown, outbox) = (Hub::new(), Shutdown::new(), Outbox::new());
        hub.subscribe(Topic::Conversation(HERE), &outbox);
        let presence = Presence::start(hub, &shutdown);
        presence.join(HERE, ANN, false);
        presence.join(HERE, BOB, true);
        presence.leave(HERE, BOB, true);

        let NextItem::Envelope(told) = outbox.next().await else {
            panic!("the change is published");
        };
        let Payload::Frame { json, rev: None } = &told.payload else {
            panic!("presence is not durable");
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
