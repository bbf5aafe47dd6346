//! `GET /v1/models`: by which names models can be asked for.

use crate::app::App;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::key::Caller;
use crate::openai::list;
use crate::responses::models;
use crate::responses::models::Listed;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Path;
use serde_json::Value;
use serde_json::json;

/// All models.
///
/// # Errors
/// When the database fails.
pub async fn index(app: Data<App>, _: Caller) -> Answer<HttpResponse> {
    let all = models::list(app.db.reader()).await?;
    let all = all.iter().map(view).collect();
    Ok(HttpResponse::Ok().json(list::whole(all, false)))
}

/// One model.
///
/// # Errors
/// 404.
pub async fn show(app: Data<App>, _: Caller, id: Path<String>) -> Answer<HttpResponse> {
    let all = models::list(app.db.reader()).await?;
    let found = all.iter().find(|it| it.id == *id);
    let found = found.ok_or_else(|| {
        let message = "There is no model of this name.";
        Problem::new(404, "model_not_found", message).about("model")
    })?;
    Ok(HttpResponse::Ok().json(view(found)))
}

fn view(listed: &Listed) -> Value {
    json!({
        "id": listed.id,
        "object": "model",
        "created": listed.provider.created_at.0.div_euclid(1_000),
        "owned_by": listed.provider.name,
        "name": listed.provider.model,
        "kind": "model",
    })
}
