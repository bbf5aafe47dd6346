//! Which people are typing. Who says no more of it is taken to have stopped after [`EXPIRY`].
//!
//! Time is the house's [`Clock`], so a test that sets the clock decides when typing expires.

use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::ids::ConversationId;
use crate::ids::MembershipId;
use crate::ids::UserId;
use crate::realtime::bus::signal::Signal;
use crate::realtime::event::Envelope;
use crate::realtime::event::Event;
use crate::realtime::hub::Hub;
use crate::realtime::topic::Topic;
use crate::shutdown::Shutdown;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use utoipa::ToSchema;

/// How long one word of typing holds.
pub const EXPIRY: Duration = Duration::from_secs(6);

/// Somebody who goes on typing is told again, but not more often than this.
const TELL_AGAIN: Duration = Duration::from_secs(2);

/// A person types, or has stopped.
#[derive(Debug, Serialize, ToSchema)]
pub struct HumanTyping {
    pub conversation_id: ConversationId,
    pub membership_id: MembershipId,
    pub active: bool,
}

impl Event for HumanTyping {
    fn name(&self) -> &'static str {
        "human_typing"
    }
}

/// Whose hands are on the keys: a seat, and the person who must not be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hands {
    pub conversation: ConversationId,
    pub membership: MembershipId,
    pub user: UserId,
}

/// Who types. Pure: time is an argument, changes return whether others are to be told.
#[derive(Debug, Default)]
pub struct Typists {
    all: HashMap<Hands, Typist>,
}

#[derive(Clone, Copy, Debug)]
struct Typist {
    until: Timestamp,
    told_at: Timestamp,
}

impl Typists {
    /// A key was pressed.
    pub fn press(&mut self, hands: Hands, now: Timestamp) -> bool {
        let told_at = self.all.get(&hands).map(|it| it.told_at);
        let is_news = told_at.is_none_or(|it| it.plus(TELL_AGAIN) <= now);
        let typist = Typist {
            until: now.plus(EXPIRY),
            told_at: told_at.filter(|_| !is_news).unwrap_or(now),
        };
        self.all.insert(hands, typist);
        is_news
    }

    /// The hands rest.
    pub fn rest(&mut self, hands: Hands) -> bool {
        self.all.remove(&hands).is_some()
    }

    /// Takes out who has not been heard of for too long.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Hands> {
        self.all
            .extract_if(|_, it| it.until <= now)
            .map(|(hands, _)| hands)
            .collect()
    }

    /// When the next one expires.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.all.values().map(|it| it.until).min()
    }
}

/// Who types on this node, and who tells it. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Typing {
    typists: Arc<Mutex<Typists>>,
    hub: Hub,
    clock: Clock,
    /// Rung when somebody began: the next expiry may have changed.
    bell: Arc<Notify>,
}

impl Typing {
    /// Nobody types. Expiries are told until the house closes.
    pub fn start(hub: Hub, clock: Clock, shutdown: &Shutdown) -> Self {
        let typing = Self {
            typists: Arc::default(),
            hub,
            clock,
            bell: Arc::default(),
        };
        let watch = typing.clone();
        let stopping = shutdown.stopping.clone();
        shutdown.spawn(async move {
            stopping.run_until_cancelled(watch.watch_expiries()).await;
        });
        typing
    }

    /// A person types on this node, or stops.
    pub fn set(&self, hands: Hands, active: bool) {
        let mut typists = self.typists.lock();
        let is_news = match active {
            true => typists.press(hands, self.clock.now()),
            false => typists.rest(hands),
        };
        if is_news {
            // Under the lock, so that what is told last is what is so.
            self.tell(hands, active);
            self.hub.bus().say(Signal::Typing { hands, active });
        }
        drop(typists);
        if active {
            self.bell.notify_one();
        }
    }

    /// The same, said by another node. It runs out here too, should that node say no more.
    pub fn hear(&self, hands: Hands, active: bool) {
        let mut typists = self.typists.lock();
        let is_news = match active {
            true => typists.press(hands, self.clock.now()),
            false => typists.rest(hands),
        };
        if is_news {
            self.tell(hands, active);
        }
        drop(typists);
        self.bell.notify_one();
    }

    fn tell(&self, hands: Hands, active: bool) {
        let event = HumanTyping {
            conversation_id: hands.conversation,
            membership_id: hands.membership,
            active,
        };
        let topic = Topic::Conversation(hands.conversation);
        let aside = Envelope::aside(topic, &event, hands.user);
        self.hub.publish_here(aside);
    }

    async fn watch_expiries(self) {
        loop {
            let due = self.typists.lock().next_expiry();
            let expiry = async {
                match due {
                    Some(due) => self.clock.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = expiry => {
                    let mut typists = self.typists.lock();
                    for hands in typists.expire(self.clock.now()) {
                        self.tell(hands, false);
                    }
                }
                () = self.bell.notified() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hands;
    use super::Typing;
    use super::Typists;
    use crate::clock::Clock;
    use crate::clock::Timestamp;
    use crate::ids::ConversationId;
    use crate::ids::MembershipId;
    use crate::ids::UserId;
    use crate::realtime::event::Cargo;
    use crate::realtime::hub::Hub;
    use crate::realtime::outbox::Next;
    use crate::realtime::outbox::Outbox;
    use crate::realtime::topic::Topic;
    use crate::shutdown::Shutdown;

    const ANN: Hands = Hands {
        conversation: ConversationId(7),
        membership: MembershipId(1),
        user: UserId(4),
    };

    #[test]
    fn typing_expires_six_seconds_after_the_last_key() {
        let mut typists = Typists::default();

        typists.press(ANN, Timestamp(0));
        typists.press(ANN, Timestamp(3_000));

        assert_eq!(typists.next_expiry(), Some(Timestamp(9_000)));
        assert_eq!(typists.expire(Timestamp(8_999)), []);
        assert_eq!(typists.expire(Timestamp(9_000)), [ANN]);
        assert_eq!(typists.next_expiry(), None);
    }

    #[test]
    fn every_key_is_no_news_but_going_on_is() {
        let mut typists = Typists::default();

        assert!(typists.press(ANN, Timestamp(0)));
        assert!(!typists.press(ANN, Timestamp(1_000)));
        assert!(typists.press(ANN, Timestamp(2_000)));
        assert!(!typists.press(ANN, Timestamp(3_999)));
        assert!(typists.rest(ANN));
        assert!(!typists.rest(ANN));
    }

    #[tokio::test]
    async fn an_expiry_is_told_to_the_others() {
        let (hub, shutdown, clock) = (Hub::new(), Shutdown::new(), Clock::manual());
        let outbox = Outbox::new();
        hub.listen(Topic::Conversation(ANN.conversation), &outbox);
        let typing = Typing::start(hub, clock.clone(), &shutdown);

        typing.set(ANN, true);
        clock.advance_ms(6_000);

        for active in [true, false] {
            let Next::Envelope(told) = outbox.next().await else {
                panic!("typing is told");
            };
            let Cargo::Aside { json, except } = &told.cargo else {
                panic!("who types need not be told");
            };
            assert_eq!(*except, UserId(4));
            assert_eq!(
                &**json,
                format!(
                    r#"{{"type":"human_typing","conversation_id":7,"membership_id":1,"active":{active}}}"#
                )
            );
        }
        shutdown.stopping.cancel();
        shutdown.wait().await;
    }
}
