//! Endpoints that list, create and revoke the invite links of a space; a new link is also returned
//! as a QR code.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use base::ids::{InviteId, SpaceId};
use qrcode::QrCode;
use qrcode::render::svg;
use qrcode::types::QrError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::db::reading::page::{PageOf, PageQuery};
use crate::spaces::invites::invite;
use crate::spaces::invites::invite::NewInvite;
use crate::spaces::membership::MembershipRole;
use crate::spaces::permissions::Action;
use crate::web::api::{membership_bodies, memberships};
use crate::web::error::{ApiError, ApiResult};
use crate::web::extract::authentication::CurrentUser;
use crate::web::extract::json_body::JsonBody;
use crate::web::extract::{csrf, space_access};

const DEFAULT_HOURS: f64 = 7.0 * 24.0;
const MAX_HOURS: f64 = 30.0 * 24.0;
const MAX_USES: i64 = 1_000;

/// The minimum width of the QR code in pixels; it is an SVG, so a page may scale it.
const QR_WIDTH: u32 = 240;

/// A new invite.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewInvite)]
pub struct CreateInvite {
    #[schema(schema_with = membership_bodies::role_schema)]
    role: MembershipRole,
    /// Null or absent: unlimited.
    #[schema(minimum = 1, maximum = 1_000)]
    max_uses: Option<i64>,
    /// Null or absent: seven days.
    #[schema(exclusive_minimum = 0, maximum = 720)]
    expires_in_hours: Option<f64>,
}

/// A new invite. Its token cannot be read again later.
#[derive(Serialize, ToSchema)]
#[schema(as = InviteWithToken)]
pub struct CreatedInvite {
    #[serde(flatten)]
    view: invite::InviteView,
    /// The link.
    url: String,
    token: String,
    /// The link as a QR code.
    qr_svg: String,
}

/// Lists the invites of a space that are not revoked, including used-up ones.
#[utoipa::path(
    get,
    path = "/api/spaces/{space_id}/invites",
    tag = "invites",
    params(PageQuery),
    responses((status = 200, body = PageOf<invite::InviteView>), (status = 403))
)]
pub async fn list(
    app: Data<App>,
    caller: CurrentUser,
    space: Path<SpaceId>,
    page: PageQuery,
) -> ApiResult<Json<PageOf<invite::InviteView>>> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_action(Action::Moderate)?;
    let invites = invite::list_for_space(app.db.reader(), at.space.id, page).await?;
    Ok(Json(invites.map(|it| it.view())))
}

/// Creates an invite. Only this response contains its token, link and QR code.
#[utoipa::path(
    post,
    path = "/api/spaces/{space_id}/invites",
    tag = "invites",
    request_body = CreateInvite,
    responses((status = 201, body = CreatedInvite))
)]
pub async fn create(
    app: Data<App>,
    request: HttpRequest,
    caller: CurrentUser,
    space: Path<SpaceId>,
    body: JsonBody<CreateInvite>,
) -> ApiResult<HttpResponse> {
    let at = space_access::load_space_access(&app, &caller, space.into_inner()).await?;
    at.require_write(Action::Moderate)?;
    let body = body.read().await?;
    memberships::require_can_invite_as(&at, body.role)?;
    let now = app.clock.now();
    let new = NewInvite {
        space: at.space.id,
        role: body.role,
        max_uses: body.max_uses.map(parse_max_uses).transpose()?,
        expires_at: now.plus_ms(parse_lifetime_ms(
            body.expires_in_hours.unwrap_or(DEFAULT_HOURS),
        )?),
        created_by: caller.id(),
    };
    let address = csrf::public_origin(request.headers(), app.config.public_url.as_deref());
    let address = address.ok_or_else(|| {
        let message = "The `Host` header must contain the address of this server.";
        ApiError::new(400, "invalid_value", message)
    })?;
    let (made, token) = invite::create(&app.db, new, now).await?;
    // In the fragment, because browsers never send it to a server.
    let url = format!("{address}/join#{token}");
    Ok(HttpResponse::Created().json(CreatedInvite {
        view: made.view(),
        qr_svg: qr_svg(&url).map_err(ApiError::internal)?,
        url,
        token,
    }))
}

fn parse_max_uses(max_uses: i64) -> ApiResult<i64> {
    match (1..=MAX_USES).contains(&max_uses) {
        true => Ok(max_uses),
        false => Err(ApiError::invalid_value(
            "max_uses",
            format!("Must be between 1 and {MAX_USES}, or null for no limit."),
        )),
    }
}

/// Converts hours to milliseconds, at least one.
fn parse_lifetime_ms(hours: f64) -> ApiResult<i64> {
    let is_a_time = hours > 0.0 && hours <= MAX_HOURS;
    if !is_a_time {
        return Err(ApiError::invalid_value(
            "expires_in_hours",
            format!("Must be more than 0 and at most {MAX_HOURS} hours (30 days)."),
        ));
    }
    // In this range the product is an integer that fits.
    #[allow(clippy::cast_possible_truncation)]
    Ok(((hours * 3_600_000.0).round() as i64).max(1))
}

/// Renders the link as a QR code with the quiet zone that scanners need. Named colors keep `#` out
/// of the text, so that it needs little escaping in a `data:` URL.
fn qr_svg(url: &str) -> Result<String, QrError> {
    let code = QrCode::new(url)?;
    let mut picture = code.render::<svg::Color>();
    picture
        .min_dimensions(QR_WIDTH, QR_WIDTH)
        .quiet_zone(true)
        .dark_color(svg::Color("black"))
        .light_color(svg::Color("white"));
    Ok(picture.build())
}

/// Revokes an invite.
#[utoipa::path(
    delete,
    path = "/api/invites/{invite_id}",
    tag = "invites",
    responses((status = 204))
)]
pub async fn revoke(
    app: Data<App>,
    caller: CurrentUser,
    id: Path<InviteId>,
) -> ApiResult<HttpResponse> {
    let found = invite::find(app.db.reader(), id.into_inner()).await?;
    let found = found.ok_or_else(ApiError::not_found)?;
    let at = space_access::load_space_access(&app, &caller, found.space_id).await?;
    at.require_write(Action::Moderate)?;
    match invite::revoke(&app.db, found.id, app.clock.now()).await? {
        true => Ok(HttpResponse::NoContent().finish()),
        false => Err(ApiError::not_found()),
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_lifetime_ms, parse_max_uses, qr_svg};

    #[test]
    fn an_invite_is_valid_for_at_most_thirty_days() {
        assert_eq!(parse_lifetime_ms(168.0).unwrap(), 7 * 86_400_000);
        assert_eq!(parse_lifetime_ms(0.5).unwrap(), 1_800_000);
        assert_eq!(parse_lifetime_ms(720.0).unwrap(), 30 * 86_400_000);
        assert_eq!(parse_lifetime_ms(f64::MIN_POSITIVE).unwrap(), 1);
        for hours in [0.0, -1.0, 720.001, f64::INFINITY, f64::NAN] {
            let error = parse_lifetime_ms(hours).unwrap_err();
            assert_eq!(error.param.as_deref(), Some("expires_in_hours"), "{hours}");
            assert!(error.message.contains("720"), "{}", error.message);
        }
    }

    #[test]
    fn an_invite_has_one_to_a_thousand_uses() {
        assert!(parse_max_uses(1).is_ok() && parse_max_uses(1_000).is_ok());
        assert!(
            parse_max_uses(0).is_err()
                && parse_max_uses(1_001).is_err()
                && parse_max_uses(-1).is_err()
        );
    }

    #[test]
    fn the_qr_code_is_self_contained_and_has_a_margin() {
        let picture = qr_svg(&format!("https://troupe.example/join#{}", "x".repeat(43))).unwrap();

        assert!(picture.contains("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(picture.ends_with("</svg>"));
        assert!(!picture.contains('#'), "{picture}");
        // The first dark module must not be at the edge.
        let (x, rest) = picture
            .split("d=\"M")
            .nth(1)
            .unwrap()
            .split_once(' ')
            .unwrap();
        let y = rest.split_once('h').unwrap().0;
        let (x, y): (u32, u32) = (x.parse().unwrap(), y.parse().unwrap());
        assert!(x > 0 && x == y, "{x} {y}");
    }
}
