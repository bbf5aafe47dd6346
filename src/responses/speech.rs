//! What is said in a turn: the call of its model, and those of everybody who speaks after it.

use crate::generation::call_limits::CallLimits;
use crate::generation::outcome::ModelOutput;
use crate::generation::trim::ReplyTrimmer;
use crate::llm::provider::Provider;
use crate::llm::request::Request;
use crate::responses::cast::Cast;
use crate::responses::document::Bill;
use crate::responses::happening::Happening;
use crate::responses::inbox::Inbox;
use crate::responses::refusal::Refusal;
use crate::responses::remote::Errand;
use crate::responses::remote_turn;
use crate::responses::remote_turn::Bench;
use crate::responses::rounds::Memory;
use crate::responses::rounds::Rounds;
use crate::responses::stop::Stop;
use crate::responses::toolbox::Toolbox;
use crate::tools::tool_runtime::ToolRuntime;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A call of a model, the first of its rounds.
pub struct Call {
    pub provider: Arc<dyn Provider>,
    pub request: Request,
    /// The calls that its provider may be asked for at once.
    pub permits: Arc<Semaphore>,
    /// Cleans what is said.
    pub trim: ReplyTrimmer,
    /// What its items tell of who speaks; `None`: nobody but the model.
    pub speaks: Option<Value>,
}

/// What came of the calls of a turn.
pub struct Spoken {
    /// The last words.
    pub heard: ModelOutput,
    /// Why there are no more, where that is not how they ended.
    pub cut: Option<&'static str>,
    /// Of all calls.
    pub bill: Option<Bill>,
    /// Why nobody spoke after it who should have.
    pub broken_by: Option<Refusal>,
}

/// Makes the call with its rounds, and those of all who speak after it. All of it together may take
/// `watches.total`.
pub async fn speak(
    mut call: Call,
    mut cast: Option<&mut Cast>,
    (mut toolbox, mut workshop, errand): (Toolbox, ToolRuntime, Errand),
    watches: CallLimits,
    inbox: &Inbox,
    stop: &Stop,
) -> Spoken {
    let deadline = Instant::now() + watches.total;
    remote_turn::call_on_servers(
        errand,
        Bench {
            request: &mut call.request,
            toolbox: &mut toolbox,
            workshop: &mut workshop,
            inbox,
        },
        (stop, deadline),
    )
    .await;
    let mut memory = Memory::new(&toolbox, &watches);
    loop {
        if let Some(speaks) = &call.speaks {
            inbox.put(Happening::Speaks(speaks.clone()));
        }
        let speaker = call.request.speaker.clone();
        let rounds = Rounds {
            call,
            toolbox: &toolbox,
            workshop: &workshop,
            watches,
            stop,
            inbox,
            deadline,
            memory: &mut memory,
        };
        let took = rounds.take().await;
        let next = match &mut cast {
            Some(cast) if took.is_through => {
                cast.has_said(&speaker, &took.heard.text);
                cast.next().await
            }
            _ => Ok(None),
        };
        let (next, broken_by) = match next {
            Ok(next) => (next, None),
            Err(refusal) => (None, Some(refusal)),
        };
        let Some(next) = next else {
            return Spoken {
                heard: took.heard,
                cut: took.cut,
                bill: memory.bill,
                broken_by,
            };
        };
        call = next;
        if !toolbox.remotes.is_empty() {
            toolbox.lay_out(&mut call.request);
        }
    }
}
