//! Parses the timestamps in chat files, in the formats of several frontends.

use base::clock::Timestamp;
use chrono::{DateTime, NaiveDate};
use serde_json::Value;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Smaller numbers are seconds since 1970 instead of milliseconds, which would mean before spring
/// 1973.
const MIN_MS: i64 = 100_000_000_000;

/// The last instant that RFC 3339 can express, in milliseconds.
const MAX_MS: i64 = 253_402_300_799_999;

/// Parses an instant. A date without a time zone is taken as UTC.
pub fn parse(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => {
            #[allow(clippy::cast_possible_truncation)] // a fractional part has no meaning here
            let whole = number.as_i64().or(number.as_f64().map(|it| it as i64))?;
            from_number(whole)
        }
        Value::String(text) => parse_text(text),
        _ => None,
    }
}

fn from_number(number: i64) -> Option<Timestamp> {
    let ms = match number {
        1..MIN_MS => number.checked_mul(1000)?,
        _ => number,
    };
    (1..=MAX_MS).contains(&ms).then_some(Timestamp(ms))
}

/// Parses a date in text.
pub fn parse_text(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.len() > 100 {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return from_number(number);
    }
    if let Ok(exact) = DateTime::parse_from_rfc3339(text) {
        return from_number(exact.timestamp_millis());
    }
    let numbers: Vec<u32> = text
        .split(|it: char| !it.is_ascii_digit())
        .filter(|it| !it.is_empty())
        .map(|it| it.parse().ok())
        .collect::<Option<_>>()?;
    match find_month(text) {
        Some(month) => from_month_name(text, month, &numbers),
        None => from_numeric_date(text, &numbers),
    }
}

/// Parses `2023-4-21 @20h 02m 47s 124ms`, `2023-04-21@20h02m47s`, `2023-04-21 20:02` and
/// `2023-04-21 8:02 PM`.
fn from_numeric_date(text: &str, numbers: &[u32]) -> Option<Timestamp> {
    let [year @ 1970..=9999, month, day, time @ ..] = numbers else {
        return None;
    };
    let part = |at: usize| time.get(at).copied().unwrap_or(0);
    let hour = hour_of(text, part(0));
    to_timestamp([*year, *month, *day], [hour, part(1), part(2), part(3)])
}

/// Parses `June 3, 2024 1:02pm` and `3 Jun 2024 13:02`.
fn from_month_name(text: &str, month: u32, numbers: &[u32]) -> Option<Timestamp> {
    let [day, year @ 1970..=9999, time @ ..] = numbers else {
        return None;
    };
    let part = |at: usize| time.get(at).copied().unwrap_or(0);
    let hour = hour_of(text, part(0));
    to_timestamp([*year, month, *day], [hour, part(1), part(2), 0])
}

/// Returns the hour of a text that may end with `am` or `pm`.
fn hour_of(text: &str, hour: u32) -> u32 {
    let lower = text.to_ascii_lowercase();
    match (hour, lower.ends_with("pm"), lower.ends_with("am")) {
        (1..=11, true, _) => hour + 12,
        (12, _, true) => 0,
        _ => hour,
    }
}

fn to_timestamp(
    [year, month, day]: [u32; 3],
    [hour, minute, second, ms]: [u32; 4],
) -> Option<Timestamp> {
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let time = date.and_hms_milli_opt(hour, minute, second, ms.min(999))?;
    from_number(time.and_utc().timestamp_millis())
}

/// Returns the number of the first month that a word of the text names.
fn find_month(text: &str) -> Option<u32> {
    let words = text.split(|it: char| !it.is_alphabetic());
    let mut words = words
        .filter(|it| it.len() >= 3)
        .map(str::to_ascii_lowercase);
    let at = words.find_map(|word| MONTHS.iter().position(|it| word.starts_with(it)))?;
    u32::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    fn read(value: &Value) -> Option<String> {
        parse(value).map(|it| it.to_string())
    }

    #[test]
    fn every_known_format_is_parsed() {
        for (form, meant) in [
            (
                json!("2024-06-03T13:02:05.678Z"),
                "2024-06-03T13:02:05.678Z",
            ),
            (
                json!("2024-06-03T15:02:05+02:00"),
                "2024-06-03T13:02:05.000Z",
            ),
            (json!("2024-06-03T13:02:05"), "2024-06-03T13:02:05.000Z"),
            (
                json!("2023-4-21 @20h 02m 47s 124ms"),
                "2023-04-21T20:02:47.124Z",
            ),
            (json!("2023-4-21@20h02m47s"), "2023-04-21T20:02:47.000Z"),
            (json!("2023-4-1 @9h 2m 7s 5ms"), "2023-04-01T09:02:07.005Z"),
            (json!(1_682_107_367_124_i64), "2023-04-21T20:02:47.124Z"),
            (json!("1682107367124"), "2023-04-21T20:02:47.124Z"),
            (json!(1_682_107_367), "2023-04-21T20:02:47.000Z"),
            (json!(1_682_107_367.9), "2023-04-21T20:02:47.000Z"),
            (json!("June 3, 2024 1:02pm"), "2024-06-03T13:02:00.000Z"),
            (json!("June 3, 2024 12:02 AM"), "2024-06-03T00:02:00.000Z"),
            (json!("May 30, 2024 12:45pm"), "2024-05-30T12:45:00.000Z"),
            (json!("3 Sept 2024 23:59"), "2024-09-03T23:59:00.000Z"),
            (json!("2024-06-03 13:02"), "2024-06-03T13:02:00.000Z"),
        ] {
            assert_eq!(read(&form).as_deref(), Some(meant), "{form}");
        }
    }

    #[test]
    fn a_text_without_a_date_is_none() {
        for form in [
            json!(null),
            json!(true),
            json!(""),
            json!("yesterday"),
            json!("June"),
            json!("2024-13-45"),
            json!("99999999999999999999"),
            json!(-5),
            json!(0),
            json!(1e300),
            json!("2024-06-03 25:00"),
            json!("1".repeat(2000)),
        ] {
            assert_eq!(read(&form), None, "{form}");
        }
    }
}
