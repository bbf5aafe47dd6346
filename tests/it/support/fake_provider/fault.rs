//! All faults of a provider, for tests that need some of each.

use std::time::Duration;

use rand::{Rng, RngExt};

use super::script::ResponseScript;

/// Chooses a fault. Each ends by itself or when the client disconnects.
pub fn draw(dice: &mut impl Rng) -> ResponseScript {
    let begun = || ResponseScript::stream().role().words("Once upon a time ");
    match dice.random_range(0..20) {
        0 => ResponseScript::rate_limited("0"),
        1 => ResponseScript::rate_limited("1"),
        2 => ResponseScript::rate_limited("soon"),
        3 => ResponseScript::rate_limited("Wed, 21 Oct 2015 07:28:00 GMT"),
        4 => ResponseScript::rate_limited("999999"),
        5 => ResponseScript::status(500),
        6 => ResponseScript::status(503),
        7 => ResponseScript::status(400),
        8 => ResponseScript::hang_before_headers(),
        9 => ResponseScript::hang_before_first_chunk(),
        10 => begun().hang(),
        11 => ResponseScript::reset_before_headers(),
        12 => begun().reset(),
        13 => begun().close(),
        14 => begun(),
        15 => begun().garbage(),
        16 => begun().error("Overloaded."),
        17 => ResponseScript::stream()
            .role()
            .text(" \n ")
            .finish("stop")
            .done(),
        18 => ResponseScript::html(),
        _ => ResponseScript::stream()
            .comment()
            .forever(": still here\n\n", Duration::from_millis(50)),
    }
}
