//! Names the parameters of a request that were accepted but have no effect, in the response header
//! `troupe-ignored`.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};

const TROUPE_IGNORED: HeaderName = HeaderName::from_static("troupe-ignored");

/// The maximum length of the value, in bytes, because proxies reject long headers. Further names are left
/// out.
const MAX_HEADER_BYTES: usize = 1_000;

/// Adds the header, unless there are no names.
pub fn add_header(answer: &mut HttpResponse, names: &[String]) {
    if names.is_empty() {
        return;
    }
    // Every character of the value is allowed in a header.
    if let Ok(value) = HeaderValue::from_str(&header_value(names)) {
        answer.headers_mut().insert(TROUPE_IGNORED, value);
    }
}

/// Returns the names, separated by commas. A character that a header or the list cannot contain
/// becomes `?`.
fn header_value(names: &[String]) -> String {
    let plain = |it: char| match it.is_ascii_graphic() && it != ',' {
        true => it,
        false => '?',
    };
    let mut value = String::new();
    for name in names {
        let separator = if value.is_empty() { "" } else { ", " };
        if value.len() + separator.len() + name.chars().count() > MAX_HEADER_BYTES {
            break;
        }
        value.push_str(separator);
        value.extend(name.chars().map(plain));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::{MAX_HEADER_BYTES, header_value};

    #[test]
    fn the_names_are_a_list_that_a_header_can_contain() {
        let names = ["user", "a,b\r\n", "ü"].map(str::to_owned);

        assert_eq!(header_value(&names), "user, a?b??, ?");
    }

    #[test]
    fn the_header_has_a_maximum_length() {
        let names = vec!["x".repeat(100); 100];

        let value = header_value(&names);

        assert!(value.len() <= MAX_HEADER_BYTES && value.len() > MAX_HEADER_BYTES - 110);
    }
}
