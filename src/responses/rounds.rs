//! The rounds of a turn: the model is asked, what it called is run, and it is asked again with what
//! came of that.
//!
//! **Invariant:** everything of a round is shown and written before the next one begins. The calls of
//! one round are put out when it is over: first those that ran here, then those that a client runs.

use crate::generation::call_limits::CallLimits;
use crate::generation::model_call;
use crate::generation::outcome::CallEnd;
use crate::generation::outcome::FailureCode;
use crate::generation::outcome::GenerationFailure;
use crate::generation::outcome::ModelOutput;
use crate::llm::delta::FinishReason;
use crate::llm::request::Message;
use crate::responses::bill;
use crate::responses::call_groups;
use crate::responses::document::Bill;
use crate::responses::fold_calls::Call;
use crate::responses::happening::Cut;
use crate::responses::happening::Happening;
use crate::responses::inbox::Inbox;
use crate::responses::mouth::Mouth;
use crate::responses::mouth::Spare;
use crate::responses::refusal::Refusal;
use crate::responses::sorting;
use crate::responses::sorting::Fate;
use crate::responses::sorting::Left;
use crate::responses::sorting::Made;
use crate::responses::speech::Call as ModelCall;
use crate::responses::step;
use crate::responses::step::State;
use crate::responses::step::Step;
use crate::responses::stop::Stop;
use crate::responses::toolbox::Declared;
use crate::responses::toolbox::Kind;
use crate::responses::toolbox::Toolbox;
use crate::tools::executor::ToolJob;
use crate::tools::ordered_output::ToolUpdate;
use crate::tools::tool::ToolResult;
use crate::tools::tool_messages;
use crate::tools::tool_runtime::ToolRuntime;
use futures::FutureExt;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use tokio::time::Instant;
use tokio::time::timeout_at;

/// Calls that run here, of one turn.
const MAX_SERVER_CALLS: u32 = 32;

impl ToolRuntime {
    /// Whether all that these declare to run here is here.
    ///
    /// # Errors
    /// The first that is not.
    pub fn must_have(&self, toolbox: &Toolbox) -> Result<(), Refusal> {
        let is_missing = |it: &Declared| {
            let name = call_groups::kind_of(&it.tool.name);
            it.kind == Kind::Server && self.registry.find(name).is_none()
        };
        match toolbox.tools.iter().position(is_missing) {
            None => Ok(()),
            Some(at) => Err(Refusal::NoSuchTool(format!("tools[{at}].type"))),
        }
    }
}

/// The rounds of one speaker.
pub struct Rounds<'a> {
    /// Its request grows with each round.
    pub call: ModelCall,
    pub toolbox: &'a Toolbox,
    pub workshop: &'a ToolRuntime,
    pub watches: CallLimits,
    pub stop: &'a Stop,
    pub inbox: &'a Inbox,
    pub deadline: Instant,
    pub memory: &'a mut Memory,
}

/// How the rounds ended.
pub struct Took {
    /// The last words.
    pub heard: ModelOutput,
    /// Why there are no more, where that is not how they ended.
    pub cut: Option<&'static str>,
    /// Nothing is open, and nothing was cut off: somebody else may speak.
    pub is_through: bool,
}

/// What is remembered from one round of a turn to the next.
pub struct Memory {
    /// Of all calls.
    pub bill: Option<Bill>,
    known: HashSet<String>,
    left: Left,
    spare: Spare,
    n_asked: u32,
}

impl Memory {
    /// Of a turn that begins.
    pub fn new(toolbox: &Toolbox, watches: &CallLimits) -> Self {
        Self {
            bill: None,
            known: HashSet::new(),
            left: Left {
                all: toolbox.max_calls.unwrap_or(u32::MAX),
                server: MAX_SERVER_CALLS,
            },
            spare: Spare::new(watches.max_text_bytes),
            n_asked: 0,
        }
    }
}

/// The round that was last.
struct Round {
    heard: ModelOutput,
    made: Vec<Made>,
    /// What came of those that ran, by their places.
    outcomes: Vec<(usize, ToolResult)>,
    is_over: bool,
    has_run: bool,
}

impl Rounds<'_> {
    /// Takes all rounds.
    pub async fn take(mut self) -> Took {
        let before = self.call.request.messages.iter().flat_map(|it| &it.calls);
        self.memory.known.extend(before.map(|it| it.id.clone()));
        self.memory.n_asked = 0;
        let mut round = self.ask().await;
        loop {
            let cut = match step::next(&self.state(&round)) {
                Step::Run => {
                    self.run(&mut round).await;
                    continue;
                }
                Step::Ask => {
                    self.tell_back(round).await;
                    round = self.ask().await;
                    continue;
                }
                Step::Stopped => {
                    round.heard.end = CallEnd::Canceled;
                    None
                }
                Step::Done => None,
                Step::Cut(reason) => Some(reason),
            };
            let is_through = cut.is_none() && round.made.is_empty() && !is_cut_off(&round.heard);
            return Took {
                heard: round.heard,
                cut,
                is_through,
            };
        }
    }

    fn state(&self, round: &Round) -> State {
        let is_server = |it: &&Made| matches!(it.fate, Fate::Server(..));
        let n_server = round.made.iter().filter(is_server).count();
        let is_client = |it: &Made| matches!(it.fate, Fate::Client(_));
        State {
            is_cancelled: self.stop.token.is_cancelled() || round.heard.end == CallEnd::Canceled,
            has_failed: is_cut_off(&round.heard),
            is_said: round.made.is_empty() && !round.is_over,
            is_over: round.is_over,
            waits_for_client: round.made.iter().any(is_client),
            is_late: Instant::now() >= self.deadline,
            n_asked: self.memory.n_asked,
            n_pending: if round.has_run { 0 } else { n_server },
        }
    }

    /// Asks the model, shows what it says, and sorts what it calls.
    async fn ask(&mut self) -> Round {
        let mut heard = self.listen().await;
        self.memory.n_asked += 1;
        let is_answer = matches!(heard.end, CallEnd::Answered(_));
        let bill = bill::of(&heard, &self.call.request, is_answer).await;
        self.memory.bill = Bill::sum([self.memory.bill, bill]);
        self.watches.max_text_bytes -= heard.text.len().min(self.watches.max_text_bytes);
        let calls = std::mem::take(&mut heard.calls);
        let mut round = Round {
            heard,
            made: Vec::new(),
            outcomes: Vec::new(),
            is_over: false,
            has_run: false,
        };
        if is_cut_off(&round.heard) {
            for call in sorting::shown_of_cut(calls, self.toolbox) {
                self.inbox.put(Happening::Called(call, Cut::Short));
            }
            return round;
        }
        let Memory { known, left, .. } = &mut *self.memory;
        let sorted = sorting::sort(calls, self.toolbox, known, left);
        (round.made, round.is_over) = (sorted.made, sorted.is_over);
        if !round
            .made
            .iter()
            .any(|it| matches!(it.fate, Fate::Server(..)))
        {
            self.put_out(&round);
        }
        round
    }

    async fn listen(&mut self) -> ModelOutput {
        let (token, deadline) = (&self.stop.token, self.deadline);
        // Held while the model speaks, and not while tools run.
        let permit = tokio::select! {
            () = token.cancelled() => None,
            permit = timeout_at(deadline, self.call.permits.acquire()) => permit.ok().and_then(Result::ok),
        };
        self.watches.total = deadline.saturating_duration_since(Instant::now());
        let mut sink = Mouth {
            inbox: self.inbox,
            spare: &mut self.memory.spare,
        };
        let (provider, request, watches) = (
            self.call.provider.as_ref(),
            &self.call.request,
            &self.watches,
        );
        let speech = model_call::complete(
            provider,
            request,
            self.call.trim.clone(),
            watches,
            &mut sink,
            token,
        );
        let heard = AssertUnwindSafe(speech).catch_unwind().await;
        drop(permit);
        heard.unwrap_or_else(|_| panicked())
    }

    /// Runs what is ours of a round, and shows it.
    async fn run(&self, round: &mut Round) {
        let (mut jobs, mut receipts, mut places) = (Vec::new(), Vec::<Call>::new(), Vec::new());
        for (at, made) in round.made.iter().enumerate() {
            if let Fate::Server(receipt, name, arguments) = &made.fate {
                match self.workshop.registry.find(name) {
                    None => round
                        .outcomes
                        .push((at, Err("It is not there any more.".to_owned()))),
                    Some(tool) => {
                        jobs.push(ToolJob {
                            tool: tool.clone(),
                            arguments: arguments.clone(),
                        });
                        receipts.push(receipt.clone());
                        places.push(at);
                    }
                }
            }
        }
        let show = |at: usize, told: ToolUpdate| {
            self.inbox.put(match told {
                ToolUpdate::Started => Happening::ToolBegan(receipts[at].clone()),
                ToolUpdate::Progress(message) => Happening::ToolMoved(message),
                ToolUpdate::Finished(outcome) => Happening::ToolEnded(outcome),
            });
        };
        let running = self.workshop.executor.run(jobs, show);
        let outcomes = tokio::select! {
            () = self.stop.token.cancelled() => return,
            outcomes = timeout_at(self.deadline, running) => outcomes,
        };
        // Late: what was not told of stays untold, and the turn ends.
        if let Ok(outcomes) = outcomes {
            round.has_run = true;
            round.outcomes.extend(places.into_iter().zip(outcomes));
            self.put_out(round);
        }
    }

    /// Shows the calls for the client.
    fn put_out(&self, round: &Round) {
        for made in &round.made {
            if let Fate::Client(call) = &made.fate {
                self.inbox.put(Happening::Called(call.clone(), Cut::Whole));
            }
        }
    }

    /// Tells the model what it said and what came of it, once all of it is written.
    async fn tell_back(&mut self, round: Round) {
        self.inbox.put(Happening::AskedAgain);
        tokio::select! {
            () = self.stop.token.cancelled() => {}
            () = self.inbox.settled() => {}
        }
        let calls = round.made.iter().map(|it| it.call.clone()).collect();
        let messages = &mut self.call.request.messages;
        messages.push(tool_messages::assistant_message(round.heard.text, calls));
        messages.extend(answers(&round.made, round.outcomes));
        self.toolbox.set_free(&mut self.call.request);
    }
}

/// What came of each call, in order.
fn answers(made: &[Made], mut outcomes: Vec<(usize, ToolResult)>) -> Vec<Message> {
    let answer = |(at, made): (usize, &Made)| {
        let outcome = match &made.fate {
            Fate::Refused(reason) => Err(reason.clone()),
            _ => match outcomes.iter().position(|it| it.0 == at) {
                Some(place) => outcomes.swap_remove(place).1,
                None => Err("Nothing came of it.".to_owned()),
            },
        };
        tool_messages::tool_message(&made.call, tool_messages::result_text(&outcome))
    };
    made.iter().enumerate().map(answer).collect()
}

/// Whether the model could not say all that it wanted.
fn is_cut_off(heard: &ModelOutput) -> bool {
    let is_whole = match &heard.end {
        CallEnd::Answered(FinishReason::Length | FinishReason::ContentFilter) => false,
        CallEnd::Answered(_) => !heard.is_capped,
        CallEnd::Failed(_) | CallEnd::Canceled => false,
    };
    !is_whole
}

/// What is heard of a model whose adapter broke down.
fn panicked() -> ModelOutput {
    ModelOutput {
        end: CallEnd::Failed(GenerationFailure {
            code: FailureCode::Internal,
            message: "Something went wrong on the server. It has been logged.".to_owned(),
            is_retryable: true,
        }),
        text: String::new(),
        reasoning: None,
        calls: Vec::new(),
        usage: None,
        call_usages: Vec::new(),
        is_capped: false,
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
