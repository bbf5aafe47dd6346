//! The built-in tool `troupe:dice`: rolls dice.

use async_trait::async_trait;
use llm::tool::Tool;
use rand::{Rng, RngExt};
use serde_json::json;

use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

const MAX_DICE: u32 = 100;
const MAX_SIDES: u32 = 1_000;
const MAX_EXTRA: i64 = 10_000;

/// Rolls dice.
pub struct DiceTool;

/// Returns the declaration for models.
pub fn declaration() -> Tool {
    Tool {
        name: "troupe_dice".to_owned(),
        description: Some("Rolls dice, fairly.".to_owned()),
        parameters: json!({
            "type": "object",
            "properties": {
                "roll": {
                    "type": "string",
                    "description": "How many dice with how many sides, and what is added: \
                        like 2d6, d20 or 3d8-2. At most 100 dice with 1000 sides.",
                    "examples": ["2d6", "d20", "3d8-2"],
                },
            },
            "required": ["roll"],
            "additionalProperties": false,
        }),
        strict: None,
    }
}

#[async_trait]
impl ServerTool for DiceTool {
    fn declaration(&self) -> Tool {
        declaration()
    }

    async fn run(&self, arguments: &ToolArguments, _: &(dyn Fn(&str) + Sync)) -> ToolResult {
        let asked = arguments.get("roll").and_then(|it| it.as_str());
        let asked = asked.ok_or("`roll` must be a string like 2d6+1.")?;
        roll(asked, &mut rand::rng())
    }
}

fn roll(asked: &str, rng: &mut impl Rng) -> ToolResult {
    let parsed = parse_roll(asked).ok_or("`roll` must look like 2d6, d20 or 3d8-2.")?;
    let is_within_limits = (1..=MAX_DICE).contains(&parsed.n_dice)
        && (1..=MAX_SIDES).contains(&parsed.n_sides)
        && (-MAX_EXTRA..=MAX_EXTRA).contains(&parsed.extra);
    if !is_within_limits {
        return Err("At most 100 dice, 1000 sides, and a modifier of up to 10000.".to_owned());
    }
    let rolled: Vec<u32> = (0..parsed.n_dice)
        .map(|_| rng.random_range(1..=parsed.n_sides))
        .collect();
    let total = rolled.iter().map(|it| i64::from(*it)).sum::<i64>() + parsed.extra;
    Ok(json!({ "dice": rolled, "added": parsed.extra, "total": total }).to_string())
}

struct DiceRoll {
    n_dice: u32,
    n_sides: u32,
    extra: i64,
}

fn parse_roll(asked: &str) -> Option<DiceRoll> {
    let text: String = asked.chars().filter(|it| !it.is_whitespace()).collect();
    let text = text.to_ascii_lowercase();
    let (n_dice, rest) = text.split_once('d')?;
    let end = rest.find(['+', '-']).unwrap_or(rest.len());
    let (n_sides, extra) = rest.split_at(end);
    Some(DiceRoll {
        n_dice: match n_dice {
            "" => 1,
            n_dice => n_dice.parse().ok()?,
        },
        n_sides: match n_sides {
            "%" => 100,
            n_sides => n_sides.parse().ok()?,
        },
        extra: match extra {
            "" => 0,
            extra => extra.parse().ok()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use serde_json::Value;

    use super::{declaration, roll};

    fn roll_json(notation: &str, seed: u64) -> Result<Value, String> {
        let result = roll(notation, &mut ChaCha8Rng::seed_from_u64(seed))?;
        Ok(serde_json::from_str(&result).unwrap())
    }

    #[test]
    fn the_total_is_the_sum_of_all_dice() {
        for seed in 0..200 {
            let result = roll_json("2d6 + 1", seed).unwrap();
            let dice: Vec<i64> = result["dice"]
                .as_array()
                .unwrap()
                .iter()
                .map(|it| it.as_i64().unwrap())
                .collect();
            assert_eq!(dice.len(), 2);
            assert!(dice.iter().all(|it| (1..=6).contains(it)));
            assert_eq!(result["total"], dice.iter().sum::<i64>() + 1);
        }
        assert_eq!(roll_json("3d1-2", 1).unwrap()["total"], 1);
        assert_eq!(roll_json("D1", 1).unwrap()["total"], 1);
    }

    #[test]
    fn the_examples_in_the_declaration_are_valid() {
        let examples = declaration().parameters["properties"]["roll"]["examples"].clone();

        for example in examples.as_array().unwrap() {
            assert!(roll_json(example.as_str().unwrap(), 1).is_ok(), "{example}");
        }
    }

    #[test]
    fn an_invalid_or_too_large_roll_is_an_error() {
        for notation in [
            "",
            "6",
            "d",
            "0d6",
            "2d0",
            "101d6",
            "1d1001",
            "1d6+10001",
            "1d6-10001",
            "d6-9223372036854775808",
            "-1d6",
            "2d6+",
            "2d6*2",
            "9999999999d6",
        ] {
            assert!(roll_json(notation, 1).is_err(), "{notation}");
        }
    }
}
