// Kinds of providers, their names, and the models of members.
import assert from "node:assert/strict"
import test from "node:test"
import { KINDS, kindOf, nameFor, modelChoiceOf } from "../../static/js/models/providers/provider_kinds.js"

test("every kind but one has a default address", () => {
  const homeless = KINDS.filter((it) => it.defaultUrl === null).map((it) => it.kind)

  assert.deepEqual(homeless, ["openai_compatible"])
  assert.equal(kindOf("gemini").kind, "gemini")
  assert.equal(kindOf("demo").kind, "openai_compatible", "what cannot be chosen is the first")
})

test("a provider is named after the found server, its host, or its kind", () => {
  const found = [{ name: "LM Studio", kind: "openai_compatible", base_url: "http://127.0.0.1:1234/v1" }]
  const name = (kind, baseUrl) => nameFor({ kind, label: "Anthropic", baseUrl, found })

  assert.equal(name("openai_compatible", "http://127.0.0.1:1234/v1"), "LM Studio")
  assert.equal(name("ollama", "http://127.0.0.1:1234/v1"), "127.0.0.1:1234")
  assert.equal(name("anthropic", ""), "Anthropic")
  assert.equal(name("openai_compatible", "no address"), "no address")
})

test("a member uses its own model only with its own provider", () => {
  const providers = [
    { id: 1, name: "One", model: "a" },
    { id: 2, name: "Two", model: "b", disabled: true },
  ]
  const voice = (id, settings) => modelChoiceOf({ llm_provider_id: id, settings }, providers)?.model ?? null

  assert.equal(voice(null, { model: "x" }), null)
  assert.equal(voice(1, {}), "a")
  assert.equal(voice(1, { model: " x " }), "x")
  assert.equal(voice(2, { model: "x" }), null)
  assert.equal(voice(3, {}), null)
})
