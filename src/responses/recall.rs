//! The verb for connections that remember: looks up what a response goes on from before it begins, so
//! that whoever asks knows it, too.

use crate::ids::UserId;
use crate::responses::desk::Desk;
use crate::responses::history;
use crate::responses::refusal::Refusal;
use crate::responses::spec::Spec;
use sea_orm::DbErr;
use serde_json::Value;
use std::sync::Arc;

impl Desk {
    /// Gives a request that is not stored all that it goes on from: what is `known` of its previous
    /// response, or else what is stored of it; and each item that it only names.
    ///
    /// # Errors
    /// Something of it is not there to be seen.
    pub async fn recall(
        &self,
        user: UserId,
        mut spec: Spec,
        known: Option<Arc<Vec<Value>>>,
    ) -> Result<Spec, Refusal> {
        let db = self.parts.db.clone();
        let looking = async move {
            let db = db.reader();
            history::resolve(db, user, &mut spec.input).await?;
            spec.prior = match (known, &spec.previous) {
                (Some(known), _) => Some(known),
                (None, Some(previous)) => {
                    history::check_previous(db, user, previous).await?;
                    Some(Arc::new(history::items(db, Some(previous), None).await?))
                }
                (None, None) => None,
            };
            Ok(spec)
        };
        let looked = self.parts.shutdown.spawn(looking).await;
        looked.unwrap_or_else(|_| Err(DbErr::Custom("its task ended".to_owned()).into()))
    }
}
