// Counts unread messages.

export function unreadIn({ last_seq: last, last_read_seq: read }) {
  return Math.max(0, (last ?? 0) - (read ?? 0))
}
