//! Endpoints that preview and import character card files and export characters as files; limits
//! how many files are packed or unpacked concurrently.

use std::str::FromStr;
use std::sync::LazyLock;

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{CharacterId, ConversationId};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use tavern::cards::card::Card;
use tavern::cards::card_error::CardError;
use tavern::cards::card_file::CardFile;
use tavern::cards::export_file::{CardExport, ExportVersion};
use tavern::cards::temp_assets::TempAssets;
use tavern::cards::{avatar_image, card, card_file};
use tavern::import_warning;
use tavern::import_warning::ImportWarning;
use tavern::macros::variables::Variables;
use tavern::regex_scripts::script_view::RegexScriptView;
use tavern::regex_scripts::{script_list, script_view};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use crate::app::App;
use crate::characters::card_store::StoreCardError;
use crate::characters::{asset, card_store, character, character_asset};
use crate::prompt::greeting;
use crate::prompt::greeting::GreetingAudience;
use crate::web::api::{characters, downloads, risu_files};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::pagination;
use crate::web::extract::upload::{PendingUpload, UploadForm};

/// Limits the files that are packed or unpacked, and the pictures that are encoded, concurrently, because
/// each may need a few dozen megabytes of memory, and a large picture more than 200.
static PERMITS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));

/// An imported character, with warnings about repaired or skipped parts.
#[derive(Serialize, ToSchema)]
#[schema(as = Imported)]
pub struct ImportedCard {
    character: character::CharacterView,
    /// Warnings as sentences.
    warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    warnings_coded: Vec<ImportWarning>,
}

/// The contents of a file before import.
#[derive(Serialize, ToSchema)]
#[schema(as = Preview)]
pub struct CardPreview {
    #[schema(value_type = Object)]
    card: Value,
    name: String,
    spec_version: String,
    /// Warnings as sentences.
    warnings: Vec<String>,
    /// The same warnings, in the same order, as codes.
    warnings_coded: Vec<ImportWarning>,
    /// The first message, with macros expanded for the caller.
    greeting: String,
    /// The number of greetings.
    greetings: usize,
    /// The number of entries in the embedded lorebook.
    lore_entries: usize,
    /// The regex scripts, which are off until their owner allows them.
    scripts: Vec<RegexScriptView>,
    /// The name of the linked lorebook.
    linked_world: Option<String>,
    /// A `data:` URL.
    avatar: Option<String>,
    /// The character in the caller's library with the same card.
    duplicate_of: Option<CharacterId>,
}

/// Previews the import of a card file. Nothing is stored.
#[utoipa::path(
    post,
    path = "/api/characters/preview",
    tag = "characters",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 200, body = CardPreview),
        (status = 413, description = "`too_large`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_card`, with the reason; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn preview(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<Json<CardPreview>> {
    let CardFile { card, avatar, .. } = receive_card(&app, upload).await?;
    let avatar = match avatar {
        Some(picture) => {
            let drawn =
                run_blocking_limited(&app, move || avatar_image::preview(&picture.small)).await??;
            let text = STANDARD.encode(drawn);
            Some(format!("data:{};base64,{text}", avatar_image::MEDIA_TYPE))
        }
        None => None,
    };
    let hash = card::content_hash(&card.document);
    let same = character::find_by_hash(app.db.reader(), caller.id(), &hash).await?;
    Ok(Json(CardPreview {
        name: card.name().to_owned(),
        spec_version: card.spec_version(),
        greeting: render_greeting(&caller, &card, &app),
        greetings: character::count_greetings(&card),
        lore_entries: card.n_lore_entries(),
        scripts: script_view::views(script_list::of_card(&card.document)),
        linked_world: card.world_name().map(str::to_owned),
        avatar,
        duplicate_of: same.map(|it| it.id),
        warnings: import_warning::sentences(&card.warnings),
        warnings_coded: card.warnings,
        card: card.document,
    }))
}

fn render_greeting(caller: &CurrentUser, card: &Card, app: &App) -> String {
    let audience = GreetingAudience {
        character: card.name(),
        user: &caller.user.display_name,
        group: None,
        users: &caller.user.display_name,
        // No conversation exists yet, so random macros may give other values there.
        conversation: ConversationId(0),
    };
    let known = Variables::default();
    let greetings = greeting::expand_greetings(card, &audience, known, app.clock.now());
    greetings.texts.into_iter().next().unwrap_or_default()
}

/// Imports a card file into the caller's library, with its image and assets.
///
/// Reads JSON, PNG, APNG, CHARX and BYAF, whatever the file's name. A card that is already in the
/// library is not stored twice: the response is 200 with the existing character.
#[utoipa::path(
    post,
    path = "/api/characters/import",
    tag = "characters",
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = ImportedCard),
        (status = 200, body = ImportedCard),
        (status = 413, description = "`too_large`; `storage_full`."),
        (status = 415, description = "`unsupported_media_type`: a multipart form with a file is required."),
        (status = 422, description = "`not_a_card`, with the reason; `risu_module` or `risu_preset`: a binary file of Risu.")
    )
)]
pub async fn import(
    app: Data<App>,
    caller: CurrentUser,
    upload: PendingUpload,
) -> ApiResult<HttpResponse> {
    let card_file = receive_card(&app, upload).await?;
    let mut warnings = card_file.card.warnings.clone();
    let library = characters::library_of(&app, &caller);
    let stored = card_store::store(&app.db, library, card_file, app.clock.now()).await?;
    let mut answer = match stored.is_new {
        true => HttpResponse::Created(),
        false => {
            let sentence = "This card is already in your library; it was not stored again.";
            warnings.push(ImportWarning::new("card_already_there", sentence));
            HttpResponse::Ok()
        }
    };
    Ok(answer.json(ImportedCard {
        character: stored.character.view(),
        warnings: import_warning::sentences(&warnings),
        warnings_coded: warnings,
    }))
}

/// Exports a character: as a JSON card, as a PNG with an embedded card, or as an archive with its
/// assets.
///
/// A PNG contains the card in both versions and an archive contains V3, regardless of `spec`.
#[utoipa::path(
    get,
    path = "/api/characters/{character_id}/export",
    tag = "characters",
    params(
        ("format" = inline(Option<CardExportFormat>), Query, description = "The default is `json`."),
        ("spec" = inline(Option<CardExportVersion>), Query, description = "The default is the card's own version.")
    ),
    responses(
        (
            status = 200,
            description = "The file.",
            content((Object = "application/json"), (String = "image/png"), (String = "application/zip")),
            headers(("content-disposition" = String))
        ),
        (status = 403, description = "`card_not_shared`."),
        (status = 422, description = "`too_large_for_png`: export it as CHARX instead."),
        (status = 503, description = "`unavailable`: too many exports are in progress.")
    )
)]
pub async fn export(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<CharacterId>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    // Loading and packing may need a few dozen megabytes of memory.
    let turn = downloads::acquire_card_permit().await?;
    let found = characters::find_visible(&app, &caller, id.into_inner()).await?;
    if !characters::can_read_whole_card(&caller, &found) {
        return Err(ApiError::new(
            403,
            "card_not_shared",
            "The owner of this character does not share its whole card.",
        ));
    }
    let format = pagination::parse_value(request.query_string(), "format")?;
    let spec = pagination::parse_value(request.query_string(), "spec")?;
    let spec = spec.map(|it| match it {
        CardExportVersion::V2 => ExportVersion::V2,
        CardExportVersion::V3 => ExportVersion::V3,
    });
    let format = format.unwrap_or(CardExportFormat::Json);
    let (ending, kind) = match format {
        CardExportFormat::Json => ("json", "application/json"),
        CardExportFormat::Png => ("png", "image/png"),
        CardExportFormat::Charx => ("charx", "application/zip"),
    };
    let assets = match format {
        CardExportFormat::Json => TempAssets::new()?,
        CardExportFormat::Png | CardExportFormat::Charx => load_assets(&app, found.id).await?,
    };
    let named = downloads::attachment(&found.name, ending);
    let mut exported = CardExport {
        card: Card::from_document(found.card)?,
        assets,
    };
    let made = run_blocking_limited(&app, move || match format {
        CardExportFormat::Json => exported.as_json(spec),
        CardExportFormat::Png => exported.as_png(),
        CardExportFormat::Charx => exported.as_charx(),
    });
    let file = made.await?.map_err(|error| match error {
        CardError::TooLarge(reason) => ApiError::new(422, "too_large_for_png", reason),
        error => ApiError::internal(error),
    })?;
    drop(turn);
    downloads::file_response(file, named, kind)
}

/// Copies the assets of a character into a temporary file, one piece at a time.
async fn load_assets(app: &App, id: CharacterId) -> ApiResult<TempAssets> {
    let db = app.db.reader();
    let mut assets = TempAssets::new()?;
    for link in character_asset::list_for_character(db, id).await? {
        let mut n_read = 0;
        loop {
            let piece = asset::load_chunk(db, link.asset_id, n_read).await?;
            let length = i32::try_from(piece.len()).map_err(ApiError::internal)?;
            let is_first = n_read == 0;
            if is_first && length == 0 {
                break;
            }
            // Disk writes would block the threads that serve other requests.
            let name = link.name.clone();
            let written = run_blocking(app, move || {
                if is_first {
                    assets.push(&name, &piece)?;
                } else {
                    assets.extend(&piece)?;
                }
                Ok::<_, CardError>(assets)
            });
            assets = written.await??;
            n_read += length;
            if length < asset::CHUNK_BYTES {
                break;
            }
        }
    }
    Ok(assets)
}

/// Runs work with blocking disk access on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> T + Send + 'static,
) -> ApiResult<T> {
    let work = app.shutdown.main().spawn_blocking(work);
    work.await.map_err(ApiError::internal)
}

/// The export formats of a character.
#[derive(Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ExportFormat)]
pub enum CardExportFormat {
    Json,
    Png,
    Charx,
}

impl FromStr for CardExportFormat {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "json" => Ok(Self::Json),
            "png" => Ok(Self::Png),
            "charx" => Ok(Self::Charx),
            _ => Err(()),
        }
    }
}

/// The versions of the card format.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[schema(as = ExportSpec)]
pub enum CardExportVersion {
    V2,
    V3,
}

impl FromStr for CardExportVersion {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "v2" => Ok(Self::V2),
            "v3" => Ok(Self::V3),
            _ => Err(()),
        }
    }
}

async fn receive_card(app: &App, upload: PendingUpload) -> ApiResult<CardFile> {
    let mut file = upload.save(card_file::MAX_BYTES).await?;
    let read = move || {
        risu_files::refuse_on_disk(&mut file)?;
        card_file::read(file.file).map_err(ApiError::from)
    };
    run_blocking_limited(app, read).await?
}

/// Runs long work on a blocking thread, limited to a few at the same time.
pub async fn run_blocking_limited<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> T + Send + 'static,
) -> ApiResult<T> {
    let permit = PERMITS.acquire().await.map_err(ApiError::internal)?;
    let work = move || {
        // Held by the work itself, which continues if the client disconnects.
        let _permit = permit;
        work()
    };
    run_blocking(app, work).await
}

impl From<CardError> for ApiError {
    fn from(error: CardError) -> Self {
        Self::new(422, "not_a_card", error.to_string())
    }
}

impl From<StoreCardError> for ApiError {
    fn from(error: StoreCardError) -> Self {
        match error {
            StoreCardError::Card(error) => error.into(),
            error @ StoreCardError::StoredCard(_) => Self::internal(error),
            StoreCardError::QuotaExceeded(full) => Self::new(413, "storage_full", full.to_string()),
            StoreCardError::Db(error) => error.into(),
        }
    }
}
