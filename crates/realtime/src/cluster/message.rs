//! Encrypts and decrypts one message between nodes: its sender, its number, and an envelope or a
//! signal.
//!
//! **Invariant:** a message that cannot be decrypted is ignored. The key comes from the secret that
//! all nodes of an installation share, so neither garbage nor another installation on the same
//! Redis is accepted.
//!
//! The bytes: 16 of the node id, 8 of the number, which together are the nonce, and the encrypted
//! rest: a line of JSON that describes the content, and the content itself, which is the frame for
//! clients or the text of a stream piece.

use base::ids::ConversationId;
use base::key_derivation;
use bytestring::ByteString;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::cluster::signal::ClusterSignal;
use crate::envelope::{
    Envelope, Payload, Receivers, SocketControl, StreamBoundary, StreamDelta, StreamFrame,
};
use crate::topic::Topic;

/// The label from which the key is derived; used for no other purpose.
const PURPOSE: &[u8] = b"troupe: words between nodes";

const NODE_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;

/// The content of a message.
#[derive(Clone, Debug)]
pub enum MessageBody {
    Envelope(Envelope),
    Signal(ClusterSignal),
}

impl MessageBody {
    /// Returns whether other nodes should get it. Typing events are published by each node itself.
    pub fn should_forward(&self) -> bool {
        !matches!(self, Self::Envelope(it) if matches!(it.payload, Payload::ExceptUser { .. }))
    }
}

/// A received message.
#[derive(Debug)]
pub struct ClusterMessage {
    /// The process that sent it.
    pub from: Uuid,
    /// Grows by exactly 1 from one message of a process to the next.
    pub n: u64,
    pub body: MessageBody,
}

/// The line that describes the bytes after it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageHeader {
    Frame {
        topic: Topic,
        #[serde(default)] // missing in messages of earlier versions
        receivers: Receivers,
        rev: Option<i64>,
    },
    Stream {
        topic: Topic,
        #[serde(default)]
        receivers: Receivers,
        run: Uuid,
        lease: i64,
        mark: StreamBoundary,
    },
    /// Followed by the text of the piece, not by its frame; the receiver encodes the frame.
    Delta {
        conversation: ConversationId,
        run: Uuid,
        lease: i64,
        offset: usize,
    },
    Order {
        topic: Topic,
        order: SocketControl,
    },
    Signal(ClusterSignal),
}

/// Encrypts and decrypts messages.
pub struct MessageCipher {
    cipher: XChaCha20Poly1305,
}

impl MessageCipher {
    /// Creates a cipher from the installation's secret.
    pub fn new(secret: &str) -> Self {
        let key = key_derivation::derive_key(secret, PURPOSE);
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
        }
    }

    /// Encrypts a message; `None` if it stays on this node.
    pub fn encrypt(&self, from: Uuid, n: u64, body: &MessageBody) -> Option<Vec<u8>> {
        let (head, rest) = to_parts(body)?;
        let mut plain = serde_json::to_vec(&head).ok()?;
        plain.push(b'\n');
        plain.extend_from_slice(rest.as_bytes());
        let nonce = nonce(from, n);
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), plain.as_slice())
            .ok()?;
        Some([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts a message; `None` if it was not sent by a node of this installation.
    pub fn decrypt(&self, bytes: &[u8]) -> Option<ClusterMessage> {
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let plain = self.cipher.decrypt(&XNonce::from(*nonce), sealed).ok()?;
        let line = plain.iter().position(|it| *it == b'\n')?;
        let head = serde_json::from_slice(&plain[..line]).ok()?;
        let rest = String::from_utf8(plain[line + 1..].to_vec()).ok()?;
        let (from, n) = nonce.split_first_chunk::<NODE_BYTES>()?;
        Some(ClusterMessage {
            from: Uuid::from_bytes(*from),
            n: u64::from_be_bytes(n.try_into().ok()?),
            body: from_parts(head, rest.into()),
        })
    }
}

fn nonce(from: Uuid, n: u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..NODE_BYTES].copy_from_slice(from.as_bytes());
    nonce[NODE_BYTES..].copy_from_slice(&n.to_be_bytes());
    nonce
}

fn to_parts(body: &MessageBody) -> Option<(MessageHeader, ByteString)> {
    let Envelope {
        topic,
        receivers,
        payload,
    } = match body {
        MessageBody::Signal(signal) => {
            return Some((MessageHeader::Signal(signal.clone()), ByteString::new()));
        }
        MessageBody::Envelope(envelope) => envelope,
    };
    let (topic, receivers) = (*topic, receivers.clone());
    Some(match payload {
        Payload::Frame { json, rev } => {
            let head = MessageHeader::Frame {
                topic,
                receivers,
                rev: *rev,
            };
            (head, json.clone())
        }
        Payload::Stream(event) => {
            let head = MessageHeader::Stream {
                topic,
                receivers,
                run: event.run,
                lease: event.lease,
                mark: event.mark,
            };
            (head, event.json.clone())
        }
        Payload::Delta(delta) => {
            let head = MessageHeader::Delta {
                conversation: ConversationId(delta.conversation),
                run: delta.run,
                lease: delta.lease,
                offset: delta.offset,
            };
            (head, delta.text.clone())
        }
        Payload::Control(order) => {
            let order = *order;
            (MessageHeader::Order { topic, order }, ByteString::new())
        }
        Payload::ExceptUser { .. } => return None,
    })
}

fn from_parts(head: MessageHeader, rest: ByteString) -> MessageBody {
    let (topic, receivers, payload) = match head {
        MessageHeader::Signal(signal) => return MessageBody::Signal(signal),
        MessageHeader::Frame {
            topic,
            receivers,
            rev,
        } => (topic, receivers, Payload::Frame { json: rest, rev }),
        MessageHeader::Stream {
            topic,
            receivers,
            run,
            lease,
            mark,
        } => {
            let frame = StreamFrame::new(rest, (run, lease), mark);
            (topic, receivers, Payload::Stream(frame))
        }
        MessageHeader::Delta {
            conversation,
            run,
            lease,
            offset,
        } => {
            let delta = StreamDelta::new(conversation, run, offset, rest).with_lease(lease);
            return MessageBody::Envelope(Envelope::delta(delta));
        }
        MessageHeader::Order { topic, order } => {
            (topic, Receivers::Everyone, Payload::Control(order))
        }
    };
    MessageBody::Envelope(Envelope {
        topic,
        receivers,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use base::ids::{ConversationId, MembershipId, SpaceId, UserId};
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{MessageBody, MessageCipher};
    use crate::cluster::signal::ClusterSignal;
    use crate::envelope::{
        Envelope, Payload, Receivers, SocketControl, StreamBoundary, StreamDelta, StreamFrame,
    };
    use crate::topic::Topic;

    const HERE: Topic = Topic::Conversation(ConversationId(7));

    fn samples() -> Vec<MessageBody> {
        let run = Uuid::now_v7();
        let json = || "{\"type\":\"é\\n\"}".into();
        let payloads = [
            Payload::Frame {
                json: json(),
                rev: Some(3),
            },
            Payload::Stream(StreamFrame::new(json(), (run, 2), StreamBoundary::Reset)),
            Payload::Delta(
                StreamDelta::new(ConversationId(7), run, 4, "a\n\u{1f600}").with_lease(2),
            ),
        ];
        let envelopes = payloads.map(|payload| Envelope {
            topic: HERE,
            receivers: match &payload {
                Payload::Delta(_) => Receivers::Everyone,
                _ => Receivers::Except([MembershipId(3)].into()),
            },
            payload,
        });
        let control = Envelope::control(UserId(1), SocketControl::RightsChanged(SpaceId(2)));
        let mut all: Vec<MessageBody> = envelopes.into_iter().map(MessageBody::Envelope).collect();
        all.push(MessageBody::Envelope(control));
        all.push(MessageBody::Signal(ClusterSignal::RunDue));
        all
    }

    #[test]
    fn an_encrypted_message_is_decrypted_unchanged() {
        let (cipher, node) = (MessageCipher::new("a secret of tests"), Uuid::now_v7());
        for (n, sent) in (1..).zip(samples()) {
            let bytes = cipher.encrypt(node, n, &sent).unwrap();

            let received = cipher.decrypt(&bytes).unwrap();

            assert_eq!((received.from, received.n), (node, n));
            assert_eq!(format!("{:?}", received.body), format!("{sent:?}"));
        }
    }

    #[test]
    fn a_message_with_another_secret_is_rejected() {
        let signal = MessageBody::Signal(ClusterSignal::RunDue);
        let bytes = MessageCipher::new("one secret").encrypt(Uuid::now_v7(), 1, &signal);

        assert!(
            MessageCipher::new("another")
                .decrypt(&bytes.unwrap())
                .is_none()
        );
    }

    proptest! {
        #[test]
        fn a_changed_or_truncated_packet_is_rejected(at in 0..60usize, cut in 0..60usize, bits in 1..=255u8) {
            let cipher = MessageCipher::new("a secret of tests");
            let bytes = cipher.encrypt(Uuid::now_v7(), 1, &MessageBody::Signal(ClusterSignal::RunDue)).unwrap();
            let at = at % bytes.len();
            let mut changed = bytes.clone();
            changed[at] ^= bits;
            prop_assert!(cipher.decrypt(&changed).is_none());
            prop_assert!(cipher.decrypt(&bytes[..cut % bytes.len()]).is_none());
        }

        #[test]
        fn random_bytes_are_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(MessageCipher::new("a secret of tests").decrypt(&bytes).is_none());
        }
    }
}
