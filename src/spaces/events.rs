//! Builds the WebSocket events of spaces: changes of a space, its memberships and conversations for
//! subscribers of the space; new invitations and copilot changes for one user.

use base::ids::{ConversationId, MembershipId, SpaceId};
use realtime::envelope::{Envelope, Event};
use realtime::topic::Topic;
use serde::Serialize;
use utoipa::ToSchema;

use crate::spaces::invites::space_invitation;
use crate::spaces::membership::CopilotMode;
use crate::spaces::{membership, space};

/// The settings of a space changed. `my_role` is null because it differs between subscribers.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpaceUpdated {
    pub space: space::SpaceView,
}

/// A membership was created, changed or removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct MembershipUpdated {
    pub space_id: SpaceId,
    pub membership: membership::MembershipView,
}

/// A conversation of the space was created or changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationUpdated<D> {
    pub space_id: SpaceId,
    pub conversation: D,
}

/// A conversation of the space was deleted, with all its messages.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConversationDeleted {
    pub space_id: SpaceId,
    pub conversation_id: ConversationId,
}

/// The space was deleted, with everything in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpaceDeleted {
    pub space_id: SpaceId,
}

/// The user was invited to join a space.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationCreated {
    pub invitation: space_invitation::InvitationView,
}

/// The user's own copilot was turned on or off, or used a step.
#[derive(Debug, Serialize, ToSchema)]
pub struct CopilotUpdated {
    pub membership_id: MembershipId,
    pub copilot_mode: CopilotMode,
    pub copilot_remaining_steps: Option<i64>,
}

impl Event for SpaceUpdated {
    fn name(&self) -> &'static str {
        "space_updated"
    }
}

impl Event for MembershipUpdated {
    fn name(&self) -> &'static str {
        "membership_updated"
    }
}

impl<D: Serialize> Event for ConversationUpdated<D> {
    fn name(&self) -> &'static str {
        "conversation_updated"
    }
}

impl Event for ConversationDeleted {
    fn name(&self) -> &'static str {
        "conversation_deleted"
    }
}

impl Event for SpaceDeleted {
    fn name(&self) -> &'static str {
        "space_deleted"
    }
}

impl Event for InvitationCreated {
    fn name(&self) -> &'static str {
        "invitation_created"
    }
}

impl Event for CopilotUpdated {
    fn name(&self) -> &'static str {
        "copilot_updated"
    }
}

/// Returns the event for subscribers of the space.
pub fn space_updated(space: space::SpaceView) -> Envelope {
    Envelope::plain(Topic::Space(space.id), &SpaceUpdated { space })
}

/// Returns the event for subscribers of the membership's space.
pub fn membership_updated(membership: &membership::Model) -> Envelope {
    let event = MembershipUpdated {
        space_id: membership.space_id,
        membership: membership.view(),
    };
    Envelope::plain(Topic::Space(membership.space_id), &event)
}

/// Returns the event for subscribers of the space.
pub fn conversation_updated(space: SpaceId, document: impl Serialize) -> Envelope {
    let event = ConversationUpdated {
        space_id: space,
        conversation: document,
    };
    Envelope::plain(Topic::Space(space), &event)
}

/// Returns the event for subscribers of the space.
pub fn conversation_deleted(space_id: SpaceId, conversation_id: ConversationId) -> Envelope {
    let event = ConversationDeleted {
        space_id,
        conversation_id,
    };
    Envelope::plain(Topic::Space(space_id), &event)
}

/// Returns the event for subscribers of the space.
pub fn space_deleted(space_id: SpaceId) -> Envelope {
    Envelope::plain(Topic::Space(space_id), &SpaceDeleted { space_id })
}

/// Returns the event for the invited user's own sockets.
pub fn invitation_created(invitation: space_invitation::InvitationView) -> Envelope {
    let person = Topic::User(invitation.user_id);
    Envelope::plain(person, &InvitationCreated { invitation })
}

/// Returns the event for the sockets of the member; `None` if the membership has no user.
pub fn copilot_updated(membership: &membership::Model) -> Option<Envelope> {
    let event = CopilotUpdated {
        membership_id: membership.id,
        copilot_mode: membership.copilot_mode,
        copilot_remaining_steps: membership.copilot_remaining_steps,
    };
    Some(Envelope::plain(Topic::User(membership.user_id?), &event))
}
