//! Typing indicators: publishes who types in a conversation. A user who sends no further signal
//! counts as stopped after [`EXPIRY`](crate::typing_users::EXPIRY).
//!
//! Time comes from the server's [`Clock`], so a test that sets the clock decides when typing
//! expires.

use std::sync::Arc;

use base::clock::Clock;
use base::ids::{ConversationId, MembershipId};
use base::shutdown::Shutdown;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

use crate::cluster::signal::ClusterSignal;
use crate::envelope::{Envelope, Event};
use crate::hub::Hub;
use crate::topic::Topic;
use crate::typing_users::{TypingKey, TypingUsers};

/// A user types, or has stopped.
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

/// The typing users on this node; publishes changes. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Typing {
    users: Arc<Mutex<TypingUsers>>,
    hub: Hub,
    clock: Clock,
    /// Notified when a user starts typing: the next expiry may have changed.
    wakeup: Arc<Notify>,
}

impl Typing {
    /// Starts with no one typing. Publishes expiries until shutdown.
    pub fn start(hub: Hub, clock: Clock, shutdown: &Shutdown) -> Self {
        let typing = Self {
            users: Arc::default(),
            hub,
            clock,
            wakeup: Arc::default(),
        };
        let watch = typing.clone();
        let stopping = shutdown.stopping.clone();
        shutdown.spawn(async move {
            stopping.run_until_cancelled(watch.watch_expiries()).await;
        });
        typing
    }

    /// Records that a user types on this node, or stops.
    pub fn set(&self, key: TypingKey, active: bool) {
        let mut users = self.users.lock();
        let should_publish = match active {
            true => users.start(key, self.clock.now()),
            false => users.stop(key),
        };
        if should_publish {
            // Under the lock, so that the last published event is the current state.
            self.publish(key, active);
            self.hub
                .bus()
                .publish(ClusterSignal::Typing { key, active });
        }
        drop(users);
        if active {
            self.wakeup.notify_one();
        }
    }

    /// Records the same from another node. It also expires here, in case that node stops reporting.
    pub fn apply_remote(&self, key: TypingKey, active: bool) {
        let mut users = self.users.lock();
        let should_publish = match active {
            true => users.start(key, self.clock.now()),
            false => users.stop(key),
        };
        if should_publish {
            self.publish(key, active);
        }
        drop(users);
        self.wakeup.notify_one();
    }

    fn publish(&self, key: TypingKey, active: bool) {
        let event = HumanTyping {
            conversation_id: key.conversation,
            membership_id: key.membership,
            active,
        };
        let topic = Topic::Conversation(key.conversation);
        let envelope = Envelope::except_user(topic, &event, key.user);
        self.hub.publish_local(envelope);
    }

    async fn watch_expiries(self) {
        loop {
            let due = self.users.lock().next_expiry();
            let expiry = async {
                match due {
                    Some(due) => self.clock.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = expiry => {
                    let mut typists = self.users.lock();
                    for key in typists.expire(self.clock.now()) {
                        self.publish(key, false);
                    }
                }
                () = self.wakeup.notified() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Clock;
    use base::ids::{ConversationId, MembershipId, UserId};
    use base::shutdown::Shutdown;

    use super::{Typing, TypingKey};
    use crate::envelope::Payload;
    use crate::hub::Hub;
    use crate::outbox::{NextItem, Outbox};
    use crate::topic::Topic;

    const ANN: TypingKey = TypingKey {
        conversation: ConversationId(7),
        membership: MembershipId(1),
        user: UserId(4),
    };

    #[tokio::test]
    async fn an_expiry_is_published_to_the_others() {
        let (hub, shutdown, clock) = (Hub::new(), Shutdown::new(), Clock::manual());
        let outbox = Outbox::new();
        hub.subscribe(Topic::Conversation(ANN.conversation), &outbox);
        let typing = Typing::start(hub, clock.clone(), &shutdown);

        typing.set(ANN, true);
        clock.advance_ms(6_000);

        for active in [true, false] {
            let NextItem::Envelope(envelope) = outbox.next().await else {
                panic!("the typing event was not published");
            };
            let Payload::ExceptUser { json, except } = &envelope.payload else {
                panic!("the event does not exclude the typing user");
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
