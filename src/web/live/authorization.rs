//! Checks the credential of a live socket after it opens, and its subscriptions again whenever
//! permissions change.
//!
//! A subscription whose right was lost ends. An admin who is removed from a space keeps the right to read
//! it, but not the membership: the client must subscribe again, without it. If a check itself fails, the socket closes: its client
//! reconnects and subscribes again, and receives nothing until then.

use actix_web::web::Data;
use base::ids::SpaceId;
use futures::FutureExt;
use futures::future::LocalBoxFuture;

use crate::app::App;
use crate::web::error::ApiResult;
use crate::web::live::queries;
use crate::web::live::queries::RevokedAccess;
use crate::web::live::subscriptions::Subscriptions;
use crate::web::ws::socket_caller;
use crate::web::ws::socket_caller::SocketCaller;
use crate::web::ws::socket_link::take_result;

/// The access checks of one socket.
pub struct AccessGuard {
    review: Option<LocalBoxFuture<'static, ReviewResult>>,
    /// Everything must be checked again.
    needs_recheck: bool,
}

/// The result of a check.
pub enum ReviewResult {
    /// Whether the caller's credential is still valid.
    Caller(ApiResult<bool>),
    Rights(ApiResult<RevokedAccess>),
}

impl AccessGuard {
    /// Starts with a check of the credential, because a change between the authentication and the
    /// subscription to control events would be missed.
    pub fn start(app: Data<App>, caller: SocketCaller) -> Self {
        let check = socket_caller::has_access(app, caller);
        Self {
            review: Some(check.map(ReviewResult::Caller).boxed_local()),
            needs_recheck: false,
        }
    }

    /// Waits for the result of the running check, if there is one.
    pub async fn next_result(&mut self) -> ReviewResult {
        take_result(&mut self.review).await
    }

    /// Checks the subscriptions of a space, or of all spaces, again. A running check or command may
    /// still use the old rights: then everything is checked once more afterwards.
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

    /// Runs a pending check. Must be called when no command is running.
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
        let subscribed = subscriptions.list_for_space(space);
        if subscribed.is_empty() {
            return;
        }
        let review = queries::review_access(app.clone(), caller, subscribed);
        self.review = Some(review.map(ReviewResult::Rights).boxed_local());
    }
}
