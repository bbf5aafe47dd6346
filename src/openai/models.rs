//! `GET /v1/models`: by which names models can be asked for, and characters and spaces like them.

use crate::app::App;
use crate::http::authentication::CurrentUser;
use crate::openai::error::Answer;
use crate::openai::error::Problem;
use crate::openai::key::Caller;
use crate::openai::list;
use crate::responses::document;
use crate::responses::models;
use crate::responses::voice;
use actix_web::HttpResponse;
use actix_web::web::Data;
use actix_web::web::Path;
use serde_json::Value;
use serde_json::json;

/// All models, then the caller's characters and spaces.
///
/// # Errors
/// When the database fails.
pub async fn index(app: Data<App>, Caller(caller): Caller) -> Answer<HttpResponse> {
    let all = all(&app, &caller).await?;
    Ok(HttpResponse::Ok().json(list::whole(all, false)))
}

/// One model.
///
/// # Errors
/// 404.
pub async fn show(
    app: Data<App>,
    Caller(caller): Caller,
    id: Path<String>,
) -> Answer<HttpResponse> {
    let all = all(&app, &caller).await?;
    let found = all.into_iter().find(|it| it["id"] == **id);
    let found = found.ok_or_else(|| {
        let message = "There is no model of this name.";
        Problem::new(404, "model_not_found", message).about("model")
    })?;
    Ok(HttpResponse::Ok().json(found))
}

async fn all(app: &App, caller: &CurrentUser) -> Answer<Vec<Value>> {
    let voices = voice::list(app.db.reader(), caller.id()).await?;
    let voices: Vec<Value> = voices.iter().map(of_voice).collect();
    let models = models::list(app.db.reader()).await?;
    let models = models.iter().map(of_model);
    // Who asks by such a name asks the character.
    let is_free = |model: &Value| voices.iter().all(|it| it["id"] != model["id"]);
    let mut all: Vec<Value> = models.filter(is_free).collect();
    all.extend(voices);
    Ok(all)
}

fn of_model(listed: &models::Listed) -> Value {
    json!({
        "id": listed.id,
        "object": "model",
        "created": document::seconds(listed.provider.created_at),
        "owned_by": listed.provider.name,
        "name": listed.provider.model,
        "kind": "model",
    })
}

fn of_voice(listed: &voice::Listed) -> Value {
    let owner = listed.owner.map(|it| format!("user:{it}"));
    json!({
        "id": listed.id,
        "object": "model",
        "created": document::seconds(listed.created_at),
        "owned_by": owner.unwrap_or_else(|| "troupe".to_owned()),
        "name": listed.name,
        "kind": listed.kind,
    })
}
