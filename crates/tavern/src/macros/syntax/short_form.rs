//! Parses the short forms of variable macros: `{{.name}}` for a variable of the conversation and
//! `{{$name}}` for one of the space, with an operator and a value.

use crate::macros::values;
use crate::macros::variables::VariableScope;

/// A short form, up to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortForm<'a> {
    pub scope: VariableScope,
    pub name: &'a str,
    /// `None`: it reads the variable.
    pub operator: Option<ShortOperator>,
    /// The beginning of the value, up to the first `::` or inner macro.
    pub rest: &'a str,
}

/// The operator of a short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortOperator {
    Set,
    Add,
    Subtract,
    Increment,
    Decrement,
    /// The value of the variable if it is true, else the given one.
    Or,
    /// The value of the variable if it is set, else the given one.
    IfUnset,
    OrSet,
    SetIfUnset,
    Compare(Comparison),
}

/// A comparison of a variable with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The operators; if one is a prefix of another, the longer one is first.
const OPERATORS: [(&str, ShortOperator); 15] = [
    ("||=", ShortOperator::OrSet),
    ("??=", ShortOperator::SetIfUnset),
    ("||", ShortOperator::Or),
    ("??", ShortOperator::IfUnset),
    ("++", ShortOperator::Increment),
    ("--", ShortOperator::Decrement),
    ("+=", ShortOperator::Add),
    ("-=", ShortOperator::Subtract),
    ("==", ShortOperator::Compare(Comparison::Equal)),
    ("!=", ShortOperator::Compare(Comparison::NotEqual)),
    ("<=", ShortOperator::Compare(Comparison::LessOrEqual)),
    (">=", ShortOperator::Compare(Comparison::GreaterOrEqual)),
    ("<", ShortOperator::Compare(Comparison::Less)),
    (">", ShortOperator::Compare(Comparison::Greater)),
    ("=", ShortOperator::Set),
];

impl<'a> ShortForm<'a> {
    /// Parses the text of a macro; `None` for another macro.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_start();
        let scope = match text.chars().next()? {
            '.' => VariableScope::Conversation,
            '$' => VariableScope::Space,
            _ => return None,
        };
        let text = text[1..].trim_start();
        if !text.starts_with(|it: char| it.is_ascii_alphabetic()) {
            return None;
        }
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
        // In `x--` and `x-=1` the hyphens belong to the operator.
        let name = text[..end].trim_end_matches('-');
        let after = text[name.len()..].trim_start();
        let found = OPERATORS.iter().find(|(sign, _)| after.starts_with(sign));
        let (operator, rest) = match found {
            Some((sign, operator)) => (Some(*operator), &after[sign.len()..]),
            None => (None, after),
        };
        Some(Self {
            scope,
            name,
            operator,
            rest,
        })
    }

    /// Returns whether a value must follow the operator; otherwise nothing may follow.
    pub fn needs_value(&self) -> bool {
        !matches!(
            self.operator,
            None | Some(ShortOperator::Increment | ShortOperator::Decrement)
        )
    }
}

impl Comparison {
    /// Compares two values: as numbers if both are numbers, else as texts.
    pub fn is_true_for(self, left: &str, right: &str) -> bool {
        let numbers = values::to_number(left).zip(values::to_number(right));
        let order = match numbers {
            Some((left, right)) => left.total_cmp(&right),
            None => left.cmp(right),
        };
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, ShortForm, ShortOperator};
    use crate::macros::variables::VariableScope;

    #[test]
    fn hyphens_at_the_end_of_a_name_belong_to_the_operator() {
        let parsed = |text| ShortForm::parse(text).map(|it| (it.name, it.operator, it.rest));

        assert_eq!(parsed(".a-b"), Some(("a-b", None, "")));
        assert_eq!(
            parsed(".a-b--"),
            Some(("a-b", Some(ShortOperator::Decrement), ""))
        );
        assert_eq!(
            parsed(" $ n -= 2"),
            Some(("n", Some(ShortOperator::Subtract), " 2"))
        );
        assert_eq!(parsed(".n- 2"), Some(("n", None, "- 2")));
        assert_eq!(parsed(".2"), None);
        assert_eq!(parsed("n"), None);
        let of_space = ShortForm::parse("$n").map(|it| it.scope);
        assert_eq!(of_space, Some(VariableScope::Space));
    }

    #[test]
    fn two_numbers_are_compared_as_numbers_and_texts_as_texts() {
        assert!(Comparison::Less.is_true_for("9", "10"));
        assert!(Comparison::Equal.is_true_for("1.0", "1"));
        assert!(Comparison::Greater.is_true_for("9a", "10"));
        assert!(Comparison::NotEqual.is_true_for("a", "A"));
        assert!(!Comparison::GreaterOrEqual.is_true_for("", "1"));
    }
}
