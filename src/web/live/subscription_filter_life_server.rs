//! The simulated server of the property test of the filter: generates commits and stream frames,
//! and publishes them step by step.

use std::sync::Arc;

use base::ids::ConversationId;
use realtime::event::{Envelope, Payload, StreamBoundary, StreamDelta, utf16_len};
use realtime::topic::Topic;
use uuid::Uuid;

/// The one conversation of the test.
pub const HERE: ConversationId = ConversationId(1);

/// What can happen, as a story to be cut into acts.
#[derive(Clone, Debug)]
pub enum TimelineStep {
    Post,
    /// Each text is a piece; an empty one is the stream beginning anew, a lone dot a post between.
    Run {
        pieces: Vec<String>,
        succeeds: bool,
    },
}

/// One thing that happens at once. Between any two acts the late client may take its next step.
#[derive(Clone, Debug)]
pub enum ServerAction {
    /// A commit with the next durable event, whose `rev` stands for a message.
    Commit(i64),
    /// The same, and a run runs from now on, or none does.
    CommitRunning(i64, Option<Uuid>),
    /// A durable event is published.
    TellDurable(i64),
    Tell(Uuid, StreamBoundary),
    Open(Uuid),
    Close,
    Say(String),
    Restart,
    /// Nothing is under way: all that was committed was told.
    Quiet,
}

pub fn server_actions(scenes: &[TimelineStep]) -> Vec<ServerAction> {
    let mut acts = vec![ServerAction::Quiet];
    let mut rev = 0;
    for (n, scene) in scenes.iter().enumerate() {
        match scene {
            TimelineStep::Post => post(&mut acts, &mut rev),
            TimelineStep::Run { pieces, succeeds } => {
                let run = Uuid::from_u128(n as u128 + 1);
                run_actions(&mut acts, &mut rev, run, pieces, *succeeds);
            }
        }
        acts.push(ServerAction::Quiet);
    }
    acts
}

fn post(acts: &mut Vec<ServerAction>, rev: &mut i64) {
    *rev += 1;
    acts.extend([ServerAction::Commit(*rev), ServerAction::TellDurable(*rev)]);
}

fn run_actions(
    acts: &mut Vec<ServerAction>,
    rev: &mut i64,
    run: Uuid,
    pieces: &[String],
    succeeds: bool,
) {
    *rev += 1;
    acts.push(ServerAction::CommitRunning(*rev, Some(run)));
    // The order of these two is the engine's own affair.
    match succeeds {
        true => acts.extend([ServerAction::TellDurable(*rev), ServerAction::Open(run)]),
        false => acts.extend([ServerAction::Open(run), ServerAction::TellDurable(*rev)]),
    }
    acts.push(ServerAction::Tell(run, StreamBoundary::Start));
    for piece in pieces {
        acts.push(ServerAction::Quiet);
        match piece.as_str() {
            "" => acts.push(ServerAction::Restart),
            "." => post(acts, rev),
            _ => acts.push(ServerAction::Say(piece.clone())),
        }
    }
    acts.push(ServerAction::Close);
    *rev += 2;
    acts.extend([
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
    /// Lets it happen; what is published thereby.
    pub fn apply(&mut self, act: &ServerAction) -> Option<Arc<Envelope>> {
        let cargo = match act {
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
            ServerAction::Tell(run, mark) => Payload::Stream {
                json: "".into(),
                run: *run,
                lease: 1,
                mark: *mark,
            },
            ServerAction::Restart => {
                let (run, text) = self.live.as_mut().unwrap();
                text.clear();
                Payload::Stream {
                    json: "".into(),
                    run: *run,
                    lease: 1,
                    mark: StreamBoundary::Reset,
                }
            }
            ServerAction::Say(piece) => {
                let (run, text) = self.live.as_mut().unwrap();
                let delta = StreamDelta::new(HERE, *run, utf16_len(text), piece.clone());
                text.push_str(piece);
                Payload::Delta(delta)
            }
        };
        let topic = Topic::Conversation(HERE);
        Some(Arc::new(Envelope {
            topic,
            payload: cargo,
        }))
    }
}
