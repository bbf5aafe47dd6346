//! Formats the values of date, time and duration macros. Times are in UTC, because the members of a
//! space have no common time zone, or at an offset that the macro states.

use chrono::{DateTime, Datelike, FixedOffset, Utc};

use crate::chats::dates;

/// Returns the value of a date or time macro, or `None` for another name.
pub fn expand(name: &str, now: DateTime<Utc>) -> Option<String> {
    let format = match name {
        "time" => "%-I:%M %p",
        "date" => "%B %-d, %Y",
        "weekday" => "%A",
        "isotime" => "%H:%M",
        "isodate" => "%Y-%m-%d",
        _ => return None,
    };
    Some(now.format(format).to_string())
}

/// Returns the time at `UTC+2` or `utc-3:30`, or `None` if the offset is invalid.
pub fn expand_with_offset(zone: &str, now: DateTime<Utc>) -> Option<String> {
    let offset = zone.trim().to_ascii_lowercase();
    let offset = offset.strip_prefix("utc")?;
    let sign = match offset.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':').unwrap_or((&offset[1..], "0"));
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if !(0..=14).contains(&hours) || !(0..60).contains(&minutes) {
        return None;
    }
    let offset = FixedOffset::east_opt(sign * (hours * 3_600 + minutes * 60))?;
    Some(now.with_timezone(&offset).format("%-I:%M %p").to_string())
}

/// Format tokens with their chrono formats; tokens with a common prefix, longest first.
const FORMAT_TOKENS: [(&str, &str); 34] = [
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("DDDD", "%j"),
    ("DDD", "%-j"),
    ("DD", "%d"),
    ("D", "%-d"),
    ("dddd", "%A"),
    ("ddd", "%a"),
    ("d", "%w"),
    ("E", "%u"),
    ("HH", "%H"),
    ("H", "%-H"),
    ("hh", "%I"),
    ("h", "%-I"),
    ("mm", "%M"),
    ("m", "%-M"),
    ("ss", "%S"),
    ("s", "%-S"),
    ("SSS", "%3f"),
    ("A", "%p"),
    ("a", "%P"),
    ("X", "%s"),
    ("ZZ", "%z"),
    ("Z", "%:z"),
    ("LLLL", "%A, %B %-d, %Y %-I:%M %p"),
    ("LLL", "%B %-d, %Y %-I:%M %p"),
    ("LL", "%B %-d, %Y"),
    ("LTS", "%-I:%M:%S %p"),
    ("LT", "%-I:%M %p"),
    ("L", "%m/%d/%Y"),
];

/// Formats the time with a pattern such as `YYYY-MM-DD HH:mm`; text in brackets is literal.
pub fn format_in(pattern: &str, now: DateTime<Utc>) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if let Some((text, after)) = rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
            out.push_str(text);
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("Do") {
            out.push_str(&ordinal(now.day()));
            rest = after;
            continue;
        }
        match FORMAT_TOKENS
            .iter()
            .find(|(sign, _)| rest.starts_with(sign))
        {
            Some((sign, format)) => {
                out.push_str(&now.format(format).to_string());
                rest = &rest[sign.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// Returns whether a pattern contains the time of day: whether two times of one day differ in it.
pub fn has_time_of_day(pattern: &str) -> bool {
    let time = |ms| DateTime::from_timestamp_millis(ms).unwrap_or_default();
    // These times differ in hour, AM or PM, minute, second and millisecond.
    format_in(pattern, time(0)) != format_in(pattern, time(48_691_500))
}

fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// Returns a duration in words, rounded as Moment.js rounds it.
pub fn humanize_duration(ms: i64) -> String {
    let round = |n: i64, unit: i64| (n + unit / 2) / unit;
    let say = |n: i64, one: &str, many: &str| match n {
        ..=1 => one.to_owned(),
        n => format!("{n} {many}"),
    };
    let (seconds, minutes) = (round(ms, 1_000), round(ms, 60_000));
    let (hours, days) = (round(ms, 3_600_000), round(ms, 86_400_000));
    // 400 years have 146,097 days and 4,800 months.
    let months = round(ms / 1_000 * 4_800, 146_097 * 86_400);
    let years = round(ms / 1_000 * 400, 146_097 * 86_400);
    if seconds < 45 {
        "a few seconds".to_owned()
    } else if minutes < 45 {
        say(minutes, "a minute", "minutes")
    } else if hours < 22 {
        say(hours, "an hour", "hours")
    } else if days < 26 {
        say(days, "a day", "days")
    } else if months < 11 {
        say(months, "a month", "months")
    } else {
        say(years, "a year", "years")
    }
}

/// Returns how far the first date is from the second one in words: `in 2 hours`, `2 hours ago`.
/// `None` if one is not a date.
pub fn difference(one: &str, other: &str) -> Option<String> {
    let ms = dates::parse_text(one)?.ms_since(dates::parse_text(other)?);
    let duration = humanize_duration(ms.abs());
    Some(match ms > 0 {
        true => format!("in {duration}"),
        false => format!("{duration} ago"),
    })
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;

    use super::{difference, expand_with_offset, format_in, humanize_duration};

    const NOON: Timestamp = Timestamp(1_795_262_645_000); // 2026-11-21T12:04:05Z, a Saturday

    #[test]
    fn a_pattern_is_formatted_token_by_token() {
        let formatted = |pattern| format_in(pattern, NOON.to_utc());

        assert_eq!(formatted("YYYY-MM-DD HH:mm:ss"), "2026-11-21 12:04:05");
        assert_eq!(
            formatted("dddd, MMMM Do [at] h:mm a"),
            "Saturday, November 21st at 12:04 pm"
        );
        assert_eq!(formatted("M/D/YY, H.m.s 漢 ["), "11/21/26, 12.4.5 漢 [");
        assert_eq!(formatted(""), "");
    }

    #[test]
    fn the_time_is_given_at_an_offset_from_utc() {
        let expand = |offset| expand_with_offset(offset, NOON.to_utc());

        assert_eq!(expand("UTC+2").as_deref(), Some("2:04 PM"));
        assert_eq!(expand("utc-3:30").as_deref(), Some("8:34 AM"));
        for offset in ["UTC", "UTC+", "UTC+15", "UTC+1:99", "UTC+-1", "CET", ""] {
            assert_eq!(expand(offset), None, "{offset}");
        }
    }

    #[test]
    fn durations_are_humanized() {
        let (minute, hour) = (60_000, 3_600_000);
        let cases = [
            (-5, "a few seconds"),
            (minute, "a minute"),
            (5 * minute, "5 minutes"),
            (hour, "an hour"),
            (3 * hour, "3 hours"),
            (24 * hour, "a day"),
            (72 * hour, "3 days"),
            (40 * 24 * hour, "a month"),
            (800 * 24 * hour, "2 years"),
            (44_499, "a few seconds"),
            (44_500, "a minute"),
            (21 * hour + 35 * minute, "a day"),
            (26 * 24 * hour, "a month"),
            (320 * 24 * hour, "a year"),
        ];
        for (ms, expected) in cases {
            assert_eq!(humanize_duration(ms), expected);
        }
    }

    #[test]
    fn the_difference_of_two_dates_names_its_direction() {
        let cases = [
            ("2026-11-21 4:24 PM", "2026-11-21 14:24:00", "in 2 hours"),
            ("2024-05-11", "2024/5/14 00:00:00", "3 days ago"),
            ("November 21, 2026", "2025-11-21T00:00:00Z", "in a year"),
            ("2026-11-21", "2026-11-21", "a few seconds ago"),
        ];
        for (one, other, expected) in cases {
            let found = difference(one, other);
            assert_eq!(found.as_deref(), Some(expected), "{one} {other}");
        }
        assert_eq!(difference("yesterday", "2026-11-21"), None);
    }
}
