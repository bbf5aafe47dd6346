//! Parses page size, cursors and other parameters of a query string, and describes the page
//! parameters in the API document.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat};
use utoipa::{IntoParams, PartialSchema};

use crate::db::reading::page::PageQuery;
use crate::web::error::{ApiError, ApiResult};

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 200;

/// `?limit=`, `?after=`, `?before=`.
impl<K: FromStr> FromRequest for PageQuery<K> {
    type Error = ApiError;
    type Future = Ready<ApiResult<Self>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::parse(request.query_string()))
    }
}

impl<K: FromStr> PageQuery<K> {
    /// Parses the page from a query; other parameters are ignored.
    ///
    /// # Errors
    /// Returns 400 when a number is invalid or out of range.
    pub fn parse(query: &str) -> ApiResult<Self> {
        let limit = match parse_value::<u64>(query, "limit")? {
            None => DEFAULT_LIMIT,
            Some(limit @ 1..=MAX_LIMIT) => limit,
            Some(_) => return Err(out_of_range("limit", "Must be between 1 and 200.")),
        };
        Ok(Self {
            limit,
            after: parse_value(query, "after")?,
            before: parse_value(query, "before")?,
        })
    }
}

/// The three parameters in the API document.
impl<K: PartialSchema> IntoParams for PageQuery<K> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(1))
            .maximum(Some(MAX_LIMIT))
            .default(Some(DEFAULT_LIMIT.into()));
        let parameter = |name: &str, about: &str| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .description(Some(about))
        };
        let after = parameter("after", "Only entries after this key.");
        let before = parameter("before", "Only entries before this key; the nearest ones.");
        vec![
            parameter("limit", "The maximum number of entries.")
                .schema(Some(limit))
                .build(),
            after.schema(Some(K::schema())).build(),
            before.schema(Some(K::schema())).build(),
        ]
    }
}

/// Parses one value of a query; absent is `None`.
///
/// # Errors
/// Returns 400 if it does not parse.
pub fn parse_value<T: FromStr>(query: &str, name: &'static str) -> ApiResult<Option<T>> {
    let pairs = parse_pairs(query);
    let Some(text) = pairs
        .into_iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value)
    else {
        return Ok(None);
    };
    match text.parse() {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(out_of_range(name, "This value is not valid.")),
    }
}

/// Returns a trimmed text from a query; absent or blank is `None`.
///
/// # Errors
/// Returns 400 if it contains U+0000, which PostgreSQL does not accept.
pub fn parse_text(query: &str, name: &'static str) -> ApiResult<Option<String>> {
    let text: Option<String> = parse_value(query, name)?;
    let text = text.map(|it| it.trim().to_owned());
    match text.filter(|it| !it.is_empty()) {
        Some(text) if text.contains('\0') => Err(out_of_range(
            name,
            "A string contains the character U+0000.",
        )),
        text => Ok(text),
    }
}

/// Returns the decoded parameters of a query, in their order.
pub fn parse_pairs(query: &str) -> Vec<(String, String)> {
    // Parsing pairs accepts every text, so this cannot fail; an empty list would be a correct
    // fallback.
    actix_web::web::Query::from_query(query)
        .map(actix_web::web::Query::into_inner)
        .unwrap_or_default()
}

fn out_of_range(name: &'static str, message: &str) -> ApiError {
    ApiError::new(400, "invalid_value", message).with_param(name)
}

#[cfg(test)]
mod tests {
    use super::{PageQuery, parse_text, parse_value};

    #[test]
    fn a_page_has_fifty_by_default() {
        let page = PageQuery::<i64>::parse("status=queued").unwrap();

        assert_eq!(
            page,
            PageQuery {
                limit: 50,
                after: None,
                before: None
            }
        );
    }

    #[test]
    fn limits_and_cursors_are_parsed_and_rejected_if_out_of_range() {
        let page = PageQuery::<i64>::parse("limit=200&after=7&before=9").unwrap();
        assert_eq!(
            (page.limit, page.after, page.before),
            (200, Some(7), Some(9))
        );

        for query in [
            "limit=0",
            "limit=201",
            "limit=-1",
            "limit=x",
            "limit=99999999999999999999",
            "after=x",
            "before=1.5",
        ] {
            let error = PageQuery::<i64>::parse(query).unwrap_err();
            assert_eq!(error.status.as_u16(), 400, "{query}");
            assert_eq!(error.param.as_deref(), query.split('=').next());
        }
    }

    #[test]
    fn a_value_is_decoded() {
        assert_eq!(
            parse_value::<String>("q=a%20b&x=1", "q")
                .unwrap()
                .as_deref(),
            Some("a b")
        );
        assert_eq!(parse_value::<bool>("all=true", "all").unwrap(), Some(true));
        assert_eq!(parse_value::<bool>("any=true", "all").unwrap(), None);
        assert!(parse_value::<bool>("all=", "all").is_err());
    }

    #[test]
    fn a_text_is_trimmed_and_must_not_contain_nul() {
        let text = |query| parse_text(query, "q").map_err(|it| (it.status.as_u16(), it.code));

        assert_eq!(text("q=%20an%20n%20"), Ok(Some("an n".to_owned())));
        assert_eq!(text("q=%20"), Ok(None));
        assert_eq!(text("x=1"), Ok(None));
        assert_eq!(text("q=a%00"), Err((400, "invalid_value")));
    }
}
