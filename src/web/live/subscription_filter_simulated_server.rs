//! Simulates the server in the property tests of the subscription filter: generates a sequence of
//! commits and stream frames, and publishes them step by step.

use std::sync::Arc;

use base::ids::ConversationId;
use realtime::envelope::{
    Envelope, Payload, Receivers, StreamBoundary, StreamDelta, StreamFrame, utf16_len,
};
use realtime::topic::Topic;
use uuid::Uuid;

/// The one conversation of the test.
pub const HERE: ConversationId = ConversationId(1);

/// A generated event of the timeline; [`server_actions`] splits it into atomic actions.
#[derive(Clone, Debug)]
pub enum TimelineStep {
    Post,
    /// Each text is a piece of the stream; an empty one restarts the stream, `.` is a post.
    Run {
        pieces: Vec<String>,
        succeeds: bool,
    },
}

/// An atomic action of the server. The late client may act between any two of them.
#[derive(Clone, Debug)]
pub enum ServerAction {
    /// A commit with the next durable event, whose `rev` represents a message.
    Commit(i64),
    /// The same, and from now on this run is running, or none.
    CommitRunning(i64, Option<Uuid>),
    /// A durable event is published.
    TellDurable(i64),
    Tell(Uuid, StreamBoundary),
    Open(Uuid),
    Close,
    Say(String),
    Restart,
    /// Does nothing; everything that was committed has been published.
    Quiet,
}

pub fn server_actions(steps: &[TimelineStep]) -> Vec<ServerAction> {
    let mut actions = vec![ServerAction::Quiet];
    let mut rev = 0;
    for (n, step) in steps.iter().enumerate() {
        match step {
            TimelineStep::Post => post(&mut actions, &mut rev),
            TimelineStep::Run { pieces, succeeds } => {
                let run = Uuid::from_u128(n as u128 + 1);
                run_actions(&mut actions, &mut rev, run, pieces, *succeeds);
            }
        }
        actions.push(ServerAction::Quiet);
    }
    actions
}

fn post(actions: &mut Vec<ServerAction>, rev: &mut i64) {
    *rev += 1;
    actions.extend([ServerAction::Commit(*rev), ServerAction::TellDurable(*rev)]);
}

fn run_actions(
    actions: &mut Vec<ServerAction>,
    rev: &mut i64,
    run: Uuid,
    pieces: &[String],
    succeeds: bool,
) {
    *rev += 1;
    actions.push(ServerAction::CommitRunning(*rev, Some(run)));
    // The engine guarantees no order of these two.
    match succeeds {
        true => actions.extend([ServerAction::TellDurable(*rev), ServerAction::Open(run)]),
        false => actions.extend([ServerAction::Open(run), ServerAction::TellDurable(*rev)]),
    }
    actions.push(ServerAction::Tell(run, StreamBoundary::Start));
    for piece in pieces {
        actions.push(ServerAction::Quiet);
        match piece.as_str() {
            "" => actions.push(ServerAction::Restart),
            "." => post(actions, rev),
            _ => actions.push(ServerAction::Say(piece.clone())),
        }
    }
    actions.push(ServerAction::Close);
    *rev += 2;
    actions.extend([
        ServerAction::CommitRunning(*rev, None),
        ServerAction::TellDurable(*rev - 1),
        ServerAction::Tell(run, StreamBoundary::Complete),
        ServerAction::TellDurable(*rev),
        ServerAction::Tell(run, StreamBoundary::Stop),
    ]);
}

/// The server: its database, its live text.
#[derive(Default)]
pub struct ServerState {
    pub rev: i64,
    pub running: Option<Uuid>,
    pub live: Option<(Uuid, String)>,
}

impl ServerState {
    /// Applies an action; returns the event that it publishes, if any.
    pub fn apply(&mut self, action: &ServerAction) -> Option<Arc<Envelope>> {
        let payload = match action {
            ServerAction::Commit(rev) => {
                self.rev = *rev;
                return None;
            }
            ServerAction::CommitRunning(rev, run) => {
                self.rev = *rev;
                self.running = *run;
                return None;
            }
            ServerAction::Open(run) => {
                self.live = Some((*run, String::new()));
                return None;
            }
            ServerAction::Close => {
                self.live = None;
                return None;
            }
            ServerAction::Quiet => return None,
            ServerAction::TellDurable(rev) => Payload::Frame {
                json: rev.to_string().into(),
                rev: Some(*rev),
            },
            ServerAction::Tell(run, mark) => stream_event(*run, *mark),
            ServerAction::Restart => {
                let (run, text) = self.live.as_mut().unwrap();
                text.clear();
                stream_event(*run, StreamBoundary::Reset)
            }
            ServerAction::Say(piece) => {
                let (run, text) = self.live.as_mut().unwrap();
                let delta = StreamDelta::new(HERE, *run, utf16_len(text), piece.clone());
                text.push_str(piece);
                Payload::Delta(delta)
            }
        };
        let topic = Topic::Conversation(HERE);
        let receivers = Receivers::Everyone;
        Some(Arc::new(Envelope {
            topic,
            receivers,
            payload,
        }))
    }
}

fn stream_event(run: Uuid, mark: StreamBoundary) -> Payload {
    let json = format!(r#"{{"type":"{mark:?}"}}"#);
    Payload::Stream(StreamFrame::new(json.into(), (run, 1), mark))
}
