//! Spaces with a director for the tests of the planner, and the director's answers.

use base::ids::MembershipId;

use crate::runs::scheduling::command::{Command, CommandError};
use crate::runs::scheduling::director::choice::{DirectorAnswer, DirectorChoice, DirectorFailure};
use crate::runs::scheduling::planner::fixture::PlannerFixture;
use crate::spaces::space::ReplyOrder;

pub const CID: MembershipId = MembershipId(4);

/// Ada, Bob and Cid in a space with a director; no one has spoken.
pub fn directed() -> PlannerFixture {
    let mut fixture = PlannerFixture::with_characters(&["Ada", "Bob", "Cid"]);
    fixture.state.space.reply_order = ReplyOrder::Director;
    fixture
}

/// The director is asked who answers Eve.
pub fn choosing() -> PlannerFixture {
    let mut fixture = directed();
    fixture.post_as_eve("Hi.").unwrap();
    fixture.claim_due();
    fixture
}

/// Returns an answer of the director that cost nothing.
pub fn answer(speakers: &[MembershipId], reason: &str) -> DirectorChoice {
    DirectorChoice {
        answer: Ok(DirectorAnswer {
            speakers: speakers.to_vec(),
            reason: reason.to_owned(),
        }),
        usage: None,
    }
}

/// Returns the director's answer for the running run, if one is running.
pub fn choose_command(fixture: &PlannerFixture, choice: DirectorChoice) -> Option<Command> {
    let running = fixture.state.running.as_ref()?;
    Some(Command::SpeakerChosen {
        run: running.id,
        lease: running.lease,
        choice,
    })
}

impl PlannerFixture {
    pub fn choose(&mut self, choice: DirectorChoice) -> Result<Vec<String>, CommandError> {
        let command = choose_command(self, choice).expect("a run is running");
        self.run_command(&command)
    }

    pub fn fail_choice(&mut self, failure: DirectorFailure) -> Result<Vec<String>, CommandError> {
        self.choose(DirectorChoice {
            answer: Err(failure),
            usage: None,
        })
    }

    /// Returns the speakers of the round's slots.
    pub fn slot_speakers(&self) -> Vec<Option<MembershipId>> {
        let round = self.state.round.as_ref().expect("a round");
        let slots = round.slots.0.iter();
        slots.map(|it| it.space_membership_id).collect()
    }

    /// Returns why the speaker of the running run was chosen.
    pub fn running_because(&self) -> &str {
        let running = self.state.running.as_ref().expect("a run is running");
        running.debug.chosen_because.as_deref().unwrap_or_default()
    }
}
