//! Who is here: counts the sockets of each member on each conversation.
//!
//! Nothing of it is stored. Changes are gathered for a moment before they are told, for everyone
//! who comes or goes is told to everyone who is there.

use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::realtime::bus::signal::Signal;
use crate::realtime::elsewhere::Elsewhere;
use crate::realtime::elsewhere::TELL_EVERY;
use crate::realtime::event::Envelope;
use crate::realtime::event::Event;
use crate::realtime::hub::Hub;
use crate::realtime::topic::Topic;
use crate::shutdown::Shutdown;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

/// Between two tellings; the first change after a quiet time is told at once.
const GATHER: Duration = Duration::from_millis(250);

/// Whether a member who is here looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PresenceState)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// At least one socket is not away.
    Online,
    /// Connected, but every socket is away.
    Away,
}

/// A member who is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Present)]
pub struct Present {
    pub membership_id: MembershipId,
    pub state: State,
}

/// Who is here now, whole.
#[derive(Debug, Serialize, ToSchema)]
pub struct PresenceUpdated {
    pub conversation_id: ConversationId,
    pub members: Vec<Present>,
}

impl Event for PresenceUpdated {
    fn name(&self) -> &'static str {
        "presence_updated"
    }
}

/// Sockets by conversation and member. Pure: every change returns whether others can see it.
#[derive(Debug, Default)]
pub struct Board {
    /// A conversation is here as long as somebody is there.
    rooms: HashMap<ConversationId, BTreeMap<MembershipId, Sockets>>,
}

/// How many sockets of one member look, and how many do not.
#[derive(Clone, Copy, Debug, Default)]
struct Sockets {
    online: u32,
    away: u32,
}

impl Board {
    /// A socket of the member comes.
    pub fn enter(&mut self, at: ConversationId, who: MembershipId, away: bool) -> bool {
        self.change(at, who, |it| *it.place(away) += 1)
    }

    /// It goes; `away` is what it was.
    pub fn leave(&mut self, at: ConversationId, who: MembershipId, away: bool) -> bool {
        self.change(at, who, |it| it.take(away))
    }

    /// It looks away, or looks again; `away` is what it is now and was not before.
    pub fn turn(&mut self, at: ConversationId, who: MembershipId, away: bool) -> bool {
        self.change(at, who, |it| {
            it.take(!away);
            *it.place(away) += 1;
        })
    }

    /// Who is there, by membership.
    pub fn members(&self, at: ConversationId) -> Vec<Present> {
        let room = self.rooms.get(&at).into_iter().flatten();
        room.filter_map(|(who, sockets)| {
            let state = sockets.state()?;
            Some(Present {
                membership_id: *who,
                state,
            })
        })
        .collect()
    }

    fn change(
        &mut self,
        at: ConversationId,
        who: MembershipId,
        change: impl FnOnce(&mut Sockets),
    ) -> bool {
        let room = self.rooms.entry(at).or_default();
        let sockets = room.entry(who).or_default();
        let before = sockets.state();
        change(sockets);
        let after = sockets.state();
        if after.is_none() {
            room.remove(&who);
        }
        if room.is_empty() {
            self.rooms.remove(&at);
        }
        before != after
    }
}

impl Sockets {
    fn state(self) -> Option<State> {
        match self {
            Self { online: 1.., .. } => Some(State::Online),
            Self { away: 1.., .. } => Some(State::Away),
            _ => None,
        }
    }

    fn place(&mut self, away: bool) -> &mut u32 {
        match away {
            true => &mut self.away,
            false => &mut self.online,
        }
    }

    fn take(&mut self, away: bool) {
        let place = self.place(away);
        *place = place.saturating_sub(1);
    }
}

/// Who is here, on all nodes, and who tells its changes. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Presence {
    hub: Hub,
    /// Of this node.
    board: Arc<Mutex<Board>>,
    elsewhere: Arc<Mutex<Elsewhere>>,
    /// Conversations whose change is not told yet, and whether the others do not know it either.
    changed: Arc<Mutex<HashMap<ConversationId, bool>>>,
    bell: Arc<Notify>,
}

impl Presence {
    /// An empty board. Changes are told until the house closes.
    pub fn start(hub: Hub, shutdown: &Shutdown) -> Self {
        let presence = Self {
            hub,
            board: Arc::default(),
            elsewhere: Arc::default(),
            changed: Arc::default(),
            bell: Arc::default(),
        };
        let teller = presence.clone();
        let stopping = shutdown.stopping.clone();
        shutdown.spawn(async move {
            stopping.run_until_cancelled(teller.tell()).await;
        });
        presence
    }

    /// As [`Board::enter`].
    pub fn enter(&self, at: ConversationId, who: MembershipId, away: bool) {
        let is_seen = self.board.lock().enter(at, who, away);
        self.note(at, is_seen);
    }

    /// As [`Board::leave`].
    pub fn leave(&self, at: ConversationId, who: MembershipId, away: bool) {
        let is_seen = self.board.lock().leave(at, who, away);
        self.note(at, is_seen);
    }

    /// As [`Board::turn`].
    pub fn turn(&self, at: ConversationId, who: MembershipId, away: bool) {
        let is_seen = self.board.lock().turn(at, who, away);
        self.note(at, is_seen);
    }

    /// Who is there, on any node, by membership.
    pub fn members(&self, at: ConversationId) -> Vec<Present> {
        let mut all: BTreeMap<MembershipId, State> = BTreeMap::new();
        let elsewhere = self.elsewhere.lock();
        let here = self.board.lock().members(at);
        for it in here.into_iter().chain(elsewhere.people(at)) {
            let state = all.entry(it.membership_id).or_insert(it.state);
            if it.state == State::Online {
                *state = State::Online;
            }
        }
        let present = |(membership_id, state)| Present {
            membership_id,
            state,
        };
        all.into_iter().map(present).collect()
    }

    /// Tells the other nodes of everybody who is with this one.
    pub fn tell_all(&self) {
        let board = self.board.lock();
        let rooms = board.rooms.keys().map(|at| (*at, board.members(*at)));
        let rooms = rooms.collect();
        self.hub.bus().say(Signal::Presence { whole: true, rooms });
    }

    /// Another node told who is with it.
    pub fn hear(&self, node: Uuid, whole: bool, rooms: Vec<(ConversationId, Vec<Present>)>) {
        let now = Instant::now();
        let changed = self.elsewhere.lock().hear(node, whole, rooms, now);
        self.note_elsewhere(changed);
    }

    /// Another node has closed.
    pub fn gone(&self, node: Uuid) {
        let changed = self.elsewhere.lock().gone(node);
        self.note_elsewhere(changed);
    }

    /// Tells the others again and again, and forgets those that do not, for as long as it is polled.
    pub async fn keep_up(&self) {
        loop {
            tokio::time::sleep(TELL_EVERY).await;
            self.tell_all();
            let changed = self.elsewhere.lock().expire(Instant::now());
            self.note_elsewhere(changed);
        }
    }

    fn note(&self, at: ConversationId, is_seen: bool) {
        if is_seen {
            self.changed.lock().insert(at, true);
            self.bell.notify_one();
        }
    }

    fn note_elsewhere(&self, changed: Vec<ConversationId>) {
        if changed.is_empty() {
            return;
        }
        let mut all = self.changed.lock();
        for at in changed {
            all.entry(at).or_insert(false);
        }
        self.bell.notify_one();
    }

    async fn tell(self) {
        loop {
            self.bell.notified().await;
            let changed = std::mem::take(&mut *self.changed.lock());
            for (conversation_id, is_ours) in changed {
                if is_ours {
                    let people = self.board.lock().members(conversation_id);
                    let rooms = vec![(conversation_id, people)];
                    let whole = false;
                    self.hub.bus().say(Signal::Presence { whole, rooms });
                }
                let members = self.members(conversation_id);
                let event = PresenceUpdated {
                    conversation_id,
                    members,
                };
                let topic = Topic::Conversation(conversation_id);
                self.hub.publish_here(Envelope::plain(topic, &event));
            }
            tokio::time::sleep(GATHER).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Board;
    use super::Presence;
    use super::State;
    use crate::ids::ConversationId;
    use crate::ids::MembershipId;
    use crate::realtime::event::Cargo;
    use crate::realtime::hub::Hub;
    use crate::realtime::outbox::Next;
    use crate::realtime::outbox::Outbox;
    use crate::realtime::topic::Topic;
    use crate::shutdown::Shutdown;
    use proptest::prelude::*;

    const HERE: ConversationId = ConversationId(7);
    const ANN: MembershipId = MembershipId(1);
    const BOB: MembershipId = MembershipId(2);

    fn seen(board: &Board) -> Vec<(i64, State)> {
        let all = board.members(HERE).into_iter();
        all.map(|it| (it.membership_id.0, it.state)).collect()
    }

    #[test]
    fn a_member_is_online_while_one_socket_looks() {
        let mut board = Board::default();

        assert!(board.enter(HERE, ANN, false));
        assert!(!board.enter(HERE, ANN, true));
        assert_eq!(seen(&board), [(1, State::Online)]);
        assert!(board.turn(HERE, ANN, true));
        assert_eq!(seen(&board), [(1, State::Away)]);
        assert!(!board.leave(HERE, ANN, true));
        assert!(board.leave(HERE, ANN, true));
        assert_eq!(seen(&board), []);
    }

    #[test]
    fn conversations_are_counted_apart() {
        let mut board = Board::default();
        board.enter(HERE, BOB, false);
        board.enter(HERE, ANN, false);
        board.enter(ConversationId(8), ANN, true);

        assert_eq!(seen(&board), [(1, State::Online), (2, State::Online)]);
    }

    proptest! {
        #[test]
        fn who_has_left_with_every_socket_leaves_nothing_behind(
            sockets in proptest::collection::vec((0..3i64, 0..3i64, any::<bool>(), any::<bool>()), 0..30),
        ) {
            let mut board = Board::default();
            for (at, who, away, turns) in &sockets {
                board.enter(ConversationId(*at), MembershipId(*who), *away);
                if *turns {
                    board.turn(ConversationId(*at), MembershipId(*who), !away);
                }
            }
            for (at, who, away, turns) in &sockets {
                board.leave(ConversationId(*at), MembershipId(*who), away ^ turns);
            }
            prop_assert!(board.rooms.is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_one_moment_are_told_together() {
        let (hub, shutdown, outbox) = (Hub::new(), Shutdown::new(), Outbox::new());
        hub.listen(Topic::Conversation(HERE), &outbox);
        let presence = Presence::start(hub, &shutdown);
        presence.enter(HERE, ANN, false);
        presence.enter(HERE, BOB, true);
        presence.leave(HERE, BOB, true);

        let Next::Envelope(told) = outbox.next().await else {
            panic!("the change is told");
        };
        let Cargo::Frame { json, rev: None } = &told.cargo else {
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
