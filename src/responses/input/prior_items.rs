//! Loads the history of a request in advance and resolves its item references, so that a WebSocket
//! session can keep the whole exchange in memory.

use std::sync::Arc;

use base::ids::UserId;
use serde_json::Value;

use crate::responses::engine::ResponseEngine;
use crate::responses::error::ResponseEngineError;
use crate::responses::input::history;
use crate::responses::request::ResponseRequest;

impl ResponseEngine {
    /// Completes a request that is not stored: sets its history, from `known` or else from the
    /// database, and resolves its item references.
    ///
    /// # Errors
    /// As [`history::resolve_references`], [`history::check_previous`] and [`history::list_items`].
    pub async fn load_prior_items(
        &self,
        user: UserId,
        mut request: ResponseRequest,
        known: Option<Arc<Vec<Value>>>,
    ) -> Result<ResponseRequest, ResponseEngineError> {
        let db = self.services.db.clone();
        let loading = async move {
            let db = db.reader();
            history::resolve_references(db, user, &mut request.input).await?;
            request.prior_items = match (known, &request.previous_response_id) {
                (Some(known), _) => Some(known),
                (None, Some(previous)) => {
                    history::check_previous(db, user, previous).await?;
                    Some(Arc::new(
                        history::list_items(db, Some(previous), None).await?,
                    ))
                }
                (None, None) => None,
            };
            Ok(request)
        };
        let loaded = self.services.shutdown.spawn(loading).await;
        loaded?
    }
}
