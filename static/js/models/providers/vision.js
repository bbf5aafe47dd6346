// Whether the models that reply in a space accept pictures.

// `providers` are those that the user knows. A model that is not known accepts none.
export function doesAnySee(characters, providers) {
  const usual = providers.find((it) => it.is_default)
  const providerOf = ({ llm_provider_id: id }) => providers.find((it) => it.id === id) ?? usual
  return characters.some((member) => providerOf(member)?.vision === true)
}
