//! Defines the state of a conversation that the planner decides on: conversation, space, members,
//! round and runs. `state_loader` loads it.

use std::collections::{HashMap, HashSet};

use base::ids::{CharacterId, MembershipId};

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::{conversation, message};
use crate::rounds::round;
use crate::runs::scheduling::state::command_facts::CommandFacts;
use crate::runs::store::run;
use crate::spaces::{membership, space};
use crate::speakers::from_memberships;
use crate::speakers::selection::Candidate;

/// The state of one conversation at one instant.
#[derive(Clone, Debug)]
pub struct ScheduleState {
    pub conversation: conversation::Model,
    pub space: space::Model,
    /// The active memberships in roster order, then the removed ones to which a run, a slot, a
    /// loaded message or the command refers.
    pub members: Vec<membership::Model>,
    /// The active round.
    pub round: Option<round::Model>,
    pub queued: Option<run::Model>,
    pub running: Option<run::Model>,
    /// The newest message that is not hidden.
    pub tail: Option<message::Model>,
    /// The author of the newest assistant message that is not hidden.
    pub last_speaker: Option<MembershipId>,
    /// Who has spoken since the newest message of role user; loaded when the speaker choice needs
    /// it.
    pub spoken_in_epoch: HashSet<MembershipId>,
    /// The talkativeness on the characters' cards; loaded when the speaker choice needs it.
    pub talkativeness: HashMap<CharacterId, f64>,
    /// The facts that only some commands need.
    pub facts: CommandFacts,
}

impl ScheduleState {
    /// Returns the membership with this id, removed or not.
    pub fn member(&self, id: MembershipId) -> Option<&membership::Model> {
        self.members.iter().find(|it| it.id == id)
    }

    /// Returns the memberships that the loaded data refers to.
    pub(super) fn referenced_members(&self) -> impl Iterator<Item = MembershipId> {
        let runs = [&self.queued, &self.running].into_iter().flatten();
        let slots = self.round.iter().flat_map(|it| &it.slots.0);
        (self.last_speaker.into_iter())
            .chain(runs.filter_map(|it| it.speaker_space_membership_id))
            .chain(slots.filter_map(|it| it.space_membership_id))
            .chain(self.tail.iter().map(|it| it.space_membership_id))
            .chain(self.facts.referenced_members())
    }

    /// Returns those of the candidates that see what they answer; `None`: everyone does.
    pub fn candidates_for(&self, audience: Option<&Audience>) -> Vec<Candidate> {
        let mut all = self.candidates();
        all.retain(|it| audience.is_none_or(|audience| audience.contains(it.id)));
        all
    }

    /// Returns the characters as input for the speaker choice.
    pub fn candidates(&self) -> Vec<Candidate> {
        from_memberships::candidates(&self.members, &self.talkativeness)
    }
}
