//! Fan-out inside a node: who publishes hands over one envelope, every listener's outbox gets it.
//!
//! **Invariant:** publishing never waits for a listener. An outbox is bounded and takes what it is
//! given or drops it and remembers that; nobody's slowness is anybody else's.
//!
//! **Invariant:** all listeners of a topic get its envelopes in one and the same order.
//!
//! With several nodes a bridge stands behind [`Hub::publish`]: it passes on what is published
//! here, and publishes here what other nodes passed on. Listeners do not notice.

use crate::realtime::event::Envelope;
use crate::realtime::meter::Meter;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use dashmap::DashMap;
use dashmap::Entry;
use parking_lot::Mutex;
use std::sync::Arc;

/// The loudspeaker of this node. Cloning gives another handle on the same one.
#[derive(Clone, Default)]
pub struct Hub {
    /// A topic is here exactly as long as somebody listens to it.
    channels: Arc<DashMap<Topic, Channel>>,
    meter: Arc<Meter>,
}

/// The listeners of one topic; the lock is what gives its envelopes one order.
type Channel = Mutex<Vec<Arc<Outbox>>>;

impl Hub {
    /// A loudspeaker to which nobody listens.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the envelope to everyone who listens to its topic now.
    ///
    /// It was encoded when it was made; what a further listener costs is a pointer in a queue.
    pub fn publish(&self, envelope: Envelope) {
        self.meter.published(&envelope.cargo);
        let Some(channel) = self.channels.get(&envelope.topic) else {
            return;
        };
        let envelope = Arc::new(envelope);
        let mut n_dropped = 0;
        for listener in channel.lock().iter() {
            n_dropped += listener.push(&envelope);
        }
        if n_dropped > 0 {
            self.meter.dropped.inc_by(n_dropped);
        }
    }

    /// What passed here so far.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// From now on `outbox` gets what is published to `topic`. Twice is the same as once.
    pub fn listen(&self, topic: Topic, outbox: &Arc<Outbox>) {
        let channel = self.channels.entry(topic).or_default();
        let mut listeners = channel.lock();
        if !listeners.iter().any(|it| Arc::ptr_eq(it, outbox)) {
            listeners.push(outbox.clone());
        }
    }

    /// From now on it does not. The topic goes when its last listener leaves.
    pub fn leave(&self, topic: Topic, outbox: &Arc<Outbox>) {
        let Entry::Occupied(channel) = self.channels.entry(topic) else {
            return;
        };
        let nobody_left = {
            let mut listeners = channel.get().lock();
            if let Some(place) = listeners.iter().position(|it| Arc::ptr_eq(it, outbox)) {
                listeners.swap_remove(place);
            }
            listeners.is_empty()
        };
        if nobody_left {
            channel.remove();
        }
    }

    /// Whether anybody here listens to a topic.
    pub fn is_heard(&self, topic: Topic) -> bool {
        self.channels.contains_key(&topic)
    }

    /// How many topics have listeners.
    pub fn n_topics(&self) -> usize {
        self.channels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Hub;
    use crate::ids::ConversationId;
    use crate::ids::SpaceId;
    use crate::realtime::event::Cargo;
    use crate::realtime::event::Envelope;
    use crate::realtime::event::Event;
    use crate::realtime::outbox::LIMIT;
    use crate::realtime::outbox::Next;
    use crate::realtime::outbox::Outbox;
    use crate::realtime::topic::Topic;
    use serde::Serialize;
    use std::sync::Arc;

    #[derive(Serialize)]
    struct Tick {
        n: usize,
    }

    impl Event for Tick {
        fn name(&self) -> &'static str {
            "tick"
        }
    }

    const HERE: Topic = Topic::Conversation(ConversationId(1));
    const THERE: Topic = Topic::Space(SpaceId(1));

    fn heard(outbox: &Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.try_next())
            .map(|next| match next {
                Next::Envelope(it) => match &it.cargo {
                    Cargo::Frame { json, .. } => json.to_string(),
                    other => panic!("only frames were published: {other:?}"),
                },
                other => panic!("only frames were published: {other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_listener_hears_its_topics_and_no_others() {
        let hub = Hub::new();
        let outbox = Outbox::new();
        hub.listen(HERE, &outbox);
        hub.listen(HERE, &outbox);

        hub.publish(Envelope::plain(HERE, &Tick { n: 1 }));
        hub.publish(Envelope::plain(THERE, &Tick { n: 2 }));
        hub.leave(HERE, &outbox);
        hub.publish(Envelope::plain(HERE, &Tick { n: 3 }));

        assert_eq!(heard(&outbox), [r#"{"type":"tick","n":1}"#]);
    }

    #[test]
    fn a_topic_goes_with_its_last_listener() {
        let hub = Hub::new();
        let (ann, bob) = (Outbox::new(), Outbox::new());
        hub.listen(HERE, &ann);
        hub.listen(HERE, &bob);

        hub.leave(HERE, &ann);
        hub.leave(HERE, &ann);
        assert_eq!(hub.n_topics(), 1);
        hub.leave(HERE, &bob);
        hub.leave(THERE, &bob);

        assert_eq!(hub.n_topics(), 0);
    }

    #[test]
    fn all_listeners_share_one_encoding() {
        let hub = Hub::new();
        let (ann, bob) = (Outbox::new(), Outbox::new());
        hub.listen(HERE, &ann);
        hub.listen(HERE, &bob);

        hub.publish(Envelope::plain(HERE, &Tick { n: 1 }));

        let (Some(Next::Envelope(one)), Some(Next::Envelope(two))) =
            (ann.try_next(), bob.try_next())
        else {
            panic!("both hear it");
        };
        assert!(Arc::ptr_eq(&one, &two));
    }

    #[test]
    fn publishers_at_once_are_heard_by_all_in_one_order() {
        let hub = Hub::new();
        let listeners: Vec<_> = (0..8).map(|_| Outbox::new()).collect();
        for outbox in &listeners {
            hub.listen(HERE, outbox);
        }

        std::thread::scope(|scope| {
            for publisher in 0..4 {
                let hub = hub.clone();
                scope.spawn(move || {
                    for n in 0..200 {
                        let n = publisher * 1000 + n;
                        hub.publish(Envelope::plain(HERE, &Tick { n }));
                    }
                });
            }
        });

        let first = heard(&listeners[0]);
        assert_eq!(first.len(), 800);
        assert!(listeners[1..].iter().all(|it| heard(it) == first));
    }

    #[test]
    fn what_a_slow_listener_loses_is_counted() {
        let hub = Hub::new();
        let (quick, slow) = (Outbox::new(), Outbox::new());
        hub.listen(HERE, &quick);
        hub.listen(HERE, &slow);
        let n_sent = 2 * LIMIT / size_of::<Envelope>();

        for n in 0..n_sent {
            hub.publish(Envelope::plain(HERE, &Tick { n }));
            quick.try_next();
        }

        // Only the word that something was lost is left, and all that was sent is gone.
        assert_eq!(hub.meter().dropped.get(), n_sent as u64);
        assert!(matches!(slow.try_next(), Some(Next::Lost(_))));
        assert!(slow.try_next().is_none());
    }
}
