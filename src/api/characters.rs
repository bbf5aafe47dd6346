//! Characters: one's shelf of cards, and those one meets.

use crate::api::card_bodies::CharacterChange;
use crate::api::card_bodies::FLAT_FIELDS;
use crate::api::card_bodies::NewCharacter;
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
use std::str::FromStr;
use utoipa::ToSchema;

/// One's own characters.
#[utoipa::path(
    get,
    path = "/api/characters",
    tag = "characters",
    params(Page),
    responses((status = 200, body = Listing<character::View>))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    page: Page,
) -> ApiResult<Json<Listing<character::View>>> {
    let own = character::of_owner(caller.id());
    let found = page.of(own, character::Column::Id, app.db.reader()).await?;
    Ok(Json(found.map(|it| it.view())))
}

/// Puts a card on one's shelf.
#[utoipa::path(
    post,
    path = "/api/characters",
    tag = "characters",
    request_body = NewCharacter,
    responses(
        (status = 201, body = character::View),
        (status = 422, description = "`not_a_card`, with the reason; `invalid_value`.")
    )
)]
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

/// A character of one's own, or one met in a space.
#[utoipa::path(
    get,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters",
    responses((status = 200, body = character::View))
)]
pub async fn show(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
) -> ApiResult<Json<character::View>> {
    let found = visible(&app, &caller, id.into_inner()).await?;
    Ok(Json(found.view()))
}

/// Changes a card. Its seats take the new name.
#[utoipa::path(
    patch,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters",
    request_body = CharacterChange,
    responses(
        (status = 200, body = character::View),
        (status = 422, description = "`not_a_card`, with the reason; `invalid_value`.")
    )
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

/// Takes a character off the shelf. Its seats keep the card.
#[utoipa::path(
    delete,
    path = r"/api/characters/{character_id:\d+}",
    tag = "characters",
    responses((status = 204))
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

/// The card as a file.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/export",
    tag = "characters",
    params(("format" = inline(Option<ExportFormat>), Query, description = "`json` unless said.")),
    responses((
        status = 200,
        description = "The card, as V2 or V3.",
        body = Object,
        headers(("content-disposition" = String))
    ))
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let found = visible(&app, &caller, id.into_inner()).await?;
    // One form so far, so there is nothing to decide.
    page::value_of::<ExportFormat>(request.query_string(), "format")?;
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

/// The forms in which a card leaves.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ExportFormat {
    Json,
}

impl FromStr for ExportFormat {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "json" => Ok(Self::Json),
            _ => Err(()),
        }
    }
}

/// The picture of a character. There is none yet.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/avatar",
    tag = "characters",
    responses((status = 404))
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
