// Whether the models that reply in a space see pictures.

// `providers` are those that the user knows. A member whose model is not known does not see.
export function doesAnySee(characters, providers) {
  const usual = providers.find((it) => it.is_default)
  const providerOf = ({ llm_provider_id: id }) => providers.find((it) => it.id === id) ?? usual
  return characters.some((member) => providerOf(member)?.vision === true)
}
