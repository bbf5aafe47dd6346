//! Handlers of `GET /v1/models` and `GET /v1/models/{id}`: the models and embedding models of the
//! providers, the local embedding, and the characters and spaces that act as models.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use base::clock::Timestamp;
use responses_api::objects::{List, Model, ObjectType, seconds};

use crate::app::App;
use crate::responses::model_list;
use crate::responses::persona_models::model_names;
use crate::web::extract::authentication::CurrentUser;
use crate::web::v1::api_key_auth::ApiKeyCaller;
use crate::web::v1::error::{V1Error, V1Result};

/// The local embedding is part of the server, so all installations list the same time: the first of
/// November 2026, in milliseconds.
const LOCAL_EMBEDDING_CREATED: Timestamp = Timestamp(1_793_491_200_000);

/// The `kind` of models for `/v1/embeddings`.
const EMBEDDING: &str = "embedding";

/// Returns all models, then the embedding models, then the caller's characters and spaces.
///
/// # Errors
/// Returns 500 when the database fails.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "list_models",
    tag = "v1",
    responses((status = 200, body = List<Model>))
)]
pub async fn list(app: Data<App>, ApiKeyCaller(caller): ApiKeyCaller) -> V1Result<HttpResponse> {
    let all = list_all(&app, &caller).await?;
    Ok(HttpResponse::Ok().json(List::new(all, false, |it| Some(&it.id))))
}

/// Returns one model.
///
/// # Errors
/// Returns 404 for an unknown name.
#[utoipa::path(
    get,
    path = "/v1/models/{id:.+}",
    operation_id = "show_model",
    tag = "v1",
    params(("id" = String, Path)),
    responses((status = 200, body = Model))
)]
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
    let lists = model_list::list(app.db.reader()).await?;
    let models = lists.models.iter().map(|it| model_view(it, "model"));
    let embedding_models = lists.embedding_models.iter();
    let embedding_models = embedding_models.map(|it| model_view(it, EMBEDDING));
    let mut models: Vec<Model> = models.chain([local_embedding_view()]).collect();
    for model in embedding_models {
        if models.iter().all(|it| it.id != model.id) {
            models.push(model);
        }
    }
    // A persona model takes precedence over a provider's model of the same name.
    let is_free = |model: &Model| persona_models.iter().all(|it| it.id != model.id);
    let mut all: Vec<Model> = models.into_iter().filter(is_free).collect();
    all.extend(persona_models);
    Ok(all)
}

fn local_embedding_view() -> Model {
    let name = local_embedding::MODEL_NAME;
    Model {
        id: name.to_owned(),
        object: ObjectType::Model,
        created: seconds(LOCAL_EMBEDDING_CREATED),
        owned_by: "troupe".to_owned(),
        name: name.to_owned(),
        kind: EMBEDDING,
    }
}

fn model_view(listing: &model_list::ModelListing, kind: &'static str) -> Model {
    Model {
        id: listing.id.clone(),
        object: ObjectType::Model,
        created: seconds(listing.provider.created_at),
        owned_by: listing.provider.name.clone(),
        name: listing.provider.model.clone(),
        kind,
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
