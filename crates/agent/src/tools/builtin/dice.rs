//! The built-in tool `troupe:dice`: rolls dice.

use async_trait::async_trait;
use llm::tool::Tool;
use rand::Rng;
use serde_json::json;

use crate::tools::dice_roll::{DiceError, DiceNotation};
use crate::tools::tool::{ServerTool, ToolArguments, ToolResult};

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
    let dice: DiceNotation = asked.parse().map_err(|it: DiceError| it.to_string())?;
    serde_json::to_string(&dice.roll(rng)).map_err(|it| it.to_string())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use serde_json::{Value, json};

    use super::{declaration, roll};

    fn roll_json(notation: &str, seed: u64) -> Result<Value, String> {
        let result = roll(notation, &mut ChaCha8Rng::seed_from_u64(seed))?;
        Ok(serde_json::from_str(&result).unwrap())
    }

    #[test]
    fn the_result_has_each_die_and_the_total() {
        let result = roll_json("3d1-2", 1).unwrap();

        assert_eq!(result, json!({"dice": [1, 1, 1], "added": -2, "total": 1}));
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
        for notation in ["2d6*2", "101d6"] {
            assert!(roll_json(notation, 1).is_err(), "{notation}");
        }
    }
}
