// The HTTP client: error codes, ended sessions, network failures.
import assert from "node:assert/strict"
import test from "node:test"
import Api from "../../static/js/api.js"
import { parse } from "../../static/js/router.js"

const answer =
  (status, body, headers = {}) =>
  async () =>
    new Response(body === undefined ? null : JSON.stringify(body), { status, headers })

test("an error carries the code, the message and the field of the server", async () => {
  const api = new Api({
    fetch: answer(422, { error: { code: "invalid_value", message: "Too short.", param: "password" } }),
  })

  await assert.rejects(api.setUp({}), {
    status: 422,
    code: "invalid_value",
    message: "Too short.",
    param: "password",
  })
})

test("an error that is not JSON has a code", async () => {
  const api = new Api({ fetch: async () => new Response("<html>", { status: 502 }) })

  await assert.rejects(api.spaces(), { status: 502, code: "unexpected" })
})

test("a missing response has the code network", async () => {
  const api = new Api({
    fetch: async () => {
      throw new TypeError("failed")
    },
  })

  await assert.rejects(api.spaces(), { code: "network", isNetwork: true })
})

test("an ended session is reported, a wrong password is not", async () => {
  let reported = 0
  const api = new Api({
    fetch: answer(401, { error: { code: "not_authenticated" } }),
    onSignedOut: () => {
      reported += 1
    },
  })

  await assert.rejects(api.signIn({}))
  await assert.rejects(api.session())
  const before = reported
  await assert.rejects(api.spaces())

  assert.equal(before, 0)
  assert.equal(reported, 1)
})

test("an empty response is null", async () => {
  assert.equal(await new Api({ fetch: answer(204) }).deleteSpace(1), null)
})

test("an error carries the time to wait", async () => {
  const api = new Api({ fetch: answer(429, { error: { code: "rate_limited" } }, { "retry-after": "30" }) })

  await assert.rejects(api.signIn({}), { retryAfter: 30 })
})

test("stop requests to keep the partial text", async () => {
  const sent = []
  const api = new Api({
    fetch: async (url, { body }) => {
      sent.push([url, body])
      return new Response("{}", { status: 202 })
    },
  })

  await api.stop(7)

  assert.deepEqual(sent, [["/api/conversations/7/stop", '{"keep_partial":true}']])
})

test("an address names a view", () => {
  assert.deepEqual(parse("/c/12"), { name: "conversation", conversationId: 12 })
  assert.deepEqual(parse("/settings/keys"), { name: "settings", part: "keys" })
  assert.deepEqual(parse("/"), { name: "home" })
  assert.deepEqual(parse("/c/x"), { name: "unknown" })
})
