//! Handles events and signals from other nodes: passes events to local subscribers, cancels local
//! runs, and updates streams, presence and typing indicators.

use base::ids::RunId;
use leased_jobs::lease::CancelReason;
use realtime::cluster::bus::ClusterReceiver;
use realtime::cluster::message::MessageBody;
use realtime::cluster::signal::ClusterSignal;
use realtime::envelope::{Envelope, Payload, StreamBoundary};
use realtime::presence::Presence;
use realtime::topic::Topic;
use realtime::typing::Typing;
use uuid::Uuid;

use crate::runs::services::RunServices;

/// Receives the cluster messages of this node.
pub struct RunClusterReceiver {
    pub context: RunServices,
    pub presence: Presence,
    pub typing: Typing,
}

impl RunClusterReceiver {
    fn receive_envelope(&self, envelope: Envelope) {
        let live = &self.context.live_streams;
        let receivers = envelope.receivers;
        match (envelope.topic, envelope.payload) {
            (_, Payload::Delta(delta)) => live.apply_delta(delta),
            (Topic::Conversation(conversation), Payload::Stream(event)) => {
                // Another node ended a run that executes here; this drops the request to the
                // provider.
                if event.mark == StreamBoundary::Complete {
                    let (run, lease) = (RunId(event.run), event.lease);
                    self.context
                        .leases
                        .cancel_lease(&run, lease, CancelReason::LeaseLost);
                }
                live.apply_boundary(conversation, receivers, event);
            }
            (topic, payload) => self.context.hub.publish_local(Envelope {
                topic,
                receivers,
                payload,
            }),
        }
    }

    fn receive_signal(&self, from: Uuid, signal: ClusterSignal) {
        match signal {
            ClusterSignal::RunDue => self.context.wakeup.notify(),
            ClusterSignal::KeepPartial { run, lease } => {
                let leases = &self.context.leases;
                leases.cancel_lease(&RunId(run), lease, CancelReason::Requested);
            }
            ClusterSignal::RequestText { conversation } => {
                self.context.live_streams.send_text(conversation)
            }
            ClusterSignal::Text(it) => self.context.live_streams.apply_text(it),
            ClusterSignal::Heartbeat { is_new: false } => {}
            ClusterSignal::Heartbeat { is_new: true } => self.presence.broadcast(),
            ClusterSignal::Closing => self.presence.remove_node(from),
            ClusterSignal::Presence {
                is_complete,
                conversations,
            } => self.presence.apply_remote(from, is_complete, conversations),
            ClusterSignal::Typing { key, active } => self.typing.apply_remote(key, active),
        }
    }
}

impl ClusterReceiver for RunClusterReceiver {
    fn receive(&self, from: Uuid, body: MessageBody) {
        match body {
            MessageBody::Envelope(envelope) => self.receive_envelope(envelope),
            MessageBody::Signal(signal) => self.receive_signal(from, signal),
        }
    }

    fn on_gap(&self) {
        self.context.check_missed_events.notify_one();
    }

    fn on_connected(&self) {
        self.presence.broadcast();
        self.context.wakeup.notify();
    }
}
