// Dropped files: their kind by the first bytes, and their importer.
import assert from "node:assert/strict"
import test from "node:test"
import { looksLikeCard } from "../../static/js/models/characters/card_file.js"
import { beginsWith, inspectFile, importerFor } from "../../static/js/models/files/dropped_file.js"

const PNG = [0x89, 0x50, 0x4e, 0x47]

test("a JSON file is parsed with or without a byte order mark", async () => {
  const plain = await inspectFile(new File(['  {"a": 1}'], "a.json"))
  const marked = await inspectFile(new File(['\uFEFF[1]'], "b.json"))

  assert.deepEqual([plain.json, marked.json], [{ a: 1 }, [1]])
})

test("a file that is not one JSON document has only its first bytes", async () => {
  for (const text of ["{broken", '{"a": 1}\n{"a": 2}', "words", ""]) {
    const { head, json } = await inspectFile(new File([text], "a.json"))

    assert.equal(json, null, text)
    assert.equal(new TextDecoder().decode(head), text)
  }
})

test("only the beginning of a large file is read", async () => {
  const large = new File(["{", "x".repeat(6 * 1024 * 1024)], "a.json")

  const { head, json } = await inspectFile(large)

  assert.equal(json, null)
  assert.equal(head.length, 64 * 1024)
})

test("the first importer that accepts a file opens it", async () => {
  const importer = (name, looksLike) => ({ name, looksLike, open() {} })
  const importers = [
    importer("picture", (file, head) => beginsWith(head, PNG)),
    importer("world", (file, head, json) => json?.entries !== undefined),
    importer("any", (file, head, json) => json !== null),
  ]
  const find = async (content) => {
    const file = new File([content], "x")
    return importerFor(importers, file, await inspectFile(file))?.name ?? null
  }

  assert.equal(await find(new Uint8Array([...PNG, 1])), "picture")
  assert.equal(await find('{"entries": {}}'), "world")
  assert.equal(await find("{}"), "any")
  assert.equal(await find("words"), null)
})

test("cards are distinguished from lorebooks, presets and other pictures", async () => {
  const isCard = async (name, content) => {
    const file = new File([content], name)
    const { head, json } = await inspectFile(file)
    return looksLikeCard(file, head, json)
  }

  assert.equal(await isCard("Mina.png", new Uint8Array([...PNG, 1])), true)
  assert.equal(await isCard("Mina.charx", "PK"), true)
  assert.equal(await isCard("Mina.jpg", new Uint8Array([0xff, 0xd8, 1])), true)
  assert.equal(await isCard("v3.json", '{"spec": "chara_card_v3", "data": {}}'), true)
  assert.equal(await isCard("v1.json", '{"name": "Mina", "first_mes": "Hi."}'), true)
  assert.equal(await isCard("old.json", '{"char_name": "Mina"}'), true)
  assert.equal(await isCard("agnai.json", '{"kind": "character", "name": "Mina", "persona": {}}'), true)
  assert.equal(await isCard("webui.json", '{"name": "Mina", "context": "A sailor."}'), true)
  assert.equal(await isCard("Mina.yaml", "name: Mina\ncontext: A sailor."), true)
  assert.equal(await isCard("chat.json", '{"name": "Evening", "greeting": "Hi.", "messages": [{"msg": "Hi."}]}'), false)
  assert.equal(await isCard("world.json", '{"name": "Harbor", "entries": {}}'), false)
  assert.equal(await isCard("book.json", '{"spec": "lorebook_v3", "data": {}}'), false)
  assert.equal(await isCard("space.zip", "PK"), false)
  assert.equal(await isCard("list.json", "[]"), false)
})
