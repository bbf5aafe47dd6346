//! Fixture for tests of the planner: one conversation in memory, which applies plans as the writer
//! does. Panics if a plan cannot be applied.

use std::collections::HashSet;
use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{MembershipId, MessageId, RoundId, RunId};
use serde_json::json;

use crate::conversations::audience::viewer::Viewer;
use crate::conversations::{message, swipe};
use crate::runs::scheduling::command::{
    Command, CommandError, ExecutionEnd, ForcedTurn, GeneratedText, VersionRequest,
};
use crate::runs::scheduling::messages::new_post::NewPost;
use crate::runs::scheduling::plan::Plan;
use crate::runs::scheduling::plan_builder::GeneratedIds;
use crate::runs::scheduling::planner;
use crate::runs::scheduling::planner::fixture_rows::{character_member, empty_state, human_member};
use crate::runs::scheduling::state::schedule_state::ScheduleState;
use crate::runs::store::run;
use crate::spaces::permissions::SkipRight;
use crate::spaces::{membership, space};

/// The membership of the human.
pub const EVE: MembershipId = MembershipId(1);
/// The memberships of the first characters.
pub const ADA: MembershipId = MembershipId(2);
pub const BOB: MembershipId = MembershipId(3);

/// A stop that drops the text.
pub const STOP: Command = Command::Stop {
    keep_partial: false,
};

/// A retry by a person who may edit.
pub const RETRY: Command = Command::Retry {
    may_edit: true,
    viewer: Viewer::Server,
};

pub const SKIP: Command = Command::Skip {
    viewer: Viewer::Server,
    right: SkipRight::Everyone,
};

/// The conversation, its state, and the runs that ended.
#[derive(Clone)]
pub struct PlannerFixture {
    pub state: ScheduleState,
    pub now: Timestamp,
    pub has_provider: bool,
    pub has_reached_token_limit: bool,
    /// The timeline, hidden messages included.
    pub messages: Vec<message::Model>,
    /// The swipes of messages that have several.
    pub swipes: Vec<swipe::Model>,
    /// The message at which a branch starts.
    pub fork_point: Option<MessageId>,
    /// Who has greeted; `None` once other messages than greetings exist.
    pub greeted: Option<HashSet<MembershipId>>,
    /// Every run that has ended, in the order of their ends.
    pub ended: Vec<run::Model>,
    seed: i64,
}

impl PlannerFixture {
    /// Returns Eve and these characters, in a space with default settings.
    pub fn with_characters(characters: &[&str]) -> Self {
        let characters = (2..)
            .zip(characters)
            .map(|(id, name)| character_member(id, name));
        let members = std::iter::once(human_member(EVE, "Eve"))
            .chain(characters)
            .collect();
        Self {
            state: empty_state(members),
            now: Timestamp(1_000_000),
            has_provider: true,
            has_reached_token_limit: false,
            messages: Vec::new(),
            swipes: Vec::new(),
            fork_point: None,
            greeted: Some(HashSet::new()),
            ended: Vec::new(),
            seed: 1,
        }
    }

    /// Plans a command and applies the plan; returns a description of each change.
    pub fn run_command(&mut self, command: &Command) -> Result<Vec<String>, CommandError> {
        let (plan, _) = self.execute(command)?;
        Ok(self.describe(&plan))
    }

    /// As [`Self::run_command`], but returns the plan, and whether it changed anything.
    pub fn execute(&mut self, command: &Command) -> Result<(Plan, bool), CommandError> {
        self.load_for(command);
        self.seed += 1;
        let fresh = GeneratedIds {
            seed: self.seed,
            round: RoundId::new(),
            run: RunId::new(),
        };
        let plan = planner::plan(&self.state, command, fresh, self.now)?;
        let changed = !plan.changes.is_empty() || plan.enqueue.is_some();
        for change in plan.changes.clone() {
            self.apply(change);
        }
        if let Some(enqueue) = plan.enqueue.clone() {
            self.enqueue(enqueue);
        }
        Ok((plan, changed))
    }

    /// Posts a message by Eve.
    pub fn post_as_eve(&mut self, text: &str) -> Result<Vec<String>, CommandError> {
        self.run_command(&post(text))
    }

    /// Claims the queued run.
    pub fn claim_due(&mut self) -> Vec<String> {
        let run = self.state.queued.as_ref().expect("a run is queued").id;
        self.run_command(&Command::Claim { run })
            .expect("a claim is never rejected")
    }

    /// Ends the running run.
    pub fn end_run(&mut self, end: ExecutionEnd) -> Vec<String> {
        let (run, lease) = self.running();
        self.run_command(&Command::RunEnded {
            run,
            lease,
            end: Box::new(end),
        })
        .expect("the lease is valid")
    }

    /// Expires the lease of the running run, whose node died.
    pub fn expire_lease(&mut self) -> Vec<String> {
        let (run, lease) = self.running();
        let silent_for_ms = 30_000;
        let command = Command::LeaseExpired {
            run,
            lease,
            silent_for_ms,
        };
        self.run_command(&command).expect("the lease is valid")
    }

    /// Releases the running run, whose node shuts down.
    pub fn release_run(&mut self) -> Vec<String> {
        let (run, lease) = self.running();
        self.run_command(&Command::RunReleased {
            run,
            lease,
            usage: None,
        })
        .expect("the lease is valid")
    }

    /// Returns the running run and its lease.
    pub fn running(&self) -> (RunId, i64) {
        let run = self.state.running.as_ref().expect("a run is running");
        (run.id, run.lease)
    }

    /// Adds a person to the space.
    pub fn add_person(&mut self, id: MembershipId, name: &str) {
        self.state.members.push(human_member(id, name));
    }

    /// Returns the membership with this id, to be changed.
    pub fn member_mut(&mut self, id: MembershipId) -> &mut membership::Model {
        let mut members = self.state.members.iter_mut();
        members.find(|it| it.id == id).expect("the member exists")
    }

    /// Loads what `state_loader::load` loads for a command.
    pub fn load_for(&mut self, command: &Command) {
        let shown = |it: &&message::Model| it.is_scheduled();
        self.state.tail = self.messages.iter().rev().find(shown).cloned();
        let is_speech =
            |it: &&message::Model| shown(it) && it.role == message::MessageRole::Assistant;
        let newest_speech = self.messages.iter().rev().find(is_speech);
        self.state.last_speaker = newest_speech.map(|it| it.space_membership_id);
        self.state.spoken_in_epoch = HashSet::new();
        for it in self.messages.iter().filter(shown) {
            match it.role {
                message::MessageRole::User => self.state.spoken_in_epoch.clear(),
                _ => _ = self.state.spoken_in_epoch.insert(it.space_membership_id),
            }
        }
        self.state.facts = self.facts_for(command);
    }
}

/// Ada's turn is queued, in a round of Ada and Bob.
pub fn queued() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.replies_per_turn = space::RepliesPerTurn::Activated;
    fixture.post_as_eve("Hi.").unwrap();
    fixture
}

/// Ada's turn is running, in a round of Ada and Bob.
pub fn running() -> PlannerFixture {
    let mut fixture = queued();
    fixture.claim_due();
    fixture
}

/// Ada's turn was stopped, and the round is paused.
pub fn paused() -> PlannerFixture {
    let mut fixture = running();
    fixture.run_command(&STOP).unwrap();
    fixture
}

/// Ada's turn failed, and the round is failed.
pub fn failed() -> PlannerFixture {
    let mut fixture = running();
    fixture.end_run(failure());
    fixture
}

/// A reply by Ada whose round is over is running, and Bob's turn is queued.
pub fn queued_and_running() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.state.space.reply_order = space::ReplyOrder::Natural;
    fixture.post_as_eve("Ada?").unwrap();
    fixture.claim_due();
    fixture.post_as_eve("Bob?").unwrap();
    fixture
}

/// Bob's forced turn is running.
pub fn forced() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob"]);
    fixture.post_as_eve("Hi.").unwrap();
    fixture.run_command(&force(BOB)).unwrap();
    fixture.claim_due();
    fixture
}

/// Returns Eve's command that forces this member to speak.
pub fn force(speaker: MembershipId) -> Command {
    Command::ForceTalk(ForcedTurn::new(Some(speaker), "Eve", Viewer::Server))
}

/// Returns Eve's request of a new version of this message, or of the newest.
pub fn new_version(message: Option<i64>) -> VersionRequest {
    VersionRequest {
        instruction: None,
        message: message.map(MessageId),
        by: "Eve".to_owned(),
        viewer: Viewer::Server,
    }
}

/// Returns Eve's post.
pub fn post(text: &str) -> Command {
    post_by(EVE, text)
}

/// Returns the post of a person.
pub fn post_by(author: MembershipId, text: &str) -> Command {
    Command::MessagePosted(Box::new(NewPost {
        token_count: 1,
        ..NewPost::new(author, text.to_owned())
    }))
}

/// Returns the end of a run that succeeded with this text.
pub fn success(text: &str) -> ExecutionEnd {
    ExecutionEnd::Succeeded(generated_text(text))
}

/// Returns the end of a run whose model failed.
pub fn failure() -> ExecutionEnd {
    ExecutionEnd::Failed {
        error: run::RunError {
            code: "upstream_error".to_owned(),
            message: "No.".to_owned(),
            retryable: true,
        },
        usage: None,
        prompt: None,
    }
}

/// Returns a text as the executor reports it.
pub fn generated_text(text: &str) -> GeneratedText {
    GeneratedText {
        content: text.to_owned(),
        token_count: 1,
        usage: None,
        metadata: json!({}),
        prompt: None,
        memory_changes: Arc::default(),
    }
}
