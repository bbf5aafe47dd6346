// What stands below each other in the timeline: days, the unread mark, messages, my pending ones and
// the text that is being written, at the end or in the place of the message it is for. Every row has a key; a row that becomes another keeps its key.
import { group } from "./message_grouping.js"

// `seatId` is my membership, `unreadAfter` the last seq that was read when the room was opened.
export function rows({ room, entries, seatId, now, start = 0, end = Infinity, unreadAfter = null }) {
  const messages = room.timeline.messages
  // What is being written stands below the newest.
  const isAtEnd = end >= messages.length && !room.timeline.mayHaveNewer
  const shown = messages.slice(Math.max(0, start - 1), end).map((message) => ofMessage(room, message))
  const late = isAtEnd
    ? [...entries.map((entry) => ofEntry(room, entry, seatId)), ...ofStream(room, now)]
    : []
  // Far back, where the unread begin is not known before it is there.
  const isAllUnread = room.timeline.mayHaveNewer && messages[0]?.seq > unreadAfter
  const marked = mark([...shown, ...late], isAllUnread ? null : unreadAfter, seatId)
  // The message before the window only says whether the first one begins a day or a group.
  return start > 0 ? marked.filter((row) => row.index !== 0) : marked
}

function ofMessage(room, message) {
  const isRewritten = room.rewritten?.id === message.id
  return {
    ...(isRewritten ? { kind: "stream", stream: room.stream } : { kind: "message", message }),
    key: room.timeline.keyOf(message),
    authorId: message.space_membership_id,
    at: Date.parse(message.created_at),
    seq: message.seq,
  }
}

function ofEntry(room, entry, seatId) {
  return {
    kind: "pending",
    key: room.keyForClientId(entry.clientId),
    entry,
    authorId: seatId,
    at: entry.createdAt,
  }
}

function ofStream(room, now) {
  if (!room.stream || room.rewritten) return []
  return [
    {
      kind: "stream",
      key: room.keyForStream(),
      stream: room.stream,
      authorId: room.stream.membershipId,
      at: now,
    },
  ]
}

function mark(list, unreadAfter, seatId) {
  const grouped = group(list)
  const result = []
  let isUnreadMarked = unreadAfter === null
  list.forEach((row, index) => {
    const { startsDay, startsGroup } = grouped[index]
    if (startsDay) result.push({ kind: "day", key: `d-${row.key}`, at: row.at, index })
    const isFirstUnread = !isUnreadMarked && row.seq > unreadAfter && row.authorId !== seatId
    if (isFirstUnread) result.push({ kind: "unread", key: "unread", index })
    isUnreadMarked ||= isFirstUnread
    result.push({ ...row, startsGroup: startsGroup || isFirstUnread, index })
  })
  return result
}
