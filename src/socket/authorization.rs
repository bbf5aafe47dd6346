//! Whether a socket may still hear what it hears.
//!
//! Rights are asked for when a subscription begins, and asked for again whenever somebody says
//! that they changed. A review that gets no answer ends the socket: its client comes back and asks
//! anew, and until then it hears nothing.

use actix_web::web::Data;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::socket_caller;
use crate::http::socket_caller::SocketCaller;
use crate::ids::SpaceId;
use crate::socket::queries;
use crate::socket::queries::RevokedAccess;
use crate::socket::session::take_result;
use crate::socket::subscriptions::Subscriptions;

/// The reviews of one socket.
pub struct AccessGuard {
    review: Option<LocalBoxFuture<'static, ReviewResult>>,
    /// Everything is to be looked at once more.
    needs_recheck: bool,
}

/// What a review found.
pub enum ReviewResult {
    /// Whether the caller is still let in at all.
    Caller(ApiResult<bool>),
    Rights(ApiResult<RevokedAccess>),
}

impl AccessGuard {
    /// Between the check at the door and the first order that reaches the socket there is a gap:
    /// so the credential is looked at once more, now that orders are heard.
    pub fn start(app: Data<App>, caller: SocketCaller) -> Self {
        let check = socket_caller::has_access(app, caller);
        Self {
            review: Some(check.map(ReviewResult::Caller).boxed_local()),
            needs_recheck: false,
        }
    }

    /// The result of the review under way, once there is one.
    pub async fn next_result(&mut self) -> ReviewResult {
        take_result(&mut self.review).await
    }

    /// Looks again at what is heard of a space, or of all of them. A review or a command that is under way may go by
    /// the rights of a moment ago: then everything is looked at once more afterwards.
    pub fn recheck(
        &mut self,
        (app, caller, subscriptions): (&Data<App>, SocketCaller, &Subscriptions),
        space: Option<SpaceId>,
        is_idle: bool,
    ) {
        self.needs_recheck |= !is_idle || self.review.is_some();
        if self.review.is_none() {
            self.start_review(app, caller, subscriptions, space);
        }
    }

    /// No command is under way: looks again, if that is due.
    pub fn recheck_pending(
        &mut self,
        app: &Data<App>,
        caller: SocketCaller,
        subscriptions: &Subscriptions,
    ) {
        if self.needs_recheck && self.review.is_none() {
            self.needs_recheck = false;
            self.start_review(app, caller, subscriptions, None);
        }
    }

    fn start_review(
        &mut self,
        app: &Data<App>,
        caller: SocketCaller,
        subscriptions: &Subscriptions,
        space: Option<SpaceId>,
    ) {
        let (conversations, spaces) = subscriptions.list_for_space(space);
        if conversations.is_empty() && spaces.is_empty() {
            return;
        }
        let review = queries::review_access(app.clone(), caller, conversations, spaces);
        self.review = Some(review.map(ReviewResult::Rights).boxed_local());
    }
}
