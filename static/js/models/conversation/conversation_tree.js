// The conversations of a space as a flat list in tree order, each with its depth below the conversation
// it comes from.
const DEEPEST = 4

export function conversationTree(conversations) {
  const known = new Set(conversations.map(({ id }) => id))
  const children = new Map()
  for (const it of conversations) {
    const parent = known.has(it.parent_conversation_id) ? it.parent_conversation_id : null
    children.set(parent, [...(children.get(parent) ?? []), it])
  }
  const below = (id, depth) =>
    (children.get(id) ?? []).flatMap((it) => [
      { ...it, depth: Math.min(depth, DEEPEST) },
      ...below(it.id, depth + 1),
    ])
  return below(null, 0)
}
