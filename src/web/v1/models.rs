//! Handlers of `GET /v1/models` and `GET /v1/models/{id}`: the models of the providers, and the
//! characters and spaces that act as models.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use responses_api::objects::{List, Model, ObjectType, seconds};

use crate::app::App;
use crate::responses::model_list;
use crate::responses::persona_models::model_names;
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};

/// Returns all models, then the caller's characters and spaces.
///
/// # Errors
/// Returns 500 when the database fails.
pub async fn list(app: Data<App>, ApiKeyCaller(caller): ApiKeyCaller) -> V1Result<HttpResponse> {
    let all = list_all(&app, &caller).await?;
    Ok(HttpResponse::Ok().json(List::new(all, false, |it| Some(&it.id))))
}

/// Returns one model.
///
/// # Errors
/// Returns 404 for an unknown name.
pub async fn show(
    app: Data<App>,
    ApiKeyCaller(caller): ApiKeyCaller,
    id: Path<String>,
) -> V1Result<HttpResponse> {
    let all = list_all(&app, &caller).await?;
    let found = all.into_iter().find(|it| it.id == *id);
    let found = found.ok_or_else(|| {
        let message = "No model has this name.";
        V1Error::new(404, "model_not_found", message).for_param("model")
    })?;
    Ok(HttpResponse::Ok().json(found))
}

async fn list_all(app: &App, caller: &CurrentUser) -> V1Result<Vec<Model>> {
    let personas = model_names::list(app.db.reader(), caller.id()).await?;
    let persona_models: Vec<Model> = personas.iter().map(persona_view).collect();
    let models = model_list::list(app.db.reader()).await?;
    let models = models.iter().map(model_view);
    // A persona model takes precedence over a provider's model of the same name.
    let is_free = |model: &Model| persona_models.iter().all(|it| it.id != model.id);
    let mut all: Vec<Model> = models.filter(is_free).collect();
    all.extend(persona_models);
    Ok(all)
}

fn model_view(listing: &model_list::ModelListing) -> Model {
    Model {
        id: listing.id.clone(),
        object: ObjectType::Model,
        created: seconds(listing.provider.created_at),
        owned_by: listing.provider.name.clone(),
        name: listing.provider.model.clone(),
        kind: "model",
    }
}

fn persona_view(listing: &model_names::PersonaListing) -> Model {
    let owner = listing.owner.map(|it| format!("user:{it}"));
    Model {
        id: listing.id.clone(),
        object: ObjectType::Model,
        created: seconds(listing.created_at),
        owned_by: owner.unwrap_or_else(|| "troupe".to_owned()),
        name: listing.name.clone(),
        kind: listing.kind,
    }
}
