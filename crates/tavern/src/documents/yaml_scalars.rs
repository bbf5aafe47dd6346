//! Determines the type of a YAML scalar by the core schema of YAML 1.2: null, boolean, number or
//! text.

use saphyr_parser::ScalarStyle;
use serde_json::{Number, Value};

/// Returns the value of a scalar. Only plain scalars have another type than text.
pub fn resolve(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::from(text), Value::Number),
    }
}

/// Returns the number that a scalar is. Infinity and NaN, which JSON lacks, and integers beyond 64
/// bits stay text.
fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|it| it.is_ascii_digit()) {
        let plain = text.strip_prefix('+').unwrap_or(text);
        let signed = plain.parse::<i64>().ok().map(Number::from);
        return signed.or_else(|| plain.parse::<u64>().ok().map(Number::from));
    }
    match is_float(unsigned) {
        true => Number::from_f64(text.parse().ok()?),
        false => None,
    }
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    // `from_str_radix` would accept a sign.
    let is_plain = digits.starts_with(|it: char| it.is_ascii_hexdigit());
    let value = u64::from_str_radix(digits, radix).ok();
    value.filter(|_| is_plain).map(Number::from)
}

/// Returns whether this is `.5`, `1.`, `1.5`, `1e9` or `1.5e-9`.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty());
    let exponent = exponent.map(|it| it.strip_prefix(['-', '+']).unwrap_or(it));
    is_number && exponent.is_none_or(|it| !it.is_empty() && digits(it))
}

#[cfg(test)]
mod tests {
    use saphyr_parser::ScalarStyle;
    use serde_json::json;

    use super::resolve;

    #[test]
    fn plain_scalars_have_the_types_of_the_core_schema() {
        for (text, value) in [
            ("~", json!(null)),
            ("Null", json!(null)),
            ("TRUE", json!(true)),
            ("false", json!(false)),
            ("-12", json!(-12)),
            ("+3", json!(3)),
            ("0o17", json!(15)),
            ("0xfF", json!(255)),
            ("1.5e3", json!(1500.0)),
            (".5", json!(0.5)),
            ("18446744073709551615", json!(u64::MAX)),
            // YAML 1.1 read these as booleans, an octal number and base 60.
            ("yes", json!("yes")),
            ("off", json!("off")),
            ("1:30", json!("1:30")),
            ("0x+1", json!("0x+1")),
            (".inf", json!(".inf")),
            (".", json!(".")),
            ("1e", json!("1e")),
            ("99999999999999999999", json!("99999999999999999999")),
        ] {
            assert_eq!(resolve(text, ScalarStyle::Plain), value, "{text}");
        }
    }

    #[test]
    fn a_quoted_scalar_is_text() {
        assert_eq!(resolve("12", ScalarStyle::DoubleQuoted), json!("12"));
        assert_eq!(resolve("", ScalarStyle::SingleQuoted), json!(""));
        assert_eq!(resolve("true", ScalarStyle::Literal), json!("true"));
    }
}
