//! The additional headers of a provider's requests: an object in its settings. The values may be keys of a
//! proxy, so they are encrypted like the key of the provider, and never returned.

use base::ids::ProviderId;
use llm::secret::Secret;
use serde_json::{Map, Value, json};

use crate::providers::encryption::{DecryptError, SecretCipher};

/// The key in the settings.
pub const EXTRA_HEADERS: &str = "extra_headers";
/// The maximum number of headers.
pub const MAX_HEADERS: usize = 32;

/// Returns new settings with encrypted values. A header without a value keeps the one of `present`, the
/// settings that are replaced.
pub fn encrypt_values(
    mut new: Value,
    present: &Value,
    (cipher, id): (&SecretCipher, ProviderId),
) -> Value {
    let Some(Value::Object(headers)) = new.get_mut(EXTRA_HEADERS).map(Value::take) else {
        return new;
    };
    let encrypted = headers.into_iter().filter_map(|(name, value)| {
        let value = match value {
            Value::String(text) => {
                json!(cipher.encrypt(&Secret::new(&text), &encryption_context(id, &name)))
            }
            _ => present[EXTRA_HEADERS].get(&name)?.clone(),
        };
        Some((name, value))
    });
    new[EXTRA_HEADERS] = Value::Object(encrypted.collect());
    new
}

/// Returns settings without headers, and whether they had any.
pub fn remove(mut settings: Value) -> (Value, bool) {
    let fields = settings.as_object_mut();
    let removed = fields.and_then(|it| it.shift_remove(EXTRA_HEADERS));
    let had_any = removed.as_ref().and_then(Value::as_object);
    let had_any = had_any.is_some_and(|it| !it.is_empty());
    (settings, had_any)
}

/// Returns settings in which each header is null, for admins.
pub fn masked(mut settings: Value) -> Value {
    if let Some(headers) = settings
        .get_mut(EXTRA_HEADERS)
        .and_then(Value::as_object_mut)
    {
        headers.values_mut().for_each(|it| *it = Value::Null);
    }
    settings
}

/// Returns the headers with their values.
///
/// # Errors
/// Returns an error when they were encrypted with another secret.
pub fn decrypt(
    settings: &Value,
    (cipher, id): (&SecretCipher, ProviderId),
) -> Result<Vec<(String, Secret)>, DecryptError> {
    let none = Map::new();
    let headers = settings[EXTRA_HEADERS].as_object().unwrap_or(&none).iter();
    let encrypted = headers.filter_map(|(name, value)| Some((name, value.as_str()?)));
    let decrypted = encrypted.map(|(name, encrypted)| {
        let value = cipher.decrypt(encrypted, &encryption_context(id, name))?;
        Ok((name.clone(), value))
    });
    decrypted.collect()
}

/// Returns the encryption context of a header.
fn encryption_context(id: ProviderId, name: &str) -> String {
    format!("llm_providers/{id}/extra_headers/{name}")
}

#[cfg(test)]
mod tests {
    use base::ids::ProviderId;
    use serde_json::json;

    use super::{decrypt, encrypt_values, masked, remove};
    use crate::providers::encryption::SecretCipher;

    #[test]
    fn values_are_encrypted_kept_without_a_new_value_and_never_shown() {
        let cipher = SecretCipher::new("a secret of the server");
        let key = (&cipher, ProviderId(3));
        let given =
            json!({"top_k": 5, "extra_headers": {"X-Team": "planted-a", "X-Key": "planted-b"}});

        let stored = encrypt_values(given, &json!({}), key);
        let changed = encrypt_values(
            json!({"extra_headers": {"X-Key": null, "X-New": null}}),
            &stored,
            key,
        );

        assert!(!stored.to_string().contains("planted"), "{stored}");
        let values = |settings| {
            let decrypted = decrypt(settings, key).unwrap().into_iter();
            decrypted
                .map(|(name, value)| format!("{name}: {}", value.expose()))
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&stored), ["X-Team: planted-a", "X-Key: planted-b"]);
        assert_eq!(values(&changed), ["X-Key: planted-b"]);
        let shown = json!({"top_k": 5, "extra_headers": {"X-Team": null, "X-Key": null}});
        assert_eq!(masked(stored.clone()), shown);
        assert!(
            decrypt(&stored, (&cipher, ProviderId(4))).is_err(),
            "bound to its row"
        );
        assert_eq!(remove(stored), (json!({"top_k": 5}), true));
        assert_eq!(remove(json!({})), (json!({}), false));
    }
}
