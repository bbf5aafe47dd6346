//! Keeps the subscriptions of one live socket to conversations and spaces, and the presence and
//! typing state that its user has through this socket.
//!
//! **Invariant:** what was started for a socket ends with it, however it ends: its topics, its
//! presence, its typing. This is why the type implements `Drop`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use actix_web::web::Data;
use base::ids::{ConversationId, MembershipId, SpaceId, UserId};
use realtime::outbox::Outbox;
use realtime::topic::Topic;
use realtime::typing_users::TypingKey;

use crate::app::App;
use crate::web::live::queries::SubscriptionList;
use crate::web::live::subscription_filter::SubscriptionFilter;

/// The subscriptions of one socket.
pub struct Subscriptions {
    app: Data<App>,
    user: UserId,
    outbox: Arc<Outbox>,
    conversations: HashMap<ConversationId, Subscription>,
    /// The conversation of the pending subscription.
    pending: Option<ConversationId>,
    /// Each with the user's membership; an admin may have none.
    spaces: HashMap<SpaceId, Option<MembershipId>>,
    /// Where the user types, according to this socket.
    typing_keys: HashSet<TypingKey>,
    is_away: bool,
}

/// The subscription to one conversation.
struct Subscription {
    space: SpaceId,
    /// The membership under which the user is present; an admin without one is not.
    membership: Option<MembershipId>,
    /// `None`: the client was asked to subscribe again, and receives nothing until then.
    filter: Option<SubscriptionFilter>,
}

impl Subscriptions {
    /// Subscribes to the user's own events.
    pub fn new(app: Data<App>, user: UserId, outbox: Arc<Outbox>) -> Self {
        app.hub.subscribe(Topic::User(user), &outbox);
        Self {
            app,
            user,
            outbox,
            conversations: HashMap::new(),
            pending: None,
            spaces: HashMap::new(),
            typing_keys: HashSet::new(),
            is_away: false,
        }
    }

    /// Returns the number of subscriptions.
    pub fn count(&self) -> usize {
        self.conversations.len() + self.spaces.len()
    }

    /// Returns whether a conversation is subscribed, also after a gap.
    pub fn contains(&self, id: ConversationId) -> bool {
        self.conversations.contains_key(&id)
    }

    /// Subscribes to the hub and discards queued events of this conversation; the snapshot replaces
    /// them. Queued events of an existing subscription are kept, because the new one may fail.
    pub fn start(&mut self, id: ConversationId) {
        self.pending = Some(id);
        if self.filter(id).is_none() {
            self.outbox.clear_conversation(id);
            self.app
                .hub
                .subscribe(Topic::Conversation(id), &self.outbox);
        }
    }

    /// Cancels the pending subscription: the state from before is restored.
    pub fn abort(&mut self, id: ConversationId) {
        self.pending.take_if(|it| *it == id);
        if self.filter(id).is_none() {
            self.suspend(id);
        }
    }

    /// Activates the pending subscription: the user is now present.
    pub fn activate(
        &mut self,
        id: ConversationId,
        space: SpaceId,
        membership: Option<MembershipId>,
    ) {
        self.pending = None;
        let before = self.conversations.insert(
            id,
            Subscription {
                space,
                membership,
                filter: None,
            },
        );
        let membership_before = before.and_then(|it| it.membership);
        if membership_before == membership {
            return;
        }
        if let Some(membership) = membership {
            self.app.presence.join(id, membership, self.is_away);
        }
        if let Some(membership) = membership_before {
            self.app.presence.leave(id, membership, self.is_away);
        }
    }

    /// Installs the filter that decides from now on.
    pub fn install_filter(&mut self, id: ConversationId, filter: SubscriptionFilter) {
        if let Some(subscription) = self.conversations.get_mut(&id) {
            subscription.filter = Some(filter);
        }
    }

    /// Stops events after a gap until the client subscribes again.
    pub fn suspend(&mut self, id: ConversationId) {
        self.app
            .hub
            .unsubscribe(Topic::Conversation(id), &self.outbox);
        if let Some(subscription) = self.conversations.get_mut(&id) {
            subscription.filter = None;
        }
    }

    /// Ends the subscription to a conversation.
    pub fn remove(&mut self, id: ConversationId) {
        self.pending.take_if(|it| *it == id);
        self.app
            .hub
            .unsubscribe(Topic::Conversation(id), &self.outbox);
        self.outbox.clear_conversation(id);
        let subscription = self.conversations.remove(&id);
        if let Some(membership) = subscription.and_then(|it| it.membership) {
            self.app.presence.leave(id, membership, self.is_away);
        }
        self.stop_typing(|it| it.conversation == id);
    }

    /// Returns the membership under which a conversation is subscribed.
    pub fn membership(&self, id: ConversationId) -> Option<MembershipId> {
        self.conversations.get(&id)?.membership
    }

    /// Returns the membership under which a space is subscribed.
    pub fn space_membership(&self, id: SpaceId) -> Option<MembershipId> {
        self.spaces.get(&id).copied().flatten()
    }

    /// Returns the filter of a conversation.
    pub fn filter(&mut self, id: ConversationId) -> Option<&mut SubscriptionFilter> {
        self.conversations.get_mut(&id)?.filter.as_mut()
    }

    /// Subscribes to a space, under this membership.
    pub fn add_space(&mut self, id: SpaceId, membership: Option<MembershipId>) {
        self.app.hub.subscribe(Topic::Space(id), &self.outbox);
        self.spaces.insert(id, membership);
    }

    /// Ends the subscription to a space.
    pub fn remove_space(&mut self, id: SpaceId) {
        self.app.hub.unsubscribe(Topic::Space(id), &self.outbox);
        self.spaces.remove(&id);
    }

    /// Returns whether a space is subscribed.
    pub fn contains_space(&self, id: SpaceId) -> bool {
        self.spaces.contains_key(&id)
    }

    /// Returns the subscriptions of a space, or all: conversations, and the spaces themselves.
    pub fn list_for_space(&self, space: Option<SpaceId>) -> SubscriptionList {
        let is_selected = |it: SpaceId| space.is_none_or(|space| space == it);
        let conversations = self.conversations.iter();
        let conversations = conversations.filter(|(_, it)| is_selected(it.space));
        let spaces = self.spaces.iter().filter(|(id, _)| is_selected(**id));
        SubscriptionList {
            conversations: conversations.map(|(id, it)| (*id, it.membership)).collect(),
            spaces: spaces.map(|(id, membership)| (*id, *membership)).collect(),
        }
    }

    /// Takes these memberships, which have ended, from the subscriptions; returns the conversations that
    /// had one of them.
    pub fn take_memberships(&mut self, ended: &HashSet<MembershipId>) -> Vec<ConversationId> {
        let is_ended = |it: &mut MembershipId| ended.contains(it);
        for membership in self.spaces.values_mut() {
            membership.take_if(is_ended);
        }
        let mut changed = Vec::new();
        for (id, subscription) in &mut self.conversations {
            if let Some(membership) = subscription.membership.take_if(is_ended) {
                self.app.presence.leave(*id, membership, self.is_away);
                changed.push(*id);
            }
        }
        self.stop_typing(|it| ended.contains(&it.membership));
        changed
    }

    /// Records that the user is away, or back.
    pub fn set_away(&mut self, is_away: bool) {
        if self.is_away == is_away {
            return;
        }
        self.is_away = is_away;
        for (id, subscription) in &self.conversations {
            if let Some(membership) = subscription.membership {
                self.app.presence.set_away(*id, membership, is_away);
            }
        }
    }

    /// Records that the user types, or stops.
    pub fn set_typing(
        &mut self,
        conversation: ConversationId,
        membership: MembershipId,
        active: bool,
    ) {
        let key = TypingKey {
            conversation,
            membership,
            user: self.user,
        };
        match active {
            true => self.typing_keys.insert(key),
            false => self.typing_keys.remove(&key),
        };
        self.app.typing.set(key, active);
    }

    fn stop_typing(&mut self, should_stop: impl Fn(&TypingKey) -> bool) {
        for key in self.typing_keys.extract_if(should_stop) {
            self.app.typing.set(key, false);
        }
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        let SubscriptionList {
            conversations,
            spaces,
        } = self.list_for_space(None);
        let conversations = conversations.into_iter().map(|(id, _)| id);
        for id in conversations.chain(self.pending) {
            self.remove(id);
        }
        for (id, _) in spaces {
            self.remove_space(id);
        }
        self.stop_typing(|_| true);
        self.app
            .hub
            .unsubscribe(Topic::User(self.user), &self.outbox);
        if !self.app.hub.has_subscribers(Topic::User(self.user)) {
            self.app.engine.on_user_disconnected(self.user);
        }
    }
}
