// The options of a provider for its requests: what is stored, and which texts are refused.
import assert from "node:assert/strict"
import { test } from "node:test"
import {
  canArrangeRoles,
  problemOfExtraBody,
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
  const defaults = { role_handling: "auto", prefill: "auto", samplers: " , ", extra_body: " " }

  assert.deepEqual(withRequestOptions(settings, defaults), { keep_alive: "1h" })
  assert.deepEqual(readRequestOptions(settings).samplers, "top_k, rep_pen")
  assert.deepEqual(withRequestOptions(settings, readRequestOptions(settings)), settings)
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
