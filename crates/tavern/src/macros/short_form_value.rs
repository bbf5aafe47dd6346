//! Reads and changes variables as the short forms of macros request.

use crate::macros::card_use::CardUse;
use crate::macros::environment::MacroEnvironment;
use crate::macros::syntax::short_form::{ShortForm, ShortOperator};
use crate::macros::values;

/// Returns the value of the variable of a short form.
pub fn read(form: &ShortForm<'_>, environment: &MacroEnvironment) -> String {
    let variables = environment.variables.borrow();
    let value = variables.get(form.scope, form.name);
    if !value.is_empty() {
        environment.record_card_use(CardUse::Unknown);
    }
    value.to_owned()
}

/// Returns the text that replaces a short form whose operand is not needed; `None`: it is needed.
pub fn without_operand(form: &ShortForm<'_>, environment: &MacroEnvironment) -> Option<String> {
    let count = |step| {
        let mut variables = environment.variables.borrow_mut();
        variables.add(form.scope, form.name, step);
    };
    match form.operator {
        None => {}
        Some(ShortOperator::Increment) => count("1"),
        Some(ShortOperator::Decrement) => count("-1"),
        Some(ShortOperator::Or | ShortOperator::OrSet) => {
            let value = read(form, environment);
            return values::is_true(&value).then_some(value);
        }
        Some(ShortOperator::IfUnset | ShortOperator::SetIfUnset) => {
            let is_set = environment.variables.borrow().is_set(form.scope, form.name);
            return is_set.then(|| read(form, environment));
        }
        Some(_) => return None,
    }
    Some(read(form, environment))
}

/// Applies an operator to a variable and an operand. Returns the text that replaces the short form.
pub fn with_operand(
    form: &ShortForm<'_>,
    operand: String,
    environment: &MacroEnvironment,
) -> String {
    let ShortForm { scope, name, .. } = *form;
    let change = &environment.variables;
    match form.operator {
        Some(ShortOperator::Set) => change.borrow_mut().set(scope, name, &operand),
        Some(ShortOperator::Add) => change.borrow_mut().add(scope, name, &operand),
        Some(ShortOperator::Subtract) => change.borrow_mut().subtract(scope, name, &operand),
        Some(ShortOperator::OrSet | ShortOperator::SetIfUnset) => {
            change.borrow_mut().set(scope, name, &operand);
            return operand;
        }
        Some(ShortOperator::Compare(comparison)) => {
            let value = read(form, environment);
            return comparison.is_true_for(&value, &operand).to_string();
        }
        _ => return operand,
    }
    String::new()
}
