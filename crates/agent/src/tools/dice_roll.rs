//! Parses and rolls dice such as `2d6+3`, for the tool of the models and for people.

use std::fmt;
use std::str::FromStr;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

const MAX_DICE: u32 = 100;
const MAX_SIDES: u32 = 1_000;
const MAX_ADDED: i64 = 10_000;

/// What is rolled: a number of dice, their sides, and a number that is added. Displayed as `2d6+3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiceNotation {
    n_dice: u32,
    n_sides: u32,
    added: i64,
}

/// Why a text does not name dice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiceError {
    #[error("Dice look like 2d6, d20 or 3d8-2.")]
    Syntax,
    #[error("At most 100 dice, 1000 sides, and a modifier of up to 10000.")]
    TooMany,
}

/// The result of a roll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledDice {
    /// The result of each die.
    pub dice: Vec<u32>,
    pub added: i64,
    pub total: i64,
}

impl DiceNotation {
    /// Rolls the dice.
    pub fn roll(self, rng: &mut impl Rng) -> RolledDice {
        let dice: Vec<u32> = (0..self.n_dice)
            .map(|_| rng.random_range(1..=self.n_sides))
            .collect();
        let total = dice.iter().map(|it| i64::from(*it)).sum::<i64>() + self.added;
        RolledDice {
            dice,
            added: self.added,
            total,
        }
    }
}

impl FromStr for DiceNotation {
    type Err = DiceError;

    fn from_str(text: &str) -> Result<Self, DiceError> {
        let dice = parse(text).ok_or(DiceError::Syntax)?;
        let is_within_limits = (1..=MAX_DICE).contains(&dice.n_dice)
            && (1..=MAX_SIDES).contains(&dice.n_sides)
            && (-MAX_ADDED..=MAX_ADDED).contains(&dice.added);
        match is_within_limits {
            true => Ok(dice),
            false => Err(DiceError::TooMany),
        }
    }
}

impl fmt::Display for DiceNotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}d{}", self.n_dice, self.n_sides)?;
        match self.added {
            0 => Ok(()),
            added => write!(f, "{added:+}"),
        }
    }
}

/// The sum as people read it: `4 + 5 + 3 = 12`, or the total alone if it has one part.
impl fmt::Display for RolledDice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let ([only], 0) = (self.dice.as_slice(), self.added) {
            return write!(f, "{only}");
        }
        for (n, die) in self.dice.iter().enumerate() {
            f.write_str(if n > 0 { " + " } else { "" })?;
            write!(f, "{die}")?;
        }
        match self.added {
            0 => {}
            added if added < 0 => write!(f, " - {}", -added)?,
            added => write!(f, " + {added}")?,
        }
        write!(f, " = {}", self.total)
    }
}

fn parse(text: &str) -> Option<DiceNotation> {
    let text: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    let text = text.to_ascii_lowercase();
    let (n_dice, rest) = text.split_once('d')?;
    let end = rest.find(['+', '-']).unwrap_or(rest.len());
    let (n_sides, added) = rest.split_at(end);
    Some(DiceNotation {
        n_dice: match n_dice {
            "" => 1,
            n_dice => n_dice.parse().ok()?,
        },
        n_sides: match n_sides {
            "%" => 100,
            n_sides => n_sides.parse().ok()?,
        },
        added: match added {
            "" => 0,
            added => added.parse().ok()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::{DiceError, DiceNotation, RolledDice};

    fn notation(text: &str) -> Result<DiceNotation, DiceError> {
        text.parse()
    }

    #[test]
    fn the_total_is_the_sum_of_all_dice() {
        for seed in 0..200 {
            let rolled = notation("2d6 + 1")
                .unwrap()
                .roll(&mut ChaCha8Rng::seed_from_u64(seed));

            assert_eq!(rolled.dice.len(), 2);
            assert!(rolled.dice.iter().all(|it| (1..=6).contains(it)));
            let sum: u32 = rolled.dice.iter().sum();
            assert_eq!(rolled.total, i64::from(sum) + 1);
        }
    }

    #[test]
    fn a_notation_is_displayed_in_its_short_form() {
        for (text, shown) in [
            ("2D6 + 3", "2d6+3"),
            ("d20", "1d20"),
            ("3d8-2", "3d8-2"),
            ("d%", "1d100"),
            ("4d6+0", "4d6"),
        ] {
            assert_eq!(notation(text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn a_roll_is_displayed_with_each_die() {
        let shown = |dice: &[u32], added, total| {
            let dice = dice.to_vec();
            RolledDice { dice, added, total }.to_string()
        };

        assert_eq!(shown(&[4, 5], 3, 12), "4 + 5 + 3 = 12");
        assert_eq!(shown(&[4], -2, 2), "4 - 2 = 2");
        assert_eq!(shown(&[17], 0, 17), "17");
    }

    #[test]
    fn an_invalid_or_too_large_roll_is_an_error() {
        let syntax = ["", "6", "d", "-1d6", "2d6+", "2d6*2", "9999999999d6"];
        for text in syntax {
            assert_eq!(notation(text), Err(DiceError::Syntax), "{text}");
        }
        let too_many = ["0d6", "2d0", "101d6", "1d1001", "1d6+10001", "1d6-10001"];
        for text in too_many {
            assert_eq!(notation(text), Err(DiceError::TooMany), "{text}");
        }
        let least = format!("d6{}", i64::MIN);
        assert_eq!(notation(&least), Err(DiceError::TooMany));
    }
}
