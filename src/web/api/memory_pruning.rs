//! Endpoint that deletes the least valuable memories of a space, or counts them.

use actix_web::web::{Data, Json, Path};
use base::clock::Timestamp;
use base::ids::SpaceId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::memories::pruning::pruner;
use crate::memories::pruning::pruner::PruneRules;
use crate::spaces::permissions::Action;
use crate::web::api::memory_bodies::{ForgottenView, parse_importance};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::space_access;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// One hundred years.
const MAX_DAYS: i64 = 36_500;

/// Which memories to delete: those that match all given rules.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PruneMemories)]
pub struct PruneBody {
    /// Only memories that were created more than this many days ago.
    #[schema(minimum = 0, maximum = 36_500)]
    pub older_than_days: Option<i64>,
    /// The number of memories of the space that remain; the least valuable ones beyond it are deleted.
    #[schema(minimum = 0)]
    pub keep: Option<i64>,
    /// More important memories are kept; 0.9 by default.
    #[schema(minimum = 0, maximum = 1)]
    pub keep_importance: Option<f64>,
    /// Only counts; true by default.
    pub dry_run: Option<bool>,
}

/// Deletes the least valuable memories, or counts them: the least important first; if the importance is
/// equal, those that were not recalled for the longest time. Pinned memories are kept.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/memories/prune",
    tag = "memories",
    request_body = PruneBody,
    responses(
        (status = 200, body = ForgottenView),
        (status = 422, description = "`invalid_value`.")
    )
)]
pub async fn prune(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<PruneBody>,
) -> ApiResult<Json<ForgottenView>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::Moderate)?;
    let body = body.read().await?;
    let now = app.clock.now();
    let rules = parse_rules(&body, now)?;
    let own = at.membership.as_ref().map(|it| it.id);
    // The memories of other people are pruned, too, but their number is not shown.
    let n = pruner::count_visible(&app.db, at.space.id, rules, own).await?;
    if !body.dry_run.unwrap_or(true) {
        pruner::prune(&app.db, at.space.id, rules, now).await?;
        let events = &app.engine.context().memory_events;
        events.memories_changed(at.space.id, at.space.memory_version + 1);
    }
    let deleted = usize::try_from(n).unwrap_or(usize::MAX);
    Ok(Json(ForgottenView { deleted }))
}

fn parse_rules(body: &PruneBody, now: Timestamp) -> ApiResult<PruneRules> {
    let days = body.older_than_days;
    if days.is_some_and(|it| !(0..=MAX_DAYS).contains(&it)) {
        let message = "Must be between 0 and 36,500.";
        return Err(ApiError::invalid_value("older_than_days", message));
    }
    let keep = body.keep.map(u64::try_from).transpose();
    let importance = body.keep_importance.map(parse_importance).transpose();
    Ok(PruneRules {
        created_before: days.map(|it| now.plus_ms(-it * DAY_MS)),
        keep: keep.map_err(|_| ApiError::invalid_value("keep", "Must be at least 0."))?,
        keep_importance: importance
            .map_err(|it| it.with_param("keep_importance"))?
            .unwrap_or(pruner::KEPT_IMPORTANCE),
    })
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::{Value, json};

    use super::{DAY_MS, parse_rules};

    #[test]
    fn an_invalid_field_is_named() {
        let error_of = |body: Value| {
            let body = serde_json::from_value(body).unwrap();
            parse_rules(&body, Timestamp(0)).unwrap_err().param.unwrap()
        };

        assert_eq!(error_of(json!({"older_than_days": -1})), "older_than_days");
        assert_eq!(
            error_of(json!({"older_than_days": 36_501})),
            "older_than_days"
        );
        assert_eq!(error_of(json!({"keep": -1})), "keep");
        assert_eq!(error_of(json!({"keep_importance": 1.1})), "keep_importance");
    }

    #[test]
    fn an_age_is_counted_from_now() {
        let body = serde_json::from_value(json!({"older_than_days": 2})).unwrap();

        let rules = parse_rules(&body, Timestamp(5 * DAY_MS)).unwrap();

        assert_eq!(rules.created_before, Some(Timestamp(3 * DAY_MS)));
        assert_eq!((rules.keep, rules.keep_importance), (None, 0.9));
    }
}
