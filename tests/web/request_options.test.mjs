// The options of a provider for its requests: what is stored, and which texts are refused.
import assert from "node:assert/strict"
import { test } from "node:test"
import {
  canArrangeRoles,
  canCompleteText,
  problemOfExtraBody,
  readHeaders,
  readRequestOptions,
  withRequestOptions,
} from "../../static/js/models/providers/request_options.js"

test("default values are not stored, and other settings are kept", () => {
  const settings = {
    keep_alive: "1h",
    role_handling: "native",
    prefill: "off",
    samplers: ["top_k", "rep_pen"],
    extra_body: { a: 1 },
  }
  const defaults = { ...readRequestOptions({}), samplers: " , ", extra_body: " " }

  assert.deepEqual(withRequestOptions(settings, defaults), { keep_alive: "1h" })
  assert.deepEqual(readRequestOptions(settings).samplers, "top_k, rep_pen")
  assert.deepEqual(withRequestOptions(settings, readRequestOptions(settings)), settings)
})

test("the API of text completion is stored only in its mode", () => {
  const settings = { mode: "text_completion", text_completion_api: "koboldcpp" }

  assert.deepEqual(withRequestOptions({}, readRequestOptions(settings)), settings)
  assert.deepEqual(withRequestOptions(settings, { ...readRequestOptions(settings), mode: "chat" }), {})
  assert.ok(canCompleteText("openai_compatible") && !canCompleteText("ollama"))
})

test("only an object without the fields of the server is added to requests", () => {
  assert.equal(problemOfExtraBody(""), null)
  assert.equal(problemOfExtraBody('{"transforms": []}'), null)
  assert.equal(problemOfExtraBody("{"), "json")
  assert.equal(problemOfExtraBody("[1]"), "object")
  assert.equal(problemOfExtraBody("null"), "object")
  assert.deepEqual(problemOfExtraBody('{"stream": false}'), { reserved: "stream" })
})

test("only APIs without an order of roles have the field", () => {
  assert.ok(canArrangeRoles("openai_compatible") && !canArrangeRoles("anthropic"))
})

test("headers are written one per line, and a stored one is kept by its name", () => {
  const stored = { extra_headers: { "X-Team": null } }

  assert.equal(readRequestOptions(stored).extra_headers, "X-Team:")
  assert.deepEqual(withRequestOptions(stored, readRequestOptions(stored)), stored)
  assert.deepEqual(readHeaders("X-Team: blue: sky\n\n X-Key :"), { "X-Team": "blue: sky", "X-Key": null })
  assert.deepEqual(withRequestOptions(stored, { ...readRequestOptions(stored), extra_headers: " " }), {})
  assert.equal(readHeaders("no colon"), null)
})
