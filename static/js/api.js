// The HTTP API, one function for each endpoint. No other module sends HTTP requests.
const TIMEOUT_MS = 20_000
const PROVIDER_TIMEOUT_MS = 60_000
// Enough for a hundred megabytes on a slow connection.
const UPLOAD_TIMEOUT_MS = 15 * 60_000
const DOWNLOAD_TIMEOUT_MS = UPLOAD_TIMEOUT_MS

// Why a request failed. `code` is the error code of the server, or "network" if there was no response.
export class ApiError extends Error {
  constructor({ status = 0, code, message, param = null, current = null, retryAfter = null }) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.current = current
    this.retryAfter = retryAfter
  }

  get isNetwork() {
    return this.code === "network"
  }
}

export default class Api {
  #fetch
  #onSignedOut

  // `onSignedOut` is called when the session is no longer valid.
  constructor({ fetch = globalThis.fetch.bind(globalThis), onSignedOut = () => {} } = {}) {
    this.#fetch = fetch
    this.#onSignedOut = onSignedOut
  }

  set onSignedOut(act) {
    this.#onSignedOut = act
  }

  // Account and sign-in
  setupNeeded = () => this.#get("/setup")
  setUp = (body) => this.#post("/setup", body)
  session = () => this.#call("GET", "/session", { mayBeSignedOut: true })
  signIn = (body) => this.#call("POST", "/session", { body, mayBeSignedOut: true })
  signOut = () => this.#delete("/session")
  changeMe = (body) => this.#patch("/users/me", body)
  sessions = () => this.#get("/sessions?limit=200")
  endSession = (id) => this.#delete(`/sessions/${id}`)
  apiKeys = () => this.#get("/api_keys")
  createApiKey = (name) => this.#post("/api_keys", { name })
  revokeApiKey = (id) => this.#delete(`/api_keys/${id}`)
  // Returns the models that a program with this key can use. The session of the page is not affected.
  modelsFor = (key) => this.#call("GET", "/models", { below: "/v1", bearer: key, mayBeSignedOut: true })

  // Spaces and members
  spaces = () => this.#get("/spaces?limit=200")
  space = (id) => this.#get(`/spaces/${id}`)
  createSpace = (body) => this.#post("/spaces", body)
  changeSpace = (id, body) => this.#patch(`/spaces/${id}`, body)
  deleteSpace = (id) => this.#delete(`/spaces/${id}`)
  memberships = (spaceId) => this.#get(`/spaces/${spaceId}/memberships?limit=200`)
  addCharacter = (spaceId, characterId) =>
    this.#post(`/spaces/${spaceId}/memberships`, { character_id: characterId })
  changeMembership = (id, body) => this.#patch(`/memberships/${id}`, body)
  removeMembership = (id) => this.#delete(`/memberships/${id}`)
  characters = () => this.#all("/characters")
  createCharacter = (body) => this.#post("/characters", body)
  character = (id) => this.#get(`/characters/${id}`)
  changeCharacter = (id, body) => this.#patch(`/characters/${id}`, body)
  deleteCharacter = (id) => this.#delete(`/characters/${id}`)
  previewCard = (file) => this.#upload("/characters/preview", file)
  importCard = (file) => this.#upload("/characters/import", file)
  setAvatar = (id, file) => this.#upload(`/characters/${id}/avatar`, file, "PUT")
  removeAvatar = (id) => this.#delete(`/characters/${id}/avatar`)
  characterExportPath = (id, query) => `/api/characters/${id}/export${search(query)}`

  // Invites and joining
  invites = (spaceId) => this.#get(`/spaces/${spaceId}/invites?limit=200`)
  createInvite = (spaceId, body) => this.#post(`/spaces/${spaceId}/invites`, body)
  revokeInvite = (id) => this.#delete(`/invites/${id}`)
  spaceInvitations = (spaceId) => this.#get(`/spaces/${spaceId}/invitations?limit=200`)
  revokeInvitation = (id) => this.#delete(`/invitations/${id}`)
  invitations = () => this.#get("/invitations?limit=200")
  acceptInvitation = (id, body) => this.#post(`/invitations/${id}/accept`, body)
  declineInvitation = (id) => this.#post(`/invitations/${id}/decline`)
  invitation = (token) => this.#call("GET", joinPath(token), { mayBeSignedOut: true })
  join = (token, body) => this.#call("POST", joinPath(token), { body, mayBeSignedOut: true })
  register = (body) => this.#call("POST", "/users", { body, mayBeSignedOut: true })

  // Conversations
  conversations = (spaceId) => this.#get(`/spaces/${spaceId}/conversations?limit=200`)
  conversation = (id) => this.#get(`/conversations/${id}`)
  createConversation = (spaceId, body) => this.#post(`/spaces/${spaceId}/conversations`, body)
  changeConversation = (id, body) => this.#patch(`/conversations/${id}`, body)
  deleteConversation = (id) => this.#delete(`/conversations/${id}`)
  markRead = (id, seq) => this.#post(`/conversations/${id}/read`, { seq })

  // Messages
  // `query`: `before` and `after` (values of `seq`), `around` (the id of a message), `limit`.
  messages = (id, query) => this.#get(`/conversations/${id}/messages${search({ ...query, html: true })}`)
  postMessage = (id, body) => this.#post(`/conversations/${id}/messages?html=true`, body)
  changeMessage = (id, body) => this.#patch(`/messages/${id}?html=true`, body)
  deleteMessage = (id) => this.#delete(`/messages/${id}`)

  react = (id, emoji) => this.#put(`/messages/${id}/reactions/${encodeURIComponent(emoji)}`)
  unreact = (id, emoji) => this.#delete(`/messages/${id}/reactions/${encodeURIComponent(emoji)}`)
  addBookmark = (id) => this.#put(`/messages/${id}/bookmark`)
  removeBookmark = (id) => this.#delete(`/messages/${id}/bookmark`)
  // `query`: `after` (a value of `seq`), `limit`.
  bookmarks = (id, query) => this.#get(`/conversations/${id}/bookmarks${search(query)}`)

  // Returns the translation of a message, or the same without a `text` while it is made.
  translation = (id, language) => this.#get(`/messages/${id}/translation${search({ language })}`)

  // Returns the swipe at a position.
  swipe = async (id, position) =>
    (await this.#get(`/messages/${id}/swipes${search({ after: position - 1, limit: 1 })}`)).data[0]
  selectSwipe = (id, position) => this.#patch(`/messages/${id}/swipe?html=true`, { position })
  revisions = (id) => this.#get(`/messages/${id}/revisions`)
  continueMessage = (id, messageId, instruction) =>
    this.#post(`/conversations/${id}/continue`, { message_id: messageId, ...(instruction && { instruction }) })
  // With `inPlace` later messages stay, and no branch is created.
  regenerate = (id, messageId, inPlace) =>
    this.#post(`/conversations/${id}/regenerate`, { message_id: messageId, ...(inPlace && { in_place: true }) })
  branch = (id, messageId) => this.#post(`/conversations/${id}/branch`, { message_id: messageId })

  // Background jobs
  jobs = () => this.#get("/jobs")
  cancelJob = (id) => this.#delete(`/jobs/${id}`)

  // Search, import and export
  search = (query) => this.#get(`/search${search(query)}`)
  previewChat = (spaceId, file) => this.#upload(`/spaces/${spaceId}/import/preview`, file)
  importChat = (spaceId, file, names) => this.#upload(`/spaces/${spaceId}/import${search({ names })}`, file)
  exportSpace = (id) => this.#download(`/spaces/${id}/export`)
  importSpace = (file) => this.#upload("/spaces/import", file)
  importState = (id) => this.#get(`/imports/${id}`)
  cancelImport = (id) => this.#delete(`/imports/${id}`)

  // Generation
  generate = (id, speakerId, audience) =>
    this.#post(`/conversations/${id}/generate`, {
      ...(speakerId && { speaker_id: speakerId }),
      ...(audience !== undefined && { audience }),
    })
  stop = (id) => this.#post(`/conversations/${id}/stop`, { keep_partial: true })
  pause = (id) => this.#post(`/conversations/${id}/pause`)
  resume = (id) => this.#post(`/conversations/${id}/resume`)
  skip = (id) => this.#post(`/conversations/${id}/skip`)
  retry = (id) => this.#post(`/conversations/${id}/retry`)
  changeRound = (id, body) => this.#patch(`/conversations/${id}/round`, body)
  decideTool = (id, approve) => this.#post(`/tool_approvals/${id}`, { approve })
  suggest = (id, body) => this.#post(`/conversations/${id}/copilot_candidates`, body)
  runs = (id) => this.#get(`/conversations/${id}/runs?limit=50`)
  promptOfRun = (id) => this.#get(`/runs/${id}/prompt`)
  nextSpeaker = (id) => this.#get(`/conversations/${id}/next_speaker`)
  promptPreview = (id, speakerId) =>
    this.#get(`/conversations/${id}/prompt${speakerId ? `?speaker_id=${speakerId}` : ""}`)

  // Lorebooks
  lorebooks = () => this.#all("/lorebooks")
  lorebook = (id) => this.#get(`/lorebooks/${id}`)
  createLorebook = (body) => this.#post("/lorebooks", body)
  changeLorebook = (id, body) => this.#patch(`/lorebooks/${id}`, body)
  importLorebook = (file) => this.#upload("/lorebooks/import", file)
  deleteLorebook = (id) => this.#delete(`/lorebooks/${id}`)
  tryLorebook = (id, body) => this.#post(`/lorebooks/${id}/test`, body)
  createLoreEntry = (id, body) => this.#post(`/lorebooks/${id}/entries`, body)
  changeLoreEntry = (id, entryId, body) => this.#patch(`/lorebooks/${id}/entries/${entryId}`, body)
  deleteLoreEntry = (id, entryId) => this.#delete(`/lorebooks/${id}/entries/${entryId}`)
  lorebooksOf = (kind, id) => this.#get(`/${kind}/${id}/lorebooks`)
  linkLorebooks = (kind, id, ids) =>
    this.#call("PUT", `/${kind}/${id}/lorebooks`, { body: { lorebook_ids: ids } })

  // Memories
  // `query`: `q`, `membership_id`, `kind`, `before` (a cursor), `limit`.
  memories = (spaceId, query) => this.#get(`/spaces/${spaceId}/memories${search(query)}`)
  createMemory = (spaceId, body) => this.#post(`/spaces/${spaceId}/memories`, body)
  changeMemory = (spaceId, id, body) => this.#patch(`/spaces/${spaceId}/memories/${id}`, body)
  deleteMemory = (spaceId, id) => this.#delete(`/spaces/${spaceId}/memories/${id}`)
  forgetMemories = (spaceId, body) => this.#post(`/spaces/${spaceId}/memories/forget`, body)
  pruneMemories = (spaceId, body) => this.#post(`/spaces/${spaceId}/memories/prune`, body)
  learnFromMessages = (spaceId, body) => this.#post(`/spaces/${spaceId}/memories/learn`, body)
  importMemories = (spaceId, file) => this.#upload(`/spaces/${spaceId}/memories/import`, file)
  memoriesExportPath = (spaceId) => `/api/spaces/${spaceId}/memories/export`
  memoryState = (spaceId) => this.#get(`/spaces/${spaceId}/memories/state`)
  testEmbedding = (spaceId, body) =>
    this.#call("POST", `/spaces/${spaceId}/memories/test_embedding`, { body, timeoutMs: PROVIDER_TIMEOUT_MS })
  memoriesOfRun = (id) => this.#get(`/runs/${id}/memories`)

  // Summaries
  summaries = (conversationId) => this.#get(`/conversations/${conversationId}/summaries`)
  summarize = (conversationId) => this.#post(`/conversations/${conversationId}/summaries`)
  changeSummary = (id, body) => this.#patch(`/summaries/${id}`, body)
  restoreSummary = (id) => this.#post(`/summaries/${id}/restore`)

  // Pictures of messages
  // `onProgress(share)` is called while the file is sent, which `fetch` does not report.
  uploadAttachment = (file, { onProgress, signal }) =>
    new Promise((resolve, reject) => {
      const fail = (cause) => reject(new ApiError({ code: "network", message: cause }))
      const request = new XMLHttpRequest()
      request.open("POST", "/api/attachments")
      request.responseType = "json"
      request.timeout = UPLOAD_TIMEOUT_MS
      request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total)
      request.onload = () => {
        const { status, response } = request
        if (status === 201) return resolve(response)
        if (status === 401) this.#onSignedOut()
        const retryAfter = Number(request.getResponseHeader("retry-after")) || null
        reject(toError(status, response?.error, retryAfter))
      }
      request.onerror = () => fail("error")
      request.ontimeout = () => fail("timeout")
      request.onabort = () => fail("abort")
      signal.addEventListener("abort", () => request.abort())
      const body = new FormData()
      body.append("file", file, file.name)
      request.send(body)
    })
  describeAttachment = (id, alt) => this.#patch(`/attachments/${id}`, { alt })
  deleteAttachment = (id) => this.#delete(`/attachments/${id}`)

  // Providers
  providers = () => this.#get("/providers")
  discoverProviders = () =>
    this.#call("POST", "/providers/discover", { timeoutMs: PROVIDER_TIMEOUT_MS })
  createProvider = (body) => this.#post("/providers", body)
  changeProvider = (id, body) => this.#patch(`/providers/${id}`, body)
  deleteProvider = (id) => this.#delete(`/providers/${id}`)
  testProvider = (id) => this.#call("POST", `/providers/${id}/test`, { timeoutMs: PROVIDER_TIMEOUT_MS })
  modelsOfProvider = (id) => this.#call("GET", `/providers/${id}/models`, { timeoutMs: PROVIDER_TIMEOUT_MS })

  // Presets
  personas = async () => (await this.#all("/personas")).data
  createPersona = (body) => this.#post("/personas", body)
  changePersona = (id, body) => this.#patch(`/personas/${id}`, body)
  deletePersona = (id) => this.#delete(`/personas/${id}`)
  setPersonaAvatar = (id, file) => this.#upload(`/personas/${id}/avatar`, file, "PUT")
  removePersonaAvatar = (id) => this.#delete(`/personas/${id}/avatar`)
  importPersonas = (file) => this.#upload("/personas/import", file)
  personaExportPath = () => "/api/personas/export"
  presets = () => this.#get("/presets?limit=200")
  preset = (id) => this.#get(`/presets/${id}`)
  presetDefaults = () => this.#get("/presets/defaults")
  createPreset = (body) => this.#post("/presets", body)
  changePreset = (id, body) => this.#patch(`/presets/${id}`, body)
  deletePreset = (id) => this.#delete(`/presets/${id}`)
  previewPreset = (file) => this.#upload("/presets/preview", file)
  importPreset = (file) => this.#upload("/presets/import", file)
  testRegexScript = (body) => this.#post("/regex_scripts/test", body)

  // API reference
  reference = () => this.#call("GET", "/openapi.json", { below: "", mayBeSignedOut: true })

  // Administration
  adminStats = (query) => this.#get(`/admin/stats${search(query)}`)
  adminUsers = (query) => this.#get(`/admin/users${search(query)}`)
  changeUser = (id, body) => this.#patch(`/admin/users/${id}`, body)
  adminRuns = (query) => this.#get(`/admin/runs${search(query)}`)
  cancelRun = (id) => this.#post(`/runs/${id}/cancel`)
  reap = () => this.#post("/admin/reap")

  // Private

  #get(path) {
    return this.#call("GET", path)
  }
  // Reads all pages of a list. The size of each response is limited.
  async #all(path) {
    const data = []
    let page = null
    do {
      const after = page?.cursor
      page = await this.#get(path + search({ limit: 200, after }))
      data.push(...page.data)
    } while (page.has_more && (page.cursor ?? null) !== null)
    return { ...page, data }
  }
  #post(path, body) {
    return this.#call("POST", path, { body })
  }
  #patch(path, body) {
    return this.#call("PATCH", path, { body })
  }
  #put(path) {
    return this.#call("PUT", path)
  }
  #delete(path) {
    return this.#call("DELETE", path)
  }

  #upload(path, file, method = "POST") {
    const body = new FormData()
    body.append("file", file, file.name)
    return this.#call(method, path, { body, timeoutMs: UPLOAD_TIMEOUT_MS })
  }

  // Returns the name and the content of a file. Throws ApiError if there is none.
  async #download(path) {
    const answer = await this.#send("GET", `/api${path}`, undefined, DOWNLOAD_TIMEOUT_MS)
    if (!answer.ok) throw await readError(answer)
    const disposition = answer.headers.get("content-disposition") ?? ""
    const name = /filename="([^"]*)"/.exec(disposition)?.[1] ?? ""
    try {
      return { name, blob: await answer.blob() }
    } catch (cause) {
      throw new ApiError({ code: "network", message: String(cause?.message ?? cause) })
    }
  }

  async #call(method, path, options = {}) {
    const { body, below = "/api", mayBeSignedOut = false, timeoutMs = TIMEOUT_MS, bearer } = options
    const answer = await this.#send(method, below + path, body, timeoutMs, bearer)
    if (answer.ok) return answer.status === 204 ? null : readJson(answer)
    const error = await readError(answer)
    if (error.status === 401 && !mayBeSignedOut) this.#onSignedOut()
    throw error
  }

  async #send(method, path, body, timeoutMs, bearer) {
    // FormData sets its own content type with the boundary of the parts.
    const isJson = body !== undefined && !(body instanceof FormData)
    try {
      return await this.#fetch(path, {
        method,
        credentials: "same-origin",
        cache: "no-store",
        headers: {
          ...(isJson && { "content-type": "application/json" }),
          ...(bearer && { authorization: `bearer ${bearer}` }),
        },
        body: isJson ? JSON.stringify(body) : body,
        signal: AbortSignal.timeout(timeoutMs),
      })
    } catch (cause) {
      throw new ApiError({ code: "network", message: String(cause?.message ?? cause) })
    }
  }
}

// Leaves empty parameters out.
function search(values) {
  const given = Object.entries(values).filter(([, value]) => ![undefined, null, ""].includes(value))
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`
}

function joinPath(token) {
  return `/join/${encodeURIComponent(token)}`
}

async function readJson(answer) {
  try {
    return await answer.json()
  } catch {
    return null
  }
}

async function readError(answer) {
  const { error } = (await readJson(answer)) ?? {}
  return toError(answer.status, error, Number(answer.headers.get("retry-after")) || null)
}

function toError(status, error, retryAfter) {
  return new ApiError({
    status,
    code: error?.code ?? "unexpected",
    message: error?.message ?? "",
    param: error?.param ?? null,
    current: error?.current ?? null,
    retryAfter,
  })
}
