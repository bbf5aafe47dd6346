// The browser's Back closes the layers above the page, and no history entry is left without effect.
import assert from "node:assert/strict"
import test from "node:test"
import BackStack from "../../static/js/models/shell/back_stack.js"
import { stopTimers } from "./support.mjs"

// A history like that of a browser: `go` arrives later, and a new entry drops those after it.
class History {
  entries = [{ page: "before" }, { page: "here" }]
  at = 1
  steps = 0
  onMove = () => {}

  get state() {
    return this.entries[this.at]
  }
  pushState(state) {
    this.entries = [...this.entries.slice(0, this.at + 1), { page: this.state.page, ...state }]
    this.at += 1
  }
  replaceState(state) {
    this.entries[this.at] = { page: this.state.page, ...state }
  }
  go(delta) {
    this.steps += 1
    setTimeout(() => this.move(delta), 5)
  }
  // The buttons of the browser.
  move(delta) {
    const to = this.at + delta
    if (to < 0 || to >= this.entries.length) return
    this.at = to
    this.onMove()
  }
  get place() {
    return [this.state.page, this.state.layer ?? 0]
  }
}

function open(t) {
  const tick = stopTimers(t)
  const history = new History()
  const layers = new BackStack(history)
  history.onMove = () => layers.onPopState()
  const settle = () => tick(100)
  const back = () => {
    history.move(-1)
    settle()
  }
  // A dialog with the methods that the stack needs.
  const dialog = ({ keeps = false } = {}) => {
    const it = { isOpen: true, confirmations: 0 }
    const release = layers.open(() => {
      it.confirmations += 1
      if (!keeps) it.close()
      return !it.isOpen
    })
    it.close = () => {
      it.isOpen = false
      release()
    }
    return it
  }
  const goTo = (page) =>
    layers.whenSettled((isPut) => {
      if (isPut) history.replaceState({ page })
      else history.pushState({ page })
    })
  return { history, layers, settle, back, dialog, goTo }
}

test("back closes the topmost layer and stays on the page", (t) => {
  const { history, settle, back, dialog } = open(t)
  const lower = dialog()
  settle()
  const upper = dialog()
  settle()

  back()
  const after = [upper.isOpen, lower.isOpen, ...history.place]
  back()

  assert.deepEqual(after, [false, true, "here", 1])
  assert.deepEqual([lower.isOpen, ...history.place], [false, "here", 0])
  back()
  assert.equal(history.state.page, "before")
})

test("a layer that closes by itself leaves no entry behind", (t) => {
  const { history, settle, back, dialog } = open(t)
  const it = dialog()
  settle()

  it.close()
  settle()

  assert.deepEqual(history.place, ["here", 0])
  back()
  assert.equal(history.state.page, "before")
})

test("replacing a layer by another needs no navigation", (t) => {
  const { history, settle, dialog } = open(t)
  const first = dialog()
  settle()

  first.close()
  const second = dialog()
  settle()

  assert.deepEqual([history.steps, ...history.place], [0, "here", 1])
  assert.equal(second.isOpen, true)
})

test("a layer that refuses to close keeps its entry", (t) => {
  const { history, settle, back, dialog } = open(t)
  const it = dialog({ keeps: true })
  settle()

  back()
  const after = history.place
  back()

  assert.deepEqual([after, history.place, it.confirmations], [["here", 1], ["here", 1], 2])
})

test("the confirmation of a layer is a layer above it", (t) => {
  const { history, layers, settle, back, dialog } = open(t)
  let question = null
  let editor = true
  const release = layers.open(() => {
    question = dialog()
    return false
  })
  settle()

  back()
  const confirmations = history.place
  back()
  const stays = [question.isOpen, ...history.place]
  back()
  question.close()
  editor = false
  release()
  settle()

  assert.deepEqual(confirmations, ["here", 2])
  assert.deepEqual(stays, [false, "here", 1])
  assert.deepEqual([editor, ...history.place], [false, "here", 0])
})

test("a page that is opened from a layer replaces its entry", (t) => {
  const { history, settle, back, dialog, goTo } = open(t)
  const it = dialog()
  settle()

  it.close()
  goTo("there")
  settle()

  assert.deepEqual(history.place, ["there", 0])
  back()
  assert.deepEqual(history.place, ["here", 0])
})

test("a page that is opened during a navigation waits for it", (t) => {
  const { history, settle, back, dialog, goTo } = open(t)
  const it = dialog()
  settle()

  it.close()
  setTimeout(() => goTo("there"), 3)
  settle()

  assert.deepEqual(history.place, ["there", 0])
  back()
  assert.deepEqual(history.place, ["here", 0])
})

test("forward into a closed layer, or a reload within one, ends on the page", (t) => {
  const { history, layers, settle, back, dialog } = open(t)
  dialog()
  settle()
  back()

  history.move(1)
  settle()
  const after = history.place
  history.pushState({ layer: 1 })
  layers.whenSettled(() => {})
  settle()

  assert.deepEqual(after, ["here", 0])
  assert.deepEqual(history.place, ["here", 0])
})

test("a navigation that never arrives blocks nothing", (t) => {
  const { history, settle, dialog, goTo } = open(t)
  const it = dialog()
  settle()
  history.entries = [history.state]
  history.at = 0

  it.close()
  setTimeout(() => goTo("there"), 3)
  for (let n = 0; n < 20; n += 1) settle()

  assert.deepEqual([history.steps, ...history.place], [1, "there", 0])
})
