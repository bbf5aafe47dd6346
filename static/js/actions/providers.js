// Model providers. API keys are sent to the server and never returned.
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

  // Stores the form, so that the server can test it. An empty key keeps the stored one, null removes
  // it.
  async save(id, { name, kind, baseUrl, key, model, settings }) {
    const address = { kind, base_url: baseUrl === "" ? null : baseUrl }
    const body = { name, ...address, model, settings, ...(key === "" ? {} : { api_key: key }) }
    const provider = id ? await this.#api.changeProvider(id, body) : await this.#api.createProvider(body)
    await this.load()
    return provider
  }

  // Returns the model servers that run on the machine of the server.
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

  // Returns the names of the models of a provider.
  async listModels(id) {
    const { data } = await this.#api.modelsOfProvider(id)
    return data.map((model) => (typeof model === "string" ? model : model.id))
  }
}
