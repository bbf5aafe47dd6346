//! Takes in what other nodes say: for those who listen here, and for the runs of this node.

use crate::ids::RunId;
use crate::realtime::bus::handle::Inbox;
use crate::realtime::bus::packet::Parcel;
use crate::realtime::bus::signal::Signal;
use crate::realtime::event::Cargo;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::presence::Presence;
use crate::realtime::topic::Topic;
use crate::realtime::typing::Typing;
use crate::runs::context::Context;
use crate::runs::lease::Why;
use crate::runs::live::Heard;
use uuid::Uuid;

/// The ear of this node at the wire to the others.
pub struct Relay {
    pub context: Context,
    pub presence: Presence,
    pub typing: Typing,
}

impl Relay {
    fn take_envelope(&self, envelope: Envelope) {
        let live = &self.context.live;
        match (envelope.topic, envelope.cargo) {
            (_, Cargo::Delta(delta)) => live.hear_piece(delta),
            (
                Topic::Conversation(conversation),
                Cargo::Stream {
                    json,
                    run,
                    lease,
                    mark,
                },
            ) => {
                let run = RunId(run);
                // Somebody else ended what is executed here; the provider's request is dropped.
                if mark == Mark::Complete {
                    self.context.leases.end_under(run, lease, Why::Lost);
                }
                let heard = Heard {
                    conversation,
                    run,
                    lease,
                    mark,
                };
                let cargo = Cargo::Stream {
                    json,
                    run: run.0,
                    lease,
                    mark,
                };
                let topic = envelope.topic;
                live.hear_mark(&heard, Envelope { topic, cargo });
            }
            (topic, cargo) => self.context.hub.publish_here(Envelope { topic, cargo }),
        }
    }

    fn take_signal(&self, from: Uuid, signal: Signal) {
        match signal {
            Signal::Bell => self.context.bell.ring(),
            Signal::KeepPartial { run, lease } => {
                let leases = &self.context.leases;
                leases.end_under(RunId(run), lease, Why::KeepPartial);
            }
            Signal::Ask { conversation } => self.context.live.tell(conversation),
            Signal::Text(it) => self.context.live.hear_text(it),
            Signal::Beat { is_new: false } => {}
            Signal::Beat { is_new: true } => self.presence.tell_all(),
            Signal::Gone => self.presence.gone(from),
            Signal::Presence { whole, rooms } => self.presence.hear(from, whole, rooms),
            Signal::Typing { hands, active } => self.typing.hear(hands, active),
        }
    }
}

impl Inbox for Relay {
    fn take(&self, from: Uuid, parcel: Parcel) {
        match parcel {
            Parcel::Envelope(envelope) => self.take_envelope(envelope),
            Parcel::Signal(signal) => self.take_signal(from, signal),
        }
    }

    fn missed(&self) {
        self.context.look_again.notify_one();
    }

    fn tuned_in(&self) {
        self.presence.tell_all();
        self.context.bell.ring();
    }
}
