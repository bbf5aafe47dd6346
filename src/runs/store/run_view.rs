//! The JSON document of a run: the whole one, and what people outside its audience see of it.

use base::clock::Timestamp;
use base::ids::{ConversationId, MembershipId, MessageId, RoundId, RunId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::runs::store::run::{
    Model, PromptStats, RunCancelReason, RunError, RunKind, RunReason, RunStatus, RunUsage,
    WaitingFor,
};

/// A run as one viewer sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AnyRun)]
#[serde(untagged)]
pub enum RunDocument {
    Whole(Box<RunView>),
    Private(PrivateRunView),
}

/// What people outside the audience of a run see of it: that it exists.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = PrivateRun)]
pub struct PrivateRunView {
    pub id: RunId,
    pub conversation_id: ConversationId,
    /// Position among the runs of its conversation, from 1.
    pub run_seq: i64,
    pub status: RunStatus,
    pub created_at: Timestamp,
    /// Always true.
    pub private: bool,
}

impl RunDocument {
    /// Returns the whole document, if the viewer sees it.
    pub fn whole(&self) -> Option<&RunView> {
        match self {
            Self::Whole(view) => Some(view),
            Self::Private(_) => None,
        }
    }
}

/// One attempt to produce one text.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    pub id: RunId,
    pub conversation_id: ConversationId,
    /// Position among the runs of its conversation, from 1.
    pub run_seq: i64,
    pub round_id: Option<RoundId>,
    pub slot_position: Option<i64>,
    pub kind: RunKind,
    pub status: RunStatus,
    pub reason: RunReason,
    /// Null until the director chooses.
    pub speaker_space_membership_id: Option<MembershipId>,
    /// The memberships that see it and its text; null: everyone.
    pub audience: Option<Audience>,
    /// False; true in the document of a [`PrivateRunView`].
    pub private: bool,
    pub chosen_because: Option<String>,
    pub run_after: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub heartbeat_at: Option<Timestamp>,
    pub attempt: i64,
    pub waiting_for: Option<WaitingFor>,
    /// Why it was canceled; only for a canceled run.
    pub canceled_because: Option<RunCancelReason>,
    /// The post that canceled it; only for the reason `superseded_by_message`. Null for a whisper that not
    /// everyone sees who sees the run.
    pub superseded_by_message_id: Option<MessageId>,
    pub error: Option<RunError>,
    pub usage: Option<RunUsage>,
    pub target_message_id: Option<MessageId>,
    pub trigger_message_id: Option<MessageId>,
    pub skipped_because: Option<String>,
    pub prompt: Option<PromptStats>,
    pub created_at: Timestamp,
}

impl Model {
    /// Returns the API document of this run for a person in its audience.
    pub fn view(&self) -> RunView {
        RunView {
            id: self.id,
            conversation_id: self.conversation_id,
            run_seq: self.run_seq,
            round_id: self.round_id,
            slot_position: self.slot_position,
            kind: self.kind,
            status: self.status,
            reason: self.reason,
            speaker_space_membership_id: self.speaker_space_membership_id,
            audience: self.audience.clone(),
            private: false,
            chosen_because: self.debug.chosen_because.clone(),
            run_after: self.run_after,
            cancel_requested_at: self.cancel_requested_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            heartbeat_at: self.heartbeat_at,
            attempt: self.attempt,
            waiting_for: self.waiting_for,
            canceled_because: self.canceled_because,
            superseded_by_message_id: self.superseded_by_message_id,
            error: self.error.clone(),
            usage: self.usage,
            target_message_id: self.debug.target_message_id,
            trigger_message_id: self.debug.trigger_message_id,
            skipped_because: self.debug.skipped_because.clone(),
            prompt: self.debug.prompt.clone(),
            created_at: self.created_at,
        }
    }

    /// Returns the document of this run for a viewer.
    pub fn document(&self, viewer: Viewer) -> RunDocument {
        match viewer.sees(self.audience.as_ref()) {
            true => RunDocument::Whole(Box::new(self.view())),
            false => RunDocument::Private(self.private_view()),
        }
    }

    /// Returns the document of this run for people outside its audience.
    pub fn private_view(&self) -> PrivateRunView {
        PrivateRunView {
            id: self.id,
            conversation_id: self.conversation_id,
            run_seq: self.run_seq,
            status: self.status,
            created_at: self.created_at,
            private: true,
        }
    }
}
