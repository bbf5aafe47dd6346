// The language models that speak for the characters. Keys go to the server and never come back.
export default class ProviderActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  async load() {
    this.#store.setProviders((await this.#api.providers()).data)
  }

  // Stores what the form says, so that the server can try it. An empty key keeps the one that is there,
  // null drops it.
  async save(id, { name, kind, baseUrl, key, model, settings }) {
    const address = { kind, base_url: baseUrl === "" ? null : baseUrl }
    const body = { name, ...address, model, settings, ...(key === "" ? {} : { api_key: key }) }
    const provider = id ? await this.#api.changeProvider(id, body) : await this.#api.createProvider(body)
    await this.load()
    return provider
  }

  // The servers of models that run on the server's own machine.
  async discover() {
    return (await this.#api.discoverProviders()).data
  }

  async use(id) {
    await this.#api.changeProvider(id, { is_default: true })
    await this.load()
  }

  async remove(id) {
    await this.#api.deleteProvider(id)
    await this.load()
  }

  test(id) {
    return this.#api.testProvider(id)
  }

  // Names of the models that the server of the provider offers.
  async listModels(id) {
    const { data } = await this.#api.modelsOfProvider(id)
    return data.map((model) => (typeof model === "string" ? model : model.id))
  }
}
