// The API document as the page shows it: sections with their operations, and schemas by name.
// Independent of the DOM.
const METHODS = ["get", "post", "put", "patch", "delete"]
const SCHEMA = "#/components/schemas/"

export default class Reference {
  #document

  constructor(document) {
    this.#document = document
  }

  get title() {
    return `${this.#document.info.title} ${this.#document.info.version}`
  }

  get about() {
    return this.#document.info.description
  }

  // Returns the sections in the order of the document, each with its operations that match all words.
  sections(words = "") {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
    const operations = this.operations().filter((it) => wanted.every((word) => it.haystack.includes(word)))
    return this.#document.tags
      .map(({ name, description }) => ({
        name,
        about: description,
        operations: operations.filter((it) => it.section === name),
      }))
      .filter((section) => section.operations.length > 0)
  }

  operations() {
    return Object.entries(this.#document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) => this.#operation(path, method, item[method])),
    )
  }

  // Returns the target of a reference, or the value itself if it is none.
  resolve(value) {
    if (!value?.$ref) return value
    const parts = value.$ref.slice(2).split("/")
    return parts.reduce((found, part) => found?.[part], this.#document)
  }

  // Private

  #operation(path, method, definition) {
    const body = definition.requestBody
    return {
      id: definition.operationId,
      section: definition.tags[0],
      method: method.toUpperCase(),
      path,
      summary: definition.summary,
      about: definition.description ?? "",
      isOpen: this.#isOpen(definition),
      parameters: definition.parameters ?? [],
      body: body && { schema: jsonOf(body), isNeeded: body.required === true },
      answers: Object.entries(definition.responses).map(([status, answer]) => this.#answer(status, answer)),
      fromClient: definition["x-client-frame"] ?? null,
      fromServer: definition["x-server-frame"] ?? null,
      haystack: [method, path, definition.operationId, definition.summary, definition.tags[0]].join(" ").toLowerCase(),
    }
  }

  // Whether an operation can be called without a key.
  #isOpen({ security = this.#document.security }) {
    return security.length === 0 || security.some((it) => Object.keys(it).length === 0)
  }

  #answer(status, definition) {
    const answer = this.resolve(definition)
    const [mediaType = null] = Object.keys(answer.content ?? {})
    return {
      status,
      about: answer.description,
      mediaType,
      schema: jsonOf(answer),
      headers: Object.keys(answer.headers ?? {}),
      isError: status >= "400",
    }
  }
}

function jsonOf({ content }) {
  return content?.["application/json"]?.schema ?? null
}

// Returns the name of the referenced schema.
export function nameOf(schema) {
  return schema?.$ref?.startsWith(SCHEMA) ? schema.$ref.slice(SCHEMA.length) : null
}
