//! Takes in what other nodes say: for those who listen here, and for the runs of this node.

use crate::ids::RunId;
use crate::realtime::cluster::bus::ClusterReceiver;
use crate::realtime::cluster::message::MessageBody;
use crate::realtime::cluster::signal::ClusterSignal;
use crate::realtime::event::Envelope;
use crate::realtime::event::Payload;
use crate::realtime::event::StreamBoundary;
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
        match (envelope.topic, envelope.payload) {
            (_, Payload::Delta(delta)) => live.hear_piece(delta),
            (
                Topic::Conversation(conversation),
                Payload::Stream {
                    json,
                    run,
                    lease,
                    mark,
                },
            ) => {
                let run = RunId(run);
                // Somebody else ended what is executed here; the provider's request is dropped.
                if mark == StreamBoundary::Complete {
                    self.context.leases.end_under(run, lease, Why::Lost);
                }
                let heard = Heard {
                    conversation,
                    run,
                    lease,
                    mark,
                };
                let cargo = Payload::Stream {
                    json,
                    run: run.0,
                    lease,
                    mark,
                };
                let topic = envelope.topic;
                live.hear_mark(
                    &heard,
                    Envelope {
                        topic,
                        payload: cargo,
                    },
                );
            }
            (topic, cargo) => self.context.hub.publish_local(Envelope {
                topic,
                payload: cargo,
            }),
        }
    }

    fn take_signal(&self, from: Uuid, signal: ClusterSignal) {
        match signal {
            ClusterSignal::Bell => self.context.bell.ring(),
            ClusterSignal::KeepPartial { run, lease } => {
                let leases = &self.context.leases;
                leases.end_under(RunId(run), lease, Why::KeepPartial);
            }
            ClusterSignal::Ask { conversation } => self.context.live.tell(conversation),
            ClusterSignal::Text(it) => self.context.live.hear_text(it),
            ClusterSignal::Beat { is_new: false } => {}
            ClusterSignal::Beat { is_new: true } => self.presence.broadcast(),
            ClusterSignal::Gone => self.presence.remove_node(from),
            ClusterSignal::Presence { whole, rooms } => {
                self.presence.apply_remote(from, whole, rooms)
            }
            ClusterSignal::Typing { hands, active } => self.typing.apply_remote(hands, active),
        }
    }
}

impl ClusterReceiver for Relay {
    fn receive(&self, from: Uuid, parcel: MessageBody) {
        match parcel {
            MessageBody::Envelope(envelope) => self.take_envelope(envelope),
            MessageBody::Signal(signal) => self.take_signal(from, signal),
        }
    }

    fn on_gap(&self) {
        self.context.look_again.notify_one();
    }

    fn on_connected(&self) {
        self.presence.broadcast();
        self.context.bell.ring();
    }
}
