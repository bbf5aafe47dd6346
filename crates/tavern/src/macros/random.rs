//! Derives the seeds, splits the options and rolls the dice of the macros `{{random}}`, `{{pick}}`
//! and `{{roll}}`; also derives the seed of the lore scan. If a text is expanded again for the same
//! message, its draws are the same; `{{pick}}` is the same in the whole conversation.

use crate::macros::environment::MacroSeed;
use crate::seeded_random::SeededRandom;

/// The maximum number of dice in one roll.
const MAX_DICE: usize = 1_000;
/// The maximum number of sides of a die.
const MAX_SIDES: usize = 1_000_000_000;

/// A hash of a text that seeds its draws. Computed once for all of them, because a text may be long
/// and contain many.
#[derive(Clone, Copy, Debug)]
pub struct TextFingerprint(u64);

impl TextFingerprint {
    /// Hashes the whole text.
    pub fn new(text: &str) -> Self {
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, fnv1a_step))
    }

    fn hash_with(self, numbers: &[i64]) -> u64 {
        let bytes = numbers.iter().flat_map(|it| it.to_le_bytes());
        bytes.fold(self.0, fnv1a_step)
    }
}

/// Returns the hash of a position: that of a macro at this byte of a text, which the macro at the
/// position `outer` inserted.
pub fn position_hash(outer: u64, at: usize) -> u64 {
    at.to_le_bytes().into_iter().fold(outer, fnv1a_step)
}

/// Returns the random generator of the macro at a position of a text. A pick is fixed for a
/// conversation, other draws change with each message.
pub fn draw_source(
    seed: MacroSeed,
    is_pick: bool,
    text: TextFingerprint,
    position: u64,
) -> SeededRandom {
    let message = if is_pick { -1 } else { seed.message };
    let numbers = [seed.conversation, message, position.cast_signed()];
    SeededRandom::from_seed(text.hash_with(&numbers).cast_signed())
}

/// Returns the seed of the lore scan.
pub fn lore_seed(seed: MacroSeed) -> u64 {
    TextFingerprint::new("lore").hash_with(&[seed.conversation, seed.message])
}

/// FNV-1a: stable across machines and versions.
fn fnv1a_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Returns the options: the arguments, or the items of a single argument, separated by commas.
pub fn split_choices(args: &[String]) -> Vec<String> {
    let [list] = args else {
        return args.to_vec();
    };
    // `\,` is a comma within an item.
    let list = list.replace("\\,", "\u{1}");
    let items = list.split(',');
    items.map(|it| it.trim().replace('\u{1}', ",")).collect()
}

/// Rolls `2d6+1`, `d20`, or `6` for one die with six sides. Returns `None` for an invalid formula.
pub fn roll(dice: &mut SeededRandom, formula: &str) -> Option<i64> {
    let formula: String = formula.chars().filter(|it| !it.is_whitespace()).collect();
    let formula = formula.to_ascii_lowercase();
    let (throw, add) = match formula.rfind(['+', '-']) {
        Some(at) => (&formula[..at], formula[at..].parse::<i32>().ok()?),
        None => (formula.as_str(), 0),
    };
    let (n_dice, n_sides) = match throw.split_once('d') {
        Some(("", n_sides)) => (1, n_sides),
        Some((n_dice, n_sides)) => (n_dice.parse().ok()?, n_sides),
        None => (1, throw),
    };
    let n_sides: usize = n_sides.parse().ok()?;
    if n_dice > MAX_DICE || !(1..=MAX_SIDES).contains(&n_sides) {
        return None;
    }
    let thrown: usize = (0..n_dice).map(|_| dice.below(n_sides) + 1).sum();
    Some(i64::try_from(thrown).ok()? + i64::from(add))
}

#[cfg(test)]
mod tests {
    use super::{TextFingerprint, draw_source, roll, split_choices};
    use crate::macros::environment::MacroSeed;

    #[test]
    fn a_roll_is_within_the_range_of_its_dice() {
        let mut any = draw_source(MacroSeed::default(), false, TextFingerprint::new("x"), 0);
        for _ in 0..200 {
            assert!((2..=12).contains(&roll(&mut any, "2d6").unwrap()));
            assert!((1..=20).contains(&roll(&mut any, "D20").unwrap()));
            assert!((1..=6).contains(&roll(&mut any, "6").unwrap()));
            assert!((-2..=1).contains(&roll(&mut any, "1d4 - 3").unwrap()));
        }
        for formula in [
            "",
            "d",
            "0",
            "xd6",
            "2d6d6",
            "1001d6",
            "2d0",
            "99999999999999999999",
        ] {
            assert_eq!(roll(&mut any, formula), None, "{formula}");
        }
    }

    #[test]
    fn one_argument_is_a_list_and_several_arguments_are_its_items() {
        let all = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
            split_choices(&args)
        };

        assert_eq!(all(&["a, b\\,c"]), ["a", "b,c"]);
        assert_eq!(all(&["a, b", "c"]), ["a, b", "c"]);
    }
}
