// The members to whom a user assigns the names of a chat file.

// `authors` are `{ name, isUser, assigned, value }`: what the server assigns, and what the user chose, as
// the id of a membership or "new". Returns the choices as the server expects them, none if nothing was
// changed.
export function chosenNames(authors) {
  const changed = authors.filter(({ value, assigned }) => value !== assigned)
  if (changed.length === 0) return {}
  // The server assigns the first unknown person to the importing user. A choice can change which one that is,
  // so it gets those of all people; a choice for a name applies to a person and a character of this name.
  const isOnce = ({ name }) => authors.filter((it) => it.name === name).length === 1
  const people = authors.filter((it) => it.isUser && isOnce(it))
  const all = [...people, ...changed]
  return Object.fromEntries(all.map(({ name, value }) => [name, value === "new" ? value : Number(value)]))
}
