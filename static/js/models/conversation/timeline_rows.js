// The rows of the timeline: days, the end of the summary, the unread mark, messages, pending messages and the
// streamed text, at the end or in the place of its target. Every row has a key, which it keeps when its kind
// changes.
import { isNarrator } from "../message/narration.js"
import { group } from "./message_grouping.js"

// `unreadAfter` is the last seq that the user had read when the conversation was opened.
export function rows({ conversation, entries, myMembershipId, now, start = 0, end = Infinity, unreadAfter = null }) {
  const messages = conversation.timeline.messages
  // Pending messages and the stream are shown only below the newest message.
  const isAtEnd = end >= messages.length && !conversation.timeline.mayHaveNewer
  const shown = messages.slice(Math.max(0, start - 1), end).map((message) => ofMessage(conversation, message))
  const trailing = isAtEnd
    ? [...entries.map((entry) => ofEntry(conversation, entry, myMembershipId)), ...ofStream(conversation, now)]
    : []
  // After a jump the first unread message may not be loaded yet.
  const isAllUnread = conversation.timeline.mayHaveNewer && messages[0]?.seq > unreadAfter
  const marks = { unreadAfter: isAllUnread ? null : unreadAfter, summarizedTo: conversation.summarizedTo }
  const marked = mark([...shown, ...trailing], marks, myMembershipId)
  // The message before the window only determines whether the first row begins a day or a group.
  return start > 0 ? marked.filter((row) => row.index !== 0) : marked
}

function ofMessage(conversation, message) {
  const isRewritten = conversation.rewritten?.id === message.id
  return {
    ...(isRewritten ? { kind: "stream", stream: conversation.stream, audience: message.audience } : { kind: "message", message }),
    key: conversation.timeline.keyOf(message),
    authorId: message.space_membership_id,
    isNarrator: isNarrator({ message }),
    persona: message.persona ?? null,
    at: Date.parse(message.created_at),
    seq: message.seq,
  }
}

function ofEntry(conversation, entry, myMembershipId) {
  return {
    kind: "pending",
    key: conversation.keyForClientId(entry.clientId),
    entry,
    authorId: entry.fields?.speaker_id ?? myMembershipId,
    isNarrator: isNarrator({ entry }),
    persona: entry.persona ?? null,
    at: entry.createdAt,
  }
}

function ofStream(conversation, now) {
  if (!conversation.stream || conversation.rewritten) return []
  return [
    {
      kind: "stream",
      key: conversation.keyForStream(),
      stream: conversation.stream,
      audience: conversation.audienceOfStream,
      authorId: conversation.stream.membershipId,
      at: now,
    },
  ]
}

// The end of the summary is marked only between two rows, because a message before the first one may not be
// loaded.
function mark(list, { unreadAfter, summarizedTo }, myMembershipId) {
  const grouped = group(list)
  const result = []
  let isUnreadMarked = unreadAfter === null
  list.forEach((row, index) => {
    const { startsDay, startsGroup } = grouped[index]
    const endsSummary = summarizedTo !== null && row.seq > summarizedTo && list[index - 1]?.seq <= summarizedTo
    if (endsSummary) result.push({ kind: "summary", key: "summary", index })
    if (startsDay) result.push({ kind: "day", key: `d-${row.key}`, at: row.at, index })
    const isFirstUnread = !isUnreadMarked && row.seq > unreadAfter && row.authorId !== myMembershipId
    if (isFirstUnread) result.push({ kind: "unread", key: "unread", index })
    isUnreadMarked ||= isFirstUnread
    result.push({ ...row, startsGroup: startsGroup || endsSummary || isFirstUnread, index })
  })
  return result
}
