//! Everything that a provider can do wrong, for tests that want a bit of each.

use std::time::Duration;

use rand::Rng;
use rand::RngExt;

use super::script::Script;

/// Draws a fault. Each ends by itself or when the client gives up.
pub fn draw(dice: &mut impl Rng) -> Script {
    let begun = || Script::stream().role().words("Once upon a time ");
    match dice.random_range(0..20) {
        0 => Script::rate_limited("0"),
        1 => Script::rate_limited("1"),
        2 => Script::rate_limited("soon"),
        3 => Script::rate_limited("Wed, 21 Oct 2015 07:28:00 GMT"),
        4 => Script::rate_limited("999999"),
        5 => Script::status(500),
        6 => Script::status(503),
        7 => Script::status(400),
        8 => Script::hang_before_headers(),
        9 => Script::hang_before_first_chunk(),
        10 => begun().hang(),
        11 => Script::reset_before_headers(),
        12 => begun().reset(),
        13 => begun().close(),
        14 => begun(),
        15 => begun().garbage(),
        16 => begun().error("Overloaded."),
        17 => Script::stream().role().text(" \n ").finish("stop").done(),
        18 => Script::html(),
        _ => Script::stream()
            .comment()
            .forever(": still here\n\n", Duration::from_millis(50)),
    }
}
