//! Compaction: a long exchange becomes a summary that only its owner can hand in again.
//!
//! **Invariant:** nothing is stored. The summary leaves the house sealed for the one who asked, and
//! opens for nobody else.

use crate::clock::Timestamp;
use crate::generation::call_limits::CallLimits;
use crate::generation::model_call;
use crate::generation::outcome::CallEnd;
use crate::generation::outcome::FailureCode;
use crate::generation::outcome::ModelOutput;
use crate::ids::UserId;
use crate::llm::secret::Secret;
use crate::providers::encryption::SecretCipher;
use crate::responses::bill;
use crate::responses::desk::Desk;
use crate::responses::document::Bill;
use crate::responses::document::seconds;
use crate::responses::history;
use crate::responses::names;
use crate::responses::parts::Parts;
use crate::responses::preparation;
use crate::responses::preparation::Prepared;
use crate::responses::refusal::Refusal;
use crate::responses::spec::Spec;
use crate::responses::stop::Stop;
use sea_orm::DbErr;
use serde_json::Value;
use serde_json::json;
use tokio::time::Instant;
use tokio::time::timeout_at;

/// The longest summary, in bytes. Sealed, it is still shorter than what an item may hold.
const MAX_BYTES: usize = 1024 * 1024;

/// What the model is told behind everything that was said.
const ASK: &str = "Summarize everything above for yourself. You will go on from your summary and \
    from the messages of the user, which are kept word for word; your own words, your calls of tools \
    and what came of them will be gone. Keep facts, names, numbers, decisions, what was tried and what \
    came of it, what is open, and what you were about to do. Answer nothing, add nothing, and write \
    nothing but the summary.";

/// What stands before a summary that is handed in again.
const HEADING: &str = "A summary of the conversation until now, written by you:";

/// The summary, and what it cost.
struct Summary {
    text: String,
    usage: Option<Bill>,
}

impl Desk {
    /// Compacts what `spec` brings and goes on from: the words of people and programs as they are,
    /// everything else as a summary.
    ///
    /// # Errors
    /// As [`Desk::create`]; the model failed.
    pub async fn compact(&self, user: UserId, spec: Spec) -> Result<Value, Refusal> {
        let (desk, stop) = (self.clone(), Stop::default());
        // Who leaves stops the model.
        let _leaves = stop.token.clone().drop_guard();
        let work = async move { desk.compact_here(user, spec, &stop).await };
        let done = self.parts.shutdown.spawn(work).await;
        done.unwrap_or_else(|_| Err(DbErr::Custom("its task ended".to_owned()).into()))
    }

    async fn compact_here(&self, user: UserId, spec: Spec, stop: &Stop) -> Result<Value, Refusal> {
        let _place = self.place(user)?;
        let (id, at) = (names::mint(names::RESPONSE), self.parts.clock.now());
        let _hold = self.parts.held.hold(&id, stop, 0);
        let (items, prepared) = {
            let _turn = self.parts.beginnings.acquire().await.ok();
            self.prepare_compaction(user, spec).await?
        };
        let summary = summarize(&self.parts, prepared, stop).await?;
        let sealed = seal(&self.parts.models.cipher, user, &summary.text);
        let mut output: Vec<Value> = items.into_iter().filter(is_kept).collect();
        output.push(json!({
            "id": names::mint(names::COMPACTION), "type": "compaction", "encrypted_content": sealed,
        }));
        Ok(document(&id, at, &output, summary.usage))
    }

    /// All that was said, and the call that summarizes it.
    async fn prepare_compaction(
        &self,
        user: UserId,
        mut spec: Spec,
    ) -> Result<(Vec<Value>, Prepared), Refusal> {
        let db = self.parts.db.reader();
        preparation::find(&self.parts, user, &spec.model).await?;
        if let Some(previous) = &spec.previous {
            history::check_previous(db, user, previous).await?;
        }
        history::resolve(db, user, &mut spec.input).await?;
        let prior = history::items(db, spec.previous.as_deref(), None).await?;
        let items = [prior.as_slice(), &spec.input].concat();
        let sealer = &self.parts.models.cipher;
        let (prior, mut input) = opened(sealer, user, prior, spec.input)?;
        let content = json!([{ "type": "input_text", "text": ASK }]);
        input.push(json!({ "type": "message", "role": "user", "content": content }));
        let (model, kept) = (&spec.model, &spec.kept);
        let parts = &self.parts;
        let preparing = preparation::prepare_plain(parts, user, model, kept, prior, input);
        let prepared = preparing.await?;
        Ok((items, prepared))
    }
}

async fn summarize(parts: &Parts, prepared: Prepared, stop: &Stop) -> Result<Summary, Refusal> {
    let call = prepared.call();
    let mut watches = CallLimits {
        max_text_bytes: MAX_BYTES,
        ..parts.settings.watches
    };
    let deadline = Instant::now() + watches.total;
    let _permit = tokio::select! {
        () = stop.token.cancelled() => return Err(Refusal::Full),
        permit = timeout_at(deadline, call.permits.acquire()) => permit.map_err(|_| Refusal::Full)?,
    };
    watches.total = deadline.saturating_duration_since(Instant::now());
    let (provider, mut sink) = (call.provider.as_ref(), String::new());
    let (trim, token) = (call.trim.clone(), &stop.token);
    let heard =
        model_call::complete(provider, &call.request, trim, &watches, &mut sink, token).await;
    judge(&heard)?;
    let usage = bill::of(&heard, &call.request, true).await;
    let text = heard.text;
    Ok(Summary { text, usage })
}

fn judge(heard: &ModelOutput) -> Result<(), Refusal> {
    match &heard.end {
        CallEnd::Answered(_) if !heard.text.trim().is_empty() => Ok(()),
        CallEnd::Answered(_) => {
            let message = "The model wrote no summary.";
            Err(Refusal::Upstream(message.to_owned()))
        }
        CallEnd::Failed(failure) if failure.code == FailureCode::ContextOverflow => {
            Err(Refusal::TooLongForModel)
        }
        CallEnd::Failed(failure) => Err(Refusal::Upstream(failure.message.clone())),
        CallEnd::Canceled => Err(Refusal::Full),
    }
}

/// Whether an item stays as it is: what people and programs said.
fn is_kept(item: &Value) -> bool {
    let role = item["role"].as_str().unwrap_or_default();
    item["type"] == "message" && ["user", "system", "developer"].contains(&role)
}

fn document(id: &str, at: Timestamp, output: &[Value], usage: Option<Bill>) -> Value {
    json!({
        "id": id,
        "object": "response.compaction",
        "created_at": seconds(at),
        "output": output,
        "usage": usage.unwrap_or_default().json(),
    })
}

fn seal(sealer: &SecretCipher, user: UserId, text: &str) -> String {
    sealer.encrypt(&Secret::new(text), &place(user))
}

/// For whom a summary is sealed.
fn place(user: UserId) -> String {
    format!("compaction/{user}")
}

/// Puts in the place of each compaction what it says, as a developer's message.
///
/// # Errors
/// One was not sealed here, or not for this user.
pub fn opened(
    sealer: &SecretCipher,
    user: UserId,
    mut prior: Vec<Value>,
    mut input: Vec<Value>,
) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let previous = |_| "previous_response_id".to_owned();
    open_all(sealer, user, &mut prior, previous)?;
    let given = |at| format!("input[{at}].encrypted_content");
    open_all(sealer, user, &mut input, given)?;
    Ok((prior, input))
}

/// Whether every compaction among these items of a list was sealed for this user.
///
/// # Errors
/// One was not.
pub fn check(sealer: &SecretCipher, user: UserId, items: &[Value]) -> Result<(), Refusal> {
    let given = |at| format!("items[{at}].encrypted_content");
    open_all(sealer, user, &mut items.to_vec(), given)
}

fn open_all(
    sealer: &SecretCipher,
    user: UserId,
    items: &mut [Value],
    param: impl Fn(usize) -> String,
) -> Result<(), Refusal> {
    for (at, item) in items.iter_mut().enumerate() {
        if item["type"] != "compaction" {
            continue;
        }
        let sealed = item["encrypted_content"].as_str().unwrap_or_default();
        let open = sealer.decrypt(sealed, &place(user));
        let open = open.map_err(|_| Refusal::Unsealed(param(at)))?;
        let text = format!("{HEADING}\n\n{}", open.expose());
        let content = json!([{ "type": "input_text", "text": text }]);
        *item = json!({ "type": "message", "role": "developer", "content": content });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::opened;
    use super::seal;
    use crate::ids::UserId;
    use crate::providers::encryption::SecretCipher;
    use crate::responses::refusal::Refusal;
    use serde_json::json;

    #[test]
    fn a_summary_becomes_a_developers_message_in_its_place() {
        let sealer = SecretCipher::new("a secret of some length");
        let sealed = seal(&sealer, UserId(7), "Ann likes tea.");
        let item = json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": sealed });
        let before = json!({ "type": "message", "role": "user" });

        let (_, input) = opened(&sealer, UserId(7), vec![], vec![before.clone(), item]).unwrap();

        assert_eq!(input[0], before);
        assert_eq!(input[1]["role"], "developer");
        let text = input[1]["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("\n\nAnn likes tea."));
    }

    #[test]
    fn it_opens_for_nobody_else() {
        let sealer = SecretCipher::new("a secret of some length");
        let sealed = seal(&sealer, UserId(7), "Ann likes tea.");
        let item = json!({ "type": "compaction", "encrypted_content": sealed });

        let refused = opened(&sealer, UserId(8), vec![], vec![item]).unwrap_err();

        let Refusal::Unsealed(param) = refused else {
            panic!("{refused}");
        };
        assert_eq!(param, "input[0].encrypted_content");
    }
}
