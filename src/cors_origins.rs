//! Defines `CorsOrigins`: the pages of other sites that may call `/v1` from a browser.

use std::str::FromStr;

/// The accepted format of the setting.
pub const CORS_FORMAT: &str = "*, none, or a list of origins such as https://app.example";

/// The origins of pages that may call `/v1` and read the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigins {
    Any,
    None,
    Listed(Vec<String>),
}

impl CorsOrigins {
    /// Returns whether a page of this origin may call `/v1`.
    pub fn allows(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::None => false,
            Self::Listed(all) => all.iter().any(|it| it.eq_ignore_ascii_case(origin)),
        }
    }
}

/// The setting is not in the accepted format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorsOriginsError;

impl FromStr for CorsOrigins {
    type Err = CorsOriginsError;

    fn from_str(text: &str) -> Result<Self, CorsOriginsError> {
        match text {
            "*" => return Ok(Self::Any),
            "none" => return Ok(Self::None),
            _ => {}
        }
        let each = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        let all: Vec<String> = each.map(str::to_owned).collect();
        match !all.is_empty() && all.iter().all(|it| is_origin(it)) {
            true => Ok(Self::Listed(all)),
            false => Err(CorsOriginsError),
        }
    }
}

/// Returns whether this is a scheme and a host, without a path.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let fits = |it: char| it.is_ascii_alphanumeric() || ".-_:[]".contains(it);
    let is_scheme = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
    !scheme.is_empty()
        && scheme.chars().all(is_scheme)
        && !host.is_empty()
        && host.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::{CorsOrigins, CorsOriginsError};

    #[test]
    fn only_listed_origins_are_allowed() {
        let listed: CorsOrigins = "https://app.example, http://localhost:3000"
            .parse()
            .unwrap();

        assert!(listed.allows("https://app.example") && listed.allows("http://localhost:3000"));
        for foreign in ["null", "https://app.example.evil", "http://app.example", ""] {
            assert!(!listed.allows(foreign), "{foreign}");
        }
        assert!("*".parse::<CorsOrigins>().unwrap().allows("null"));
        assert!(
            !"none"
                .parse::<CorsOrigins>()
                .unwrap()
                .allows("https://app.example")
        );
    }

    #[test]
    fn an_origin_has_a_scheme_and_no_path() {
        for wrong in ["app.example", "https://", "https://a/b", "*,https://a", ","] {
            assert_eq!(
                wrong.parse::<CorsOrigins>(),
                Err(CorsOriginsError),
                "{wrong}"
            );
        }
    }
}
