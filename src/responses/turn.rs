//! One turn: a value that one task owns, from the first event to the last. It is passed, never
//! found; two turns share pools and nothing else.
//!
//! The model's words go into an inbox, which only takes memory; whoever empties it folds them, writes
//! what must be written, and hands the events on.

use crate::clock::Clock;
use crate::generation::call_limits::CallLimits;
use crate::generation::outcome::CallEnd;
use crate::generation::outcome::FailureCode;
use crate::generation::outcome::GenerationFailure;
use crate::generation::outcome::ModelOutput;
use crate::llm::delta::FinishReason;
use crate::responses::cast::Cast;
use crate::responses::document::Trouble;
use crate::responses::fold::Event;
use crate::responses::fold::Fold;
use crate::responses::happening::Ending;
use crate::responses::happening::Happening;
use crate::responses::happening::How;
use crate::responses::inbox::Inbox;
use crate::responses::pipe::Writer;
use crate::responses::recorder::Recorder;
use crate::responses::recorder::Unwritten;
use crate::responses::refusal::Refusal;
use crate::responses::remote::Errand;
use crate::responses::response::Status;
use crate::responses::speech;
use crate::responses::speech::Call;
use crate::responses::stop::Stop;
use crate::responses::stop::Why;
use crate::responses::toolbox::Toolbox;
use crate::tools::tool_runtime::ToolRuntime;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;
use tokio::time::timeout_at;

/// Events of a background response are written down together, so often at most.
const LOG_EVERY: Duration = Duration::from_millis(100);

/// Everything that a turn needs.
pub struct Turn {
    pub call: Call,
    /// Those who speak after it.
    pub cast: Option<Cast>,
    pub toolbox: Toolbox,
    pub workshop: ToolRuntime,
    /// What is to be done with servers elsewhere.
    pub errand: Errand,
    pub watches: CallLimits,
    pub stop: Stop,
    pub clock: Clock,
    pub stage: Stage,
}

/// Where a turn is shown and written down.
pub struct Stage {
    pub fold: Fold,
    /// `None`: nothing is stored.
    pub recorder: Option<Recorder>,
    /// `None`: nobody reads along.
    pub reader: Option<Writer>,
    /// Whoever read along was too slow.
    pub was_let_go: bool,
    pub is_background: bool,
    /// Whether the log has its first events.
    pub was_told: bool,
}

/// How a turn was left.
#[derive(Debug)]
pub enum Left {
    /// With its end; this is the whole response.
    Ended(Value),
    /// With nothing put out, for another node to take.
    Untouched,
}

/// Takes the turn.
pub async fn take(turn: Turn) -> Left {
    let Turn {
        call,
        mut cast,
        toolbox,
        workshop,
        errand,
        watches,
        stop,
        clock,
        mut stage,
    } = turn;
    if stage.start().await.is_err() {
        stop.end(Why::Lost);
    }
    let inbox = Inbox::default();
    let speaking = async {
        let tools = (toolbox, workshop, errand);
        let spoken = speech::speak(call, cast.as_mut(), tools, watches, &inbox, &stop).await;
        inbox.close();
        spoken
    };
    let (spoken, ()) = futures::join!(speaking, stage.show(&inbox, &stop));
    let may_go_back = stage.is_background && !stage.fold.has_output();
    let how = match (&spoken.broken_by, spoken.cut) {
        (Some(refusal), _) => Some(How::Failed(gone(refusal))),
        (None, Some(reason)) => Some(How::Incomplete(reason)),
        (None, None) => how(&spoken.heard, &stop, may_go_back),
    };
    let Some(how) = how else {
        return Left::Untouched;
    };
    let usage = spoken.bill;
    if let (Some(cast), Some(usage)) = (cast, usage) {
        cast.charge(usage).await;
    }
    let at = clock.now();
    stage.end(Ending { how, usage, at }, &stop).await
}

impl Stage {
    async fn start(&mut self) -> Result<(), Unwritten> {
        let mut events = Vec::new();
        if !self.was_told {
            events.extend(self.fold.apply(Happening::Created));
        }
        // A second attempt goes on where the first one stopped.
        if !self.is_background || self.fold.standing().status == Status::Queued {
            events.extend(self.fold.apply(Happening::Began));
        }
        self.hand_on(events).await
    }

    /// Shows what comes into the inbox, until it is closed.
    async fn show(&mut self, inbox: &Inbox, stop: &Stop) {
        while let Some(happenings) = inbox.take().await {
            let began = Instant::now();
            let mut events = Vec::new();
            for happening in happenings {
                events.extend(self.fold.apply(happening));
            }
            match self.hand_on(events).await {
                Ok(()) => stop.written.send_replace(()),
                // What follows would leave a gap in the log.
                Err(Unwritten::Lost) => return stop.end(Why::Lost),
                Err(Unwritten::Database(error)) => {
                    tracing::error!(%error, "a response could not be written: {error}");
                    return stop.end(Why::Lost);
                }
            }
            // What nobody reads and nobody keeps need not be said.
            if self.was_let_go && self.recorder.is_none() {
                stop.end(Why::Left);
            }
            inbox.shown();
            if self.is_background {
                // The first words go out at once, the next together.
                let _ = timeout_at(began + LOG_EVERY, inbox.in_a_hurry()).await;
            }
        }
    }

    async fn hand_on(&mut self, events: Vec<Event>) -> Result<(), Unwritten> {
        if let Some(recorder) = &mut self.recorder {
            recorder.keep(self.fold.items(), &events).await?;
        }
        self.tell(events);
        Ok(())
    }

    fn tell(&mut self, events: Vec<Event>) {
        if let Some(reader) = &self.reader
            && !reader.push(events)
        {
            self.reader = None;
            self.was_let_go = true;
        }
    }

    /// Writes the end and tells of it. Who has lost the response tells that it was lost.
    async fn end(mut self, ending: Ending, stop: &Stop) -> Left {
        let before = self.recorder.as_ref().map(|_| self.fold.clone());
        let at = ending.at;
        let mut events = self.fold.apply(Happening::Ended(ending));
        if let Some(recorder) = self.recorder.take().filter(|_| stop.why() != Why::Lost) {
            let (items, standing) = (self.fold.items(), self.fold.standing());
            let finished = recorder.finish(items, &events, standing).await;
            if let (Err(_), Some(before)) = (finished, before) {
                self.fold = before;
                events = self.fold.apply(Happening::Ended(Ending {
                    how: How::Failed(lost()),
                    usage: None,
                    at,
                }));
            }
        }
        stop.written.send_replace(());
        self.tell(events);
        Left::Ended(self.fold.document())
    }
}

/// How a turn ended. `None`: it did not, another node may take it.
fn how(heard: &ModelOutput, stop: &Stop, may_go_back: bool) -> Option<How> {
    Some(match &heard.end {
        CallEnd::Answered(FinishReason::Length) => How::Incomplete("max_output_tokens"),
        CallEnd::Answered(FinishReason::ContentFilter) => How::Incomplete("content_filter"),
        CallEnd::Answered(_) if heard.is_capped => How::Incomplete("max_output_tokens"),
        CallEnd::Answered(_) => How::Completed,
        CallEnd::Failed(failure) if failure.code == FailureCode::RunTimeout => {
            How::Incomplete("run_timeout")
        }
        CallEnd::Failed(failure) => How::Failed(trouble(failure)),
        CallEnd::Canceled => match stop.why() {
            Why::Left | Why::Asked => How::Cancelled,
            Why::Closing if may_go_back => return None,
            Why::Closing | Why::Lost => How::Failed(lost()),
        },
    })
}

/// What is told of a response whose node could not end it.
pub fn lost() -> Trouble {
    Trouble {
        code: "instance_lost".to_owned(),
        message: "The server that worked on this response could not finish it.".to_owned(),
    }
}

/// What was right when a response was queued is so no more.
pub fn gone(refusal: &Refusal) -> Trouble {
    let (code, message) = match refusal {
        Refusal::TooLong { .. } => (
            "context_length_exceeded",
            "The input is longer than the model's window.",
        ),
        Refusal::ModelNotFound(_) => ("upstream_error", "The model is not there any more."),
        Refusal::SpaceArchived => ("upstream_error", "The space is archived."),
        Refusal::TokenLimit => ("upstream_error", "The space has used up its tokens."),
        Refusal::NoSpeaker => ("upstream_error", "No character of the space can speak."),
        _ => ("upstream_error", "The model cannot be asked."),
    };
    Trouble {
        code: code.to_owned(),
        message: message.to_owned(),
    }
}

/// A failure in the words of this API.
pub fn trouble(failure: &GenerationFailure) -> Trouble {
    let code = match failure.code {
        FailureCode::UpstreamTimeout => "upstream_timeout",
        FailureCode::UpstreamError | FailureCode::NoProvider => "upstream_error",
        FailureCode::UpstreamRateLimited => "rate_limit_exceeded",
        FailureCode::UpstreamDisconnected => "upstream_disconnected",
        FailureCode::ContextOverflow => "context_length_exceeded",
        _ => "server_error",
    };
    Trouble {
        code: code.to_owned(),
        message: failure.message.clone(),
    }
}
