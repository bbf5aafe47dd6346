//! Publishes membership changes: sends events to the space, makes sockets of affected users check
//! their access again, and notifies the run engine when a member has left.

use base::ids::{SpaceId, UserId};
use realtime::envelope::{Envelope, SocketControl};

use crate::app::App;
use crate::spaces::{events, membership};
use crate::web::api::engine_error::api_error;
use crate::web::error::ApiResult;

/// Publishes a membership to its space and has the member's sockets check their access.
pub fn announce(app: &App, membership: &membership::Model) {
    app.hub.publish(events::membership_updated(membership));
    request_access_review(app, membership.space_id, membership.user_id);
}

/// Publishes a membership and the state of its copilot.
pub fn announce_copilot(app: &App, membership: &membership::Model) {
    app.hub.publish(events::membership_updated(membership));
    if let Some(event) = events::copilot_updated(membership) {
        app.hub.publish(event);
    }
}

/// Makes the sockets of these users check their access to a space again.
pub fn request_access_review(app: &App, space: SpaceId, users: impl IntoIterator<Item = UserId>) {
    for user in users {
        app.hub
            .publish(Envelope::control(user, SocketControl::RightsChanged(space)));
    }
}

/// Publishes that a member left; the scheduler continues if it was their turn.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn announce_left(app: &App, left: &membership::Model) -> ApiResult<()> {
    announce(app, left);
    let result = app.engine.member_changed(left.space_id, left.id).await;
    result.map_err(api_error)
}
