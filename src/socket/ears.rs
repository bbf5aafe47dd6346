//! What one socket hears, and as whom it is there.
//!
//! **Invariant:** what was begun for a socket ends with it, however it ends: its topics, its
//! presence, its typing. That is why this has a `Drop`.

use crate::app::App;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::SpaceId;
use crate::ids::UserId;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use crate::realtime::typing::Hands;
use crate::socket::subscription::Filter;
use actix_web::web::Data;
use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

/// The subscriptions of one socket.
pub struct Ears {
    app: Data<App>,
    user: UserId,
    outbox: Arc<Outbox>,
    conversations: HashMap<ConversationId, Ear>,
    /// A conversation whose subscription is under way.
    pricked: Option<ConversationId>,
    spaces: HashSet<SpaceId>,
    /// Where this socket said that its person types.
    hands: HashSet<Hands>,
    away: bool,
}

/// One conversation that is heard.
struct Ear {
    space: SpaceId,
    /// As whom the person is present; an admin without a seat is not.
    seat: Option<MembershipId>,
    /// `None`: the client was told to subscribe again, and hears nothing before.
    filter: Option<Filter>,
}

impl Ears {
    /// Hears what is for the person alone.
    pub fn new(app: Data<App>, user: UserId, outbox: Arc<Outbox>) -> Self {
        app.hub.listen(Topic::User(user), &outbox);
        Self {
            app,
            user,
            outbox,
            conversations: HashMap::new(),
            pricked: None,
            spaces: HashSet::new(),
            hands: HashSet::new(),
            away: false,
        }
    }

    /// How many subscriptions there are.
    pub fn count(&self) -> usize {
        self.conversations.len() + self.spaces.len()
    }

    /// Whether a conversation is heard, or was until something was lost.
    pub fn hears(&self, id: ConversationId) -> bool {
        self.conversations.contains_key(&id)
    }

    /// A subscription is under way: its envelopes come from now on, and what waited is void. Where
    /// one is heard already, what waits is kept: it may have to stay as it is.
    pub fn prick(&mut self, id: ConversationId) {
        self.pricked = Some(id);
        if self.filter(id).is_none() {
            self.outbox.forget(id);
            self.app.hub.listen(Topic::Conversation(id), &self.outbox);
        }
    }

    /// The subscription is refused for now: all is as it was before it was asked for.
    pub fn relax(&mut self, id: ConversationId) {
        self.pricked.take_if(|it| *it == id);
        if self.filter(id).is_none() {
            self.lose(id);
        }
    }

    /// The subscription is granted: the person is there, and visibly so.
    pub fn attend(&mut self, id: ConversationId, space: SpaceId, seat: Option<MembershipId>) {
        self.pricked = None;
        let before = self.conversations.insert(
            id,
            Ear {
                space,
                seat,
                filter: None,
            },
        );
        let seat_before = before.and_then(|it| it.seat);
        if seat_before == seat {
            return;
        }
        if let Some(seat) = seat {
            self.app.presence.enter(id, seat, self.away);
        }
        if let Some(seat) = seat_before {
            self.app.presence.leave(id, seat, self.away);
        }
    }

    /// From now on the filter decides.
    pub fn open(&mut self, id: ConversationId, filter: Filter) {
        if let Some(ear) = self.conversations.get_mut(&id) {
            ear.filter = Some(filter);
        }
    }

    /// Something was lost: nothing is heard before the client subscribes again.
    pub fn lose(&mut self, id: ConversationId) {
        self.app.hub.leave(Topic::Conversation(id), &self.outbox);
        if let Some(ear) = self.conversations.get_mut(&id) {
            ear.filter = None;
        }
    }

    /// Hears a conversation no more.
    pub fn close(&mut self, id: ConversationId) {
        self.pricked.take_if(|it| *it == id);
        self.app.hub.leave(Topic::Conversation(id), &self.outbox);
        self.outbox.forget(id);
        let ear = self.conversations.remove(&id);
        if let Some(seat) = ear.and_then(|it| it.seat) {
            self.app.presence.leave(id, seat, self.away);
        }
        self.drop_hands(|it| it.conversation == id);
    }

    /// Decides about the envelopes of a conversation.
    pub fn filter(&mut self, id: ConversationId) -> Option<&mut Filter> {
        self.conversations.get_mut(&id)?.filter.as_mut()
    }

    /// Hears a space.
    pub fn open_space(&mut self, id: SpaceId) {
        self.app.hub.listen(Topic::Space(id), &self.outbox);
        self.spaces.insert(id);
    }

    /// Hears it no more.
    pub fn close_space(&mut self, id: SpaceId) {
        self.app.hub.leave(Topic::Space(id), &self.outbox);
        self.spaces.remove(&id);
    }

    /// Whether a space is heard.
    pub fn hears_space(&self, id: SpaceId) -> bool {
        self.spaces.contains(&id)
    }

    /// What is heard of a space, or of all: conversations, and the spaces themselves.
    pub fn of_space(&self, space: Option<SpaceId>) -> (Vec<ConversationId>, Vec<SpaceId>) {
        let is_meant = |it: SpaceId| space.is_none_or(|space| space == it);
        let conversations = self.conversations.iter();
        let conversations = conversations.filter(|(_, ear)| is_meant(ear.space));
        let spaces = self.spaces.iter().copied().filter(|it| is_meant(*it));
        (conversations.map(|(id, _)| *id).collect(), spaces.collect())
    }

    /// The person looks away, or looks again.
    pub fn turn(&mut self, away: bool) {
        if self.away == away {
            return;
        }
        self.away = away;
        for (id, ear) in &self.conversations {
            if let Some(seat) = ear.seat {
                self.app.presence.turn(*id, seat, away);
            }
        }
    }

    /// The person types, or stops.
    pub fn type_in(
        &mut self,
        conversation: ConversationId,
        membership: MembershipId,
        active: bool,
    ) {
        let hands = Hands {
            conversation,
            membership,
            user: self.user,
        };
        match active {
            true => self.hands.insert(hands),
            false => self.hands.remove(&hands),
        };
        self.app.typing.set(hands, active);
    }

    fn drop_hands(&mut self, resting: impl Fn(&Hands) -> bool) {
        for hands in self.hands.extract_if(resting) {
            self.app.typing.set(hands, false);
        }
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        let (conversations, spaces) = self.of_space(None);
        for id in conversations.into_iter().chain(self.pricked) {
            self.close(id);
        }
        for id in spaces {
            self.close_space(id);
        }
        self.drop_hands(|_| true);
        self.app.hub.leave(Topic::User(self.user), &self.outbox);
        if !self.app.hub.is_heard(Topic::User(self.user)) {
            self.app.engine.nobody_listens(self.user);
        }
    }
}
