//! Characters: one's shelf of cards, and those one meets.

use crate::app::App;
use crate::characters::card::Card;
use crate::characters::card::CardError;
use crate::characters::character;
use crate::characters::export;
use crate::http::auth::CurrentUser;
use crate::http::error::ApiError;
use crate::http::error::ApiResult;
use crate::http::json::Body;
use crate::http::page;
use crate::http::page::Listing;
use crate::http::page::Page;
use crate::ids::CharacterId;
use crate::spaces::events;
use crate::spaces::roster;
use actix_web::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::header::ContentDisposition;
use actix_web::http::header::DispositionParam;
use actix_web::http::header::DispositionType;
use actix_web::web::Data;
use actix_web::web::Json;
use actix_web::web::Path;
use serde_json::Map;
use serde_json::Value;

/// The fields of a V2 or V3 `data`, as a body may carry them without the document around.
const FLAT_FIELDS: [&str; 22] = [
    "name",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "creator_notes",
    "creator_notes_multilingual",
    "system_prompt",
    "post_history_instructions",
    "alternate_greetings",
    "group_only_greetings",
    "character_book",
    "tags",
    "creator",
    "character_version",
    "nickname",
    "extensions",
    "assets",
    "source",
    "creation_date",
    "modification_date",
];

/// `GET /api/characters`: one's own.
#[utoipa::path(get, path = "/api/characters", tag = "characters")]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: Page,
) -> ApiResult<Json<Listing<character::View>>> {
    let own = character::of_owner(caller.id());
    let found = page.of(own, character::Column::Id, app.db.reader()).await?;
    Ok(Json(found.map(|it| it.view())))
}

/// `POST /api/characters`: `{card}`, or the flat fields of a V2 `data`.
#[utoipa::path(post, path = "/api/characters", tag = "characters")]
pub async fn create(
    app: Data<App>,
    caller: CurrentUser,
    body: Body<Map<String, Value>>,
) -> ApiResult<HttpResponse> {
    let mut body = body.read().await?;
    let card = match body.shift_remove("card") {
        Some(document) => {
            nothing_beside(&body, &[])?;
            Card::from_document(document)?
        }
        None => {
            nothing_beside(&body, &FLAT_FIELDS)?;
            if !body.contains_key("name") {
                let message = "A character takes a `name`, or a whole `card`.";
                return Err(ApiError::new(400, "missing_field", message).about("name"));
            }
            Card::from_flat(body)?
        }
    };
    let made = character::create(&app.db, caller.id(), card, app.clock.now()).await?;
    Ok(HttpResponse::Created().json(made.view()))
}

fn nothing_beside(body: &Map<String, Value>, known: &[&str]) -> ApiResult<()> {
    match body.keys().find(|it| !known.contains(&it.as_str())) {
        None => Ok(()),
        Some(key) => {
            let key: String = key.chars().take(100).collect();
            let message = format!("There is no field `{key}` here.");
            Err(ApiError::new(400, "unknown_field", message).about(key))
        }
    }
}

/// `GET /api/characters/{id}`
#[utoipa::path(get, path = r"/api/characters/{character_id:\d+}", tag = "characters")]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<Json<character::View>> {
    let found = visible(&app, &caller, id.into_inner()).await?;
    Ok(Json(found.view()))
}

/// `PATCH /api/characters/{id}`: another `{card}`, or some of its fields; the others stay.
#[utoipa::path(
    patch,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters"
)]
pub async fn change(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    body: Body<Map<String, Value>>,
) -> ApiResult<Json<character::View>> {
    let present = own(&app, &caller, id.into_inner()).await?;
    let mut body = body.read().await?;
    let card = match body.shift_remove("card") {
        Some(document) => {
            nothing_beside(&body, &[])?;
            Card::from_document(document)?
        }
        None => {
            nothing_beside(&body, &FLAT_FIELDS)?;
            present.card()?.edited(body)?
        }
    };
    let changed = character::replace_card(&app.db, present.id, card).await?;
    if changed.name != present.name {
        let name = changed.name.clone();
        for seat in roster::rename_character(&app.db, changed.id, name).await? {
            app.hub.publish(events::membership_updated(&seat));
        }
    }
    Ok(Json(changed.view()))
}

/// `DELETE /api/characters/{id}`
#[utoipa::path(
    delete,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters"
)]
pub async fn delete(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<HttpResponse> {
    let present = own(&app, &caller, id.into_inner()).await?;
    character::delete(&app.db, present.id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET /api/characters/{id}/export?format=json`
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/export",
    tag = "characters"
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let found = visible(&app, &caller, id.into_inner()).await?;
    let format: Option<String> = page::value_of(request.query_string(), "format")?;
    if !matches!(format.as_deref(), None | Some("json")) {
        let message = "A character is exported as `json`.";
        return Err(ApiError::new(400, "invalid_value", message).about("format"));
    }
    let card = found.card()?;
    let document = match card.spec_version().starts_with('3') {
        true => export::export_v3(&card),
        false => export::export_v2(&card),
    };
    let name: String = found
        .name
        .chars()
        .map(|it| if it.is_alphanumeric() { it } else { '_' })
        .take(60)
        .collect();
    Ok(HttpResponse::Ok()
        .insert_header(ContentDisposition {
            disposition: DispositionType::Attachment,
            parameters: vec![DispositionParam::Filename(format!("{name}.json"))],
        })
        .json(document))
}

/// `GET /api/characters/{id}/avatar`: pictures come with the import of PNG cards.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/avatar",
    tag = "characters"
)]
pub async fn avatar(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<HttpResponse> {
    visible(&app, &caller, id.into_inner()).await?;
    Err(ApiError::not_found())
}

/// A character that the caller may read: their own, one they share a space with, any for an admin.
async fn visible(app: &App, caller: &CurrentUser, id: CharacterId) -> ApiResult<character::Model> {
    let db = app.db.reader();
    let found = character::active(db, id).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    let may_read = caller.is_admin()
        || found.owner_id == Some(caller.id())
        || roster::share_a_space(db, caller.id(), id).await?;
    match may_read {
        true => Ok(found),
        false => Err(ApiError::not_found()),
    }
}

/// A character that the caller may change: their own, any for an admin.
async fn own(app: &App, caller: &CurrentUser, id: CharacterId) -> ApiResult<character::Model> {
    let found = visible(app, caller, id).await?;
    match caller.is_admin() || found.owner_id == Some(caller.id()) {
        true => Ok(found),
        false => Err(ApiError::forbidden(
            "Only its owner may change a character.",
        )),
    }
}

impl From<CardError> for ApiError {
    fn from(error: CardError) -> Self {
        Self::new(422, "not_a_card", error.to_string())
    }
}
