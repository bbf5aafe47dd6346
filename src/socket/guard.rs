//! Whether a socket may still hear what it hears.
//!
//! Rights are asked for when a subscription begins, and asked for again whenever somebody says
//! that they changed. A review that gets no answer ends the socket: its client comes back and asks
//! anew, and until then it hears nothing.

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::holder;
use crate::http::holder::Caller;
use crate::ids::SpaceId;
use crate::socket::ears::Ears;
use crate::socket::errand;
use crate::socket::errand::Revoked;
use crate::socket::session::outcome;
use actix_web::web::Data;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

/// The reviews of one socket.
pub struct Guard {
    review: Option<LocalBoxFuture<'static, Reviewed>>,
    /// Everything is to be looked at once more.
    again: bool,
}

/// What a review found.
pub enum Reviewed {
    /// Whether the caller is still let in at all.
    Caller(ApiResult<bool>),
    Rights(ApiResult<Revoked>),
}

impl Guard {
    /// Between the check at the door and the first order that reaches the socket there is a gap:
    /// so the credential is looked at once more, now that orders are heard.
    pub fn begin(app: Data<App>, caller: Caller) -> Self {
        let look = holder::is_still_in(app, caller);
        Self {
            review: Some(look.map(Reviewed::Caller).boxed_local()),
            again: false,
        }
    }

    /// The result of the review under way, once there is one.
    pub async fn outcome(&mut self) -> Reviewed {
        outcome(&mut self.review).await
    }

    /// Looks again at what is heard of a space, or of all of them. A review or a command that is under way may go by
    /// the rights of a moment ago: then everything is looked at once more afterwards.
    pub fn suspect(
        &mut self,
        (app, caller, ears): (&Data<App>, Caller, &Ears),
        space: Option<SpaceId>,
        is_free: bool,
    ) {
        self.again |= !is_free || self.review.is_some();
        if self.review.is_none() {
            self.look(app, caller, ears, space);
        }
    }

    /// No command is under way: looks again, if that is due.
    pub fn settle(&mut self, app: &Data<App>, caller: Caller, ears: &Ears) {
        if self.again && self.review.is_none() {
            self.again = false;
            self.look(app, caller, ears, None);
        }
    }

    fn look(&mut self, app: &Data<App>, caller: Caller, ears: &Ears, at: Option<SpaceId>) {
        let (conversations, spaces) = ears.of_space(at);
        if conversations.is_empty() && spaces.is_empty() {
            return;
        }
        let review = errand::review(app.clone(), caller, conversations, spaces);
        self.review = Some(review.map(Reviewed::Rights).boxed_local());
    }
}
