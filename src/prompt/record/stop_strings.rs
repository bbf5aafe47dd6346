//! Defines which stop strings of a prompt the provider gets, and which the server applies alone.

use serde::{Deserialize, Serialize};
use tavern::macros::card_use::CardUse;
use utoipa::ToSchema;

/// The texts that end a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StopStrings)]
#[serde(default)]
pub struct StopStrings {
    /// Those that the provider gets.
    pub sent: Vec<String>,
    /// Those that the server applies alone, because the provider accepts no more.
    pub local: Vec<String>,
}

/// The stop strings of a stored prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStops {
    #[serde(flatten)]
    pub stops: StopStrings,
    /// Whether they contain text of a card.
    #[serde(default, skip_serializing_if = "CardUse::is_none")]
    pub card_use: CardUse,
}

impl RecordedStops {
    /// Returns whether nothing but the model ends the reply.
    pub fn is_empty(&self) -> bool {
        self.stops == StopStrings::default()
    }
}

impl StopStrings {
    /// Divides the stop strings of a request; blank ones have no effect.
    pub fn divide(all: &[String], max_sent: usize) -> Self {
        let mut sent: Vec<String> = all.iter().filter(|it| !it.is_empty()).cloned().collect();
        let local = sent.split_off(sent.len().min(max_sent));
        Self { sent, local }
    }
}

#[cfg(test)]
mod tests {
    use super::StopStrings;

    #[test]
    fn the_server_applies_what_the_provider_does_not_accept() {
        let all = ["a", "", "b", "c"].map(str::to_owned);

        let divided = StopStrings::divide(&all, 2);

        assert_eq!(divided.sent, ["a", "b"]);
        assert_eq!(divided.local, ["c"]);
        assert!(StopStrings::divide(&all, usize::MAX).local.is_empty());
    }
}
