//! Reads the settings that limit what users, keys and addresses may do.

/// Limits; 0 means no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitSettings {
    /// In 3 minutes, per username and per IP address.
    pub login_failures: u32,
    /// Per user.
    pub posts_per_minute: u32,
    /// Per key.
    pub responses_per_minute: u32,
    /// Per IP address.
    pub registrations_per_hour: u32,
    pub sockets_per_user: u32,
    pub sockets_per_address: u32,
    /// Open HTTP connections; those from this machine and from trusted proxies do not count.
    pub connections_per_address: u32,
    /// Stored bytes of one user: the user's cards with their files, the pictures that the user posted, and
    /// the text of the spaces that the user owns.
    pub stored_bytes: u64,
    /// Bytes of the file of a picture for a message.
    pub picture_bytes: u64,
}

impl LimitSettings {
    /// Reads the limits; `number` returns the value of a setting, or the default.
    ///
    /// # Errors
    /// Returns the first error of `number`.
    pub fn read<E>(number: impl Fn(&'static str, u64) -> Result<u64, E>) -> Result<Self, E> {
        let count = |name, default| {
            let value = number(name, default)?;
            Ok::<u32, E>(u32::try_from(value).unwrap_or(u32::MAX))
        };
        Ok(Self {
            login_failures: count("LIMIT_LOGIN_FAILURES", 10)?,
            posts_per_minute: count("LIMIT_POSTS_PER_MINUTE", 120)?,
            responses_per_minute: count("RESPONSES_RATE_PER_MINUTE", 3_000)?,
            registrations_per_hour: count("LIMIT_REGISTRATIONS_PER_HOUR", 30)?,
            sockets_per_user: count("LIMIT_SOCKETS_PER_USER", 20)?,
            sockets_per_address: count("LIMIT_SOCKETS_PER_ADDRESS", 100)?,
            connections_per_address: count("LIMIT_CONNECTIONS_PER_ADDRESS", 256)?,
            stored_bytes: number("LIMIT_STORED_MIB_PER_USER", 2_048)? << 20,
            picture_bytes: number("LIMIT_PICTURE_MB", 10)? << 20,
        })
    }
}
